"""Mark each test by its folder, share one Spark session for the whole run, and locate Chromium."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import refusals
from hypothesis import settings

gc.disable()  # until everything is imported; see pytest_collection_finish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No deadlines: a busy machine must not fail a test. Every run tries the same examples, so that a
# change is judged by what it changes; "random" and "thorough" look for new ones.
settings.register_profile("braid", deadline=None, max_examples=50, derandomize=True)
settings.register_profile("random", deadline=None, max_examples=50)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.register_profile(
    "quick", deadline=None, max_examples=5, stateful_step_count=10, derandomize=True
)
settings.load_profile("quick" if os.environ.get("BRAID_QUICK") else "braid")


def has_room(folder: Path) -> bool:
    """Return whether a folder has room for the files of tests and allows programs to be
    executed.
    """
    if not os.access(folder, os.W_OK) or os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return False
    return shutil.disk_usage(folder).free > 4 << 30


# Runs create thousands of small files; on a disk, each may cost a millisecond of CPU time.
if has_room(MEMORY := Path("/dev/shm")):
    os.environ.setdefault("TMPDIR", str(MEMORY))
    tempfile.tempdir = None  # pytest has read it already

# For every JVM that a test starts, in notebooks and drivers too: many are short-lived, so a fast
# start matters more than peak speed.
ARCHIVE = Path(sys.prefix) / "spark.jsa"
"""Spark's classes, written by `make test`."""
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Spark settings for tests: queries are interpreted, because compiling them takes longer than
running them on a few hundred rows.
"""
JAVA = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:TieredStopAtLevel=1 "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    " -XX:ReservedCodeCacheSize=240m -XX:-MethodFlushing"  # otherwise one thread sweeps 48 MB all the time
    " -Xms1g -XX:NewSize=512m -XX:MetaspaceSize=256m"  # small young heaps fill up ten times as often
    + (f" -XX:SharedArchiveFile={ARCHIVE} -Xlog:disable" if ARCHIVE.exists() else "")
)
SPARK = " ".join(f"-D{name}={value}" for name, value in INTERPRETED.items())
os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{JAVA} {SPARK}")
os.environ.setdefault("SPARK_DAEMON_JAVA_OPTS", f"{JAVA} -XX:+UseSerialGC")
# Also for the launcher JVM that runs before each of them.
os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# As in braid's command: jsonschema would compile grammars for three seconds in each worker.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# Two workers share two cores; NumPy's own threads would block each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def skip_fsync(_: int) -> None:
    """Do nothing, because no test cuts the power.

    Tests of durability watch the calls themselves. All others need not wait for a disk that two
    workers share.
    """


os.fsync = skip_fsync  # type: ignore[assignment]

HERE = Path(__file__).parent
FOLDERS = ("spark", "browser", "notebooks", "connect", "unit")
"""The order in which folders start: the slowest first."""
SLOW = ("test_answer_check", "test_metamorphic", "test_mutations", "test_world", "test_fuzz")
"""Unit tests that take half a minute: started late, they would leave a worker idle at the end."""


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Ignore helpers beside the tests, and modules elsewhere without a doctest."""
    if collection_path.suffix != ".py":
        return None
    if collection_path.is_relative_to(HERE):
        return None if collection_path.name.startswith("test_") else True
    return None if b">>>" in collection_path.read_bytes() else True


def pytest_collection_finish() -> None:
    """Watch refusals, exclude imported objects from garbage collection, and collect less often.

    Imported objects stay alive anyway. Cycles are few, and models create millions of objects, so a
    collection after each 700 objects would be wasteful.
    """
    refusals.watch_refusals()
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # otherwise DuckDB reports leaks at the end


STDERR = pytest.StashKey[int]()
"""The stderr of the whole run; each test has its own."""


