"""Forecast what a join will hold, and find windows that lose results and streams without bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import NamedTuple

import numpy as np

from braid.core.query import longest_windows
from braid.core.run_events import BatchCommitted
from braid.errors import NarrowWindow, OtherWatermark
from braid.simulation.simulator import simulate
from braid.sources.stream_source import AnalyzedJoin
from braid.util.durations import UNITS, format_duration
from braid.util.validation import format_value

_BATCHES, _PER_HOST = 4, 16
"""Batches of the simulated run in which copies are counted; and tuples per host, stream and
batch.
"""
_UNSIZED = 32
"""Bytes assumed for a value of variable width (text, binary, nested)."""
_WIDTHS = {
    "boolean": 1,
    "tinyint": 1,
    "smallint": 2,
    "int": 4,
    "float": 4,
    "date": 4,
    "decimal": 16,
    "bigint": 8,
    "double": 8,
    "timestamp": 8,
    "timestamp_ntz": 8,
}
"""Bytes of a value in Arrow, by Spark's type."""
_RATE = 1000
"""Rows a second of a stream whose rate is unknown."""
_SAMPLE = 10_000
"""Maximum rows of a stream whose pairs in time are counted."""


def estimate_row_bytes(join: AnalyzedJoin, stream: int) -> int:
    """Return the bytes of a row: user's columns, event time, routing key, and computed columns."""
    kinds = list(join.config.streams.values())[stream].values()
    fields = sum(_WIDTHS.get(kind.partition("(")[0], _UNSIZED) for kind in kinds)
    generated = len(join.predicate.key_columns[stream]) + len(
        join.predicate.computed_columns[stream]
    )
    return fields + _WIDTHS["bigint"] * (1 + generated) + _WIDTHS["int"]


def estimate_replication(join: AnalyzedJoin) -> list[float]:
    """Return, by stream, the mean number of hosts that hold a tuple after a few batches."""
    batch = (_PER_HOST * join.placement.hosts,) * len(join.config.streams)
    live: dict[int, tuple[int, int]] = {}
    held, total = [0] * len(batch), batch
    names = tuple(join.config.streams)
    for event in simulate(
        join.placement, [batch] * _BATCHES, streams=names, **_shared_simulation_options(join)
    ):
        if isinstance(event, BatchCommitted):
            live |= {b.id: (b.stream, b.rows * len(b.hosts)) for b in event.changed_blocks}
            for id in event.dropped_block_ids:
                live.pop(id, None)
            total = event.total_received_tuples
    for stream, rows in live.values():
        held[stream] += rows
    return [held[s] / max(1, total[s]) for s in range(len(batch))]


def _shared_simulation_options(join: AnalyzedJoin) -> dict[str, object]:
    """Return additional options to simulate a shared join.

    The simulated run lasts as long as the shortest window, so that nothing expires.
    """
    if not join.config.queries:
        return {}
    shortest = min(min(q.windows) for q in join.config.queries)
    return dict(
        queries=join.config.queries,
        windows=[window / UNITS["second"] for window in longest_windows(join.config.queries)],
        seconds=shortest / UNITS["second"] / _BATCHES,
    )


class HeldTuples(NamedTuple):
    """Forecast of the tuples of a stream that are held at a time.

    - ``rows``: number of tuples, without copies.
    - ``size_bytes``: their bytes on all hosts.
    - ``basis``: where the numbers come from.
    - ``is_endless``: whether tuples are held for ever; the numbers are those of a day.
    """

    rows: float
    size_bytes: float
    basis: str
    is_endless: bool = False


def find_endless_wait(join: AnalyzedJoin, stream: int) -> str | None:
    """Return the alias of a stream for which a stream waits for ever; None: for none."""
    for j, alias in enumerate(join.config.streams):
        if j != stream and join.bounds[stream][j] is None and alias not in join.static_streams:
            return alias
    return None


