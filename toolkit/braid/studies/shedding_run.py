"""Runs that shed load: modelled from the workload's density of matches, by the same policy and the
same batch step as on Spark; and measured, on Spark. Source: Gedik 2007, section 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from braid.core import step
from braid.core.events import BatchCommitted, RunEnded, RunStarted
from braid.core.harvest import Harvested, Yield
from braid.core.plan import Block
from braid.core.report import HostDid, Outcome, Size
from braid.core.state import State
from braid.core.step import Rules, Work
from braid.papers.baselines.centralized import Centralized
from braid.papers.shedding.shed import Shed
from braid.studies.claim import Claim, verdict
from braid.studies.live import folder
from braid.workloads.sets import Sets

if TYPE_CHECKING:
    from braid.run import JoinRun

BURST = 3.0
"""How many times as many tuples come in the middle of a run."""


def by_settings(
    kappa: float = 0.8,
    theta: int = 3,
    window: float = 10.0,
    shift: float = 5 / 8,
    rate: float = 100.0,
    seconds: float = 30.0,
    burst: float = BURST,
    dear: float = 0.0,
    **_: Any,
) -> Sets:
    """Streams with a burst in the middle third."""
    low, high = (rate, rate), (burst * rate,) * 2
    changes = ((round(seconds / 3), high), (round(2 * seconds / 3), low))
    return Sets(
        low,
        seconds,
        window=window,
        kappa=kappa,
        theta=theta,
        shift=shift,
        dear=dear,
        changes=changes,
    )


def shedder(
    method: str = "selective",
    budget: str = "fraction",
    fraction: float = 0.25,
    allowed: float = 1.0,
    sample: float = 0.3,
    dear: float = 0.0,
    **_: Any,
) -> Shed:
    """The shedder of a panel's settings; where some tuples are dear, it knows what each is."""
    amount = {"seconds": allowed} if budget == "seconds" else {"fraction": fraction}
    utility = {alias: f"{alias}.worth" for alias in "nm"} if dear else {}
    return Shed(**amount, method=method, sample=sample, utility=utility)  # type: ignore[arg-type]


def modelled(sets: Sets, shed: Shed, cost: float = 5e-6, overhead: float = 0.2) -> list[Any]:
    """The events of a run that nobody made: tuples as the workload has them, matches as many as
    are expected, a pair taking ``cost`` seconds and a batch ``overhead`` besides.
    """
    micros = round(sets.window * 1e6)
    rules = Rules(Centralized(), ("n", "m"), (micros, micros), shedder=shed)
    state = State.first(2, None, (), shed.start(2))
    counts = sets.arrivals.counts()
    spans = dict.fromkeys("nm", f"{sets.window:g} seconds")
    start = RunStarted(
        ("n", "m"), sets.on, spans, "Centralized", {}, 1, 1, len(counts), clock="modelled"
    )
    happened: list[Any] = [start]
    densities = (sets.density(0), sets.density(1))
    dear = sets.dear if shed.utility else None
    for number, came in enumerate(counts):
        work = step.plan(rules, state)
        begins = round(number * sets.step * 1e6)
        span = (begins, begins + round(sets.step * 1e6) - 1)
        outcome = _outcome(work, came, span, densities, micros, cost, overhead, dear)
        took = outcome.harvested.seconds if outcome.harvested else None
        state, (*events, committed) = step.commit(rules, state, work, outcome)
        assert isinstance(committed, BatchCommitted)
        happened += [*events, replace(committed, seconds={"modelled": took or 0.0})]
    return [*happened, RunEnded(len(counts) - 1, "completed")]


def _outcome(
    work: Work,
    came: tuple[int, ...],
    span: tuple[int, int],
    densities: tuple[Any, ...],
    window: int,
    cost: float,
    overhead: float,
    dear: float | None,
) -> Outcome:
    """What a batch would have come to; ``dear`` is the share of tuples that are worth ten times as
    much, None where all are worth the same.
    """
    blocks = {b.id: b for b in work.live}
    sizes = {
        d.block.id: Size(d.block.rows, d.block.rows, d.block.span or span)
        for d in work.whole.derivations
    }
    fresh = {r.block.id: r.block for r in work.plan.routes if r.fresh}
    harvest = work.plan.harvest
    assert harvest is not None
    for b in fresh.values():
        rows = round(came[b.stream] * (harvest.keep[b.stream] if harvest.keep else 1.0))
        blocks[b.id] = replace(b, rows=rows, span=span)
        if rows:
            sizes[b.id] = Size(rows, rows, span)
    yields: dict[tuple[int, int, int], list[Yield]] = {}
    estimated = variance = worth = 0.0
    kept = prod(harvest.keep)
    for route in work.plan.routes:
        mine = blocks[route.block.id]
        kinds = _kinds(harvest.types[mine.stream] if harvest.types else (), dear)
        expected = harvest.expected.get(mine.id, 0.0)
        guard = min(1.0, expected / max(1, mine.rows)) if expected else 1.0
        for met in (blocks[b] for path in route.paths for b in path[0].blocks()):
            item = (mine.stream, met.stream, harvest.basic[met.id])
            shares = [share * guard for share in harvest.shares[item]]
            pairs = [mine.rows * met.rows * part for part, _ in kinds]
            likely = _likely(mine, met, densities[met.stream], window)
            matches = [n * likely for n in pairs]
            met_ = [n * share for n, share in zip(pairs, shares, strict=True)]
            found = [n * likely for n in met_]
            value = [n * each for n, (_, each) in zip(found, kinds, strict=True)]
            left = sum(pairs) - sum(met_)
            one = Yield(*item, tuple(met_), tuple(found), tuple(value), left)
            yields.setdefault(item, []).append(one)
            chances = [share * kept for share in shares]
            estimated += sum(matches) / kept
            worth += sum(n * each for n, (_, each) in zip(matches, kinds, strict=True)) / kept
            variance += sum(n / kept * (1 / c - 1) for n, c in zip(matches, chances, strict=True))
    whole = tuple(Yield.of_all(yields[item]) for item in sorted(yields))
    results = sum(sum(y.found) for y in whole)
    considered = sum(sum(y.considered) for y in whole)
    probing = cost * considered
    harvested = Harvested(
        whole,
        _types(blocks, fresh, dear),
        estimated,
        variance,
        sum(sum(y.value) for y in whole),
        worth,
        probing,
        overhead + probing,
    )
    did = HostDid(
        received=sum(b.rows for b in fresh.values()),
        compared=round(considered),
        shed=round(sum(y.left_out for y in whole)),
        results=round(results),
        seconds=probing,
    )
    return Outcome(sizes, hosts={0: did}, harvested=harvested)


