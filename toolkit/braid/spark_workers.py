"""Send workers of a Spark cluster the code; check that they share the run's folder or bucket."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from braid.storage.object_store import open_object_store
from braid.util.error_summary import summarize_error
from braid.util.temp_dirs import make_temp_dir as private

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_TASKS = 4
"""Tasks for each core in a check, so that every worker most likely runs one."""
_shipped: set[str] = set()
"""Applications whose workers have the package."""


def pack_package(into: Path) -> Path:
    """Write this package as an importable zip file to the folder ``into``, and return its path."""
    home = Path(__file__).parent
    with zipfile.ZipFile(archive := into / "braid.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(home.rglob("*.py")):
            packed.write(file, file.relative_to(home.parent))
    return archive


def ship_package(context: SparkContext) -> None:
    """Send this package to the workers of a cluster, once per application.

    It precedes an installed one, so that driver and workers run the same code.
    """
    if context.applicationId not in _shipped:
        context.addPyFile(str(pack_package(private("code"))))
        _shipped.add(context.applicationId)


def prepare_workers(spark: SparkSession) -> None:
    """Make Braid importable in Spark's workers.

    Local workers run this Python with this package on its path. This works for any session, also
    one that Braid did not create. The package is sent to workers of a cluster.

    Raises ValueError if PYSPARK_PYTHON names a Python without Braid.
    """
    context = spark.sparkContext
    if not str(context.master).startswith("local"):
        ship_package(context)
        return
    if "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    if not is_this_python(context.pythonExec):
        if lacks := _find_import_error(context.pythonExec):
            raise ValueError(
                f"Spark's workers run {context.pythonExec!r} (PYSPARK_PYTHON), which cannot import "
                f"Braid ({lacks}); set it to {sys.executable!r} before the session is made"
            )
        return
    add_python_path(context)


def add_python_path(context: SparkContext) -> None:
    """Add this package to the path of workers on this machine."""
    paths = context.environment.get("PYTHONPATH", "").split(os.pathsep)
    home = str(Path(__file__).parents[1])
    if home not in paths:
        context.environment["PYTHONPATH"] = os.pathsep.join(filter(None, [home, *paths]))


def is_this_python(named: str) -> bool:
    """Return whether a command is the Python of this environment.

    Links to the same Python are different if they belong to different environments.
    """
    return (shutil.which(named) or named) == sys.executable


@cache
def _find_import_error(python: str) -> str:
    """Return the error of another Python that imports the workers' module; empty: it can."""
    try:
        done = subprocess.run(
            [python, "-c", "import braid.execution.spark_executor"], capture_output=True, text=True
        )
    except OSError as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def check_shared_folder(context: SparkContext, folder: Path) -> None:
    """Check that all workers of a cluster can read and write the run's folder.

    Local workers always can.

    Raises ValueError that names the worker and the fault.
    """
    if str(context.master).startswith("local"):
        return
    token = uuid.uuid4().hex
    marker = folder / f".shared-{token}"
    marker.write_text(token)
    try:
        missed = _find_worker_faults(context, partial(_find_folder_fault, marker, token))
    finally:
        marker.unlink(missing_ok=True)
    if missed:
        worker, why = missed[0]
        raise ValueError(
            f"the worker {worker} does not share the run's folder {folder}: {why}; use a folder "
            "that this process and all workers read and write"
        )


def check_object_store(context: SparkContext, url: str) -> None:
    """Check that all workers of a cluster can read and write the run's bucket.

    Raises ValueError that names the worker and the fault.
    """
    if str(context.master).startswith("local"):
        return
    token, there = uuid.uuid4().hex, open_object_store(url)
    there.put_object(marker := f"probe-{token}", token.encode())
    try:
        missed = _find_worker_faults(context, partial(_find_store_fault, url, marker))
    finally:
        there.delete_objects([marker])
    if missed:
        worker, why = missed[0]
        raise ValueError(
            f"the worker {worker} does not reach the run's bucket: {why}; all workers must reach "
            "the same store as this process"
        )


def _find_worker_faults(context: SparkContext, fault: Callable[[], str]) -> list[tuple[str, str]]:
    """Return the workers that have a fault, with the fault.

    Raises ValueError if a worker cannot run the check.
    """
    try:
        tasks = _TASKS * max(2, context.defaultParallelism)
        faults = context.parallelize(range(tasks), tasks).mapPartitions(_make_probe_task(fault))
        return sorted({(worker, why) for worker, why in faults.collect() if why})
    except Exception as error:  # any failure of a worker, as Spark reports it
        raise ValueError(
            f"the workers of {context.master} cannot run Braid: {summarize_error(error)}; they "
            "need this "
            "Python (PYSPARK_PYTHON) with the packages that Braid needs"
        ) from error


def _make_probe_task(
    fault: Callable[[], str],
) -> Callable[[Iterable[int]], Iterator[tuple[str, str]]]:
    """Return a task that yields the worker's name and its fault; empty: none."""

    def run(_: Iterable[int]) -> Iterator[tuple[str, str]]:
        yield socket.gethostname(), fault()

    return run


def _find_folder_fault(marker: Path, token: str) -> str:
    if not marker.exists():
        return "a file that this process wrote there is not there"
    if marker.read_text() != token:
        return "a file that this process wrote there holds something else"
    copy = marker.with_name(f"{marker.name}-{uuid.uuid4().hex}")
    try:
        copy.touch()
        copy.unlink()
    except OSError as error:
        return f"it cannot be written there ({error.strerror})"
    return ""


def _find_store_fault(url: str, marker: str) -> str:
    try:
        there = open_object_store(url)
        there.put_object(copy := f"{marker}-{uuid.uuid4().hex}", there.get_object(marker))
        there.delete_objects([copy])
    except (OSError, ValueError, ModuleNotFoundError) as error:
        return str(error)
    return ""
