"""As-of joins: what is refused, compared and forgotten, and the rule of releases."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from braid import Shed, StreamJoin
from braid.answer_check import check_answers
from braid.core.answer_events import TuplesAnswered
from braid.core.asof_releases import ReleaseFacts, ReleaseState, plan_releases
from braid.core.match_rules import MatchRule
from braid.core.narrative import (
    describe_batch_plan,
    describe_block_history,
    explain_meeting,
)
from braid.core.plan import Block, Derivation, Hop, Plan, Release, Route
from braid.core.release_coverage import check_releases
from braid.core.reserved_columns import TIME
from braid.core.run_events import BatchCommitted
from braid.engine_run import EngineRun
from braid.errors import CoverageError
from braid.kernels import asof_join, probe
from braid.kernels.asof_search import SortedRows
from braid.kernels.dominance import find_dominated_rows
from braid.papers.baselines.centralized import Centralized
from braid.papers.baselines.hash_partition import HashPartition
from braid.papers.theta.grid import AdaptiveGrid, StaticGrid
from braid.papers.theta.run_events import MigrationStarted
from braid.run_inspector import load_run
from braid.simulation.simulator import simulate
from braid.storage.block_files import ResultFileWriter

ROOT = Path(__file__).parents[2]
NOON = datetime(2026, 1, 5, 12)


def at(*seconds: float | None) -> pa.Array:
    times = [None if s is None else NOON + timedelta(seconds=s) for s in seconds]
    return pa.array(times, pa.timestamp("us"))


def table(times: pa.Array, **columns: Any) -> pa.Table:
    size = len(times)
    return pa.table({"id": [*range(size)], "k": [0] * size, "ts": times, **columns})


def find_partners(
    folder: Path, a: pa.Table, b: pa.Table, on: str = "a.k = b.k", **given: Any
) -> dict[int, int]:
    """Return the ids of partners by that of their tuples."""
    given = {"match": "latest", "time": "ts", "placement": Centralized()} | given
    run = StreamJoin({"a": a, "b": b}, on, check=True, **given).start(folder, batches=3)
    run.awaitTermination()
    return {row["a"]["id"]: row["b"]["id"] for row in run.results().to_pylist()}


THREE = at(0, 1, 2)
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"match": "last"}, "match is 'last'; match must be one of latest, first, nearest"),
    "tolerance alone": ({"match": None, "tolerance": "1 s"}, "tolerance is given without match"),
    "strict alone": ({"match": None, "strict": True}, "strict is given without match"),
    "no time": ({"time": None}, "stream a has no event-time column"),
    "order of one": ({"order": {"a": "x"}}, "order is"),
    "unknown order": ({"order": "y"}, "order names 'y', but stream a has no such column"),
    "text order": ({"order": "s"}, "order names a.s of type string and b.s of type string"),
    "unknown ties": ({"ties": "y"}, "ties names 'y', but stream b has no such column"),
    "no ties": ({"ties": []}, "ties is []; it must name columns of b"),
    "number for times": ({"tolerance": 5}, "tolerance is 5, but times are compared"),
    "span for numbers": ({"order": "x", "tolerance": "5 s"}, "but numbers are compared"),
    "negative": ({"order": "x", "tolerance": -1}, "it must be a number, 0 or more"),
    "not a span": ({"tolerance": "soon"}, "tolerance is 'soon'; it must be a span of 0 or more"),
    "no number": ({"tolerance": [1]}, "tolerance is [1]"),
    "word for strict": ({"strict": "yes"}, "strict is 'yes'"),
    "shed": ({"shed": Shed(fraction=0.5)}, "match is given with shed"),
    "contradiction": ({"on": "b.ts > a.ts + INTERVAL 1 SECOND"}, "no rows can satisfy"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arguments_that_cannot_be_are_refused_before_anything_starts(name: str) -> None:
    given, says = REFUSED[name]
    streams = {alias: table(THREE, x=[1, 2, 3], s=["x", "y", "z"]) for alias in "ab"}
    arguments: dict[str, Any] = {"on": "a.k = b.k", "match": "latest", "time": "ts"} | given
    with pytest.raises(ValueError, match=re.escape(says)):
        StreamJoin(streams, arguments.pop("on"), **arguments)


def test_three_streams_are_refused() -> None:
    streams = {alias: table(THREE) for alias in "abc"}
    with pytest.raises(ValueError, match="match is for two streams, and these are a, b, c"):
        StreamJoin(streams, "a.k = b.k AND b.k = c.k", match="latest", time="ts")


def test_a_run_is_resumed_with_its_match_only(tmp_path: Path) -> None:
    streams = {alias: table(THREE) for alias in "ab"}
    given: dict[str, Any] = {"time": "ts", "placement": Centralized()}
    join = StreamJoin(streams, "a.k = b.k", match="first", tolerance="2 s", strict=True, **given)
    run = join.start(tmp_path / "run", batches=2)
    run.awaitTermination()
    again = StreamJoin.resume(tmp_path / "run", streams)
    assert again.config.match == join.config.match
    for other in ({}, {"match": "first"}, {"match": "first", "tolerance": "2 s"}):
        with pytest.raises(ValueError, match="holds a run of another query: match is"):
            StreamJoin(streams, "a.k = b.k", **given, **other).start(tmp_path / "run", batches=2)
    assert check_answers(tmp_path / "run").is_right


def test_the_explanation_says_which_partner_is_taken() -> None:
    streams = {alias: table(THREE, x=[1, 2, 3]) for alias in "ab"}
    join = StreamJoin(streams, "a.k = b.k", match="latest", tolerance="2 s", strict=True, time="ts")
    assert "the latest partner by event time, before it, within 2 s" in str(join.explain())
    join = StreamJoin(streams, "true", match="nearest", order="x", time="ts")
    assert "the nearest partner by a.x and b.x, before or after" in str(join.explain())


def test_a_placement_is_chosen_by_what_a_search_costs() -> None:
    streams = {alias: table(at(*range(1000))) for alias in "ab"}
    join = StreamJoin(streams, "a.k = b.k", match="latest", time="ts", partitions=4)
    assert isinstance(join.placement, Centralized), join.placement


ORDERS: dict[str, tuple[list[Any], list[Any], Any]] = {
    "int": ([5, 9, 20], [3, 5, 8], 2),
    "float": ([5.0, float("nan"), 9.0], [4.0, float("nan"), 8.5], 1.0),
    "decimal": ([Decimal("5.0"), Decimal("9.5")], [Decimal("4.75"), Decimal("8.00")], 0.5),
    "date": ([date(2026, 1, 5), date(2026, 2, 1)], [date(2026, 1, 3), date(2026, 1, 2)], "2 days"),
    "timestamp": ([NOON, None], [NOON - timedelta(seconds=1), NOON], "1 second"),
}


@pytest.mark.parametrize("kind", ORDERS)
@pytest.mark.parametrize("match", ["latest", "nearest"])
def test_orders_of_each_type_are_compared(kind: str, match: str, tmp_path: Path) -> None:
    left, right, tolerance = ORDERS[kind]
    spans = {"date": timedelta(days=2), "timestamp": timedelta(seconds=1)}
    most = spans.get(kind, tolerance)
    known = {}
    for n, order in enumerate(left):
        near = [
            (-abs(other - order), other, m)
            for m, other in enumerate(right)
            if None not in (order, other) and (match == "nearest" or other <= order)
            if abs(other - order) <= most
        ]
        known |= {n: max(near)[2]} if near else {}
    a, b = (table(at(*range(len(v))), x=pa.array(v)) for v in (left, right))
    assert find_partners(tmp_path / "r", a, b, match=match, order="x", tolerance=tolerance) == known


def test_ties_are_decided_by_columns_and_null_is_the_least(tmp_path: Path) -> None:
    a = table(at(1))
    b = table(at(1, 1, 1, 1), x=[None, 2, 2, 1], y=["z", None, "b", "c"])
    assert find_partners(tmp_path / "xy", a, b, ties=["x", "y"]) == {0: 2}
    assert find_partners(tmp_path / "y", a, b, ties="y") == {0: 0}
    assert find_partners(tmp_path / "all", a, b) == {0: 3}
    turned = b.take([3, 2, 1, 0])
    assert find_partners(tmp_path / "turned", a, turned, ties=["x", "y"]) == {0: 2}


def test_a_recomputation_finds_partners_that_are_not_the_best(tmp_path: Path) -> None:
    a, b = table(at(1)), table(at(1, 1), x=[1, 2])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(asof_join, "rank_rows", lambda columns, size: np.arange(size)[::-1])
        assert find_partners(tmp_path / "run", a, b, ties="x") == {0: 0}
    report = check_answers(tmp_path / "run")
    assert (report.missing, report.wrong) == (1, 1)


def test_texts_and_several_equalities_find_the_latest(tmp_path: Path) -> None:
    a = table(at(5, 5), s=["x", "y"], n=[1, 1])
    b = table(at(1, 2, 3, 4), s=["x", "x", "y", "x"], n=[1, 1, 1, 2])
    on = "a.s = b.s AND a.n = b.n"
    assert find_partners(tmp_path / "two", a, b, on) == {0: 1, 1: 2}
    assert find_partners(tmp_path / "one", a, b, "a.s = b.s") == {0: 3, 1: 2}


@pytest.mark.parametrize("hosts", [1, 4])
def test_long_texts_are_written_in_bounded_pieces(
    hosts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "BYTES", 1 << 12)
    monkeypatch.setattr(probe, "_LITTLE", 0)
    pieces: list[int] = []
    append = ResultFileWriter.append_results

    def note(writer: Any, found: Any, *more: Any) -> None:
        pieces.append(len(found))
        append(writer, found, *more)

    monkeypatch.setattr(ResultFileWriter, "append_results", note)
    a, b = table(at(*range(50))), table(at(0, 20), s=["x" * 1000, "y" * 1000])
    found = find_partners(tmp_path / "run", a, b, placement=StaticGrid(hosts))
    assert found == {n: int(n >= 20) for n in range(50)}
    assert max(pieces) <= 4 and sum(pieces) == 50


def test_windows_and_bounds_of_the_condition_limit_partners(tmp_path: Path) -> None:
    a, b = table(at(10)), table(at(1, 6, 9))
    assert find_partners(tmp_path / "w", a, b, windows="1 second") == {}
    assert find_partners(tmp_path / "v", a, b, windows="2 seconds") == {0: 2}
    on = "a.k = b.k AND b.ts <= a.ts - INTERVAL 3 SECONDS"
    assert find_partners(tmp_path / "c", a, b, on) == {0: 1}
    assert find_partners(tmp_path / "n", a, b, on, match="nearest") == {0: 1}


def test_the_recipe_of_trades_and_quotes_prints_what_its_page_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = (ROOT / "docs/as-of.md").read_text()
    assert '--8<-- "docs/examples/quotes.py"' in page
    run_path(str(ROOT / "docs/examples/quotes.py"))
    assert f"```\n{capsys.readouterr().out}```" in page


def test_an_inspection_says_which_tuples_took_partners_and_where(tmp_path: Path) -> None:
    a, b = in_batches(table(at(10, 30)), 0, 1), in_batches(table(at(9, 20, 40)), 0, 1, 2)
    take_partners(tmp_path / "run", a, b, match="latest")
    index = load_run(tmp_path / "run")
    released = "block 0 of a, keys [0, 1), of batch 1 is released on host 0, from 2026-01-05"
    times = "12:00:09 UTC, before 2026-01-05 12:00:20 UTC"
    plan = describe_batch_plan(index, 2)
    assert f"{released} {times}: partners from b block 1 on host 0" in plan
    assert "met in batch 3: block 0 probed block 1 on host 0" in explain_meeting(index, 0, 1)
    assert "probed by block 0 on host 0" in describe_block_history(index, 1)
    last = describe_batch_plan(index, index.last_batch)
    assert "is released on host 0, from 2026-01-05 12:00:20 UTC: partners from b" in last


KEYS, BATCHES, LATENESS = 100, 60, 1


@pytest.mark.parametrize("hosts", [1, 3])
def test_the_latest_without_tolerance_holds_a_tuple_for_each_key(
    hosts: int, tmp_path: Path
) -> None:
    """The bound of what is held, at a rate of 2,000 tuples an hour of event time."""
    hours, rate = BATCHES, 2_000
    draw = np.random.default_rng(5)
    times = np.sort(draw.integers(0, hours * 3600, hours * rate))
    b = table(at(*times.tolist()), x=times).set_column(
        1, "k", pa.array(draw.integers(0, KEYS, len(times)))
    )
    a = table(at(*range(0, hours * 3600, 600)))
    given: dict[str, Any] = {
        "time": "ts",
        "lateness": f"{LATENESS} hour",
        "placement": HashPartition(hosts),
    }
    run = StreamJoin({"a": a, "b": b}, "a.k = b.k", match="latest", **given).start(
        tmp_path / "run", batches=BATCHES
    )
    run.awaitTermination()
    held = [e.live_tuples[1] for e in run.events() if isinstance(e, BatchCommitted)]
    smallest_tier = 4 * rate  # three batches wait for the fourth to be merged
    assert max(held) <= KEYS + 1.25 * LATENESS * rate + smallest_tier
    times_of_key = times[b["k"].to_numpy() == 0]
    for row in run.results().to_pylist():
        moment = int((row["a"]["ts"] - NOON).total_seconds())
        assert row["b"]["x"] == times_of_key[times_of_key <= moment].max()


def in_batches(rows: pa.Table, *batches: int) -> pa.Table:
    return rows.append_column("batch", pa.array(batches))


def take_partners(folder: Path, a: pa.Table, b: pa.Table, **given: Any) -> dict[int, int]:
    """Return the ids of partners by that of their tuples, in a run of the tables' batches."""
    join = StreamJoin({"a": a, "b": b}, "a.k = b.k", Centralized(), time="ts", check=True, **given)
    run = join.start(folder, batches="batch")
    run.awaitTermination()
    return {row["a"]["id"]: row["b"]["id"] for row in run.results().to_pylist()}


