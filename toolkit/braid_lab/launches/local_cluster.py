"""A small Spark cluster on this machine, to try runs with several workers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

from braid.util.temp_dirs import make_temp_dir

_REGISTERED = "registered with master"
"""Log message of a worker that the master has registered."""
HOST = "127.0.0.1"
"""Address of a cluster on this machine."""


class LocalCluster:
    """A standalone Spark cluster on this machine's loopback, from PySpark's distribution.

    Use ``url`` as ``session(master=...)``. Each worker has ``cores`` cores and its own folder,
    which is removed with this process. With ``has_own_hosts``, each worker has its own address,
    127.0.0.2 and so on, which Spark regards as another machine (on Linux).

    Raises TimeoutError if a process has not started after two minutes.
    """

    def __init__(
        self, workers: int = 2, cores: int = 1, memory: str = "1g", has_own_hosts: bool = False
    ) -> None:
        if workers < 1:
            raise ValueError(f"a cluster has {workers} workers; it must have 1 or more")
        self.folder = make_temp_dir("cluster")
        self.cores, self.memory, self.has_own_hosts = cores, memory, has_own_hosts
        self.started: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        try:
            self.url = ""
            self.url = self._wait_for_master_url(
                self._start_process("master.Master", HOST, "--port", "0"), "master at"
            )
            for worker in [self._start_worker() for _ in range(workers)]:
                self._wait_for_master_url(worker, _REGISTERED)
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def add_worker(self) -> None:
        """Start another worker, and wait until the master has registered it."""
        self._wait_for_master_url(self._start_worker(), _REGISTERED)

    def _start_worker(self) -> int:
        number = self._start_process(
            "worker.Worker",
            f"127.0.0.{len(self.workers) + 2}" if self.has_own_hosts else HOST,
            *("--cores", str(self.cores), "--memory", self.memory),
            *("--work-dir", str(self.folder / f"work-{len(self.started)}"), self.url),
        )
        self.workers.append(self.started[number])
        return number

    def kill_worker(self, number: int) -> None:
        """Kill a worker (SIGKILL), with its executors and their Python workers."""
        _kill_process_group(self.workers[number])

    def stop(self) -> None:
        """Kill all processes of the cluster."""
        for process in reversed(self.started):
            _kill_process_group(process)

    def wait(self) -> None:
        """Wait until the master ends or an interrupt arrives."""
        with suppress(KeyboardInterrupt):
            self.started[0].wait()

    def _start_process(self, what: str, host: str, *arguments: str) -> int:
        """Start a Spark process in its own process group, and return its index."""
        import pyspark

        spark = Path(pyspark.__file__).parent
        named = (str(spark / "bin/spark-class"), f"org.apache.spark.deploy.{what}")
        settings = {"SPARK_LOCAL_IP": host, "SPARK_HOME": str(spark)}
        settings["SPARK_MASTER_OPTS"] = "-Dspark.master.rest.enabled=false"
        with self._log_path(len(self.started)).open("wb") as out:
            process = subprocess.Popen(
                [*named, "--host", host, "--webui-port", "0", *arguments],
                env=os.environ | settings,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self.started.append(process)
        return len(self.started) - 1

    def _log_path(self, number: int) -> Path:
        return self.folder / f"{number}.log"

    def _wait_for_master_url(self, number: int, wanted: str, seconds: float = 120) -> str:
        """Wait until the process logs ``wanted`` and the master's URL, and return the URL.

        Raises TimeoutError if it ends first or takes too long.
        """
        pause, end = threading.Event(), time.monotonic() + seconds
        log = self._log_path(number)
        while (match := re.search(rf"{wanted} (spark://\S+)", log.read_text())) is None:
            if self.started[number].poll() is not None or time.monotonic() > end:
                last = (log.read_text().strip().splitlines() or ["it said nothing"])[-1]
                raise TimeoutError(f"a process of Spark's has not begun: {last}")
            pause.wait(0.05)
        return match[1]


def _kill_process_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its group.

    A worker's executors are in the group; their Python workers end with them.
    """
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
