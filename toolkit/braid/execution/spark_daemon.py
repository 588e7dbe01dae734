"""What Spark's Python workers are forked from: PySpark's own daemon, which here has imported what
tasks need. Else each worker would import it: all of a session, those that Spark starts anew after a
minute without work, and those after a task that failed.

PySpark imports nothing before it forks, for fear of threads that a child would lack. What is
imported here has none but those of Arrow's memory and of OpenBLAS, which begin anew in a child.
"""

from __future__ import annotations

import gc

from pyspark.daemon import manager

import braid.execution.spark_executor  # noqa: F401
from braid.util.machine import retain_freed_memory

if __name__ == "__main__":
    retain_freed_memory()
    gc.collect()
    gc.freeze()  # so that collections in workers do not copy all of it
    manager()