def test_a_tuple_waits_until_the_watermark_has_passed_it(tmp_path: Path) -> None:
    a, b = in_batches(table(at(10)), 0), table(at(10, 10, 20), x=[1, 2, 3])
    given: dict[str, Any] = {"match": "latest", "ties": "x"}
    assert take_partners(tmp_path / "run", a, in_batches(b, 0, 1, 2), **given) == {0: 1}
    assert take_partners(tmp_path / "late", a, in_batches(b, 0, 3, 2), **given) == {0: 0}


def test_partners_do_not_wait_for_a_silent_source() -> None:
    streams = {alias: table(THREE) for alias in "ab"}
    for match, waits in ((None, False), ("latest", True)):
        config = StreamJoin(streams, "a.k = b.k", time="ts", match=match).config
        endless: Any = SimpleNamespace(_settings={"batches": None}, config=config)
        assert EngineRun._waits_for_silence(endless) is waits


def test_tuples_that_wait_are_counted(tmp_path: Path) -> None:
    a, b = in_batches(table(at(10, 30, 50)), 0, 1, 1), in_batches(table(at(9, 20, 40)), 0, 1, 2)
    take_partners(tmp_path / "run", a, b, match="latest")
    events = load_run(tmp_path / "run").events
    chosen_events = [(e.answered, e.waiting) for e in events if isinstance(e, TuplesAnswered)]
    assert chosen_events == [((0, 0), (1, 0)), ((0, 0), (3, 0)), ((1, 0), (2, 0)), ((2, 0), (0, 0))]


