"""Runs that shed load: exact selected pairs with weights, unbiased estimates, and restarts.

Tables are joined in this process; tests/spark has the same on Spark.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from braid import AdaptiveGrid, Centralized, HashPartition, Ring, Shed, StaticGrid
from braid.core.reserved_columns import DRAW, ROUTING, TIME
from braid.core.run_events import BatchCommitted, BatchShed
from braid.core.shedding_plan import (
    ItemYield,
    ResultUtility,
    SheddingOutcome,
    SheddingPlan,
    estimate_variances,
    merge_outcomes,
    sum_sketches,
)
from braid.execution import probe_pools
from braid.execution.engine import Engine
from braid.kernels.hashing import distinct_hashes, sampling_hashes
from braid.kernels.order_independent_sums import sketch_values
from braid.kernels.shedding_sampler import PairSampler
from braid.papers.shedding.budget import LEAST
from braid.papers.shedding.run_events import SheddingPlanned
from braid.run_touches import list_touches
from braid.simulation.simulator import simulate
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from braid_widgets.cockpit.page import recorded_page
from input_splitting import split_input
from oracle import PLACEMENTS, Ids, compute_expected, describe_difference, list_files, make_tables
from shedding_oracle import arrived_tuples, expected_weights
from unit.scripted import list_documented_columns

ON = "abs(a.n - b.n) <= 60"
WINDOWS = {"a": 150, "b": 110}
BATCHES = 6
STREAMS = make_tables("ab", {"a": 260, "b": 320}, seed=91, batches=BATCHES)
FULL = compute_expected(STREAMS, ON, WINDOWS)


def join(placement: Any, shed: Shed | None, streams: Any = STREAMS, **more: Any) -> StreamJoin:
    windows = {a: f"{w} seconds" for a, w in WINDOWS.items()}
    settings = dict(windows=windows, time="ts", lateness="2 minutes", check=True) | more
    return StreamJoin(streams, settings.pop("on", ON), placement, shed=shed, **settings)


def ran(made: StreamJoin, folder: Path) -> Any:
    run = made.start(folder, batches="batch")
    run.awaitTermination()
    return run


def weighed(run: Any) -> dict[tuple[int, int], float]:
    """Return results by ids, with their weights; each occurs at most once."""
    table = run.results()
    ids = [table[a].combine_chunks().field("id").to_pylist() for a in run.config.streams]
    weights = table["weight"].to_pylist() if "weight" in table.column_names else [1.0] * len(ids[0])
    pairs = list(zip(*ids, strict=True))
    assert len(set(pairs)) == len(pairs)
    return dict(zip(pairs, weights, strict=True))


TWO = {
    n: p for n, p in PLACEMENTS.items() if p.supports_streams(2) and p.routing_key_source == "tuple"
}
SHEDS = [
    Shed(fraction=0.4),
    Shed(pairs=9000, method="partial", basic_window="40 seconds"),
    Shed(fraction=0.3, utility={"a": "a.k", "b": "CASE WHEN b.flag THEN 10 ELSE 1 END"}),
]


FEW = ("Centralized()", "AdaptiveGrid(hosts=5, epsilon=0.5, max_hosts=5)", "Scatter(hosts=4)")
TRIED = [(name, SHEDS[0]) for name in TWO]
TRIED += [(name, shed) for name in FEW for shed in SHEDS[1:]]


@pytest.mark.parametrize(
    ("name", "shed"), TRIED, ids=lambda x: x if isinstance(x, str) else x.processing_budget.kind
)
def test_results_are_exactly_the_selected_pairs(name, shed, tmp_path):
    placement = TWO[name]
    run = ran(join(placement, shed), tmp_path / "run")
    tuples = arrived_tuples(run, BATCHES)
    found, wanted = weighed(run), expected_weights(run.events(), tuples, FULL)
    assert describe_difference(Ids(found), Ids(wanted)) == ""
    assert 0 < len(found) < FULL.total()
    assert [*found.values()] == pytest.approx([wanted[pair] for pair in found])
    estimates = run.estimate_results()
    assert list_documented_columns(run.estimate_results) == [{*estimates.columns}]
    whole = estimates.iloc[-1]
    assert whole["results"] == len(found)
    assert whole["estimated_results"] == pytest.approx(sum(found.values()))
    done = [e for e in run.events() if isinstance(e, BatchCommitted)]
    stored = [sum(e.received_tuples[s] for e in done) for s in tuples]
    assert stored == [sum(len(b["id"]) for b in each) for each in tuples.values()], "all are kept"
    left = [e.skipped_pairs for e in run.events() if isinstance(e, BatchShed)]
    assert [e.total_host_metrics.skipped_pairs for e in done] == left and sum(left) > 0


@pytest.mark.parametrize("method", ["drop", "keys"])
def test_tuples_that_come_in_meet_all_that_came_in(method, tmp_path):
    """With "keys" a result is included if its value is.

    Half of the tuples have half of the results, not a quarter.
    """
    on = "a.k = b.k"
    full, counts, inside = compute_expected(STREAMS, on, WINDOWS), [], 0
    for seed in range(8):
        shed = Shed(fraction=0.25, method=method)
        made = join(Centralized(), shed, on=on, seed=seed)
        run = ran(made, tmp_path / f"{seed}")
        found = weighed(run)
        assert set(found) <= set(full)
        assert set(found.values()) <= {1.0, 4.0 if method == "drop" else 2.0}
        counts.append((len(found), sum(found.values())))
        whole = run.estimate_results().iloc[-1]
        inside += abs(whole["estimated_results"] - full.total()) <= whole["error_95"]
        received = sum(e.received_tuples[0] for e in run.events() if isinstance(e, BatchCommitted))
        assert received < 0.8 * STREAMS["a"].num_rows
    share, estimate = (np.mean(x) / full.total() for x in zip(*counts, strict=True))
    assert share == pytest.approx(0.25 if method == "drop" else 0.5, rel=0.2)
    assert estimate == pytest.approx(1, rel=0.2)
    assert inside >= 6
    off = np.std([estimated for _, estimated in counts])
    assert whole["error_95"] / 1.96 == pytest.approx(off, rel=0.7)


def test_a_fraction_of_1_is_the_whole_join(tmp_path):
    run = ran(join(StaticGrid(4), Shed(fraction=1)), tmp_path / "run")
    assert describe_difference(Ids(weighed(run)), FULL) == ""
    assert set(weighed(run).values()) == {1.0}
    assert run.estimate_results().iloc[-1][["considered_pair_share", "error_95"]].tolist() == [
        1.0,
        0.0,
    ]


@pytest.mark.parametrize("placement", [Centralized(), StaticGrid(4)], ids=["one", "grid"])
def test_a_simulation_foretells_what_is_processed_and_found(placement, tmp_path):
    """Batch by batch, with as many tuples of as many values."""
    draw, counts = np.random.default_rng(17), [(1500, 2000), (2500, 1000), (1000, 3000)]
    streams = {
        alias: pa.table(
            {
                "id": np.arange(sum(sizes)),
                "k": draw.integers(0, 100, sum(sizes)),
                "batch": np.repeat(np.arange(3), sizes).astype(np.int32),
            }
        )
        for alias, sizes in zip("ab", zip(*counts, strict=True), strict=True)
    }
    shed = Shed(fraction=0.3, method="uniform")
    run = ran(StreamJoin(streams, "a.k = b.k", placement, shed=shed), tmp_path / "run")
    modelled = simulate(placement, counts, selectivity=0.01, shedder=shed)
    happened, foretold = (
        [e for e in events if isinstance(e, BatchShed)] for events in (run.events(), modelled)
    )
    assert len(happened) == len(foretold) == 3
    for mine, theirs in zip(happened, foretold, strict=True):
        found, wanted = (sum(sum(y.matches) for y in e.items) for e in (mine, theirs))
        assert mine.considered_pairs == pytest.approx(theirs.considered_pairs, rel=0.12)
        assert found == pytest.approx(wanted, rel=0.12)
        assert mine.estimated_results == pytest.approx(theirs.estimated_results, rel=0.12)
        whole = mine.considered_pairs + mine.skipped_pairs
        assert whole == pytest.approx(theirs.considered_pairs + theirs.skipped_pairs)


@pytest.mark.parametrize("on", [ON, "a.k = b.k"])
def test_where_nothing_is_shed_small_blocks_are_met_at_once(on, tmp_path, monkeypatch):
    """As without shedding; otherwise twenty basic windows would be probed one by one.

    The output of each is still known, and once anything is shed, each has its own draws.
    """
    real, gathered = probe_pools.gather_blocks, []

    def gather(each: Any, *how: Any) -> Any:
        gathered.append(len(each))
        return real(each, *how)

    monkeypatch.setattr(probe_pools, "gather_blocks", gather)
    reported, times = {}, {}
    for small, fraction in ((4096, 1), (0, 1), (4096, 0.9)):
        monkeypatch.setattr(probe_pools, "SMALL", small)
        shed = Shed(fraction=fraction, method="uniform")
        run = ran(join(Centralized(), shed, on=on), tmp_path / f"{small} {fraction}")
        reported[small, fraction] = [e for e in run.events() if isinstance(e, BatchShed)]
        times[small, fraction] = max(gathered, default=0)
        gathered.clear()
    assert times == {(4096, 1): times[4096, 1], (0, 1): 0, (4096, 0.9): 0}
    assert times[4096, 1] > 3
    assert (
        reported[4096, 1] == reported[0, 1]
        and sum(e.considered_pairs for e in reported[0, 1]) > 10_000
    )


@pytest.mark.parametrize(
    ("harvest", "drawn"),
    [
        (None, True),
        (SheddingPlan(shares={(0, 1, 0): (1.0,), (1, 0, 0): (1.0, 1.0)}), False),
        (SheddingPlan(shares={(0, 1, 0): (1.0,), (1, 0, 0): (1.0, 0.5)}), True),
        (SheddingPlan(shares={(0, 1, 0): (1.0,)}, expected_tuples={7: 260.0, 8: 0.0}), False),
        (SheddingPlan(shares={(0, 1, 0): (1.0,)}, expected_tuples={7: 259.0}), True),
        (SheddingPlan(shares={(0, 1, 0): (1.0,)}, keep_shares=(1.0, 1.0)), True),
    ],
)
def test_where_all_take_part_tuples_have_no_draws(harvest, drawn, tmp_path):
    streams = {a: rows.slice(0, 260).drop_columns(["batch"]) for a, rows in STREAMS.items()}
    made = join(Centralized(), Shed(fraction=1), streams)
    made._join.make_replay(1).write_input(tmp_path)
    copied = split_input(tmp_path)
    feed = made.source.union_streams(made._join, {a: rows.schema for a, rows in streams.items()})[0]
    found, whole = feed.read_batch(copied, 0, harvest), feed.read_batch(copied, 0)
    for stream, parts in found.items():
        rows, full = pa.Table.from_batches(parts), pa.Table.from_batches(whole[stream])
        assert rows.schema == full.schema and rows.num_rows > 100
        assert all(rows[c] == full[c] for c in ("id", TIME, ROUTING))
        assert set(rows[DRAW].to_pylist()) == (set(full[DRAW].to_pylist()) if drawn else {0})


@pytest.mark.parametrize("on", ["abs(a.n - b.n) <= 60 AND (a.k + b.k) % 3 < 2", "a.s = b.s"])
@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_columns_of_many_blocks_need_not_be_copied_together(on, fraction, tmp_path, monkeypatch):
    """The few candidates of each block are processed separately, beside those of others."""
    monkeypatch.setattr(probe_pools, "SMALL", 0)
    found, whole = {}, compute_expected(STREAMS, on, WINDOWS)
    for long in (0, 1 << 30):
        monkeypatch.setattr("braid.kernels.probe._LONG", long)
        shed = Shed(fraction=fraction, method="uniform")
        found[long] = weighed(ran(join(Centralized(), shed, on=on), tmp_path / f"{long}"))
    assert found[0] == found[1 << 30] and found[0]
    assert (describe_difference(Ids(found[0]), whole) == "") == (fraction == 1)


def test_without_shed_nothing_is_new(tmp_path):
    run = ran(join(StaticGrid(4), None), tmp_path / "run")
    assert run.results().column_names == ["a", "b"]
    assert not [e for e in run.events() if isinstance(e, (SheddingPlanned, BatchShed))]
    assert "shedding" not in run.status
    with pytest.raises(ValueError, match="the run sheds no load"):
        run.estimate_results()
    with pytest.raises(ValueError, match="the run sheds no load; start it with shed="):
        run.adjust(fraction=0.5)


@pytest.mark.parametrize("shed", [Shed(pairs=900), Shed(fraction=0.3, method="drop")])
def test_figures_of_the_same_share_agree_in_every_view(shed: Shed, tmp_path: Path) -> None:
    """An index finds few candidates here; shares are those of all pairs."""
    few = {alias: rows.filter(pc.field("batch") < 3) for alias, rows in STREAMS.items()}
    run = ran(join(StaticGrid(4), shed, few, on="a.n = b.n"), tmp_path / "run")
    (budget,) = [each for each in list_touches(run, None) if each["name"] == "budget"]
    page, plans = recorded_page(run.events()), harvests(run)
    sheddings = [e for e in run.events() if isinstance(e, BatchShed)]
    measures = dict(
        zip(page["hosts"]["names"], zip(*page["hosts"]["values"], strict=True), strict=True)
    )
    texts = " ".join(flag["text"] for flag in page["annotations"])
    candidates = sum(e.total_host_metrics.compared_pairs for e in run.events() if is_commit(e))
    assert candidates < sum(e.considered_pairs for e in sheddings), "they are another unit"
    for plan, each, frame in zip(plans, sheddings, page["frames"], strict=True):
        view, k = frame["state_map"]["shedding"], plan.batch
        assert view["work"] == pytest.approx(plan.fraction, abs=1e-4)
        share = f"{plan.fraction:.0%} of all" if plan.fraction < 1 else "all"
        assert f"{share} pairs are processed" in texts
        assert sum(measures["pairs compared"][k]) == each.considered_pairs
        assert sum(measures.get("pairs left out", [[0]] * 3)[k]) == each.skipped_pairs
        pairs, shares = view["items"]["pairs"], view["items"]["share"]
        spent = sum(n * share for n, share in zip(pairs, shares, strict=True))
        assert spent == pytest.approx(view["work"] * sum(pairs), rel=0.02, abs=1)
        whole = each.estimated_results
        found = view["results"] / whole if whole else plan.fraction
        assert view["recall"] == pytest.approx(found, abs=1e-4)
    assert float(budget["value"]) == pytest.approx(plans[-1].fraction, rel=0.01)
    pairs = (each.considered_pairs + each.skipped_pairs) / plan.kept_pair_share
    assert budget["curve"][-1][1] == pytest.approx(pairs, abs=1) and pairs > 0


def is_commit(event: Any) -> bool:
    return isinstance(event, BatchCommitted)


def test_equal_tuples_are_not_drawn_all_or_none(tmp_path):
    """300 rows of one value: a share of them meets each block."""
    same = pa.table({"id": np.zeros(300, int), "batch": np.repeat([0, 1], 150).astype(np.int32)})
    made = StreamJoin({"a": same, "b": same}, "a.id = b.id", Centralized(), shed=Shed(fraction=0.3))
    run = ran(made, tmp_path / "run")
    items = [y for e in run.events() if isinstance(e, BatchShed) for y in e.items]
    assert all(
        0 < sum(y.considered_pairs) < sum(y.considered_pairs) + y.skipped_pairs for y in items
    )
    assert run.results().num_rows == pytest.approx(0.3 * 300 * 300, rel=0.25)


def test_equal_hashes_of_tuples_that_differ_keep_their_draws():
    """A retried task may have the tuples in another order."""
    ids = pa.array(range(50))
    draw = pa.array([7] * 40 + list(range(10)), pa.int64())
    rows = pa.record_batch({"id": ids, DRAW: draw, "x": pa.array([[None]] * 50)})
    drawn = dict(zip(range(50), distinct_hashes(rows).tolist(), strict=True))
    assert len(set(drawn.values())) == 50
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(50)
        again = distinct_hashes(rows.take(pa.array(order))).tolist()
        assert dict(zip(order.tolist(), again, strict=True)) == drawn


def test_nulls_and_the_ends_of_lists_tell_tuples_apart(tmp_path):
    lists = [[1, 2], [1], [], None, [None], [None, 1], [1, None]]
    pairs = [(a, b) for a in lists for b in lists]
    x, y = (pa.array(each, pa.list_(pa.int32())) for each in zip(*pairs, strict=True))
    k = pa.array([1] * len(pairs))
    rows = pa.table({"x": x, "y": y, "k": k, "l": pa.nulls(len(k), pa.int64())})
    turned = rows.rename_columns(["x", "y", "l", "k"]).select(rows.column_names)
    whole = pa.concat_tables([rows, turned])
    made = StreamJoin({"a": whole, "b": whole}, "a.k <=> b.k", Centralized(), shed=Shed(fraction=1))
    made._join.make_replay(1).write_input(tmp_path)
    copied = split_input(tmp_path)
    feed = made.source.union_streams(made._join, {"a": whole.schema, "b": whole.schema})[0]
    drawn = [n for part in feed.read_batch(copied, 0)[0] for n in part[DRAW].to_pylist()]
    assert len(drawn) == whole.num_rows == len(set(drawn))


def test_the_order_of_tuples_in_a_batch_changes_nothing(tmp_path):
    """Sums of utilities are exact in any order, so the next plans are equal."""
    shed = Shed(fraction=0.3, utility={"a": "a.k + 0.3", "b": "b.k * 0.7"}, combine="mean")
    found = []
    for seed in range(3):
        draw = np.random.default_rng(seed)
        streams = {a: t.take(draw.permutation(t.num_rows)) for a, t in STREAMS.items()}
        run = ran(join(StaticGrid(4), shed, streams), tmp_path / f"{seed}")
        chosen_events = [e for e in run.events() if isinstance(e, (SheddingPlanned, BatchShed))]
        assert any(max(e.items[0].value) > 0 for e in chosen_events if isinstance(e, BatchShed))
        found.append((chosen_events, weighed(run)))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("stops", [(1,), (2, 4), (1, 2, 3, 4, 5)])
@pytest.mark.parametrize("shed", SHEDS[:2], ids=["fraction", "pairs"])
def test_a_resumed_run_is_that_which_was_not_interrupted(shed, stops, tmp_path, monkeypatch):
    """The run is interrupted right before the commit of several batches."""
    made = join(AdaptiveGrid(5, epsilon=0.5), shed)
    whole = ran(made, tmp_path / "whole")
    folder, left = tmp_path / "cut", list(stops)
    real = RunStore.commit_batch

    def commit(store: RunStore, batch: int, *given: Any) -> None:
        if store.path == folder and left and batch == left[0]:
            left.pop(0)
            raise OSError("cut off")
        real(store, batch, *given)

    monkeypatch.setattr(RunStore, "commit_batch", commit)
    for attempt in count():
        run = (
            made.start(folder, batches="batch")
            if not attempt
            else StreamJoin.resume(folder, STREAMS)
        )
        if not has_left_before(run):
            break
    assert weighed(run) == weighed(whole)
    assert harvests(run) == harvests(whole)


def has_left_before(run: Any) -> bool:
    """Return whether the run was interrupted."""
    try:
        run.awaitTermination()
    except OSError:
        return True
    return False


def harvests(run: Any) -> list[Any]:
    return [e for e in run.events() if isinstance(e, SheddingPlanned)]


def test_estimates_are_unbiased_and_their_errors_are_right(tmp_path):
    """Over many seeds the mean estimate is the truth, and 95 % intervals contain it about as
    often.
    """
    streams = make_tables("ab", 100, seed=5, batches=4)
    full = compute_expected(streams, ON, WINDOWS).total()
    inside, found = 0, []
    for seed in range(40):
        made = join(Centralized(), Shed(fraction=0.3), streams, seed=seed, check=False)
        whole = ran(made, tmp_path / f"{seed}").estimate_results().iloc[-1]
        found.append(whole["estimated_results"])
        inside += abs(whole["estimated_results"] - full) <= whole["error_95"]
    spread = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - full) <= 3.5 * spread
    assert inside >= 0.85 * len(found)


def test_selective_processing_finds_more_than_a_share(tmp_path):
    """Partners arrive 100 to 110 seconds apart, so that a few basic windows have all matches."""
    draw = np.random.default_rng(3)
    n, seconds = 600, 600

    def stream(delay: int) -> pa.Table:
        at = np.sort(draw.integers(0, seconds, n)) + delay
        times = pa.array(at * 1_000_000, pa.timestamp("us", tz="UTC"))
        return pa.table(
            {"id": np.arange(n), "ts": times, "v": at - delay, "batch": (at // 40).astype(np.int32)}
        )

    streams = {"a": stream(0), "b": stream(105)}
    windows = {"a": "200 seconds", "b": "200 seconds"}
    share = {}
    on = "abs(a.v - b.v) <= 5"
    for method in ("uniform", "selective"):
        results = [
            ran(
                join(
                    Centralized(),
                    replace(Shed(fraction=f, basic_window="20 seconds", sample=0.1), method=method),
                    streams,
                    windows=windows,
                    on=on,
                ),
                tmp_path / f"{method}{f}",
            )
            .results()
            .num_rows
            for f in (0.2, 1)
        ]
        share[method] = results[0] / results[1]
    assert share["uniform"] == pytest.approx(0.2, abs=0.05)
    assert share["selective"] > 0.5


@pytest.mark.parametrize(("allowed", "r"), [(1, LEAST), (1000, 1.0)])
def test_what_batches_took_is_told_by_the_engines_clock(allowed, r, tmp_path, monkeypatch):
    """A turn is half a minute by this clock, whatever the machine's load."""
    real, ticks = Engine.__init__, count(0, 10)

    def init(engine: Engine, *given: Any, **more: Any) -> None:
        real(engine, *given, **more, clock=lambda: float(next(ticks)))

    monkeypatch.setattr(Engine, "__init__", init)
    run = ran(join(Centralized(), Shed(seconds=allowed)), tmp_path / "run")
    first, *others = harvests(run)
    assert first.fraction == 1 and len(others) == BATCHES - 1
    assert [(e.fraction, e.is_enough) for e in others[1:]] == [(r, r == 1)] * (BATCHES - 2)