def check_rates(join: AnalyzedJoin, rates: Mapping[str, float] | None) -> Mapping[str, float]:
    """Return the rates, in rows a second by alias. Raises ValueError if one is invalid."""
    for alias, rate in (rates or {}).items():
        if alias not in join.config.streams:
            names = ", ".join(join.config.streams)
            raise ValueError(f"a rate is given for {alias!r}; the streams are {names}")
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < inf:
            raise ValueError(
                f"the rate of {alias} is {format_value(rate)}; it must be a number of rows a "
                "second, above 0"
            )
    return rates or {}


def forecast_held_tuples(
    join: AnalyzedJoin, stream: int, copies: float, rates: Mapping[str, float]
) -> HeldTuples | None:
    """Return the forecast for a stream; None: unknown, because a static stream is not read.

    ``rates``: rows a second by alias.
    """
    alias, size = list(join.config.streams)[stream], estimate_row_bytes(join, stream) * copies
    if alias in join.static_streams and alias not in rates:
        times = join.source.read_event_times(alias, join.config.event_time_columns.get(alias))
        if times is None:
            return None
        most = count_most_within(times, join.effective_windows[stream])
        batch = "and a batch, " if most < len(times) else ""
        return HeldTuples(most, most * size, f"{batch}of {len(times):,}, counted")
    rate = rates.get(alias, _RATE)
    basis = f"at {rate:,g} rows a second" if alias in rates else f"for each {rate:,} rows a second"
    if stream and join.match is not None and join.match.forgets_dominated:
        rows = rate * join.config.lateness_microseconds[0] / UNITS["second"]
        return HeldTuples(rows, rows * size, f"and one of each key, and a batch, {basis}")
    if (span := _wait_microseconds(join, stream, rates)) is None:
        rows = rate * UNITS["day"] / UNITS["second"]
        return HeldTuples(rows, rows * size, f"a day, {basis}", is_endless=True)
    rows = rate * span / UNITS["second"]
    return HeldTuples(rows, rows * size, f"and a batch, {basis}")


def _wait_microseconds(join: AnalyzedJoin, stream: int, rates: Mapping[str, float]) -> int | None:
    """Return the event time for which a stream is held if all clocks are equal; None: for ever.

    A static stream without a rate ends.
    """
    waits = []
    for j, alias in enumerate(join.config.streams):
        most, ends = join.expiry_bounds[stream][j], alias in join.static_streams
        if j == stream or (most is None and ends and alias not in rates):
            continue
        if most is None:
            return None
        waits.append(max(0, most + join.config.lateness_microseconds[j]))
    return max(waits, default=0)


def count_most_within(times: np.ndarray, window: int | None) -> int:
    """Return the most event times within a window of this length; None: all of them."""
    if window is None or not len(times):
        return len(times)
    ordered = np.sort(times)
    ends = np.searchsorted(ordered, ordered + window, side="left")
    return int(np.max(ends - np.arange(len(ordered))))


def find_narrow_windows(join: AnalyzedJoin) -> Iterator[NarrowWindow]:
    """Yield the windows that are narrower than the condition, and lose results that it admits."""
    if (implied := join.predicate.time_bounds) is None:
        return
    aliases = list(join.config.streams)
    for i, window in enumerate(join.config.window_limits):
        others = [(c, -j) for j, c in enumerate(implied.reach[i]) if j != i and c is not None]
        if window is None or not others or max(others)[0] < window:
            continue
        most, j = max(others)[0], -max(others)[1]
        times = [f"{a}.{join.config.event_time_columns[a]}" for a in (aliases[j], aliases[i])]
        yield NarrowWindow(
            _describe_narrow_window(
                aliases[i], window, most, " - ".join(times), _estimate_loss(join, i, j, window)
            )
        )