def test_partners_of_tuples_that_wait_are_held(tmp_path: Path) -> None:
    a = in_batches(table(at(10, 1000)), 0, 1)
    b = in_batches(table(at(5, 7, 2000)), 0, 2, 4)
    given: dict[str, Any] = {"match": "latest", "tolerance": "10 seconds"}
    assert take_partners(tmp_path / "run", a, b, **given) == {0: 1}
    earlier = in_batches(table(at(5, 3, 2000)), 0, 2, 4)
    assert take_partners(tmp_path / "earlier", a, earlier, **given) == {0: 0}


def test_a_late_tuple_takes_no_partner_that_is_after_it_or_forgotten(tmp_path: Path) -> None:
    a = in_batches(table(at(100, 5, 60, 100)), 0, 2, 2, 2)
    b = in_batches(table(at(3, 50, 200)), 0, 0, 1)
    assert take_partners(tmp_path / "run", a, b, match="latest") == {0: 1, 2: 1, 3: 1}
    report = check_answers(tmp_path / "run")
    assert report.is_right and report.late > 0


def test_a_row_at_the_least_time_that_counts_dominates_unless_equals_are_left_out() -> None:
    keys, orders = np.array([1, 1, 1, 1, 2]), np.array([5, 8, 10, 11, 9])
    rows = SortedRows.sort_rows(keys, orders, lambda at: at)
    assert find_dominated_rows(rows, 10, False).tolist() == [True, True, False, False, False]
    assert find_dominated_rows(rows, 10, True).tolist() == [True, False, False, False, False]
    assert not find_dominated_rows(rows, 7, False).any()


