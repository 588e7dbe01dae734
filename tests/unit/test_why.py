"""``why``: planted causes on many placements, random runs as an oracle, and refused questions."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import braid
import pyarrow as pa
import pytest
from braid import AdaptiveGrid, HashPartition, Ring, StreamJoin
from braid.cli import main
from braid.core.combination_facts import PairFacts, PartFacts, RunFacts, TupleFacts
from braid.core.join_kinds import parse_kind
from braid.core.pair_verdicts import PairVerdict, judge_pair
from braid.core.run_state import FileChecksum
from braid.core.trace_rows import TraceFile, TraceWritten
from braid.papers.baselines.centralized import Centralized
from braid.papers.shedding.run_events import SheddingPlanned
from braid.papers.shedding.shed import Shed
from braid.result_explanation import Why
from braid.shedding_facts import SheddingSearch
from braid.storage import log_checkpointer
from braid.storage.result_retention import parse_retention
from braid.storage.run_store import RunStore
from braid.storage.trace_files import drop_expired_traces
from braid.stored_tuples import TuplePlace
from kind_runs import draw_case
from oracle import PLACEMENTS, compute_expected, make_tables

SECOND = 1_000_000
ORDERS = (
    # id, total, second, batch
    (1, 100, 100, 0),
    (2, 100, 100, 0),
    (3, 4, 100, 0),
    (4, None, 100, 0),
    (5, 100, None, 0),
    (6, 100, 101, 0),
    (7, 100, 300, 3),
    (8, 100, 302, 4),
)
PAYMENTS = (
    # order_id, amount, second, batch
    (1, 80, 120, 1),
    (2, 120, 120, 1),
    (3, 1, 120, 1),
    (4, 80, 120, 1),
    (5, 80, 120, 1),
    (6, 80, 130, 2),
    (9, 9, 300, 3),
    (1, 70, 160, 4),  # behind 300
    (1, 60, 301, 4),
    (8, 80, 303, 4),
)
ON = "o.id = p.order_id AND p.amount < o.total AND o.total > 5"
CAUSES = {
    "found": ({"id": 1}, {"amount": 80}),
    "condition": ("id = 2", "order_id = 2"),
    "filtered": ("id = 3", "order_id = 3"),
    "untimed": ("id = 5", "order_id = 5"),
    "window": ("id = 1", "amount = 60"),
    "late": ("id = 1", "amount = 70"),
    "never arrived": ("id = 99", "order_id = 9"),
}
"""By verdict, the selectors of both streams."""


def make_orders() -> dict[str, pa.Table]:
    """Return orders and payments."""
    names = (("id", "total", "ts", "batch"), ("order_id", "amount", "ts", "batch"))
    tables = {}
    for alias, columns, rows in zip("op", names, (ORDERS, PAYMENTS), strict=True):
        first, second, seconds, batches = zip(*rows, strict=True)
        times = [None if s is None else s * SECOND for s in seconds]
        data = (first, second, pa.array(times, pa.timestamp("us")), batches)
        tables[alias] = pa.table(dict(zip(columns, data, strict=True)))
    return tables


def run_orders(path: Path, on: str = ON, keep: str | None = None, **arguments: Any) -> Any:
    """Return an ended run of orders and payments."""
    sink = arguments.pop("foreachBatch", None)
    arguments = {"windows": "90 seconds", "time": "ts", "placement": Centralized()} | arguments
    run = StreamJoin(make_orders(), on, **arguments).start(
        path, batches="batch", durability="process", foreachBatch=sink, keep=keep
    )
    run.awaitTermination()
    return run


TWO = {name: p for name, p in PLACEMENTS.items() if p.supports_streams(2)}
ONE_EACH = [*{type(p): name for name, p in TWO.items()}.values()]
"""The last example of each placement."""
SEVERAL = [
    (name, streams)
    for streams in ("abc", "abcd")
    for name in {type(p): n for n, p in PLACEMENTS.items() if p.supports_streams(3)}.values()
    if PLACEMENTS[name].supports_streams(len(streams))
]
"""The last example of each placement, with several streams."""
EVERY = {"o": "id IS NOT NULL", "p": "order_id IS NOT NULL AND amount IS NOT NULL"}


def refuse_batch(number: int) -> Any:
    """Return a ``foreachBatch`` that fails on a batch."""

    def give(results: pa.Table, batch: int) -> None:
        if batch == number:
            raise RuntimeError("the sink is full")

    return give


def list_verdicts(path: Path, **rows: str) -> dict[tuple[int, ...], PairVerdict]:
    """Return the judgments of orders with payments, by id and amount; none of them is a fault."""
    answer = braid.why(path, rows or EVERY, limit=40)
    assert "fault" not in {pair.verdict for pair in answer.pairs}, str(answer)
    labels = (" ".join(fact.label for fact in pair.tuples) for pair in answer.pairs)
    numbers = (tuple(map(int, re.findall(r"\d+", label))) for label in labels)
    return dict(zip(numbers, answer.pairs, strict=True))


@pytest.mark.parametrize("name", TWO, ids=str)
def test_planted_causes_are_named_on_every_placement(tmp_path: Path, name: str) -> None:
    path = tmp_path / "run"
    with pytest.raises(RuntimeError, match="the sink is full"):
        run_orders(path, placement=PLACEMENTS[name], foreachBatch=refuse_batch(4))
    judged = list_verdicts(path)
    planted = {
        "found": judged[1, 1, 80],
        "condition": judged[2, 2, 120],
        "filtered": judged[3, 3, 1],
        "untimed": judged[5, 5, 80],
        "window": judged[1, 1, 60],
        "late": judged[1, 1, 70],
        "not delivered": judged[8, 8, 80],
    }
    verdicts = {cause: pair.verdict for cause, pair in planted.items()}
    if verdicts["late"] == "found":  # the order of 100 s was still held
        assert planted["late"].also == ("late",)
        verdicts["late"] = "late"
    if verdicts["not delivered"] == "pending":  # the grid is about to change
        assert name.startswith("AdaptiveGrid")
        verdicts["not delivered"] = "not delivered"
    assert [*verdicts] == [*verdicts.values()]
    (found_by,) = (s for s in planted["found"].steps if s.subject == "found by")
    assert found_by.outcome == "equality and ranges" and "o.id = p.order_id" in found_by.values
    never = braid.why(path, {"o": "id = 99", "p": "true"})
    assert (never.verdict, never.is_certain) == ("never arrived", True)
    settings = {**RunStore(path).read_settings(), "on": "o.id = p.order_id AND power(o.id, 2) < 1"}
    asked = {"o": "id = 2", "p": "order_id = 2"}
    with patch("braid.result_explanation.read_checkable_settings", lambda store: settings):
        assert braid.why(path, asked).verdict == "unknown", "DuckDB may compute another power"
    resumed = StreamJoin.resume(path, make_orders(), foreachBatch=lambda rows, batch: None)
    assert resumed.awaitTermination()
    later = list_verdicts(path)
    waited = {n for n, pair in judged.items() if pair.verdict in ("pending", "not delivered")}
    assert waited and {later[n].verdict for n in waited} == {"found"}


@pytest.mark.parametrize(("name", "streams"), SEVERAL)
def test_combinations_of_several_streams_are_found_exactly_if_they_should_be(
    tmp_path: Path, name: str, streams: str
) -> None:
    rows = {3: 10, 4: 6}[len(streams)]
    tables = {
        alias: pa.table(
            {
                "id": range(rows),
                "k": [(n + shift) % 3 for n in range(rows)],
                "ts": pa.array(
                    [(n * 40 + shift) * SECOND for n in range(rows)], pa.timestamp("us")
                ),
                "batch": [n // 2 for n in range(rows)],
            }
        )
        for shift, alias in enumerate(streams)
    }
    on = " AND ".join(f"{x}.k = {y}.k" for x, y in pairwise(streams))
    join = StreamJoin(tables, on, PLACEMENTS[name], windows="90 seconds", time="ts")
    assert join.start(tmp_path, batches="batch", durability="process").awaitTermination()
    answer = braid.why(tmp_path, dict.fromkeys(streams, "true"), limit=rows)
    by_verdict: dict[str, Counter[tuple[int, ...]]] = defaultdict(Counter)
    for pair in answer.pairs:
        by_verdict[pair.verdict][*(int(f.label.split()[-1]) for f in pair.tuples),] += 1
    wanted = compute_expected(tables, on, dict.fromkeys(streams, 90))
    assert by_verdict["found"] == wanted and len(wanted) > rows
    assert {*by_verdict} == {"found", "condition", "window"} and answer.is_certain
    assert sum(map(Counter.total, by_verdict.values())) == rows ** len(streams)


@pytest.mark.parametrize("name", ONE_EACH, ids=str)
def test_causes_of_other_runs_are_named_on_every_placement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Kinds of joins, load shedding and removed results: each in a run of its own."""
    placement = PLACEMENTS[name]
    with pytest.raises(RuntimeError, match="the sink is full"):
        run_orders(tmp_path / "full", placement=placement, how="full", foreachBatch=refuse_batch(3))
    assert braid.why(tmp_path / "full", {"o": "id = 7"}).verdict == "waiting"
    assert braid.why(tmp_path / "full", {"p": "order_id IS NULL OR amount = 1"}).verdict in (
        "waiting",
        "unmatched",
    )
    run_orders(tmp_path / "anti", placement=placement, how="anti")
    judged = list_verdicts(tmp_path / "anti")
    assert judged[1, 1, 80].verdict == "matched"
    assert braid.why(tmp_path / "anti", {"o": "id = 7"}).verdict == "unmatched"
    run_orders(
        tmp_path / "asof", "o.id = p.order_id", placement=placement, windows=None, match="first"
    )
    judged = list_verdicts(tmp_path / "asof")
    assert judged[1, 1, 80].verdict == "found" and judged[1, 1, 60].verdict == "outranked"
    for method, verdict in (("selective", "shed"), ("drop", "dropped")):
        shed = Shed(fraction=1e-8, sample=1.0, method=method)
        run_orders(tmp_path / method, placement=placement, shed=shed)
        pair = list_verdicts(tmp_path / method)[6, 6, 80]
        assert pair.verdict == verdict and "hash" in pair.steps[-1].values
    monkeypatch.setattr(log_checkpointer, "_EVERY", 1)
    run_orders(tmp_path / "kept", placement=placement, keep="1 B")
    judged = list_verdicts(tmp_path / "kept")
    assert judged[1, 1, 80].verdict == "no longer kept"


