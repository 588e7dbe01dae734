"""Daemon from which Spark's Python workers are forked, with the modules of tasks imported.

With PySpark's own daemon, each worker imports them: the workers of a new session, those that Spark
starts again after a minute without work, and those after a failed task.

PySpark imports nothing before it forks, since a child lacks its parent's threads. The modules
imported here start only threads of Arrow's memory pool and of OpenBLAS, which start again in a
child.
"""

from __future__ import annotations

import gc

from pyspark.daemon import manager

import braid.execution.spark_executor  # noqa: F401
from braid.util.machine import retain_freed_memory

if __name__ == "__main__":
    retain_freed_memory()
    gc.collect()
    gc.freeze()  # collections in workers then do not copy its pages
    manager()