def make_block(
    id: int, stream: int, batch: int, span: tuple[int, int], hosts: tuple[int, ...]
) -> Block:
    return Block(id, stream, (0, 8), batch, hosts, 10, 100, span)


BLOCKS = (
    make_block(0, 0, 1, (0, 30), (0, 1)),
    make_block(1, 0, 3, (5, 50), (1,)),
    make_block(2, 1, 1, (0, 25), (1, 2)),
    make_block(3, 1, 2, (10, 40), (2,)),
    make_block(4, 1, 3, (60, 70), (1,)),
)
FACTS = ReleaseFacts(
    BLOCKS, 3, ReleaseState(20, None), 45, ((0, 0), (None, 0)), lambda a, b: True, False
)


def test_releases_name_what_is_due_and_who_may_be_a_partner() -> None:
    older, fresh = plan_releases(FACTS)
    assert (older.block.id, older.since, older.until, older.host) == (0, 20, 45, 0)
    assert (fresh.block.id, fresh.since, fresh.until, fresh.host) == (1, None, 45, 1)
    assert older.partners == Hop(1, {1: (2,), 2: (3,)})  # on hosts that have both, if there are any
    assert fresh.partners == Hop(1, {1: (2,), 2: (3,)})
    assert plan_releases(FACTS._replace(until=None)) == ()
    check_releases(FACTS, [older, fresh], Plan())


