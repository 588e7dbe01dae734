"""Marks each test by its folder, keeps one Spark session for the whole run, and knows where
Chromium is.
"""

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
from hypothesis import settings

gc.disable()  # until all is imported, see pytest_collection_finish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No deadlines: a busy machine is no reason to fail. Examples are others in every run, so that few of
# them try as much in time; "thorough" tries as much at once.
settings.register_profile("braid", deadline=None, max_examples=50)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.register_profile("quick", deadline=None, max_examples=5, stateful_step_count=10)
settings.load_profile("quick" if os.environ.get("BRAID_QUICK") else "braid")


def roomy(folder: Path) -> bool:
    """Whether a folder has room for what tests write, and programs may be started there."""
    if not os.access(folder, os.W_OK) or os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return False
    return shutil.disk_usage(folder).free > 4 << 30


# Runs make thousands of small files; on a disk, each may cost a millisecond of the processor.
if roomy(MEMORY := Path("/dev/shm")):
    os.environ.setdefault("TMPDIR", str(MEMORY))
    tempfile.tempdir = None  # pytest has asked for it already

# Of every JVM that a test starts, in notebooks and drivers too: many are short, and starting fast
# beats running fast.
ARCHIVE = Path(sys.prefix) / "spark.jsa"
"""Spark's classes, which `make test` has written."""
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings of Spark's for tests: it compiles no code for queries of some hundred rows, each of
which is asked a few times."""
JAVA = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:TieredStopAtLevel=1 "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    " -XX:ReservedCodeCacheSize=240m -XX:-MethodFlushing"  # else one thread sweeps 48 MB all the time
    " -Xms1g -XX:NewSize=512m -XX:MetaspaceSize=256m"  # small heaps fill up ten times as often
    + (f" -XX:SharedArchiveFile={ARCHIVE} -Xlog:disable" if ARCHIVE.exists() else "")
)
SPARK = " ".join(f"-D{name}={value}" for name, value in INTERPRETED.items())
os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{JAVA} {SPARK}")
os.environ.setdefault("SPARK_DAEMON_JAVA_OPTS", f"{JAVA} -XX:+UseSerialGC")
# And of the JVM before each, which finds out how to start it.
os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# As braid's command has it: jsonschema would compile grammars for three seconds, in each worker.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# Two workers run on two cores; NumPy's own threads would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def fsync(_: int) -> None:
    """Does nothing: no test cuts the power. Those of what outlives that watch the calls themselves;
    all others need not wait for a disk that two workers share.
    """


os.fsync = fsync  # type: ignore[assignment]

HERE = Path(__file__).parent
FOLDERS = ("spark", "browser", "notebooks", "unit")
"""In the order in which they are begun: what takes longest first."""


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the helpers beside the tests, and modules elsewhere without an example in a
    docstring.
    """
    if collection_path.suffix != ".py":
        return None
    if collection_path.is_relative_to(HERE):
        return None if collection_path.name.startswith("test_") else True
    return None if b">>>" in collection_path.read_bytes() else True


def pytest_collection_finish() -> None:
    """What has been imported stays: the collector need not go over it again and again. Nor need it
    look for cycles, which are few, after each 700 objects: models make millions.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # else DuckDB reports what is left at the end


STDERR = pytest.StashKey[int]()
"""That of the whole run; a test has its own."""


def pytest_configure(config: pytest.Config) -> None:
    config.stash[STDERR] = os.dup(2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test that takes `faulthandler_timeout` waits for ever: pytest tells where its threads are and
    ends the process, and all other tests go on. Shortly before, its JVMs are asked.
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
    """Tell what the threads do of each JVM that this process has started."""
    import psutil

    os.write(stderr, f"\n{test} is stuck\n".encode())
    for child in psutil.Process().children(recursive=True):
        if child.name() == "java":
            subprocess.run(["jstack", "-l", str(child.pid)], stdout=stderr, stderr=stderr)


def folder_of(item: pytest.Item) -> str:
    inside = item.path.is_relative_to(HERE)  # else an example in a docstring
    return item.path.relative_to(HERE).parts[0] if inside else "unit"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: FOLDERS.index(folder_of(item)))
    for item in items:
        item.add_marker(folder_of(item))
        if folder_of(item) == "browser" and os.environ.get("BRAID_NO_BROWSER"):
            item.add_marker(pytest.mark.skip(reason="BRAID_NO_BROWSER is set"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``-n``: one worker has the session of Spark, and one the browser; a file shares what it
    makes, and a notebook is long enough to stand alone.
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
            """A test that has ended its process is not tried again, but all that come after it."""
            for test in self.ended:
                if unit := self.workqueue.get(scope := self._split_scope(test)):
                    unit[test] = True
                    if all(unit.values()):
                        del self.workqueue[scope]
            super()._reschedule(node)

    config.option.loadscopereorder = False  # the order is as collected
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
    """Spark compiles its queries, as it does for users: where its own answers are the truth, and
    where they are large.
    """
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    yield
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)


@pytest.fixture(scope="session")
def seaweed() -> Iterator[str]:
    """The URL of a bucket of SeaweedFS, which the environment tells how to reach."""
    from seaweedfs import seaweedfs_store

    with seaweedfs_store() as where, pytest.MonkeyPatch.context() as patch:
        for name, value in where.items():
            patch.setenv(name, value)
        yield "s3://runs"


@pytest.fixture(scope="session")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """Where Jupyter finds the spec of kernels that are forked, and the process that they come of."""
    from forked_kernels import forking

    with forking(folder := tmp_path_factory.mktemp("kernels")) as process:
        yield folder, process.pid


@pytest.fixture
def kernels(forked: tuple[Path, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Notebooks that this process runs have kernels that are forked."""
    monkeypatch.setenv("JUPYTER_PATH", str(forked[0]))


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Debian's Chromium; without it the test fails and says what to install."""
    found = shutil.which("chromium")
    if found is None:
        pytest.fail(
            "Chromium is missing: sudo apt-get install chromium, or set BRAID_NO_BROWSER=1 to "
            "leave these tests out"
        )
    return found
