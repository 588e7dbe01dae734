"""One JVM for the notebooks of a test run, one after the other: the second finds Spark's code loaded
and compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from subprocess import Popen, TimeoutExpired
from typing import Any

from braid.spark_session import SETTINGS, launch_jvm
from pyspark import SparkConf

LAUNCHED = ("spark.driver.memory", "spark.driver.extraJavaOptions")
"""Settings that a JVM takes when it starts, and never after."""


@dataclass
class Jvm:
    """A JVM that PySpark attaches to in a process with this ``environment``, as to one that it
    started. It has one Spark context at a time.
    """

    gateway: Any

    @property
    def environment(self) -> dict[str, str]:
        java = self.gateway.java_parameters
        return {
            "PYSPARK_GATEWAY_PORT": str(java.port),
            "PYSPARK_GATEWAY_SECRET": java.auth_token,
        }

    def leave(self) -> None:
        """Stop the context that a process left behind when it ended, and all that runs in it."""
        spark = self.gateway.jvm.org.apache.spark
        contexts, utils = self._object(spark, "SparkContext"), self._object(spark.util, "Utils")
        if (active := contexts.getActive()).isDefined():
            active.get().stop()
        sessions = spark.sql.classic.SparkSession
        sessions.clearActiveSession()
        sessions.clearDefaultSession()
        utils.clearLocalRootDirs()  # they went with the process
        # What Spark called in that process goes now: later, the JVM would have the next one forget
        # what has the same name there ("Object ID unknown").
        system = self.gateway.jvm.java.lang.System
        system.gc()
        system.runFinalization()

    @staticmethod
    def _object(package: Any, name: str) -> Any:
        """An object of Scala's."""
        return getattr(getattr(package, f"{name}$"), "MODULE$")


@contextmanager
def warm() -> Iterator[Jvm]:
    """A JVM, with what Braid's own sessions ask of one."""
    settings = SparkConf(loadDefaults=False).setAll([(k, SETTINGS[k]) for k in LAUNCHED])
    gateway = launch_jvm(settings)
    try:
        yield Jvm(gateway)
    finally:
        gateway.shutdown()
        end(gateway.proc)


def end(process: Popen[bytes], within: float = 30.0) -> None:
    """Have a JVM end that nobody needs any more. One that does not in so many seconds is killed,
    and TimeoutExpired raised.
    """
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(within)
    except TimeoutExpired:
        process.kill()
        process.wait()
        raise