def test_a_missing_pair_is_explained_with_values_distance_and_advice(tmp_path: Path) -> None:
    run = run_orders(tmp_path / "run")
    text = str(run.why({"o": "id = 1", "p": "amount = 60"}))
    assert text == (
        "o id 1 (1970-01-01 00:01:40, came in batch 1) and p amount 60 (1970-01-01 00:05:01, came "
        "in batch 5): no result: window\n"
        "  o.id = p.order_id   true  1 and 1\n"
        "  p.amount < o.total  true  60 and 100\n"
        "  o.total > 5         true  100 and 5\n"
        "  window of o         exceeded  p is 3 min 21 s after o; o is kept for 1 min 30 s: 1 min "
        "51 s too late\n"
        '  to have it          windows={"o": "3 min 22 s"} holds 2.2 times the tuples of o\n'
        "tuples: 1 of o, 1 of p; searched batches 1 to 5. Certain."
    )


def test_null_in_a_comparison_is_named_with_the_operator_that_compares_it(tmp_path: Path) -> None:
    answer = run_orders(tmp_path / "run").why({"o": {"id": 4}, "p": {"order_id": 4}})
    assert answer.verdict == "filtered"
    assert "p.amount < o.total  NULL  80 and NULL; NULL never matches, <=> compares it" in (
        str(answer)
    )


