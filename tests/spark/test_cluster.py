"""On a real cluster, workers are killed and added during a run without changing its results."""

from __future__ import annotations

from pathlib import Path

import driver
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from braid_lab.launches.local_cluster import LocalCluster
from driver_process import launch_driver
from oracle import committed_ids, compute_expected, create_frames, describe_difference, wait_until
from pyspark.sql import SparkSession


def test_a_worker_is_killed_and_a_task_is_done_twice(spark: SparkSession, tmp_path: Path) -> None:
    """A worker is added, and a task of batch 3 stalls after writing its files.

    Spark starts a second attempt on the new worker. The first attempt's files are ignored and
    removed. Then the first worker is killed.
    """
    folder, store = tmp_path / "run", RunStore(tmp_path / "run")
    log, run = tmp_path / "log", driver.Run(str(folder), "start", stalls=3)

    def writes(batch: int) -> None:
        """Wait for a block of a batch."""
        wait_until(
            lambda: list(store.blocks.folder.glob(f"{batch:06d}-*")) or process.poll() is not None,
            f"block of batch {batch}",
            300,
        )
        assert process.poll() is None, log.read_text()

    with (
        LocalCluster(1, has_own_hosts=True) as cluster,
        launch_driver(log, run, master=cluster.url) as process,
    ):
        try:
            writes(1)
            cluster.add_worker()
            writes(5)
            cluster.kill_worker(0)
            assert process.wait(300) == 0, log.read_text()
        finally:
            process.kill()
    assert store.log.committed_batches() == list(range(8))
    assert run.stalled.exists()
    assert not list(store.published.new.glob("000003-*")), "of the task that stalled"
    assert {f.name for f in store.published.results.glob("*.parquet")} == {
        Path(f).name for f in store.results.result_files()
    }
    again = StreamJoin.resume(folder, create_frames(spark, driver.STREAMS))
    again.awaitTermination()
    assert (
        describe_difference(
            committed_ids(again), compute_expected(driver.STREAMS, driver.ON, driver.WINDOWS)
        )
        == ""
    )
