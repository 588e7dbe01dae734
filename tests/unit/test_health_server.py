"""``braid serve``: metrics and health of run folders over HTTP, and alerts on them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml
from braid.batch_histogram import BatchHistogram
from braid.cli import main
from braid.core.event_jsonl import encode_event
from braid.core.run_events import BatchCommitted, Event
from braid.health_server import make_health_server
from braid.papers.reuse.hub_events import HubBatchCommitted
from braid.util.clock_and_threads import current_environment
from braid.watchdog import find_alerts
from prometheus_client.parser import text_string_to_metric_families
from unit.test_doctor import make_commit, run_late_stream

from docs import grafana

ROOT = Path(__file__).parents[2]


@contextmanager
def serve_run_folders(*folders: Path) -> Iterator[str]:
    """Serve folders, and yield the address."""
    with make_health_server(folders) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def fetch_address(address: str) -> tuple[int, str]:
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
    with serve_run_folders(*folders) as address:
        status, text = fetch_address(f"{address}/metrics")
        families = {family.name: family for family in text_string_to_metric_families(text)}
        runs = {sample.labels["run"] for sample in families["braid_batches"].samples}
        late = families["braid_irregular_tuples"].samples
        assert (status, runs) == (200, {str(folder) for folder in folders})
        assert {(s.labels["stream"], s.labels["kind"]) for s in late} == {("b", "late")}
        assert "# TYPE braid_batches gauge" in text and "# TYPE braid_batches_total counter" in text
        counted = {s.name: s.value for f in families.values() for s in f.samples}
        assert counted["braid_irregular_tuples_total"] == late[0].value > 0
        assert counted["braid_batch_duration_seconds_count"] == 10
        assert 0 < counted["braid_batch_duration_seconds_sum"] < 600
        status, text = fetch_address(f"{address}/health")
        assert status == 200 and json.loads(text)[str(folders[0])]["state"] == "completed"
        assert fetch_address(f"{address}/other")[0] == 404
        (folders[1] / "events.jsonl").unlink()
        assert fetch_address(f"{address}/health")[0] == 503
        assert "holds no run that has begun" in fetch_address(f"{address}/metrics")[1]


@pytest.fixture
def dead_run(tmp_path: Path) -> Path:
    """Return the folder of a run whose end was not recorded."""
    run_late_stream(tmp_path / "run")
    events = tmp_path / "run/events.jsonl"
    events.write_bytes(b"\n".join(events.read_bytes().split(b"\n")[:-2]) + b"\n")
    return tmp_path / "run"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the seconds of the pauses that are asked for; none is made."""
    asked: list[float] = []
    monkeypatch.setattr(
        type(current_environment()), "wait_seconds", lambda _, seconds: asked.append(seconds)
    )
    return asked


