"""Simulate a placement without tuples: the same policy, plans and events, in milliseconds.

Tuples are represented by their number for each routing key of each block, so cuts, merges and
copies are exact. Nothing is measured; the clock is modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain, repeat
from typing import Any

import numpy as np

from braid.core.answer_ledger import check_all_answered
from braid.core.batch_work import RunRules
from braid.core.due_answers import needs_closing_batch
from braid.core.horizon import Reach, intersect_reach, reach_of_windows
from braid.core.join_kinds import check_complete, parse_kind
from braid.core.match_rules import Match, MatchRule, bound_match_times, parse_match_rule
from braid.core.placement import Placement, Shedder
from braid.core.query import Query, longest_windows
from braid.core.run_events import RunEnded, RunStarted
from braid.core.run_state import RunState
from braid.errors import CoverageError
from braid.simulation.expected_work import Selects
from braid.simulation.simulated_run import Floats, SimulatedRun
from braid.util.json_codec import to_plain


def simulate(placement: Placement, batches: Iterable[Sequence[int]], **settings: Any) -> list[Any]:
    """Return all events of a run. ``settings`` are those of ``iter_simulation``.

    The start event has the number of batches that were run.
    """
    start, *rest = iter_simulation(placement, batches, **settings)
    return [replace(start, planned_batches=rest[-1].batch + 1), *rest]


def iter_simulation(
    placement: Placement,
    batches: Iterable[Sequence[int]],
    seed: int = 0,
    tuple_bytes: Sequence[int] = (),
    streams: Sequence[str] = (),
    windows: Sequence[float | None] = (),
    seconds: float | Sequence[float] = 1.0,
    selectivity: float | Sequence[Sequence[float]] = 0.0,
    queries: Sequence[Query] = (),
    key_shares: Sequence[Sequence[float]] = (),
    selects: Selects = "pair",
    shedder: Shedder | None = None,
    make_run: Callable[..., SimulatedRun] = SimulatedRun,
    how: str | Mapping[str, str] = "inner",
    match: MatchRule | Match | None = None,
) -> Iterator[Any]:
    """Yield the events of a simulated run.

    Every plan is checked against the cover rule, "exactly once" or "at most once" as the placement
    declares. Events count as the engine does, except that ``compared_pairs`` counts the pairs of
    tuples that meet. Results and intermediate results are rounded expectations.

    Parameters
    ----------
    placement
        The placement.
    batches
        For each micro-batch, the number of new tuples of every stream. Empty batches follow while
        pairs are pending.
    seed
        Seed of the generator that draws the tuples' routing keys. Default: 0.
    tuple_bytes
        Bytes of a tuple, by stream. Default: 1.
    streams
        Names of the streams. Default: r, s, t, ...
    windows
        W_i by stream, in seconds; None: full history. Default: full history.
    seconds
        Event time that each batch covers, one number or one for each batch. Additional batches
        cover the time of the last. Event times of a batch's tuples are uniform. Default: 1.
    selectivity
        Selectivity of every pair of streams: one number, or a square matrix by stream. Default: 0.
    queries
        Queries of a shared join. The windows are then the longest of theirs.
    key_shares
        By stream, the share of its tuples with each routing key, or each join value if values have
        several keys. Default: equal shares; for a
        shared join, all tuples have the rank of the longest window, as without selections.
    selects
        Selectivities that apply to an intermediate result at its next hop. "pair" (default): those
        of all its streams, as if pairs of streams match independently. "hop": that of the last
        stream visited, as in Gu 2007, Eq. 3, as if all pairs follow from those along the path.
    shedder
        Load shedder, such as ``Shed(fraction=0.3)``. Skipped pairs are not met, in the mean of all
        draws. A budget of seconds needs a run with modelled seconds. Methods "drop" and "keys" are
        refused, because they skip tuples by value, and simulated tuples have none.
    make_run
        Returns the run, from the arguments of ``SimulatedRun``. Default: hosts take no time.
    how
        Kind of the join, as for StreamJoin. All streams end with the last batch, and an empty one
        answers what waits. ``TuplesAnswered`` counts answers; ``results`` are pairs only.
    match
        "latest", "first" or "nearest" for an as-of join by event time, or a rule of one. Its
        releases take no time and are no results.

    Raises CoverageError if a plan breaks the cover rule, or if pairs are still pending or tuples
    not answered at the end. Raises ValueError if the placement does not support this number of
    streams, or leaves out pairs that the kind needs.
    """
    counts = [tuple(batch) for batch in batches]
    width = len(counts[0]) if counts else len(queries[0].windows) if queries else 2
    names = tuple(streams) or tuple("rstuvwxyz"[:width])
    sizes, given = tuple(tuple_bytes) or (1,) * width, tuple(windows) or (None,) * width
    spread = tuple(w / 1e6 for w in longest_windows(queries)) if queries else given
    entries = {len(names), len(sizes), len(spread), len(key_shares) or width}
    if any(len(batch) != width for batch in counts) or entries != {width}:
        raise ValueError(
            "each batch, streams, tuple_bytes, windows, queries and key_shares must have one entry "
            f"per stream; the first batch has {width}"
        )
    micros = tuple(None if w is None else round(w * 1e6) for w in spread)
    model = make_run(
        _make_rules(
            placement,
            names,
            reach_of_windows(micros),
            shedder,
            how,
            parse_match_rule(match),
            len(counts),
        ),
        RunState.initial(
            width,
            placement.initial_state(width),
            tuple(queries),
            None if shedder is None else shedder.initial_state(width),
        ),
        sizes,
        np.random.default_rng(seed),
        _iterate_batch_starts(seconds, len(counts)),
        _resolve_key_shares(
            placement.key_space_size // placement.keys_per_value, key_shares, queries, width
        ),
        np.broadcast_to(np.asarray(selectivity, float), (width, width)),
        selects,
    )
    yield _make_run_started(placement, names, spread, len(counts))
    yield from _run_batches(model, counts, width)


def _make_rules(
    placement: Placement,
    names: tuple[str, ...],
    reach: Reach,
    shedder: Shedder | None,
    how: str | Mapping[str, str],
    match: MatchRule | None,
    batches: int,
) -> RunRules:
    """Return the rules of a run whose streams all end with the last batch.

    That matters only if tuples wait for it.
    """
    kind = parse_kind(how, names)
    if shedder is not None:
        check_complete(kind, "shed")
    if placement.delivery_guarantee != "exactly once":
        check_complete(kind, f"the placement {type(placement).__name__}")
    if match is not None and len(names) == 2:
        reach = intersect_reach(reach, bound_match_times(match)) or reach
    waits = match is not None or not kind.is_inner
    ends = (batches - 1,) * len(names) if waits else ()
    return RunRules(
        placement, names, reach, shedder=shedder, last_epochs=ends, kind=kind, match=match
    )


def _make_run_started(
    placement: Placement, names: tuple[str, ...], windows: Sequence[float | None], batches: int
) -> RunStarted:
    shown = {
        name: f"{w:g} seconds" for name, w in zip(names, windows, strict=True) if w is not None
    }
    return RunStarted(
        names,
        "",
        shown,
        type(placement).__name__,
        to_plain(placement),
        placement.hosts,
        placement.key_space_size,
        batches,
        time_source="modelled",
    )


def _run_batches(model: SimulatedRun, counts: Iterable[Sequence[int]], width: int) -> Iterator[Any]:
    """Yield the events of all batches, and of empty ones while pairs are pending or tuples wait."""
    for batch in counts:
        yield from model.run_batch(batch)
    while needs_closing_batch(model.rules, model.state):
        yield from model.run_batch((0,) * width)
    if pending := model.state.pending_pairs:
        raise CoverageError(
            f"{len(pending)} pairs of blocks are still pending after the last batch"
        )
    if all(model.state.ended):
        check_all_answered(model.rules.kind, model.rules.streams, model.state)
    yield RunEnded(model.state.batch, "completed")


def _iterate_batch_starts(seconds: float | Sequence[float], batches: int) -> Iterator[int]:
    """Yield the event times (microseconds) at which batches begin, without end."""
    each = [seconds] * batches if isinstance(seconds, (int, float)) else list(seconds)
    if len(each) != batches or any(s <= 0 for s in each):
        raise ValueError(
            f"seconds is {seconds!r}; it must be a number above 0, or one for each of the "
            f"{batches} batches"
        )
    last = each[-1] if each else 0.0  # unused without batches
    return (round(t * 1e6) for t in accumulate(chain([0.0], each, repeat(last))))


def _resolve_key_shares(
    keys: int, given: Sequence[Sequence[float]], queries: Sequence[Query], streams: int
) -> list[Floats]:
    """Return, by stream, the share of its tuples with each routing key, or each join value."""
    if queries and not given:
        ranks = (len({q.windows[s] for q in queries}) - 1 for s in range(streams))
        return [np.eye(1, keys, rank)[0] for rank in ranks]
    shares = [np.asarray(each, float) for each in given] or [np.full(keys, 1 / keys)] * streams
    padded = [np.append(each, np.zeros(max(0, keys - len(each)))) for each in shares]
    if any(len(each) != keys or abs(each.sum() - 1) > 1e-9 for each in padded):
        raise ValueError(
            f"key_shares must have, for each stream, at most {keys} shares that add up to 1"
        )
    return padded
