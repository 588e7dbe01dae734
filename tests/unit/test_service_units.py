"""A join as a service: SIGTERM ends it as stopped, a restart goes on, and its units call it so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from queue import Queue
from runpy import run_path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from braid.health import read_health
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin

DOCS = Path(__file__).parents[2] / "docs"
BATCHES = 6
SERVICE = DOCS / "examples/service.py"


def write_streams(folder: Path) -> list[str]:
    """Return the files of two streams."""
    rows = [*range(5 * BATCHES)]
    batch = [row // 5 for row in rows]
    pq.write_table(pa.table({"id": rows, "batch": batch}), folder / "o.parquet")
    pq.write_table(pa.table({"order_id": rows, "batch": batch}), folder / "p.parquet")
    return [str(folder / "o.parquet"), str(folder / "p.parquet")]


def test_sigterm_ends_a_run_as_stopped_and_a_restart_continues_it(tmp_path: Path) -> None:
    files, folder = write_streams(tmp_path), tmp_path / "run"
    command = [sys.executable, str(Path(__file__)), *files, str(folder)]
    subprocess.run(command, env=os.environ, check=True)
    health = read_health(folder)
    assert (health.state, health.committed_batches) == ("stopped", 2)
    assert run_path(str(SERVICE))["main"](*files, str(folder)) == 0
    assert read_health(folder).state == "completed"
    found = pa.concat_tables(map(pq.read_table, RunStore(folder).results.result_files()))
    joined = sorted(row["o"]["id"] for row in found.to_pylist())
    assert joined == [*range(5 * BATCHES)]


def test_units_call_the_service_and_commands_that_exist() -> None:
    unit = ConfigParser(strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DOCS / "units/braid.service")
    words = unit["Service"]["ExecStart"].split()
    assert Path(words[1]).name == SERVICE.name and len(words) == 5
    assert unit["Service"]["KillSignal"] == "SIGTERM"
    job = yaml.safe_load((DOCS / "units/job.yaml").read_text())
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert Path(container["command"][1]).name == SERVICE.name and len(container["command"]) == 5
    probe = container["livenessProbe"]["exec"]["command"]
    assert probe == ["braid", "health", container["command"][-1]]


def _run_and_stop(*arguments: str) -> None:
    """Run the service, which gets SIGTERM in its second batch and ends that batch afterwards."""
    start, runs = StreamJoin.start, Queue[Any]()

    def send_signal(results: pa.Table, batch: int) -> None:
        if batch == 1:
            os.kill(os.getpid(), signal.SIGTERM)
            runs.get()._stopping.wait()

    def start_with_signal(join: StreamJoin, *given: Any, **settings: Any) -> Any:
        run = start(join, *given, **settings, foreachBatch=send_signal)
        runs.put(run)
        return run

    StreamJoin.start = start_with_signal  # type: ignore[method-assign]
    sys.exit(run_path(str(SERVICE))["main"](*arguments))


if __name__ == "__main__":
    _run_and_stop(*sys.argv[1:])