def find_other_watermarks(join: AnalyzedJoin) -> Iterator[OtherWatermark]:
    """Yield the watermarks of frames that the join does not use as they are."""
    config = join.config
    for alias, late in zip(config.streams, config.lateness_microseconds, strict=True):
        column = config.event_time_columns.get(alias)
        marks = join.source.read_watermarks().get(alias, ())
        if marks and column not in [mark.column for mark in marks]:
            yield OtherWatermark(
                f"the event time of {alias} is {column}, but its frame has a watermark on "
                f"{marks[0].column}, which is not used"
            )
        for mark in marks:
            if mark.column == column and late < mark.delay:
                given, delay = format_duration(late, exact=True), format_duration(mark.delay)
                yield OtherWatermark(
                    f"the lateness of {alias} is {given}, shorter than the {delay} of its frame's "
                    "watermark, so that later tuples may miss partners"
                )


def _describe_narrow_window(
    alias: str, window: int, most: int, difference: str, loss: float | None
) -> str:
    given, implied = (format_duration(w, exact=True) for w in (window, most))
    enough = f"{(most + 1) / UNITS['second']:f}".rstrip("0").rstrip(".")
    if window == most:
        lost = f"Pairs exactly {given} apart"
        why = f"be {implied}: a window leaves its own length out"
    else:
        lost, why = f"Pairs from {given} apart on", f"be up to {implied}"
    share = "" if loss is None else f" ({_format_share(loss)} of the pairs in time)"
    return (
        f"windows= of {alias} is {given}, but the condition lets {difference} {why}. {lost} are "
        f"lost{share}. Leave windows= out, or say '{enough} s'"
    )


def _estimate_loss(join: AnalyzedJoin, i: int, j: int, window: int) -> float | None:
    """Return the share of pairs in time that a window loses; None: the streams are not read."""
    assert join.predicate.time_bounds is not None
    reach, aliases = join.predicate.time_bounds.reach, list(join.config.streams)
    columns = join.config.event_time_columns
    one, other = (join.source.read_event_times(aliases[s], columns[aliases[s]]) for s in (i, j))
    most, least = reach[i][j], reach[j][i]
    if one is None or other is None or most is None:
        return None
    step = max(1, len(one) // _SAMPLE)
    sample, ordered = np.sort(one)[::step], np.sort(other)
    first = 0 if least is None else np.searchsorted(ordered, sample - least, side="left")
    end = np.searchsorted(ordered, sample + most, side="right")
    cut = np.searchsorted(ordered, sample + window, side="left")
    pairs = float(np.sum(end - first))
    return float(np.sum(end - np.maximum(cut, first))) / pairs if pairs else None


def check_bounded(join: AnalyzedJoin) -> None:
    """Raise ValueError for a streaming source whose tuples are held for ever, unless asked for."""
    config = join.config
    if config.shares_queries:
        return
    for stream, alias in enumerate(config.streams):
        if alias in join.static_streams or alias in config.unbounded_streams:
            continue
        if (other := find_endless_wait(join, stream)) is None:
            continue
        if stream and join.match is not None and join.match.forgets_dominated:
            continue  # each key keeps one tuple
        size = estimate_row_bytes(join, stream) * estimate_replication(join)[stream]
        gigabytes = size * _RATE * UNITS["day"] / UNITS["second"] / 1e9
        raise ValueError(
            f"every tuple of {alias} is held for ever, as {_explain_wait(join, alias, other)}, or "
            f'ask for it by windows="unbounded" (about {gigabytes:.3g} GB a day for each '
            f"{_RATE:,} rows a second)"
        )


def _explain_wait(join: AnalyzedJoin, alias: str, other: str) -> str:
    columns = join.config.event_time_columns
    if not columns.keys() >= {alias, other}:
        return (
            "the join has no event time that bounds how long it waits; name event-time columns by "
            "time= or withWatermark, and bound their difference in the condition or by windows="
        )
    late, early = f"{other}.{columns[other]}", f"{alias}.{columns[alias]}"
    return (
        f"nothing bounds how much later {late} may be; add a bound such as "
        f"{late} <= {early} + INTERVAL 1 HOUR, give windows="
    )


def _format_share(share: float) -> str:
    return f"about {share:.0%}" if share >= 0.01 else "less than 1%"
