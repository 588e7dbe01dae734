"""A SparkSession tuned for short micro-batches on one machine, or the one that is there."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
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

from braid.core.event_logging import LOGGER
from braid.spark_workers import ship_package
from braid.storage.checkpoint_files import register_private_file_system
from braid.util import machine
from braid.util.temp_dirs import make_temp_dir

SETTINGS = {
    "spark.ui.enabled": "false",
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
    # How long the JVM waits for this process to take rows that it asked for: a busy machine may
    # need more than 15 s.
    "spark.python.authenticate.socketTimeout": "120s",
    # No checksum files beside the logs of offsets and commits.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # A restart needs the last batch; what is kept besides is listed in every batch.
    "spark.sql.streaming.minBatchesToRetain": "10",
    # What the driver's JVM remembers, for Spark's own pages, of jobs and queries that have ended.
    # By default of a thousand each, to which a run comes after hundreds of batches: some 27 MB.
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
"""What each start of Spark says; in a notebook it would stand in red under some cell."""
_SOURCES = "updatingResource"
"""What Hadoop calls the files that its settings are from."""
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
"""What PySpark asks the JVM for again and again: a name, and what it asks of that."""
_starting = threading.Lock()
LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Hosts that are this machine and nobody else's."""


def session(
    name: str = "braid", cores: int | None = None, master: str | None = None, **settings: str
) -> SparkSession:
    """Start Spark in this process, or return the session that runs.

    ``master`` is that of a cluster (``"spark://host:7077"``, ``"yarn"``, ``"k8s://..."``); by
    default ``cores`` worker threads of this process (default: all), where a failed task is tried
    four times. ``settings`` are Spark's, with ``_`` for ``.``. Temporary files go to a private
    folder of the system's temporary directory, which goes with this process. Spark's own errors go
    to stderr; what Braid logs, under the logger ``braid``, is in ``braid.core.event_logging``.
    """
    # A refused condition is an exception that says so; Spark would also print it as JSON.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master is None or urlsplit(master).hostname in LOOPBACK:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else Spark's workers must reach us
    here = f"local[{cores or machine.available_cores()},4]"
    builder = SparkSession.builder.appName(name).master(master or here)
    scratch, forked = _scratch_folder(), _fork_settings(master or here)
    conf = {
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        **SETTINGS,
        **forked,
    }
    conf |= {key.replace("_", "."): value for key, value in settings.items()}
    for key, value in conf.items():
        builder = builder.config(key, value)
    with _starting:
        begins = SparkContext._active_spark_context is None
        _launch_jvm_once({"spark.app.name": name, "spark.master": master or here, **conf})
        spark = builder.getOrCreate()
        if begins:
            _install_shortcuts(spark)
            if forked:  # a worker's process must find the module, whatever it then runs
                _add_python_path(spark.sparkContext)
        return spark


def _fork_settings(master: str) -> dict[str, str]:
    """Have workers of this machine forked from `braid.execution.spark_daemon`, where they run this
    Python. Not on macOS, whose libraries may not be used after a fork.
    """
    here = master.startswith("local") and sys.platform == "linux"
    mine = here and _is_this_python(os.environ["PYSPARK_PYTHON"])
    return {"spark.python.daemon.module": "braid.execution.spark_daemon"} if mine else {}


def _launch_jvm_once(conf: Mapping[str, str]) -> None:
    """Start the JVM, if there is none: what it says on stderr comes by this process."""
    if SparkContext._gateway is not None:
        return
    settings = SparkConf(loadDefaults=False).setAll(list(conf.items()))
    SparkContext(conf=settings, gateway=launch_jvm(settings))


def launch_jvm(settings: SparkConf) -> Any:
    """A JVM of its own: what it says on stderr comes by this process."""
    read, write = os.pipe()
    threading.Thread(target=_forward_stderr, args=(read,), name="braid-jvm", daemon=True).start()
    try:
        return launch_gateway(settings, {"stderr": write})  # type: ignore[no-untyped-call]
    finally:
        os.close(write)


