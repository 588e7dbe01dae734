"""``bundle``: one file that says all of a run but its rows, and with data is the run."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import braid
import pyarrow as pa
import pytest
from braid import StreamJoin, bundled_events
from braid.bundle_redaction import redact_settings
from braid.cli import main
from braid.core.event_jsonl import EventTail, read_events
from braid.core.run_events import BatchCommitted, EventsTrimmed
from braid.papers.baselines.centralized import Centralized
from braid.storage.run_store import RunStore
from unit.test_doctor import run_late_stream

MARKER = "Zaphod-Beeblebrox-of-Betelgeuse-Number-5"


def make_streams() -> dict[str, pa.Table]:
    """Return two streams with markers, in eight batches."""
    batch = [n // 4 for n in range(32)]
    names = pa.array([f"{MARKER}{n % 8}" for n in range(32)])
    return {
        "a": pa.table({"k": range(32), "name": names, "batch": batch}),
        "b": pa.table({"k": range(32), "name": names, "batch": batch}),
    }


CONDITION = f"a.name = b.name AND b.name <> '{MARKER}'"


def start_join(path: Path, look: Any = lambda batch: None) -> Any:
    """Start a join whose sink refuses a row of batch 7, and says which."""

    def sink(results: pa.Table, batch: int) -> None:
        look(batch)
        if batch == 7:
            raise ValueError(f"{results['a'][0]} is refused")

    where = {"a": f"name <> '{MARKER}'"}
    join = StreamJoin(make_streams(), CONDITION, Centralized(), where=where)
    return join.start(path, batches="batch", durability="process", foreachBatch=sink)


def unpack(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as made:
        return {name: made.read(name) for name in made.namelist()}


def list_batches(file: Path) -> list[int]:
    return [e.batch for e in EventTail(file).read_new() if isinstance(e, BatchCommitted)]


def test_no_value_of_a_row_is_in_a_bundle_and_commands_open_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception, match=MARKER):
        start_join(tmp_path / "run").awaitTermination()
    assert MARKER in (tmp_path / "run/events.jsonl").read_text()
    assert main(["bundle", "run"]) == 0
    assert "rows, texts in conditions" in capsys.readouterr().out
    parts = unpack(Path("run.braid.zip"))
    assert {MARKER, str(tmp_path)}.isdisjoint(parts) and len(parts) == 7
    for name, body in parts.items():
        assert MARKER.encode() not in body and str(tmp_path).encode() not in body, name
    assert b"a.name = b.name AND b.name" in parts["run/run.json"]
    for command, code in (("inspect", 0), ("doctor", 0), ("health", 1)):
        assert main([command, "run.braid.zip"]) == code
        assert capsys.readouterr().out
    assert main(["replay", "run.braid.zip", "-o", "film.html"]) == 0
    assert MARKER not in Path("film.html").read_text()
    assert "a.name = b.name" in (page := braid.watch("run.braid.zip").to_html())
    assert MARKER not in page
    assert main(["bundle", "run"]) == 2
    assert capsys.readouterr().err.endswith("run.braid.zip exists; -f replaces it\n")


def test_a_bundle_has_the_diagnosis_and_the_health_of_its_run(tmp_path: Path) -> None:
    run = run_late_stream(tmp_path / "run")
    made = braid.bundle(tmp_path / "run", tmp_path / "b.zip")
    there, here = braid.doctor(tmp_path / "run", ["late"]), braid.doctor(made.file, ["late"])
    assert here.findings == there.findings and len(here.findings) == 1
    assert "50.0% of b came later" in unpack(made.file)["report.txt"].decode()
    assert main(["health", str(made.file)]) == 0
    assert json.loads(unpack(made.file)["health.json"])["live_tuples"] == run.health().live_tuples


def test_a_bundle_with_data_is_resumed_elsewhere_with_the_same_results(tmp_path: Path) -> None:
    def fail(results: pa.Table, batch: int) -> None:
        if batch == 3:
            raise RuntimeError("the process ends here")

    on = "a.name = b.name AND a.k <= b.k"
    streams = make_streams()
    join = StreamJoin(streams, on, Centralized())
    with pytest.raises(RuntimeError, match="ends here"):
        run = join.start(tmp_path / "run", batches="batch", foreachBatch=fail)
        run.awaitTermination()
    made = braid.bundle(tmp_path / "run", tmp_path / "b.zip", data=True)
    moved = braid.unbundle(made.file, tmp_path / "other" / "place")
    RunStore(tmp_path / "run").path.rename(tmp_path / "gone")
    again = StreamJoin.resume(moved, streams=streams)
    again.awaitTermination()
    whole = StreamJoin(streams, on, Centralized()).start(tmp_path / "whole", batches="batch")
    whole.awaitTermination()
    rows = [sorted(r.results().to_pylist(), key=str) for r in (again, whole)]
    assert rows[0] == rows[1] and len(rows[0]) == 80
    assert main(["check", str(moved)]) == 0


def test_a_damaged_run_and_a_running_one_are_bundled_without_data(tmp_path: Path) -> None:
    seen: list[Any] = []

    def look(batch: int) -> None:
        if batch == 2:
            seen.append(braid.bundle(tmp_path / "run", tmp_path / "running.zip"))
            with pytest.raises(RuntimeError, match="in use by a run that has not ended"):
                braid.bundle(tmp_path / "run", tmp_path / "other.zip", data=True)

    with pytest.raises(Exception, match=MARKER):
        start_join(tmp_path / "run", look).awaitTermination()
    assert list_batches(seen[0].file) == [0, 1, 2]
    events = tmp_path / "run/events.jsonl"
    events.write_bytes(events.read_bytes().replace(b'"type":"BatchPlanned","batch":4', b"\xff", 1))
    block = next((tmp_path / "run/blocks").glob("*.arrow"))
    block.write_bytes(block.read_bytes()[:-1])
    (tmp_path / "run/run.json").write_bytes(b"{")
    made = braid.bundle(tmp_path / "run", tmp_path / "damaged.zip")
    assert str(made).endswith("1 damaged lines of events.jsonl are not in it")
    assert "run.json" in unpack(made.file)["report.txt"].decode()
    assert list_batches(made.file) == [*range(8)]


def test_old_batches_are_left_out_and_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_late_stream(tmp_path / "run")
    made = braid.bundle(tmp_path / "run", tmp_path / "b.zip", last=3)
    assert str(made).endswith("batches 1 to 7 are not in it")
    events = read_events(made.file)
    assert list_batches(made.file) == [7, 8, 9]
    [trimmed] = [e for e in events if isinstance(e, EventsTrimmed)]
    assert trimmed.results + sum(c.results for c in events if isinstance(c, BatchCommitted)) == (
        run.results().num_rows
    )
    lines = (tmp_path / "run/events.jsonl").read_bytes().splitlines(keepends=True)
    later = lines[next(n for n, line in enumerate(lines) if b'Committed","batch":7' in line) + 1 :]
    monkeypatch.setattr(bundled_events, "_MOST_BYTES", sum(map(len, later)))
    made = braid.bundle(tmp_path / "run", tmp_path / "c.zip")
    assert made.first_batch == 8


def test_secrets_and_folders_of_sources_are_left_out() -> None:
    options = {"path": "/home/ann/in", "kafka.sasl.password": "x", "accessKey": "y", "host": "h"}
    redacted = redact_settings({"on": 'a.x = "Ann" OR a.y < 3', "sources": {"a": options}})
    assert redacted["sources"]["a"] == {
        "path": "in",
        "kafka.sasl.password": "(left out)",
        "accessKey": "(left out)",
        "host": "h",
    }
    assert redacted["on"] == "a.x = '?' OR a.y < 3"


def test_what_is_no_run_or_no_bundle_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bundle", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"braid: {tmp_path} holds no run that has begun\n"
    with pytest.raises(ValueError, match="is a bucket"):
        braid.bundle("s3://a/b")
    run_late_stream(tmp_path / "run")
    for last in (0, "3"):
        with pytest.raises(ValueError, match="last is"):
            braid.bundle(tmp_path / "run", last=last)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"b.tar'; its name must end in .zip$"):
        braid.bundle(tmp_path / "run", tmp_path / "b.tar")
    made = braid.bundle(tmp_path / "run", tmp_path / "b.zip")
    for file, sentence in ((made.file, "has no data"), (tmp_path / "run/run.json", "no bundle")):
        assert main(["unbundle", str(file), str(tmp_path / "new")]) == 2
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
