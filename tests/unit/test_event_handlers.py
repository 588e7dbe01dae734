"""Spans for OpenTelemetry, lineage for OpenLineage, and alerts on active runs."""

from __future__ import annotations

import itertools
import json
import logging
import re
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import UUID

import braid
import pytest
from braid.core.batch_history import PHASES
from braid.core.event_jsonl import encode_event, log_events
from braid.core.run_events import BatchCommitted, RunEnded
from braid.openlineage_events import LineageHandler
from braid.run_notifications import NotificationHandler
from braid.util.clock_and_threads import Environment, replace_environment
from braid.watchdog import RunAlert
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import column_lineage_dataset
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from unit.test_doctor import PLANTED, START, make_commit, run_late_stream
from unit.test_health_server import Receiver
from unit.test_health_server import pauses as pauses
from unit.test_json_logs import kept_logger as kept_logger

pytestmark = pytest.mark.usefixtures("attached_handlers_closed")


@pytest.fixture
def attached_handlers_closed(kept_logger: logging.Logger) -> Iterator[None]:
    """Close the handlers that a test attaches."""
    kept = [*kept_logger.handlers]
    yield
    for handler in kept_logger.handlers:
        if handler not in kept:
            handler.close()


def test_each_batch_is_a_span_whose_phases_add_up(tmp_path: Path) -> None:
    exporter, provider, lines = InMemorySpanExporter(), TracerProvider(), StringIO()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    braid.spans(provider)
    braid.spans(provider)
    braid.logs(stream=lines)
    run_late_stream(tmp_path / "run")
    done = exporter.get_finished_spans()
    roots = [span for span in done if span.parent is None]
    assert [span.attributes["braid.batch"] for span in roots] == [*range(10)], "once each"
    assert {span.attributes["braid.run"] for span in roots} == {str(tmp_path / "run")}
    for root in roots:
        parts = [s for s in done if s.parent and s.parent.span_id == root.context.span_id]
        assert [span.name for span in parts] == [*PHASES]
        assert parts[0].start_time == root.start_time
        assert abs(parts[-1].end_time - root.end_time) < 1_000_000, "nanoseconds"
    levels = {json.loads(line)["level"] for line in lines.getvalue().splitlines()}
    assert "DEBUG" not in levels, "each handler has a level of its own"


def read_lineage_event(line: str) -> RunEvent:
    """Return an event as OpenLineage's own package reads it."""
    values = json.loads(line)
    (output,) = values["outputs"]
    facet = output["facets"]["columnLineage"]
    lineage = column_lineage_dataset.ColumnLineageDatasetFacet(
        {
            name: column_lineage_dataset.Fields(
                [column_lineage_dataset.InputField(**each) for each in field["inputFields"]]
            )
            for name, field in facet["fields"].items()
        }
    )
    names = {"namespace": output["namespace"], "name": output["name"]}
    event = RunEvent(
        eventTime=values["eventTime"],
        producer=values["producer"],
        run=Run(**values["run"]),
        job=Job(**values["job"]),
        eventType=RunState[values["eventType"]],
        inputs=[InputDataset(**each) for each in values["inputs"]],
        outputs=[OutputDataset(**names, facets={"columnLineage": lineage})],
    )
    assert values["schemaURL"].partition("#")[2] == event.schemaURL.partition("#")[2]
    assert facet["_schemaURL"].partition("#")[0] == lineage._schemaURL.partition("#")[0]
    return event


def test_the_lineage_of_a_run_names_the_columns_of_its_results(tmp_path: Path) -> None:
    run, file = tmp_path / "run", tmp_path / "lineage.jsonl"
    handler = braid.lineage(file.as_uri(), {"a": "s3://bucket/orders"})
    run_late_stream(run)
    handler.close()
    begun, ended = map(read_lineage_event, file.read_text().splitlines())
    assert (begun.eventType, ended.eventType) == (RunState.START, RunState.COMPLETE)
    assert UUID(begun.run.runId) and begun.run == ended.run and begun.job.name == str(run)
    inputs = {(each.namespace, each.name) for each in begun.inputs}
    assert inputs == {("s3://bucket", "orders"), ("braid", f"{run}/b")}
    (output,) = begun.outputs
    origins = {
        name: (field.inputFields[0].name, field.inputFields[0].field)
        for name, field in output.facets["columnLineage"].fields.items()
    }
    assert origins["a.k"] == ("orders", "k") and origins["b.k"] == (f"{run}/b", "k")


