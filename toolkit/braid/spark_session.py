"""Start or reuse a SparkSession, tuned for short micro-batches on one machine."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from braid.core.event_jsonl import LOGGER
from braid.spark_workers import add_python_path, is_this_python
from braid.storage.jvm_file_scheme import register_private_file_system
from braid.util import machine
from braid.util.temp_dirs import make_temp_dir

SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # A query stopped in the middle of a batch overflows the default stack in a recursive regular
    # expression.
    "spark.driver.extraJavaOptions": "-Xss8m -XX:+UseParallelGC",
    "spark.driver.memory": "4g",
    # How long the JVM waits for this process to fetch requested rows. A busy machine may
    # need more than 15 s.
    "spark.python.authenticate.socketTimeout": "120s",
    # Rows reach Python by a socket file, not by a port of this machine: another program that
    # connects to the port, such as a notebook's client, would take the one connection that Spark
    # accepts, and Python would wait forever.
    "spark.python.unix.domain.socket.enabled": "true",
    # No checksum files beside the logs of offsets and commits.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # A restart needs the last batch only, and every batch lists the retained ones.
    "spark.sql.streaming.minBatchesToRetain": "10",
    # Ended jobs and queries that the driver's JVM retains for Spark's UI. The default is 1,000
    # each, which a run reaches after hundreds of batches: some 27 MB.
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "50",
}


_ALWAYS = (
    b"Using incubator modules: jdk.incubator.vector",
    b"Using Spark's default log4j profile",
    b"Setting default log level to",
    b"To adjust logging level use",
    b"Setting Spark log level to",
    b"WARN NativeCodeLoader: Unable to load native-hadoop library",
)
"""Messages of every Spark start. In a notebook they would appear in red below a cell."""
_SOURCES = "updatingResource"
"""Hadoop's field for the files that its settings come from."""
_ASKED = (
    "PythonErrorUtils",
    "PythonRDD",
    "PythonSQLUtils",
    "PythonUtils toSeq",
    "SerDeUtil",
    "SimplePythonFunction",
    "functions col",
    "java util ArrayList",
    "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin clear",
    "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin set",
    "org.apache.spark.sql.classic.SparkSession getActiveSession",
    "org.apache.spark.sql.functions col",
    "org.apache.spark.sql.functions expr",
    "py4j reflection TypeUtil isInstanceOf",
)
"""Names that PySpark repeatedly looks up in the JVM: a name, followed by attributes."""
_starting = threading.Lock()
LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Hosts that only this machine reaches."""


def session(
    name: str = "braid",
    cores: int | None = None,
    master: str | None = None,
    ui: bool = False,
    **settings: str,
) -> SparkSession:
    """Start Spark in this process, or return the running session.

    Temporary files are in a private folder of the system's temporary directory, which is removed
    with this process. Spark's errors go to stderr. Braid logs under the logger ``braid`` (see
    ``braid.core.event_jsonl``).

    Parameters
    ----------
    name
        Name of the application.
    cores
        Worker threads of this process. Default: all cores. A failed task is tried four times.
    master
        A cluster's master: ``"spark://host:7077"``, ``"yarn"``, ``"k8s://..."``. Default: this
        process.
    ui
        Whether Spark serves its web pages; their address is ``spark.sparkContext.uiWebUrl``.
    settings
        Spark's settings, with ``_`` for ``.``.

    Raises ValueError if ``ui`` is asked of a running session that serves no pages.
    """
    # A refused condition raises an exception. Spark would also print it as JSON.
    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master is None or urlsplit(master).hostname in LOOPBACK:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else workers must reach us
    here = f"local[{cores or machine.available_cores()},4]"
    builder = SparkSession.builder.appName(name).master(master or here)
    scratch, forked = _scratch_folder(), _fork_settings(master or here)
    conf = {
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        **SETTINGS,
        "spark.ui.enabled": str(ui).lower(),
        **forked,
    }
    conf |= {key.replace("_", "."): value for key, value in settings.items()}
    for key, value in conf.items():
        builder = builder.config(key, value)
    with _starting:
        begins = SparkContext._active_spark_context is None
        _launch_jvm_once({"spark.app.name": name, "spark.master": master or here, **conf})
        spark = builder.getOrCreate()
        if ui and spark.sparkContext.uiWebUrl is None:
            raise ValueError("the running session serves no pages; stop it first: spark.stop()")
        if begins:
            _install_shortcuts(spark)
            if forked:  # workers import the daemon module before any task
                add_python_path(spark.sparkContext)
        return spark


def _fork_settings(master: str) -> dict[str, str]:
    """Return settings that fork local workers from `braid.execution.spark_daemon`.

    They apply if workers run this Python on Linux. On macOS, libraries may not be used after a
    fork.
    """
    here = master.startswith("local") and sys.platform == "linux"
    is_same_python = here and is_this_python(os.environ["PYSPARK_PYTHON"])
    return {"spark.python.daemon.module": "braid.execution.spark_daemon"} if is_same_python else {}


def _launch_jvm_once(conf: Mapping[str, str]) -> None:
    """Start the JVM unless it is running. This process forwards its stderr."""
    if SparkContext._gateway is not None:
        return
    settings = SparkConf(loadDefaults=False).setAll(list(conf.items()))
    SparkContext(conf=settings, gateway=launch_jvm(settings))


def launch_jvm(settings: SparkConf) -> Any:
    """Start a separate JVM and return its gateway. This process forwards its stderr."""
    read, write = os.pipe()
    threading.Thread(target=_forward_stderr, args=(read,), name="braid-jvm", daemon=True).start()
    try:
        return launch_gateway(settings, {"stderr": write})  # type: ignore[no-untyped-call]
    finally:
        os.close(write)


def _install_shortcuts(spark: SparkSession) -> None:
    """Disable work of Spark's that joins do not need.

    A Spark without these internals is left unchanged.
    """
    jvm, java = spark.sparkContext._jvm, spark.sparkContext._jsc
    assert jvm is not None and java is not None
    for shortcut in (_cache_java_names, register_private_file_system, _drop_setting_sources):
        try:
            shortcut(jvm, java.hadoopConfiguration())
        except (Py4JError, TypeError) as error:
            LOGGER.info("Spark stays as it is, slower, without %s: %s", shortcut.__name__, error)


def _cache_java_names(jvm: Any, _: Any) -> None:
    """Cache the names in `_ASKED`.

    To resolve a simple name, Py4J has the JVM search each package that PySpark imports, in 280
    jars. That takes 1 to 2 ms at the start of a join and in each batch on Spark.
    """
    for path in _ASKED:
        names, packages = path.split(), [jvm]
        for name in names:
            packages.append(getattr(packages[-1], name))
        if not isinstance(packages[-1], JavaPackage):  # not imported yet
            for at, name, package in zip(packages, names, packages[1:], strict=False):
                setattr(at, name, package)


def _drop_setting_sources(jvm: Any, settings: Any) -> None:
    """Drop the file names from which Hadoop read its 1,100 settings; only messages use them.

    Spark sends its settings to the tasks of each scan, and Hadoop compresses each of these texts
    with a separate gzip: 6 ms a scan.
    """
    jvm.org.apache.hadoop.mapred.JobConf()  # adds settings, so all are read again
    settings.size()  # here
    field = jvm.org.apache.hadoop.conf.Configuration().getClass().getDeclaredField(_SOURCES)
    field.setAccessible(True)
    field.set(settings, jvm.java.util.concurrent.ConcurrentHashMap())


def _forward_stderr(descriptor: int) -> None:
    """Forward a JVM's stderr, without the messages of every start."""
    with os.fdopen(descriptor, "rb") as lines:
        for line in lines:
            if not any(expected in line for expected in _ALWAYS):
                with suppress(OSError):  # stderr is closed; the JVM may still write
                    os.write(2, line)


@cache
def _scratch_folder() -> Path:
    return make_temp_dir("spark")