class Receiver(BaseHTTPRequestHandler):
    """Takes alerts; it refuses the first."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(json.loads(body))  # type: ignore[attr-defined]
        self.send_response(200 if len(self.server.bodies) > 1 else 500)  # type: ignore[attr-defined]
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""


def test_a_watchdog_posts_runs_that_died_until_they_are_taken(
    tmp_path: Path, dead_run: Path, capsys: pytest.CaptureFixture[str], pauses: list[float]
) -> None:
    run_late_stream(tmp_path / "sound")
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        server.bodies = []  # type: ignore[attr-defined]
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        webhook = ("--webhook", f"http://127.0.0.1:{server.server_port}/hook")
        assert main(["watchdog", str(tmp_path / "sound"), *webhook]) == 0
        assert server.bodies == [] and capsys.readouterr().out == ""  # type: ignore[attr-defined]
        assert main(["watchdog", str(tmp_path / "sound"), str(dead_run), *webhook]) == 1
        first, second = server.bodies  # type: ignore[attr-defined]
        server.shutdown()
    assert first == second and (first["level"], first["rule"]) == ("fault", "died")
    assert first["batches"] == 10
    text = f"{dead_run}: died; resume the run; nothing that was committed is lost"
    assert first["text"] == text and capsys.readouterr().out == f"{text}\n"
    assert main(["watchdog", str(dead_run), *webhook]) == 2
    assert "does not take the alert on" in capsys.readouterr().err
    assert pauses[-2:] == [1.0, 4.0]
    assert main(["watchdog", str(dead_run), "--webhook", "ftp://a"]) == 2
    assert "it must begin with http" in capsys.readouterr().err
    assert main(["watchdog", str(tmp_path / "none")]) == 1
    assert "holds no run that has begun; look at the folder" in capsys.readouterr().out


def test_a_watchdog_reports_what_a_doctor_finds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_late_stream(tmp_path / "run")
    assert main(["watchdog", "--doctor", str(tmp_path / "run")]) == 1
    (alert,) = find_alerts([tmp_path / "run"], diagnoses=True)
    assert (alert.level, alert.rule, alert.batches) == ("warning", "late", 10)
    assert capsys.readouterr().out == f"{alert.text}\n" and "raise lateness=" in alert.remedy


def test_a_run_that_died_gives_503(dead_run: Path) -> None:
    with serve_run_folders(dead_run) as address:
        status, text = fetch_address(f"{address}/health")
        assert status == 503 and json.loads(text)[str(dead_run)]["state"] == "died"


def make_hub_commit(epoch: int, seconds: float) -> HubBatchCommitted:
    return HubBatchCommitted(epoch, {}, {}, (), (), 0.0, seconds)


def make_join_commit(batch: int, seconds: float) -> BatchCommitted:
    return make_commit(batch, seconds_by_phase={"total": seconds})


@pytest.mark.parametrize("make", [make_join_commit, make_hub_commit])
def test_a_histogram_counts_each_batch_once_although_events_are_trimmed(
    tmp_path: Path, make: Callable[[int, float], Event]
) -> None:
    file, histogram = tmp_path / "events.jsonl", BatchHistogram(tmp_path)
    lines = [encode_event(make(n, s)) for n, s in enumerate((0.01, 0.02, 70, 0.2))]
    file.write_bytes(b"".join(lines[:2]) + lines[2][:9])
    histogram.read_new_batches()
    histogram.read_new_batches()
    counts = dict(histogram.list_buckets()[0])
    assert (counts["0.01"], counts["0.025"], counts["+Inf"]) == (1, 2, 2)
    file.write_bytes(b"".join(lines[:3]))
    histogram.read_new_batches()
    buckets, total = histogram.list_buckets()
    assert dict(buckets)["60.0"] == 2 and dict(buckets)["+Inf"] == 3
    assert total == pytest.approx(70.03)
    (tmp_path / "trimmed").write_bytes(lines[2] + lines[3])
    (tmp_path / "trimmed").replace(file)
    histogram.read_new_batches()
    buckets, total = histogram.list_buckets()
    assert (dict(buckets)["+Inf"], total) == (4, pytest.approx(70.23)), "and no count falls"


@pytest.mark.parametrize("batches", [2, 3, 5])
@pytest.mark.parametrize("is_same_inode", [True, False])
def test_a_histogram_begins_at_0_with_another_run_of_a_folder(
    tmp_path: Path, batches: int, is_same_inode: bool
) -> None:
    """The other run has fewer, equally many or more batches than the first."""
    file, histogram = tmp_path / "events.jsonl", BatchHistogram(tmp_path)
    file.write_bytes(b"".join(encode_event(make_join_commit(n, 0.02)) for n in range(3)))
    histogram.read_new_batches()
    other = b"".join(encode_event(make_join_commit(n, 0.2)) for n in range(batches))
    if is_same_inode:
        file.write_bytes(other)
    else:
        (tmp_path / "other").write_bytes(other)
        (tmp_path / "other").replace(file)
    for _ in range(2):
        histogram.read_new_batches()
        buckets, total = histogram.list_buckets()
        assert (dict(buckets)["+Inf"], total) == (batches, pytest.approx(0.2 * batches))


def test_a_histogram_counts_on_while_a_resumed_run_restores_its_events(tmp_path: Path) -> None:
    file, histogram = tmp_path / "events.jsonl", BatchHistogram(tmp_path)
    lines = [encode_event(make_join_commit(n, 0.02)) for n in range(4)]
    for restored in (b"".join(lines[:3]), b"", b"ahead of it\n" + lines[0], b"".join(lines)):
        file.write_bytes(restored)
        histogram.read_new_batches()
    assert dict(histogram.list_buckets()[0])["+Inf"] == 4


def test_each_alert_and_panel_names_a_metric_that_is_served(tmp_path: Path) -> None:
    run_late_stream(tmp_path / "run")
    with serve_run_folders(tmp_path / "run") as address:
        text = fetch_address(f"{address}/metrics")[1]
    served = {family.name for family in text_string_to_metric_families(text)}
    rules = yaml.safe_load((ROOT / "docs/alerts.yml").read_text())["groups"][0]["rules"]
    named = {name for rule in rules for name in re.findall(r"braid_\w+", rule["expr"])}
    assert len(rules) == 5 and named and named <= served
    board = json.loads((ROOT / "docs/grafana.json").read_text())
    assert board == grafana.make_board() and len(board["panels"]) == 12
    for panel in board["panels"]:
        shown = {n for target in panel["targets"] for n in re.findall(r"braid_\w+", target["expr"])}
        assert shown and shown <= served, panel["title"]


def test_a_folder_without_a_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"braid: {tmp_path} holds no run that has begun\n"
