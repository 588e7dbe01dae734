"""The answers of a stopped hub are recomputed from its input, and each wrong row is reported."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from braid.answer_check import check_answers
from braid.cli import main
from braid.hub.hub import QueryHub
from braid.hub.hub_batches import run_empty_batch
from braid.storage import committed_results
from braid.storage.run_store import RunStore
from hub_cases import AT, BATCHES, NETWORK, NODES, THREE, TICKED, WIDE, SteppedHub, make_hub_tables
from hub_kind_runs import SIDES, KindScenario

pytestmark = pytest.mark.unit

FLIGHTS, CHECKINS = "flights [RANGE 90 SECONDS] f", "checkins [RANGE 60 SECONDS] c"
ON = "ON f.num = c.flight AND f.terminal = c.status AND c.seats > 1"
ASOF = "f.num = c.flight AND f.ts >= c.ts AND f.ts <= c.ts + INTERVAL 1 MINUTE"
ASKED = {
    "inner": f"SELECT f.*, c.seats * 2 AS twice FROM {FLIGHTS} JOIN {CHECKINS} {ON}",
    "three": THREE,
    **{
        kind: f"SELECT f.id, c.id AS c FROM {FLIGHTS} {kind.upper()} JOIN {CHECKINS} {ON}"
        for kind in ("left", "right", "full")
    },
    "semi": f"SELECT f.id FROM {FLIGHTS} SEMI JOIN {CHECKINS} {ON} WHERE f.carrier <> 'A'",
    "anti": f"SELECT f.id FROM {FLIGHTS} WHERE NOT EXISTS (SELECT 1 FROM {CHECKINS} "
    f"WHERE {ON.removeprefix('ON ')})",
    "asof": f"SELECT f.id, c.id AS c FROM flights f ASOF JOIN checkins c ON {ASOF}",
    "asof left": f"SELECT f.id, coalesce(c.id, -1) AS c FROM flights f ASOF LEFT JOIN checkins c "
    f"ON {ASOF}",
}
REFUSED = {
    "ticks": TICKED,
    "square": WIDE.replace("f.id,", "f.id, power(c.seats, 2) AS p,"),
}
DAMAGES = {"three": "removed", "right": "added", "semi": "removed", "asof left": "changed"}
"""Queries, each with what happens to one row of its stored answers."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a hub that has answered all queries."""
    folder = tmp_path_factory.mktemp("hub") / "run"
    run = QueryHub(make_hub_tables(11), "ts", lateness="10 minutes").start(
        folder, batches="batch", queries=ASKED | REFUSED
    )
    assert run.awaitTermination()
    return folder


def test_right_queries_pass_and_what_cannot_be_recomputed_does_not(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(stored), "--answers"]) == 1
    _, *shown = capsys.readouterr().out.splitlines()
    for line, name in zip(shown, ASKED, strict=False):
        right = f"{name}: [1-9][0-9,]* results, recomputed from the input by DuckDB: all right"
        assert re.fullmatch(right, line)
    ticks, square = shown[len(ASKED) :]
    assert ticks.startswith("ticks: not checked: its answers are those of ticks (SLIDE), which")
    assert square.startswith("square: not checked: DuckDB may evaluate POWER(c.seats, 2) diff")
    assert main(["check", str(stored), "--answers", "--sample", "0.5"]) == 2
    assert "a hub is checked as a whole; it must be 1" in capsys.readouterr().err


def test_wrong_rows_are_reported_for_their_queries_alone(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Path(shutil.copytree(stored, tmp_path / "run"))
    monkeypatch.setattr(committed_results.durable_files, "check_file", lambda *_: None)
    for name, damage in DAMAGES.items():
        operator = f"{[*ASKED].index(name):04d}-000-"
        results = [*hub.glob(f"operators/{operator}*/results/*.parquet")]
        file = next(f for f in sorted(results) if pq.read_metadata(f).num_rows)
        rows = pq.read_table(file)
        row = rows.slice(0, 1)
        several = {"removed": [], "added": [row, row], "changed": [change_id(row)]}[damage]
        pq.write_table(pa.concat_tables([*several, rows.slice(1)]), file)
    report = check_answers(hub)
    counts = {"removed": (1, 0), "added": (0, 1), "changed": (1, 1)}
    wrong = {n: (r.missing, r.wrong) for n, r in report.reports.items() if not r.is_right}
    assert wrong == {name: counts[damage] for name, damage in DAMAGES.items()}, str(report)
    assert all("row(id=" in str(report.reports[name].examples[0]) for name in DAMAGES)


def change_id(row: pa.Table) -> pa.Table:
    """Return a result with another ``id`` in each of its tuples."""
    for place, name in enumerate(row.column_names):
        field = row.schema.field(name)
        if pa.types.is_struct(field.type):
            tuples = row[name].combine_chunks()
            parts = [
                pa.array([9999], f.type) if is_id(f, tuples) else pc.struct_field(tuples, f.name)
                for f in field.type
            ]
            mask = pc.is_null(tuples)
            changed = pa.StructArray.from_arrays(parts, fields=[*field.type], mask=mask)
            row = row.set_column(place, field, changed)
    return row


def is_id(field: pa.Field, tuples: Any) -> bool:
    return field.name in ("id", "flights__id", "checkins__id") and tuples.null_count == 0


def make_folder(folder: Path, *streams: str) -> Path:
    """Return a folder with the settings of a hub of tables, for a hub that is taken in steps."""
    last = dict.fromkeys(streams, BATCHES - 1)
    settings = {"hub": sorted(streams), "time": "ts", "tables": "DuckDB", "ready": True}
    RunStore(folder).create_run({**settings, "batches": BATCHES, "last_batches": last})
    (folder / "input").rmdir()  # it is written with the input
    return folder


def test_queries_that_come_and_go_while_tuples_come_late_are_right(tmp_path: Path) -> None:
    assert not [*KindScenario(10).run(make_folder(tmp_path, *SIDES))]
    report = check_answers(tmp_path)
    assert report.is_right and len(report.reports) > 2, str(report)


def test_the_answers_of_a_network_whose_node_fails_and_whose_source_is_silent_are_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A batch has no tuples, so that micro-batches have lower numbers than later batches."""
    from braid.hub.operator_moves import fail_node

    hub = SteppedHub(make_folder(tmp_path, *AT), make_hub_tables(3), NETWORK, AT)
    hub.submit(WIDE, "wide", "S1")
    hub.step()
    run_empty_batch(hub.registry)
    hub.submit(THREE, "three", "S2")
    hub.step()
    placed = {o.node for o in hub.registry.current_deployment.operators.values()}
    fail_node(hub.registry, min(placed & {n for n in NODES if n[0] == "N"}))
    hub.step()
    hub.registry.withdraw_query("wide")
    hub.step()
    assert main(["check", str(tmp_path), "--answers"]) == 0
    shown = capsys.readouterr().out
    assert re.findall("^(.*): [1-9].*: all right", shown, re.MULTILINE) == ["wide", "three"], shown
