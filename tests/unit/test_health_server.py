"""``braid serve``: metrics and health of run folders over HTTP, and alerts on them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml
from braid.cli import main
from braid.health_server import make_health_server
from prometheus_client.parser import text_string_to_metric_families
from unit.test_doctor import run_late_stream

ROOT = Path(__file__).parents[2]


@contextmanager
def serve(*folders: Path) -> Iterator[str]:
    """Serve folders, and yield the address."""
    with make_health_server(folders) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def fetch(address: str) -> tuple[int, str]:
    """Return the status and the text of an address."""
    try:
        with urlopen(address) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_metrics_and_health_of_several_runs_are_served(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        run_late_stream(folder)
    with serve(*folders) as address:
        status, text = fetch(f"{address}/metrics")
        families = {family.name: family for family in text_string_to_metric_families(text)}
        runs = {sample.labels["run"] for sample in families["braid_batches"].samples}
        late = families["braid_irregular_tuples"].samples
        assert (status, runs) == (200, {str(folder) for folder in folders})
        assert {(s.labels["stream"], s.labels["kind"]) for s in late} == {("b", "late")}
        status, text = fetch(f"{address}/health")
        assert status == 200 and json.loads(text)[str(folders[0])]["state"] == "completed"
        assert fetch(f"{address}/other")[0] == 404
        (folders[1] / "events.jsonl").unlink()
        assert fetch(f"{address}/health")[0] == 503
        assert "holds no run that has begun" in fetch(f"{address}/metrics")[1]


def test_a_run_that_died_gives_503(tmp_path: Path) -> None:
    run_late_stream(tmp_path / "run")
    events = tmp_path / "run/events.jsonl"
    events.write_bytes(b"\n".join(events.read_bytes().split(b"\n")[:-2]) + b"\n")
    with serve(tmp_path / "run") as address:
        status, text = fetch(f"{address}/health")
        assert status == 503 and json.loads(text)[str(tmp_path / "run")]["state"] == "died"


def test_each_alert_names_a_metric_that_is_served(tmp_path: Path) -> None:
    run_late_stream(tmp_path / "run")
    with serve(tmp_path / "run") as address:
        text = fetch(f"{address}/metrics")[1]
    served = {family.name for family in text_string_to_metric_families(text)}
    rules = yaml.safe_load((ROOT / "docs/alerts.yml").read_text())["groups"][0]["rules"]
    named = {name for rule in rules for name in re.findall(r"braid_\w+", rule["expr"])}
    assert len(rules) == 5 and named and named <= served


def test_a_folder_without_a_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"braid: {tmp_path} holds no run that has begun\n"