def test_a_budget_is_adjusted_while_the_run_goes_on(tmp_path):
    made = join(Centralized(), Shed(fraction=1))
    run = made.start(tmp_path / "run", batches="batch", pace=0.05)
    run.pause()
    run.adjust(fraction=0.2)
    run.unpause()
    run.awaitTermination()
    assert harvests(run)[-1].fraction == 0.2 and harvests(run)[-1].budget == "fraction"
    assert run.status["shedding"]["fraction"] == 0.2
    wanted = expected_weights(run.events(), arrived_tuples(run, BATCHES), FULL)
    assert weighed(run).keys() == wanted.keys()
    with pytest.raises(RuntimeError, match="the run has ended"):
        run.adjust(fraction=0.5)
    with pytest.raises(ValueError, match="no budget is given"):
        run.adjust()
    with pytest.raises(ValueError, match="fraction is 2"):
        run.adjust(fraction=2)


def test_an_adjusted_budget_outlives_a_driver_that_committed_nothing_more(tmp_path):
    """The run ends after the adjustment and before the next commit, twice."""
    made = join(Centralized(), Shed(fraction=1))
    run = made.start(tmp_path / "run", batches="batch", pace=0.05)
    run.pause()
    run.adjust(fraction=0.5)
    run.adjust(fraction=0.2)
    run.stop()
    done = len(harvests(run))
    assert done < BATCHES and all(e.fraction == 1 for e in harvests(run))
    again = StreamJoin.resume(tmp_path / "run", STREAMS)
    again.awaitTermination()
    assert [e.fraction for e in harvests(again)] == [1.0] * done + [0.2] * (BATCHES - done)