def make_commit_event(number: int) -> Any:
    """Return the commit of a batch."""
    return BatchCommitted(number, (1,), (1,), (1,), 0, {"total": 1.0}, (), (), ())


def test_lineage_is_posted_in_order_and_a_lost_event_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, pauses: list[float]
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        server.bodies = []  # type: ignore[attr-defined]
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        handler = braid.lineage(f"http://127.0.0.1:{server.server_port}/api/v1/lineage")
        assert isinstance(handler, LineageHandler)
        for event in (
            START,
            make_commit_event(98),
            make_commit_event(99),
            RunEnded(99, "failed", "x"),
        ):
            handler.receive_event(event, str(tmp_path), 0.0)
        handler.close()
        server.shutdown()
    first, *bodies = server.bodies  # type: ignore[attr-defined]
    assert [each["eventType"] for each in bodies] == ["START", "RUNNING", "FAIL"]
    assert first == bodies[0], "what was refused is sent again"
    assert pauses == [1.0]
    lost = braid.lineage("http://127.0.0.1:9/none")
    assert isinstance(lost, LineageHandler)
    with caplog.at_level(logging.WARNING, "braid"):
        lost.receive_event(START, str(tmp_path), 0.0)
        lost.close()
    assert "a lineage event is lost: http://127.0.0.1:9/none does not take" in caplog.text
    assert pauses[1:] == [1.0, 4.0], "between three attempts"


def test_another_target_is_refused() -> None:
    with pytest.raises(ValueError, match="target is 'kafka://a'; it must begin with http"):
        braid.lineage("kafka://a")


def test_an_active_run_alerts_once_in_a_while_and_when_it_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    alerts: list[RunAlert] = []
    braid.notify(lambda alert: 1 / 0)
    handler = braid.notify(alerts.append, every="1 hour")
    assert isinstance(handler, NotificationHandler)
    run = str(run_late_stream(tmp_path / "run").store.path)
    handler.close()
    [late] = alerts
    assert (late.run, late.level, late.rule, late.batches) == (run, "warning", "late", 10)
    assert "came later than its lateness allows" in late.text and "raise lateness=" in late.text
    commits = [make_commit_event(number) for number in range(99)]
    broken = NotificationHandler(lambda alert: alerts.append(1 / 0), {"failed"}, 60.0)  # type: ignore[arg-type]
    again = NotificationHandler(alerts.append, {"failed"}, 60.0)
    with caplog.at_level(logging.WARNING, "braid"):
        for each in (again, broken):
            for time in (0.0, 59.0, 61.0):
                for event in (START, *commits[:6], RunEnded(5, "failed", "the disk is full")):
                    each.receive_event(event, run, time)
            each.receive_event(RunEnded(5, "stopped"), run, 200.0)
            each.close()
    lost = "an alert is not taken, and sent again in 60 seconds: division by zero"
    assert caplog.text.count(lost) == 3, "not one counts as sent"
    sent = [(each.rule, each.sentence, each.batches, each.time[14:19]) for each in alerts[1:]]
    assert sent == [("failed", "failed: the disk is full", 6, f"0{n}:0{n}") for n in (0, 1)]


def make_late_commit(number: int) -> BatchCommitted:
    return make_commit(number, late_tuples=(0, 200))


