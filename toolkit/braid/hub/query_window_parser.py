"""Parse RANGE and SLIDE of a query from brackets, arguments or interval conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from braid.core.match_rules import MatchRule
from braid.errors import QueryError
from braid.hub.query_dialect import parse_window
from braid.util.durations import Span, parse_duration


def parse_windows(
    tables: Mapping[str, exp.Table], given: Mapping[str, Span] | Span | None, every: Span | None
) -> tuple[dict[str, int], set[int]]:
    """Return the windows by alias and the SLIDE, if there is one, in microseconds.

    Raises QueryError for a value that is given twice or for an unknown stream.
    """
    ranges: dict[str, int] = {}
    slides: set[int] = set()
    for alias, table in tables.items():
        size, slide = parse_window(table)
        ranges |= {} if size is None else {alias: size}
        slides |= set() if slide is None else {slide}
    ranges |= _parse_given_windows(tables, given, ranges)
    if every is not None:
        if slides:
            raise QueryError("SLIDE is given in the text and in slide=")
        slides = {parse_duration(every, "slide")}
    if len(slides) > 1:
        raise QueryError("the streams have different SLIDEs; a query has one")
    return ranges, slides


def _parse_given_windows(
    tables: Mapping[str, exp.Table],
    given: Mapping[str, Span] | Span | None,
    ranges: Mapping[str, int],
) -> dict[str, int]:
    if given is None:
        return {}
    spans = dict(given) if isinstance(given, Mapping) else dict.fromkeys(tables, given)
    if wrong := [a for a in spans if a not in tables]:
        raise QueryError(
            f"windows are given for {wrong[0]!r}; the query's streams are called "
            + ", ".join(tables)
        )
    if twice := [a for a in spans if a in ranges]:
        raise QueryError(f"stream {twice[0]!r} has a window in the text and in windows=")
    return {a: parse_duration(s, f"window of {a}") for a, s in spans.items()}


def interval_windows(parts: Sequence[exp.Expr], time: str) -> tuple[dict[str, int], list[exp.Expr]]:
    """Return the windows expressed by interval conditions on event times, and the other conditions.

    The windows are empty unless there is one for each of two streams.
    """
    windows: dict[str, int] = {}
    rest = []
    for part in parts:
        bound = _parse_interval_condition(part, time)
        if bound is None or bound[0] in windows or bound[1] <= 0:
            rest.append(part)
        else:
            windows[bound[0]] = bound[1]
    return (windows, rest) if len(windows) == 2 else ({}, list(parts))


def bound_asof_windows(
    rule: MatchRule,
    parts: Sequence[exp.Expr],
    time: str,
    aliases: Sequence[str],
    ranges: Mapping[str, int],
) -> tuple[dict[str, int], list[exp.Expr]]:
    """Return the windows of an as-of join by alias, and the conditions that are not about time.

    Windows are bounded by the rule, and by tolerances: interval conditions on the event times.
    ``ranges``: windows as given.
    """
    windows, rest = dict(ranges), []
    for part in parts:
        bound = _parse_interval_condition(part, time)
        if bound is None or bound[1] <= 0:
            rest.append(part)
        else:
            windows[bound[0]] = min(bound[1], windows.get(bound[0], bound[1]))
    bounded = zip(aliases, rule.limit_windows([windows.get(a) for a in aliases]), strict=True)
    return {alias: window for alias, window in bounded if window is not None}, rest


def _parse_interval_condition(part: exp.Expr, time: str) -> tuple[str, int] | None:
    """Return the older stream's alias and its window for ``later.ts <= older.ts + INTERVAL w``."""
    if not isinstance(part, (exp.LT, exp.LTE, exp.GT, exp.GTE)):
        return None
    less, more = part.this, part.expression
    if isinstance(part, (exp.GT, exp.GTE)):
        less, more = more, less
    a, b = _parse_shifted_time(less, time), _parse_shifted_time(more, time)
    if a is None or b is None or a[0] == b[0]:
        return None
    strict = isinstance(part, (exp.LT, exp.GT))
    return b[0], b[1] - a[1] + (0 if strict else 1)


def _parse_shifted_time(tree: exp.Expr, time: str) -> tuple[str, int] | None:
    """Return alias and microseconds of an event time plus or minus an interval."""
    tree = tree.unnest()
    if isinstance(tree, exp.Column):
        return (tree.table, 0) if tree.name == time else None
    if not isinstance(tree, (exp.Add, exp.Sub)) or not isinstance(tree.expression, exp.Interval):
        return None
    inner, size = _parse_shifted_time(tree.this, time), _parse_interval_length(tree.expression)
    if inner is None or size is None:
        return None
    return inner[0], inner[1] + (size if isinstance(tree, exp.Add) else -size)


def _parse_interval_length(interval: exp.Interval) -> int | None:
    amount = interval.this.name if interval.this is not None else ""
    unit = interval.args.get("unit")
    try:
        return parse_duration(
            f"{amount} {unit.name.lower() if unit is not None else ''}", "interval", True
        )
    except ValueError:
        return None