def test_three_streams_lose_at_the_first_hop_only(tmp_path):
    streams = make_tables("abc", 60, seed=8, batches=4)
    on = "abs(a.n - b.n) <= 120 AND abs(b.n - c.n) <= 120"
    full, estimates, errors = compute_expected(streams, on), [], []
    for seed in range(8):
        made = StreamJoin(streams, on, Ring(3), shed=Shed(fraction=0.5), check=True, seed=seed)
        run = ran(made, tmp_path / f"{seed}")
        found = run.results()
        ids = Ids(
            zip(*(found[a].combine_chunks().field("id").to_pylist() for a in "abc"), strict=True)
        )
        assert ids <= full and 0 < ids.total() < full.total()
        estimates.append(sum(found["weight"].to_pylist()))
        errors.append(run.estimate_results().iloc[-1]["error_95"] / 1.96)
    assert np.mean(estimates) == pytest.approx(full.total(), rel=0.25)
    assert (
        sum(abs(e - full.total()) <= 1.96 * s for e, s in zip(estimates, errors, strict=True)) >= 6
    )
    assert np.mean(errors) == pytest.approx(np.std(estimates), rel=0.7)


def test_a_sketch_knows_the_squares_of_what_was_drawn_together():
    """Results of 30 draws, found in four tasks.

    The sketch estimates the sum over draws of (their sum)^2 without bias, with an error of about
    sqrt(2 / 64) of it.
    """
    rng, ratios = np.random.default_rng(4), []
    for trial in range(60):
        draw, values = rng.integers(0, 30, 500), rng.random(500)
        truth = float(np.sum(np.bincount(draw, values) ** 2))
        thrown = sampling_hashes(draw.astype(np.uint64) + np.uint64(1000 * trial), 7)
        parts = [(sketch_values(thrown[at::4], values[at::4]),) for at in range(4)]
        ratios.append(
            estimate_variances(sum_sketches([[z.tolist() for z in part] for part in parts])) / truth
        )
    assert np.mean(ratios) == pytest.approx(1, abs=4 * 0.18 / np.sqrt(60))
    assert np.std(ratios) == pytest.approx(0.18, abs=0.08)


