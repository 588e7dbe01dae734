"""Runs that shed load: modelled from the workload's density of matches, by the same policy and the
same batch step as on Spark; and measured, on Spark. Source: Gedik 2007, section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from braid.core import step
from braid.core.events import BatchCommitted, HostDid, RunEnded, RunStarted
from braid.core.harvest import Harvested, Yield
from braid.core.plan import Block, after
from braid.core.report import Outcome, Size
from braid.core.state import State
from braid.core.step import Rules, Work
from braid.join import StreamJoin
from braid.papers.baselines.centralized import Centralized
from braid.papers.shedding.shed import Shed
from braid.run import JoinRun
from braid.spark_session import session
from braid.studies.claim import Claim, verdict
from braid.studies.live import folder
from braid.workloads.sets import Sets

BURST = 3.0
"""How many times as many tuples come in the middle of a run."""


def by_settings(
    kappa: float = 0.8,
    theta: int = 3,
    window: float = 10.0,
    shift: float = 5 / 8,
    rate: float = 100.0,
    seconds: float = 30.0,
    **_: Any,
) -> Sets:
    """Streams with a burst in the middle third."""
    low, high = (rate, rate), (BURST * rate,) * 2
    changes = ((round(seconds / 3), high), (round(2 * seconds / 3), low))
    return Sets(low, seconds, window=window, kappa=kappa, theta=theta, shift=shift, changes=changes)


def shedder(
    method: str = "selective", fraction: float = 0.25, sample: float = 0.3, **_: Any
) -> Shed:
    """The shedder of a panel's settings."""
    return Shed(fraction=fraction, method=method, sample=sample)  # type: ignore[arg-type]


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
    for number, came in enumerate(counts):
        work = step.plan(rules, state)
        begins = round(number * sets.step * 1e6)
        span = (begins, begins + round(sets.step * 1e6) - 1)
        outcome = _outcome(work, came, span, densities, micros, cost, overhead)
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
) -> Outcome:
    """What a batch would have come to."""
    blocks = {b.id: b for b in after(work.facts.blocks, work.plan)}
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
    estimated = variance = 0.0
    for route in work.plan.routes:
        mine = blocks[route.block.id]
        for met in (blocks[b] for path in route.paths for b in path[0].blocks()):
            item = (mine.stream, met.stream, harvest.basic[met.id])
            share, pairs = harvest.shares[item][0], mine.rows * met.rows
            if expected := harvest.expected.get(mine.id, 0.0):
                share *= min(1.0, expected / max(1, mine.rows))
            found = pairs * share * _likely(mine, met, densities[met.stream], window)
            one = Yield(*item, (pairs * share,), (found,), (found,), pairs * (1 - share))
            yields.setdefault(item, []).append(one)
            estimated += found / share
            variance += found * (1 - share) / share**2
    whole = tuple(Yield.of_all(yields[item]) for item in sorted(yields))
    results = sum(y.found[0] for y in whole)
    considered = sum(y.considered[0] for y in whole)
    probing = cost * considered
    harvested = Harvested(
        whole,
        (),
        estimated,
        variance,
        results,
        estimated,
        probing,
        overhead + probing,
    )
    did = HostDid(
        received=sum(b.rows for b in fresh.values()),
        compared=round(considered),
        results=round(results),
        seconds=probing,
    )
    return Outcome(sizes, hosts={0: did}, harvested=harvested)


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
    given = sets.workload(session())
    join = StreamJoin(given.streams, given.on, Centralized(), given.windows, given.time, shed=shed)
    return join.start(folder("shedding"), batches="batch", pace=pace)