def pytest_configure(config: pytest.Config) -> None:
    config.stash[STDERR] = os.dup(2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End a test that hangs: after `faulthandler_timeout` pytest dumps the threads and ends the
    process.

    All other tests continue. Shortly before, the threads of its JVMs are dumped.
    """
    seconds = float(item.config.getini("faulthandler_timeout")) or threading.TIMEOUT_MAX
    timer = threading.Timer(0.9 * seconds, tell_stuck, [item.config.stash[STDERR], item.nodeid])
    timer.daemon = True
    timer.start()
    try:
        return (yield)
    finally:
        timer.cancel()


def tell_stuck(stderr: int, test: str) -> None:
    """Dump the threads of each JVM that this process has started."""
    import psutil

    os.write(stderr, f"\n{test} is stuck\n".encode())
    for child in psutil.Process().children(recursive=True):
        if child.name() == "java":
            subprocess.run(["jstack", "-l", str(child.pid)], stdout=stderr, stderr=stderr)


def find_folder(item: pytest.Item) -> str:
    inside = item.path.is_relative_to(HERE)  # otherwise a doctest
    return item.path.relative_to(HERE).parts[0] if inside else "unit"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: (FOLDERS.index(find_folder(item)), item.path.stem not in SLOW))
    for item in items:
        item.add_marker(find_folder(item))
        if find_folder(item) == "browser" and os.environ.get("BRAID_NO_BROWSER"):
            item.add_marker(pytest.mark.skip(reason="BRAID_NO_BROWSER is set"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``-n``, give the Spark session to one worker and the browser to one.

    The tests of a file run together, because they share fixtures; each notebook is scheduled alone.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFolder(LoadScopeScheduling):
        ended: ClassVar[set[str]] = set()

        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if "/test_notebooks.py" in file:
                return nodeid
            folders = [f for f in ("spark", "browser") if f"tests/{f}/" in file]
            return folders[0] if folders else file

        def remove_node(self, node: Any) -> str | None:
            units = self.assigned_work[node].values()
            waiting = [test for unit in units for test, done in unit.items() if not done]
            self.ended.update(waiting[:1])
            return super().remove_node(node)

        def _reschedule(self, node: Any) -> None:
            """Do not repeat a test that has ended its process; continue with those after it."""
            for test in self.ended:
                if unit := self.workqueue.get(scope := self._split_scope(test)):
                    unit[test] = True
                    if all(unit.values()):
                        del self.workqueue[scope]
            super()._reschedule(node)

    config.option.loadscopereorder = False  # the order of collection
    return ByFolder(config, log)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from braid.spark_session import session

    java = "-Xss8m -XX:+UseSerialGC"
    spark = session("braid-tests", cores=2, spark_driver_extraJavaOptions=java)
    yield spark
    spark.stop()


@pytest.fixture(scope="module")
def compiled(spark: SparkSession) -> Iterator[None]:
    """Make Spark compile its queries, as it does for users.

    Used if Spark's own answers are the reference, and for large queries.
    """
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    yield
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)


@pytest.fixture(scope="session")
def seaweed() -> Iterator[str]:
    """Yield the URL of a bucket of SeaweedFS; the environment has its address and credentials."""
    from seaweedfs import seaweedfs_store

    with seaweedfs_store() as where, pytest.MonkeyPatch.context() as patch:
        for name, value in where.items():
            patch.setenv(name, value)
        yield "s3://runs"


@pytest.fixture(scope="session")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """Yield the folder of the Jupyter spec of forked kernels, and the process they are forked
    from.
    """
    from forked_kernels import fork_kernels

    with fork_kernels(folder := tmp_path_factory.mktemp("kernels")) as process:
        yield folder, process.pid


@pytest.fixture
def kernels(forked: tuple[Path, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run this process's notebooks in forked kernels."""
    monkeypatch.setenv("JUPYTER_PATH", str(forked[0]))


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of Debian's Chromium; fail with installation advice if it is missing."""
    found = shutil.which("chromium")
    if found is None:
        pytest.fail(
            "Chromium is missing: sudo apt-get install chromium, or set BRAID_NO_BROWSER=1 to "
            "leave these tests out"
        )
    return found