BAD = [
    (dict(shed=0.3), "shed is 0.3; it must be a Shed"),
    (dict(shed=Shed()), "static streams are replayed as fast as they go; give fraction"),
    (
        dict(shed=Shed(event_time_speed=1), time=None, windows=None),
        "by speed, which needs event time",
    ),
    (dict(shed=Shed(fraction=0.5, method="keys")), "has no equality that links all streams"),
    (
        dict(shed=Shed(fraction=0.5, basic_window="10 minutes")),
        "the basic window is 10 min, but the window of a is 2 min 30 s",
    ),
    (
        dict(shed=Shed(fraction=0.5, utility={"c": "1"})),
        "utility is given for c; the streams are a",
    ),
    (
        dict(shed=Shed(fraction=0.5, utility={"a": "a.s"})),
        "'a.s' in the utility of a is of type string",
    ),
    (dict(shed=Shed(fraction=0.5, utility={"a": "b.n"})), "in the utility of a is unknown"),
    (dict(shed=Shed(fraction=0.5, utility={"a": "a.zz"})), "in the utility of a is unknown"),
]


@pytest.mark.parametrize(("given", "sentence"), BAD)
def test_what_cannot_work_is_refused_before_anything_starts(given, sentence, tmp_path):
    shed = given.pop("shed")
    with pytest.raises(ValueError, match=sentence):
        join(Centralized(), shed, **given)
    assert list_files(tmp_path) == set()