_CHEAP, _DEAR = 0, 23
"""The codes of types worth 1 and 10; see core.harvest.utility."""


def _kinds(types: Sequence[int], dear: float | None) -> list[tuple[float, float]]:
    """Of each type that a harvest tells apart: its part of the tuples, and what a match of one is
    worth, the most of both members.
    """
    if dear is None:
        return [(1.0, 1.0)]
    cheap = (1 - dear) + 10 * dear
    known = {_CHEAP: (1 - dear, cheap), _DEAR: (dear, 10.0)}
    mean = (1 - dear) * cheap + dear * 10
    return [known[code] for code in types] if len(types) > 1 else [(1.0, mean)]


def _types(
    blocks: Mapping[int, Block], fresh: Mapping[int, Block], dear: float | None
) -> tuple[dict[int, int], ...]:
    """By stream, how many tuples of each type came."""
    if dear is None:
        return ()
    found: tuple[dict[int, int], ...] = ({}, {})
    for id, b in fresh.items():
        many = round(dear * blocks[id].rows)
        for code, n in ((_CHEAP, blocks[id].rows - many), (_DEAR, many)):
            if n:
                found[b.stream][code] = found[b.stream].get(code, 0) + n
    return found


def _likely(mine: Block, met: Block, f: Any, window: int) -> float:
    """How likely a tuple of a fresh block matches one of another, by the age of its middle."""
    assert mine.span is not None and met.span is not None
    age = (sum(mine.span) - sum(met.span)) / 2
    if age >= window:
        return 0.0
    return float(np.interp(max(0.0, age) / window, np.linspace(0, 1, len(f)), f))


def truth(sets: Sets) -> int:
    """How many results the full join has: all pairs within the window, by brute force."""
    n, m = sets.tables().values()
    times, held = [], []
    for table in (n, m):
        items = table["items"].to_pylist()
        matrix = np.zeros((len(items), sets.items + 1), np.float32)
        matrix[np.repeat(np.arange(len(items)), list(map(len, items))), np.concatenate(items)] = 1
        held.append(matrix)
        times.append(table["ts"].to_numpy().astype("datetime64[us]").astype(np.int64))
    apart = np.abs(times[0][:, None] - times[1][None])
    return int(np.count_nonzero((held[0] @ held[1].T >= sets.theta) & (apart < sets.window * 1e6)))


def estimate_claim(run: JoinRun, sets: Sets) -> Claim:
    """A measured run's estimate beside the truth."""
    whole, real = run.estimate().iloc[-1], truth(sets)
    off = whole["estimated"] - real
    return Claim(
        "Gedik 2007",
        "beyond the paper",
        "weights estimate what the full join has, within their error",
        f"{whole['estimated']:,.0f} +- {whole['error']:,.0f} estimated from {whole['found']:,} "
        f"found, {real:,} in truth",
        verdict(abs(off) <= 2.5 * whole["error"]),
    )


def launched(settings: Mapping[str, Any], batches: int) -> JoinRun:
    """The same on Spark by the settings of the panel, for so many seconds of event time."""
    sets = by_settings(**{**settings, "seconds": float(batches)})
    return run(sets, shedder(**settings), float(settings.get("pace", 0.0)))


def run(sets: Sets, shed: Shed | None, pace: float = 0.0) -> JoinRun:
    """A workload of sets on Spark, on one host."""
    from braid.join import StreamJoin
    from braid.spark_session import session

    given = sets.workload(session())
    join = StreamJoin(given.streams, given.on, Centralized(), given.windows, given.time, shed=shed)
    return join.start(folder("shedding"), batches="batch", pace=pace)
