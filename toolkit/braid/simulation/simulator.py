"""A placement run without tuples: the same policy, the same plans, the same events, in
milliseconds.

Only numbers of tuples exist here, one for each routing key of each block, so cuts, merges and
copies are exact. Nothing is measured; the clock is modelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain, repeat
from typing import Any

import numpy as np

from braid.core.batch_step import RunRules
from braid.core.cluster_model import GU, CostParameters, HostCapacity, check_cluster
from braid.core.coverage import CoverageError
from braid.core.events import RunEnded, RunStarted
from braid.core.placement import Placement
from braid.core.query import Query, longest_windows
from braid.core.run_state import RunState
from braid.core.shedding_policy import Shedder
from braid.simulation.expected_work import Selects
from braid.simulation.simulated_run import Floats, SimulatedRun
from braid.util.json_codec import to_plain


def simulate(placement: Placement, batches: Iterable[Sequence[int]], **settings: Any) -> list[Any]:
    """The events of a run, all at once; ``settings`` are those of ``simulation``. The start tells
    the batches that were run.
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
    cluster: Sequence[HostCapacity] = (),
    costs: CostParameters = GU,
    patience: float = 0.0,
    queries: Sequence[Query] = (),
    key_shares: Sequence[Sequence[float]] = (),
    selects: Selects = "pair",
    shedder: Shedder | None = None,
) -> Iterator[Any]:
    """The events of a run, one after the other.

    Parameters
    ----------
    placement
        The policy.
    batches
        For each micro-batch the number of new tuples of every stream. Empty batches follow while a
        migration runs.
    seed
        Of the generator that draws the tuples' routing keys, of ``placement.keys``.
    tuple_bytes
        The size of a tuple of every stream in bytes; by default 1.
    streams
        Names of the streams; by default r, s, t, ...
    windows
        W_i of every stream in seconds, None for full history; by default full history.
    seconds
        Event time that each batch covers, one number or one for each batch (batches that follow
        cover as much as the last); the event times of its tuples are uniform in it.
    selectivity
        Of every pair of streams: one number, or a square of numbers by stream.
    cluster
        The machine under every host. With it, each host's ``seconds`` are the modelled time that it
        is busy and ``seconds`` has the modelled makespan; a host that is asked for more than it has
        time for does a smaller share of its probes, as a join that sheds load, and the results
        shrink.
    costs
        What sending, probing and comparing cost on the cluster.
    patience
        Seconds of work that may wait at a host before it sheds: what a batch leaves undone is done
        in those that ask for less. Its results count for the batch whose tuples they are of. The
        placement is told what a host worked on in a batch, never more than the batch has time for:
        a host with work that waits looks busy until it is done.
    selects
        Which selectivities an intermediate result is held against at its next hop. "pair": those of
        all streams that it has members of, as when the pairs of streams match independently.
        "hop": that of the stream visited last, as Eq. 3 of Gu 2007 has it, and as when all pairs
        follow from those along the path.
    queries
        The queries that a shared join serves; windows are the longest of theirs then.
    shedder
        What sheds load, as ``Shed(fraction=0.3)``: the pairs that it leaves out are not met, in the
        mean of all draws. Of a batch's modelled seconds it knows with a cluster only; without one a
        budget of seconds sheds nothing. Tuples have no values here, so that "drop" and "keys",
        which leave them out as they come, are refused.
    key_shares
        By stream, the share of its tuples that has each routing key; by default equal shares, and
        for a shared join all tuples have the rank of the longest window, as without selections.

    Every plan is held against the cover rule, exactly once or at most once as the placement
    declares: raises CoverError when one breaks it or when results stay owed. Raises ValueError when
    the placement cannot serve that many streams. Events count as the engine does, but ``compared``
    counts the pairs of tuples that meet; results and intermediate results are expected numbers,
    rounded.
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
    check_cluster(cluster, placement.max_hosts)
    micros = tuple(None if w is None else round(w * 1e6) for w in spread)
    model = SimulatedRun(
        RunRules(placement, names, micros, shedder=shedder),
        RunState.initial(
            width,
            placement.initial_state(width),
            tuple(queries),
            None if shedder is None else shedder.initial_state(width),
        ),
        sizes,
        np.random.default_rng(seed),
        _iterate_batch_starts(seconds, len(counts)),
        _resolve_key_shares(placement.key_space_size, key_shares, queries, width),
        np.broadcast_to(np.asarray(selectivity, float), (width, width)),
        tuple(cluster),
        costs,
        patience,
        selects,
    )
    yield _make_run_started(placement, names, spread, len(counts))
    yield from _run_batches(model, counts, width)


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
    """All batches, and empty ones until the placement owes nothing."""
    for batch in counts:
        yield from model.run_batch(batch)
    while model.rules.placement.has_pending_pairs(model.state.placement_state):
        yield from model.run_batch((0,) * width)
    if owed := model.state.pending_pairs:
        raise CoverageError(f"{len(owed)} pairs of blocks are still owed after the last batch")
    yield RunEnded(model.state.batch, "completed")


def _iterate_batch_starts(seconds: float | Sequence[float], batches: int) -> Iterator[int]:
    """The event times (microseconds) at which batches begin, without end."""
    each = [seconds] * batches if isinstance(seconds, (int, float)) else list(seconds)
    if len(each) != batches or any(s <= 0 for s in each):
        raise ValueError(
            f"seconds is {seconds!r}; it must be a number above 0, or one for each of the "
            f"{batches} batches"
        )
    last = each[-1] if each else 0.0  # without batches none is looked at
    return (round(t * 1e6) for t in accumulate(chain([0.0], each, repeat(last))))


def _resolve_key_shares(
    keys: int, given: Sequence[Sequence[float]], queries: Sequence[Query], streams: int
) -> list[Floats]:
    """By stream, the share of its tuples that has each routing key."""
    if queries and not given:
        ranks = (len({q.windows[s] for q in queries}) - 1 for s in range(streams))
        return [np.eye(1, keys, rank)[0] for rank in ranks]
    whole = [np.asarray(each, float) for each in given] or [np.full(keys, 1 / keys)] * streams
    padded = [np.append(each, np.zeros(max(0, keys - len(each)))) for each in whole]
    if any(len(each) != keys or abs(each.sum() - 1) > 1e-9 for each in padded):
        raise ValueError(
            f"key_shares must have, for each stream, at most {keys} shares that add up to 1"
        )
    return padded
