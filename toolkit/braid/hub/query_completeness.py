"""Since when the answers of a query are complete, and until when its ticks are final.

The functions are pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from braid.hub.flat_results import flat_column_name, microseconds_sql
from braid.hub.hub_state import HubState, RegisteredQuery
from braid.hub.query_parser import StreamQuery
from braid.papers.reuse.query_definition import UNBOUNDED, Definition


def find_missing_history(ledger: HubState, definition: Definition) -> dict[str, int]:
    """Return the start of history by stream, if a query could use earlier tuples of it.

    Existing operators were built from at least this much history.
    """
    progress, lacking = ledger.event_time_progress(definition.streams), dict[str, int]()
    for stream, span in zip(definition.streams, definition.history_spans, strict=True):
        floor = ledger.backfill_start.get(stream)
        used = None if progress is None or span >= UNBOUNDED else progress - span
        if floor is not None and (used is None or floor > used):
            lacking[stream] = floor
    return lacking


def find_complete_since(ledger: HubState, definition: Definition) -> dict[str, int | None]:
    """Return, by stream, the event time from which a query that comes now is complete.

    Microseconds; None: from the start. A join that is not inner answers the tuples of a preserved
    stream from there on: those that are not final yet, and whose partners are all in history.
    """
    missing = find_missing_history(ledger, definition)
    since: dict[str, int | None] = dict.fromkeys(definition.streams) | missing
    windows = dict(zip(definition.streams, definition.windows, strict=True))
    for stream in definition.preserved_streams:
        others = [s for s in definition.streams if s != stream]
        limits = [missing[s] + windows[s] for s in others if s in missing]
        progress = ledger.event_time_progress(others)
        if progress is not None and windows[stream] < UNBOUNDED:
            limits.append(progress - windows[stream] + 1)
        limits += [missing[stream]] if stream in missing else []
        since[stream] = max(limits, default=None)
    return since


def answered_tuples_sql(
    definition: Definition, since: Mapping[str, int | None], time: str
) -> str | None:
    """Return Spark SQL over flat results that selects the rows a query answers; None: all.

    A row without a partner is left out if its tuple is earlier than ``since``; so is one
    with a partner in an as-of join.
    """
    parts = []
    for stream in definition.preserved_streams:
        if (limit := since.get(stream)) is not None:
            column = flat_column_name(stream, time)
            others = [flat_column_name(s, time) for s in definition.streams if s != stream]
            met = [f"`{o}` IS NOT NULL" for o in others if definition.match is None]
            late = [f"`{column}` IS NULL", f"{microseconds_sql(column)} >= {limit}"]
            parts.append(f"({' OR '.join([*met, *late])})")
    return " AND ".join(parts) or None


def find_final_time(ledger: HubState, served: RegisteredQuery, query: StreamQuery) -> int | None:
    """Return the event time before which ticks are final; None: no tick is final.

    An aggregate without GROUP BY has a row at every tick. Its ticks extend only as far as the
    clocks, so a wrong timestamp adds none.
    """
    if served.end_epoch is not None:
        return served.end_time
    if not ledger.has_ended(query.definition.streams):
        return ledger.event_time_progress(query.definition.streams)
    every_tick = query.aggregates and not query.groups
    definition = query.definition
    latest = [
        ledger.clocks.get(s) if every_tick else ledger.latest_event_times(s)
        for s in definition.streams
    ]
    times = [t for t in latest if t is not None]
    if len(times) < len(latest):
        return max(times) + 1 if times else None
    over = min(t + w for t, w in zip(times, definition.windows, strict=True))
    return max(max(times) + 1, over) if over < UNBOUNDED else max(times) + 1