def test_a_tuple_alone_is_explained_by_its_partners(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run_orders(path, how="left")
    lonely = {"o": "id = 7"}
    assert braid.why(path, lonely).verdict == "unmatched"
    assert "a result of batch" in str(braid.why(path, lonely))
    joined = braid.why(path, {"p": "amount = 80 AND order_id = 1"})
    assert (joined.verdict, joined.pairs[0].tuples[0].label) == ("found", "o id 1")
    run_orders(tmp_path / "inner")
    assert braid.why(tmp_path / "inner", lonely).verdict == "condition"


@pytest.mark.parametrize(
    ("shed", "placement"),
    [
        (Shed(fraction=0.4, utility={"a": "a.k"}), AdaptiveGrid(hosts=5, epsilon=0.5)),
        (Shed(fraction=0.4, method="drop"), Ring(hosts=3, max_hosts=3)),
        (Shed(fraction=0.4, method="keys"), HashPartition(hosts=3)),
    ],
    ids=str,
)
def test_a_pair_is_shed_or_dropped_exactly_if_its_hash_is_past_the_share(
    tmp_path: Path, shed: Shed, placement: Any
) -> None:
    """A wrong hash or share would make a fault of every second pair."""
    streams, on = make_tables("ab", 200, seed=91, batches=6), "abs(a.n - b.n) <= 60"
    on = "a.k = b.k" if shed.method == "keys" else on
    join = StreamJoin(streams, on, placement, "150 seconds", "ts", "2 minutes", shed=shed)
    join.start(tmp_path, batches="batch", durability="process").awaitTermination()
    answer = braid.why(tmp_path, {"a": "id % 3 = 0", "b": "id % 3 = 0"}, limit=70)
    skipped = [p for p in answer.pairs if p.verdict in ("shed", "dropped")]
    assert len(skipped) > (4 if shed.method == "keys" else 40)
    unknown = [str(p.steps[-1]) for p in skipped if "hash" not in p.steps[-1].values]
    assert "fault" not in {pair.verdict for pair in answer.pairs} and not unknown


def test_shedding_is_judged_by_the_plans_that_are_kept() -> None:
    """The plan of the tuple that came first is gone, or its blocks are not known."""
    tuples = (TupleFacts("a", "a id 1", 0), TupleFacts("b", "b id 1", 3))
    plan = SheddingPlanned(3, "drop", "fraction", 0.5, 0.5, None, True, (), (), {})
    places = SimpleNamespace(
        events=SimpleNamespace(events=[replace(plan, keep_shares=(1.0, 0.5))], stream_names="ab"),
        find_stream=lambda fact: "ab".index(fact.alias),
        find_place=lambda fact: TuplePlace(),
        list_blocks=lambda fact: [],
    )
    found = SheddingSearch(cast(Any, places)).find_shedding(tuples)
    assert [each.share for each in found.admissions] == [None, 0.5]
    places.events.events = [plan]
    assert not SheddingSearch(cast(Any, places)).find_shedding(tuples).is_known
    places.events.events = [replace(plan, batch=2)]
    assert not SheddingSearch(cast(Any, places)).find_shedding(tuples).is_known


def test_results_that_foreach_batch_has_not_received_are_named(tmp_path: Path) -> None:
    def refuse(results: pa.Table, batch: int) -> None:
        if batch == 2:
            raise RuntimeError("the sink is full")

    with pytest.raises(RuntimeError, match="the sink is full"):
        run_orders(tmp_path / "run", foreachBatch=refuse)
    answer = braid.why(tmp_path / "run", {"o": "id = 6", "p": "order_id = 6"})
    assert answer.verdict == "not delivered"
    assert "in batch 3; foreachBatch has received the batches up to 2" in str(answer)


def test_an_as_of_pair_names_the_partner_that_was_better(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run_orders(path, "o.id = p.order_id", windows=None, match="first")
    assert braid.why(path, {"o": "id = 1", "p": "amount = 80"}).verdict == "found"
    other = braid.why(path, {"o": "id = 1", "p": "amount = 60"})
    assert other.verdict == "outranked" and "'amount': 80" in str(other)


def test_a_run_that_has_not_ended_says_that_an_answer_waits(tmp_path: Path) -> None:
    def stop(results: pa.Table, batch: int) -> None:
        if batch == 1:
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        run_orders(
            tmp_path / "run", "o.id = p.order_id", match="first", windows=None, foreachBatch=stop
        )
    answer = braid.why(tmp_path / "run", {"o": "id = 1", "p": "amount = 80"})
    assert answer.verdict == "waiting"


def test_a_part_that_duckdb_cannot_evaluate_is_unknown(tmp_path: Path) -> None:
    run_orders(tmp_path / "run", "o.id = p.order_id AND power(o.total, 2) < p.amount")
    answer = braid.why(tmp_path / "run", {"o": "id = 2", "p": "order_id = 2"})
    assert (answer.verdict, answer.is_certain) == ("unknown", False)


def test_a_part_that_fails_for_a_pair_that_another_part_excludes_is_unknown(tmp_path: Path) -> None:
    on = "o.id = p.order_id AND (o.id < 3 OR o.id * 4000000000000000000 > p.amount)"
    run = run_orders(tmp_path / "run", "o.id = p.order_id AND o.id < 3", windows=None)
    settings = json.loads((tmp_path / "run/run.json").read_text())
    assert settings["on"] == "o.id = p.order_id AND o.id < 3"
    stored = explain_with_condition(run, on, {"o": "id = 7", "p": "order_id = 9"})
    assert (stored.verdict, stored.pairs[0].also) == ("condition", ("unknown",))
    assert "it fails for some of these tuples: Out of Range Error" in str(stored)


def explain_with_condition(run: Any, on: str, rows: Any) -> Why:
    """Return the explanation as if the run had another condition."""
    settings = {**run.store.read_settings(), "on": on}
    with patch("braid.result_explanation.read_checkable_settings", lambda store: settings):
        answer: Why = run.why(rows)
        return answer


def test_a_tuple_of_a_grid_is_followed_by_its_routing_key_from_block_to_block(
    tmp_path: Path,
) -> None:
    run = run_orders(tmp_path, placement=AdaptiveGrid(hosts=8))
    held = run.why({"o": "id = 7"}, blocks=True)
    hosts = r"o id 7: block \d+ of o, keys \[\d+, \d+\), of batch 4, on hosts [0-7](, [0-7])+$"
    assert re.search(hosts, str(held), re.MULTILINE)
    gone = run.why({"o": "id = 1", "p": "amount = 80"}, blocks=True)
    came = r"o id 1: block 0, then block 9 of o, keys \[48, 64\), of batch 1, .* until batch 6"
    assert re.search(came, gone.blocks[0])
    assert re.search(r"met in batch 2: block \d+ probed block 9 on host \d", gone.blocks[-1])


@pytest.mark.parametrize("first", [0, 100])
def test_no_pair_of_a_sound_run_is_a_fault(tmp_path: Path, first: int) -> None:
    """Every combination of random runs of all kinds: none is missing without a reason."""
    pairs = 0
    for seed in range(first, first + 5):
        case, path = (
            draw_case(seed, ("inner", "left", "full", "semi", "anti")),
            tmp_path / f"{seed}",
        )
        with case.choose_executor():
            case.make_join().start(path, batches="batch", durability="process").awaitTermination()
        answer = braid.why(path, {"a": "true", "b": "true"}, limit=40)
        assert "fault" not in {pair.verdict for pair in answer.pairs}, (seed, str(answer))
        pairs += len(answer.pairs)
    assert pairs > 1_000


def test_a_pair_that_should_be_there_and_one_that_should_not_are_faults() -> None:
    tuples = (TupleFacts("a", "a id 1", 0, 0), TupleFacts("b", "b id 2", 0, 0))
    inner, left = RunFacts(), RunFacts(kind=parse_kind("left", ["a", "b"]))
    true, false = PartFacts("a.k = b.k", True, (1, 1)), PartFacts("a.k = b.k", False, (1, 2))
    assert judge_pair(PairFacts(tuples, (true,)), inner).verdict == "fault"
    assert judge_pair(PairFacts(tuples, (true,)), left).verdict == "fault"
    assert judge_pair(PairFacts(tuples, (false,), result=3), inner).verdict == "fault"
    assert judge_pair(PairFacts(tuples, (true,), result=3), inner).verdict == "found"


def test_times_with_and_without_a_zone_have_no_distance() -> None:
    aware, naive = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 1)
    assert PartFacts("a.t = b.t", False, (aware, naive)).distance is None
    later = aware + timedelta(seconds=1)
    assert PartFacts("a.t = b.t", False, (aware, later)).distance == 1_000_000


def test_a_partner_that_a_stream_may_have_forgotten_is_unknown() -> None:
    """A stream that keeps all tuples answers for certain that none fulfils the condition."""
    for behind, forgetful, verdict, is_certain in (
        (0, (), "condition", True),
        (7, (), "condition", True),
        (0, ("b",), "unknown", False),
        (7, ("b",), "late", False),
    ):
        facts = TupleFacts("a", "a id 1", 3, 0, behind)
        judged = judge_pair(PairFacts((facts,), absent=("b",), forgetful=forgetful), RunFacts())
        assert (judged.verdict, judged.is_certain) == (verdict, is_certain)
    late = judge_pair(PairFacts((TupleFacts("a", "a id 1", 3, 0, 7),)), RunFacts())
    assert (late.verdict, late.is_certain) == ("late", True)


def test_a_change_of_placement_and_removed_results_are_named() -> None:
    tuples = (TupleFacts("a", "a id 1", 0, 0), TupleFacts("b", "b id 2", 4, 0))
    assert judge_pair(PairFacts(tuples), RunFacts(has_pending_pairs=True)).verdict == "pending"
    trimmed = judge_pair(PairFacts(tuples), RunFacts(first_retained_batch=5))
    assert trimmed.verdict == "no longer kept"
    assert trimmed.steps[-1].values == "found by batch 5; results are kept from batch 6 on"


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ({}, "rows are a dict; they must be conditions by alias, such as {'o': 'id = 7'}"),
        ({"x": "id = 1"}, "there is no stream 'x'; the run joins o, p"),
        ({"o": "amount = 1"}, "o has no column 'amount'; it has id, total, ts"),
        ({"o": {"amount": 1}}, "o has no column 'amount'; it has id, total, ts"),
        ({"o": "p.amount = 1"}, "the condition on o names p.amount; it may name columns of o only"),
        ({"o": 7}, "the rows of o are 7; they must be a condition, such as 'id = 7', or values"),
        ({"o": "id = = 1"}, "the condition on o, 'id = = 1', is no SQL"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(
    tmp_path: Path, rows: Any, sentence: str
) -> None:
    run_orders(tmp_path / "run")
    with pytest.raises(ValueError) as refused:
        braid.why(tmp_path / "run", rows)
    assert str(refused.value).startswith(sentence)


def test_a_folder_without_a_run_batch_or_query_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no run"):
        braid.why(tmp_path, {"o": "id = 1"})
    run_orders(tmp_path / "run")
    RunStore(tmp_path / "run")
    with pytest.raises(ValueError, match="is no shared run, so it has no query 'trend'"):
        braid.why(tmp_path / "run", {"o": "id = 1"}, query="trend")
    with pytest.raises(ValueError, match="limit is 0"):
        braid.why(tmp_path / "run", {"o": "id = 1"}, limit=0)


def test_the_command_prints_text_or_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_orders(tmp_path / "run")
    rows = ["--row", "o", "id = 2", "--row", "p", "order_id = 2"]
    assert main(["why", str(tmp_path / "run"), *rows]) == 0
    assert "p.amount < o.total  false  120 and 100: misses by 20" in capsys.readouterr().out
    assert main(["why", str(tmp_path / "run"), *rows, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "condition"
    found = ["--row", "o", "id = 1", "--row", "p", "amount = 80 AND order_id = 1"]
    assert main(["why", str(tmp_path / "run"), *found, "--blocks"]) == 0
    shown = capsys.readouterr().out
    assert "o id 1: block 0 of o, keys [0, 1), of batch 1, on hosts 0 until batch 5" in shown
    assert "  met in batch 2: block 3 probed block 0 on host 0\n" in shown
    assert main(["why", str(tmp_path / "run"), "--row", "q", "id = 2"]) == 2
    assert capsys.readouterr().err == "braid: there is no stream 'q'; the run joins o, p\n"


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_tuple_alone_is_compared_with_the_one_that_comes_closest(
    tmp_path: Path, how: str
) -> None:
    orders = pa.table({"id": [1, 7, None, 2], "total": [50, 5, 10, 20]})
    payments = pa.table({"order_id": [1, 12, 9, 2, 2], "amount": [30, 1, 2, 90, 25]})
    on = "o.id = p.order_id AND p.amount < o.total"
    run = StreamJoin({"o": orders, "p": payments}, on, Centralized(), how=how).start(tmp_path)
    assert run.awaitTermination()
    closest = {
        "id = 7": ("order_id 9", ["o.id = p.order_id", "false", "7 and 9: misses by 2"]),
        "id = 2": ("order_id 2", ["p.amount < o.total", "false", "25 and 20: misses by 5"]),
        "id IS NULL": ("order_id", ["o.id = p.order_id", "NULL", "NULL and"]),
    }
    for rows, (label, part) in closest.items():
        answer = run.why({"o": rows})
        assert answer.verdict == ("unmatched" if how == "left" else "condition")
        lines = [line.split("  ") for line in str(answer).splitlines()]
        texts = [[cell.strip() for cell in line if cell.strip()] for line in lines]
        (shown,) = (line for line in texts if line[0] == "nearest p")
        assert shown[1] == "no" and shown[2].startswith(f"p {label}")
        (compared,) = (line for line in texts if line[:2] == part[:2])
        assert compared[2].startswith(part[2])
        assert ("NULL never matches, <=> compares it" in compared[2]) == (part[1] == "NULL")
    assert "nearest" not in str(run.why({"o": "id = 1"}))


def test_a_text_alone_is_compared_with_the_text_that_differs_least(tmp_path: Path) -> None:
    """Upper case and blanks count less than another letter; an equality is the whole condition."""
    orders = pa.table({"id": ["A-1", "B-7", "C-12345"], "n": [1, 2, 3]})
    payments = pa.table({"order_id": ["A-1", " b-7", None, "C-12346", "B-9"], "x": [*range(5)]})
    streams = {"o": orders, "p": payments}
    run = StreamJoin(streams, "o.id = p.order_id", Centralized()).start(tmp_path)
    assert run.awaitTermination()
    for x, compared in {
        1: "false  'B-7' and ' b-7'",
        2: "NULL  ",
        3: "false  'C-12345' and 'C-12346'",
    }.items():
        answer = str(run.why({"p": {"x": x}}))
        assert f"o.id = p.order_id  {compared}" in answer, answer
    assert "and NULL; NULL never matches" in str(run.why({"p": {"x": 2}}))


@pytest.mark.parametrize(
    ("limit", "now", "first"),
    [("1 GB", 50, 0), ("20 B", 50, 3), ("29 B", 50, 3), ("30 B", 50, 2), ("1 B", 50, 4)]
    + [("10 seconds", 40, 3), ("10 seconds", 41, 4), ("10 seconds", 400, 4)],
)
def test_whole_batches_of_a_trace_are_dropped_oldest_first(
    limit: str, now: int, first: int
) -> None:
    written = [
        TraceWritten(n, (TraceFile(f"{n}", FileChecksum(10, 0), 0, 1),), 10 * n * SECOND, 0)
        for n in range(5)
    ]
    parsed = parse_retention(limit, "trace")
    assert parsed is not None
    kept = drop_expired_traces(written, parsed, now * SECOND)
    assert [event.batch for event in kept] == [*range(first, 5)]


def test_files_of_a_trace_past_its_limit_or_without_a_commit_are_removed(tmp_path: Path) -> None:
    run_orders(tmp_path)
    store, rows = RunStore(tmp_path), pa.record_batch({"id": [1, 2]})
    small, large = parse_retention("1 B", "trace"), parse_retention("1 GB", "trace")
    assert small is not None and large is not None
    written = [store.trace.write_batch(n, {0: [rows], 1: [rows]}, large) for n in range(3)]
    assert [event.first_batch for event in written] == [0, 0, 0]
    again = store.trace.write_batch(2, {0: [rows]}, large)
    assert (again.first_batch, again.files[0].rows) == (0, 2)
    last = store.trace.write_batch(3, {0: [rows]}, small)
    assert last.first_batch == 3
    assert len([*store.trace.folder.iterdir()]) == 8  # they go after the commit
    store.trace.remove_expired(0)
    left = {file.name for file in store.trace.folder.iterdir()}
    assert left == {f.name for f in (*written[2].files, *last.files)}  # an attempt that failed
    store.trace.remove_unnamed()
    assert not [*store.trace.folder.iterdir()]
