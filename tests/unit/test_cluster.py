"""Data sent to a cluster's workers, and whether they share the run's folder. No Spark."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from braid import spark_workers
from braid.storage.object_store import open_object_store
from braid_lab.launches.local_cluster import LocalCluster


class Tried:
    """A replacement for SparkContext that runs tasks here, after calling ``before``."""

    master = "spark://there:7077"
    defaultParallelism = 2

    def __init__(self, before: Callable[[], Any] = lambda: None) -> None:
        self.before = before

    def parallelize(self, values: Iterable[int], parts: int) -> Any:
        def mapped(task: Callable[[Iterable[int]], Any]) -> Any:
            return SimpleNamespace(collect=lambda: (self.before(), list(task([0])))[1])

        return SimpleNamespace(mapPartitions=mapped)


def test_the_package_that_is_sent_can_be_imported_by_itself(tmp_path: Path) -> None:
    packed = spark_workers.pack_package(tmp_path)
    code = (
        f"import sys; sys.path.insert(0, {str(packed)!r}); "
        "import braid.execution.spark_executor as found; print(found.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={}
    )
    assert done.stdout.startswith(str(packed))


def test_a_folder_that_workers_share_is_left_as_it_was(tmp_path: Path) -> None:
    spark_workers.check_shared_folder(Tried(), tmp_path)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (lambda f: [m.unlink() for m in f.iterdir()], "that this process wrote there is not there"),
        (lambda f: [m.write_text("") for m in f.iterdir()], "holds something else"),
    ],
)
def test_a_folder_that_a_worker_does_not_share_is_refused(
    tmp_path: Path, fault: Callable[[Path], Any], said: str
) -> None:
    with pytest.raises(ValueError, match=f"does not share the run's folder .*{said}") as refusal:
        spark_workers.check_shared_folder(Tried(lambda: fault(tmp_path)), tmp_path)  # type: ignore[arg-type]
    assert "\n" not in str(refusal.value)


def test_workers_that_lack_something_are_told_with_their_last_line(tmp_path: Path) -> None:
    def lacks() -> None:
        raise RuntimeError(
            "An exception was thrown\nTraceback (most recent call last):\n"
            "ModuleNotFoundError: No module named 'pyarrow'\n\tat java"
        )

    with pytest.raises(ValueError, match="cannot run Braid: ModuleNotFoundError: No module named"):
        spark_workers.check_shared_folder(Tried(lacks), tmp_path)  # type: ignore[arg-type]


def test_what_is_local_is_not_tried(tmp_path: Path) -> None:
    spark_workers.check_shared_folder(SimpleNamespace(master="local[2]"), tmp_path / "none")  # type: ignore[arg-type]


def test_a_cluster_of_no_workers_is_refused() -> None:
    with pytest.raises(ValueError, match="a cluster has 0 workers; it must have 1 or more"):
        LocalCluster(workers=0)


def test_a_bucket_that_workers_reach_is_left_as_it_was() -> None:
    url = f"memory:///{uuid.uuid4().hex}"
    spark_workers.check_object_store(Tried(), url)  # type: ignore[arg-type]
    assert open_object_store(url).list_objects() == {}


def test_a_bucket_that_a_worker_does_not_reach_is_refused() -> None:
    """As by a worker whose environment names another store."""
    url = f"memory:///{uuid.uuid4().hex}"
    with pytest.raises(ValueError, match=rf"does not reach the run's bucket: {url}/.* is missing;"):
        spark_workers.check_object_store(
            Tried(
                lambda: open_object_store(url).delete_objects(open_object_store(url).list_objects())
            ),
            url,
        )  # type: ignore[arg-type]
    assert open_object_store(url).list_objects() == {}
    spark_workers.check_object_store(SimpleNamespace(master="local[2]"), url)  # type: ignore[arg-type]