def test_an_active_run_is_watched_by_a_later_call_and_by_one_that_replaces_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    alerts: list[RunAlert] = []
    run = str(tmp_path)
    events = [START, *map(make_late_commit, range(9))]
    (tmp_path / "events.jsonl").write_bytes(b"".join(map(encode_event, events)))
    for since, rules in ((7, ["late"]), (10, ["late", "idle"])):
        braid.notify(alerts.append, rules, "1 hour")
        log_events(map(make_late_commit, range(since, since + 3)), run)
    (tmp_path / "events.jsonl").unlink()
    later = braid.notify(alerts.append, ["late", "failed"], "0 s")
    log_events(map(make_late_commit, (13, 14)), run)
    with caplog.at_level(logging.DEBUG, "braid"):
        log_events(map(make_late_commit, range(15)), f"{run}/none")
        log_events([RunEnded(14, "failed", "x")], f"{run}/none")
        later.close()
    sent = [(each.run, each.rule, each.batches) for each in alerts]
    assert sent == [(run, "late", 10), (run, "late", 15), (f"{run}/none", "failed", 15)]
    assert caplog.text.count("/none began before notify was called, so only its end is seen") == 1


def test_a_lost_alert_is_sent_after_a_minute_and_no_batch_before_waits_for_it(
    tmp_path: Path,
) -> None:
    tried: list[int] = []

    def receive(alert: RunAlert) -> None:
        tried.append(alert.batches)
        assert len(tried) > 1, "the first is lost"

    handler = NotificationHandler(receive, {"late"}, 3600.0)
    handler.receive_event(START, str(tmp_path), 0.0)
    for number in range(30):
        handler.receive_event(make_late_commit(number), str(tmp_path), 10.0 * number)
    handler.close()
    assert tried == [10, 20]


class SteppedEnvironment(Environment):
    """Its clock goes ahead by more than any pause each time it is read."""

    def __init__(self) -> None:
        self.times = itertools.count(0, 4_000)

    def read_time(self) -> float:
        return float(next(self.times))


def test_a_failure_that_is_not_taken_is_sent_again_after_longer_and_longer_pauses(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No event comes after it, and the handler was replaced meanwhile."""
    tried: list[RunAlert] = []
    taken = Event()

    def receive(alert: RunAlert) -> None:
        tried.append(alert)
        assert len(tried) == 9, "it is away"
        taken.set()

    first = NotificationHandler(lambda alert: 1 / 0, {"failed"}, 3600.0)
    with replace_environment(SteppedEnvironment()), caplog.at_level(logging.WARNING, "braid"):
        first.receive_event(RunEnded(5, "failed", "the disk is full"), str(tmp_path), 0.0)
        first.put_item(None)
        handler = NotificationHandler(receive, {"failed"}, 3600.0)
        handler.take_over(first)
        assert taken.wait(60)
        handler.close()
    pauses = [int(n) for n in re.findall(r"again in (\d+) seconds", caplog.text)]
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert len(tried) == 9 and {each.sentence for each in tried} == {"failed: the disk is full"}
    assert handler.find_pause() is None, "what was taken is not sent again"


@pytest.mark.parametrize("cores", [2, 64])
def test_hosts_of_an_active_run_are_compared_with_the_cores_of_the_machine(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    alerts: list[RunAlert] = []
    monkeypatch.setattr("braid.run_notifications.available_cores", lambda: cores)
    handler = NotificationHandler(alerts.append, {"shape"}, 3600.0)
    for event in (PLANTED["shape"].start, *PLANTED["shape"].commits):
        handler.receive_event(event, "run", 0.0)
    handler.close()
    assert [each.sentence[:19] for each in alerts] == ["64 hosts on 2 cores"] * (cores == 2)


def test_an_alert_that_cannot_be_sent_or_asked_for_is_refused() -> None:
    for given, words in (
        (("ftp://a",), "receiver is 'ftp://a'; it must begin with http"),
        ((7,), "receiver is 7; it must be an address or a function"),
        ((print, ["slow"]), "when has 'slow'; it must list some of failed, wide, unindexed"),
        ((print, "late"), "when is 'late'; it must list"),
        ((print, ["version"]), "when has 'version'; it must list some of .*, tiny, idle, behind"),
        ((print, None), "when is None; it must list some of failed, wide"),
        ((print, ["late"], "soon"), "the value of every is 'soon'; it must be a positive span"),
    ):
        with pytest.raises(ValueError, match=words):
            braid.notify(*given)