def test_an_alias_that_is_the_weight_is_refused():
    streams = {"a": STREAMS["a"], "weight": STREAMS["b"]}
    with pytest.raises(ValueError, match="the alias 'weight' is taken"):
        StreamJoin(streams, "a.k = weight.k", HashPartition(2), shed=Shed(fraction=0.5))


def test_a_run_of_another_shed_is_another_run(tmp_path):
    ran(join(Centralized(), Shed(fraction=0.5)), tmp_path / "run")
    for other in (Shed(fraction=0.4), None):
        with pytest.raises(ValueError, match="holds a run of another query: shed is"):
            join(Centralized(), other).start(tmp_path / "run", batches="batch")


def test_an_item_that_some_tuples_met_whole_and_some_thinned_is_counted_once():
    """A task reports it twice; the figures of its two types hold for each."""
    item, other = (0, 1, 0), (0, 1, 1)
    reaper = PairSampler(
        SheddingPlan(basic_windows={7: 0, 8: 1}, shares={item: (1.0,), other: (1.0, 1.0)}),
        ResultUtility(),
    )
    for block, pairs, found in ((7, 6, 1.0), (7, 4, 2.0), (8, 5, 3.0), (9, 9, 9.0)):
        reaper.count_full_meeting(0, 1, block, pairs, found)
    tally = reaper._get_tally(item, 1)
    tally.considered_pairs[0], tally.matches[0], tally.skipped_pairs = 10, 4, 30.0
    whole = merge_outcomes([SheddingOutcome(tuple(reaper.item_yields()))])
    assert whole.yields == (
        ItemYield(*item, (20.0,), (7.0,), (0.0,), 30.0),
        ItemYield(*other, (5.0, 0.0), (3.0, 0.0), (0.0, 0.0), 0.0),
    )