def _install_shortcuts(spark: SparkSession) -> None:
    """Spare Spark what joins have no use for. A Spark that lacks what this changes is left as it
    is.
    """
    jvm, java = spark.sparkContext._jvm, spark.sparkContext._jsc
    assert jvm is not None and java is not None
    for shortcut in (_cache_java_names, register_private_file_system, _drop_setting_sources):
        try:
            shortcut(jvm, java.hadoopConfiguration())
        except (Py4JError, TypeError) as error:
            LOGGER.info("Spark stays as it is, slower, without %s: %s", shortcut.__name__, error)


def _cache_java_names(jvm: Any, _: Any) -> None:
    """Keep what `_ASKED` names. Py4J would have the JVM look for a simple name in each package that
    PySpark imports, all through 280 jars: a millisecond or two, when a join starts and in each
    batch of Spark's tasks.
    """
    for asked in _ASKED:
        names, found = asked.split(), [jvm]
        for name in names:
            found.append(getattr(found[-1], name))
        if not isinstance(found[-1], JavaPackage):  # what is imported later is no class yet
            for at, name, known in zip(found, names, found[1:], strict=False):
                setattr(at, name, known)


def _drop_setting_sources(jvm: Any, settings: Any) -> None:
    """Let Hadoop forget which of its files each of 1,100 settings is from; only messages tell it.
    Spark sends its settings to the tasks of each scan, and Hadoop compresses each of these texts
    with a gzip of its own: 6 ms a scan.
    """
    jvm.org.apache.hadoop.mapred.JobConf()  # brings in settings, with which all are read anew
    settings.size()  # here
    field = jvm.org.apache.hadoop.conf.Configuration().getClass().getDeclaredField(_SOURCES)
    field.setAccessible(True)
    field.set(settings, jvm.java.util.concurrent.ConcurrentHashMap())


def _forward_stderr(said: int) -> None:
    """What a JVM says to stderr, without the lines that each begins with."""
    with os.fdopen(said, "rb") as lines:
        for line in lines:
            if not any(told in line for told in _ALWAYS):
                with suppress(OSError):  # nobody listens any more; the JVM may still talk
                    os.write(2, line)


@cache
def _scratch_folder() -> Path:
    return make_temp_dir("spark")


def prepare_workers(spark: SparkSession) -> None:
    """Let the workers on this machine find Braid, whoever made the session and wherever: they run
    this Python, with this package on its path. Those of a cluster are sent the package.

    Raises ValueError, with one sentence, where PYSPARK_PYTHON names a Python that has no Braid.
    """
    context = spark.sparkContext
    if not str(context.master).startswith("local"):
        ship_package(context)
        return
    if "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    if not _is_this_python(context.pythonExec):
        if lacks := _find_import_error(context.pythonExec):
            raise ValueError(
                f"Spark's workers run {context.pythonExec!r} (PYSPARK_PYTHON), which cannot import "
                f"Braid ({lacks}); set it to {sys.executable!r} before the session is made"
            )
        return
    _add_python_path(context)


def _add_python_path(context: SparkContext) -> None:
    """Put this package on the path of workers on this machine."""
    known = context.environment.get("PYTHONPATH", "").split(os.pathsep)
    home = str(Path(__file__).parents[1])
    if home not in known:
        context.environment["PYTHONPATH"] = os.pathsep.join(filter(None, [home, *known]))


def _is_this_python(named: str) -> bool:
    """Whether a command is the Python of this environment: of links to one Python, each may belong
    to an environment of its own.
    """
    return (shutil.which(named) or named) == sys.executable


@cache
def _find_import_error(python: str) -> str:
    """What another Python says when it imports what workers need; empty when it can."""
    try:
        done = subprocess.run(
            [python, "-c", "import braid.execution.spark_executor"], capture_output=True, text=True
        )
    except OSError as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]