def dropped(block: int) -> Plan:
    return Plan(drops={block: BLOCKS[block].hosts})


def meeting(release: Release, partners: dict[int, tuple[int, ...]]) -> Release:
    return replace(release, partners=Hop(1, partners))


BROKEN: dict[str, tuple[Any, Plan, str]] = {
    "left out": (lambda a, b: [a], Plan(), "block 1 has tuples from 5 to 44 that are due"),
    "twice": (lambda a, b: [a, a, b], Plan(), "block 0 is released twice"),
    "unknown": (
        lambda a, b: [a, b, replace(a, block=make_block(9, 0, 1, (0, 1), (0,)))],
        Plan(),
        "blocks [9] are released, but are not live",
    ),
    "gap": (lambda a, b: [replace(a, since=21), b], Plan(), "from 21 to 45, but it is due from 20"),
    "early": (
        lambda a, b: [a, replace(b, until=46)],
        Plan(),
        "block 1 is released from None to 46",
    ),
    "elsewhere": (lambda a, b: [a, replace(b, host=0)], Plan(), "on host 0: not there"),
    "met twice": (lambda a, b: [meeting(a, {1: (2,), 2: (2, 3)}), b], Plan(), "partners twice"),
    "missed": (lambda a, b: [meeting(a, {1: (2,)}), b], Plan(), "released without blocks [3]"),
    "not there": (lambda a, b: [meeting(a, {0: (2,), 2: (3,)}), b], Plan(), "on host 0: not there"),
    "own stream": (
        lambda a, b: [meeting(a, {1: (2, 1), 2: (3,)}), b],
        Plan(),
        "meets blocks [1] of its own stream",
    ),
    "dropped": (lambda a, b: [a, b], dropped(1), "block 1 is dropped before all of its tuples"),
    "probing": (
        lambda a, b: [a, b],
        Plan(routes=(Route(make_block(9, 0, 4, (0, 1), (0,)), ((Hop(1, {1: (2,)}),),)),)),
        "blocks [9] probe in an as-of join",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_plans_that_break_the_rule_of_releases_are_refused(name: str) -> None:
    change, plan, says = BROKEN[name]
    with pytest.raises(CoverageError, match=re.escape(says)):
        check_releases(FACTS, change(*plan_releases(FACTS)), plan)


def test_blocks_that_are_released_to_their_end_or_live_on_may_go() -> None:
    releases = plan_releases(FACTS)
    check_releases(FACTS, releases, dropped(0))
    merged = Derivation(make_block(9, 0, 1, (0, 50), (1,)), (1,), {1: 1})
    check_releases(FACTS, releases, replace(dropped(1), derivations=(merged,)))


def test_the_intervals_of_a_run_rise_without_gap(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    a, b = (table(at(*draw.integers(0, 90, 200).tolist())) for _ in range(2))
    seen: list[ReleaseState] = []
    with pytest.MonkeyPatch.context() as patched:
        advance = ReleaseState.advance_with_retention

        def note(state: ReleaseState, retention: Any) -> ReleaseState:
            seen.append(advance(state, retention))
            return seen[-1]

        patched.setattr(ReleaseState, "advance_with_retention", note)
        assert len(find_partners(tmp_path / "run", a, b)) > 190
    limits = [state.until for state in seen if state.until is not None]
    assert all(one <= other for one, other in pairwise(limits)) and len(limits) > 1


def test_a_placement_that_changes_defers_no_pairs_of_an_as_of_join() -> None:
    """Releases meet stored blocks wherever they are, so that nothing waits for blocks in transit."""
    batches = [(60, 1)] * 3 + [(1, 90)] * 5
    events = simulate(
        AdaptiveGrid(16), batches, match=MatchRule("latest", (TIME, TIME)), how="left"
    )
    assert any(isinstance(e, MigrationStarted) for e in events)
    answered = [e for e in events if isinstance(e, TuplesAnswered)]
    assert sum(e.answered[0] for e in answered) == sum(a for a, _ in batches)
