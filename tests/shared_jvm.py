"""One JVM for all notebooks of a test run, one after the other.

From the second notebook on, Spark's code is already loaded and compiled.
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
"""Settings that a JVM takes only at its start."""


@dataclass
class Jvm:
    """A JVM to which PySpark in a process with this ``environment`` attaches, as if it had started
    it.

    It has one Spark context at a time.
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
        """Stop the context that a finished process left behind, with everything that runs in it."""
        spark = self.gateway.jvm.org.apache.spark
        contexts, utils = self._object(spark, "SparkContext"), self._object(spark.util, "Utils")
        if (active := contexts.getActive()).isDefined():
            active.get().stop()
        sessions = spark.sql.classic.SparkSession
        sessions.clearActiveSession()
        sessions.clearDefaultSession()
        utils.clearLocalRootDirs()  # they ended with the process
        # Release Spark's callbacks into that process now. Later, the JVM would make the next process
        # release its own objects with the same ids ("Object ID unknown").
        system = self.gateway.jvm.java.lang.System
        system.gc()
        system.runFinalization()

    @staticmethod
    def _object(package: Any, name: str) -> Any:
        """Return a Scala object."""
        return getattr(getattr(package, f"{name}$"), "MODULE$")


@contextmanager
def start_jvm() -> Iterator[Jvm]:
    """Yield a JVM with the settings of Braid's own sessions."""
    settings = SparkConf(loadDefaults=False).setAll([(k, SETTINGS[k]) for k in LAUNCHED])
    gateway = launch_jvm(settings)
    try:
        yield Jvm(gateway)
    finally:
        gateway.shutdown()
        end_process(gateway.proc)


def end_process(process: Popen[bytes], within: float = 30.0) -> None:
    """End an unused JVM.

    After ``within`` seconds it is killed and TimeoutExpired raised.
    """
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(within)
    except TimeoutExpired:
        process.kill()
        process.wait()
        raise
