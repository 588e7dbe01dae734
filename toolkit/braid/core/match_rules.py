"""The rule of an as-of join: which partner of a tuple is the best one.

A tuple of the first stream (the *left* one) gets one partner of the second at most: among those
that the condition admits, the one whose order is nearest. A join takes
it by these arguments:

- ``match``: "latest" is the partner of greatest order at or before the tuple, "first" that of least
  order at or after it, "nearest" that at the least distance; of two, the later one.
- ``order``: a column of numbers, dates or timestamps of both streams, or columns by alias. Default:
  the event time.
- ``tolerance``: the greatest distance: a span, or a number if numbers are compared. Default: any.
- ``strict``: whether partners of equal order are left out. Default: False.
- ``ties``: columns of the second stream that decide between partners of equal order. The greatest
  wins, NULL is the least. Default: all columns, in order.

The functions are pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, Literal, NamedTuple, get_args

from braid.core.horizon import Reach, close_reach, windows_of_reach
from braid.core.reserved_columns import TIME
from braid.util.durations import UNITS, format_duration, normalize_duration, parse_duration
from braid.util.validation import check_bool, format_value

Match = Literal["latest", "first", "nearest"]
"""The best partner.

- "latest": the one of greatest order at or before the left tuple's.
- "first": the one of least order at or after it.
- "nearest": the one at the least distance; of two equal distances, the later one.
"""
MATCHES: tuple[Match, ...] = get_args(Match)


@dataclass(frozen=True)
class MatchRule:
    """The rule by which left tuples choose their partners.

    - ``match``: which side counts.
    - ``order_keys``: by stream, the column of blocks that orders the tuples.
    - ``tolerance``: greatest distance of two orders, in units of these columns; None: any.
    - ``is_strict``: whether partners of equal order are left out.
    - ``ties``: columns of the second stream. Among partners of equal order, the greatest
      values win; NULL is the least.
    - ``forgets_dominated``: whether tuples of the second stream are forgotten once a later one of
      the same key is certain to be preferred.
    """

    match: Match
    order_keys: tuple[str, str] = (TIME, TIME)
    tolerance: float | None = None
    is_strict: bool = False
    ties: tuple[str, ...] = ()
    forgets_dominated: bool = False

    @property
    def directions(self) -> tuple[bool, ...]:
        """The sides that are searched: True for partners after the left tuple."""
        return {"latest": (False,), "first": (True,), "nearest": (False, True)}[self.match]

    def find_difference_bounds(self) -> tuple[float, float]:
        """Return the least and the greatest order of a left tuple less that of its partner."""
        most = float("inf") if self.tolerance is None else self.tolerance
        return (-most if True in self.directions else 0), (most if False in self.directions else 0)

    def to_arguments(self) -> dict[str, Any]:
        """Return the arguments of ``SharedJoin.add`` for this rule, which compares event times."""
        tolerance = None if self.tolerance is None else int(self.tolerance)
        return {
            "match": self.match,
            "tolerance": None if tolerance is None else format_duration(tolerance, exact=True),
            "strict": self.is_strict,
            "ties": list(self.ties),
        }

    def limit_windows(self, windows: Sequence[int | None]) -> tuple[int | None, ...]:
        """Return windows of two streams with what the rule implies; None: nothing bounds one."""
        pairs = zip(windows, windows_of_reach(bound_match_times(self)), strict=True)
        return tuple(min((w for w in pair if w is not None), default=None) for pair in pairs)


def parse_match_rule(given: MatchRule | str | None) -> MatchRule | None:
    """Return a rule, also for the name of one by event time. Raises ValueError for other names."""
    if not isinstance(given, str):
        return given
    if given not in MATCHES:
        raise ValueError(f"match is {format_value(given)}; {_describe_matches()}")
    return MatchRule(given)


def bound_match_times(rule: MatchRule) -> Reach:
    """Return the bounds of event times that a rule implies."""
    if rule.order_keys != (TIME, TIME):
        return ((0, None), (None, 0))
    low, high = rule.find_difference_bounds()
    after, before = (None if not isfinite(most) else int(most) for most in (-low, high))
    bounds = close_reach(((0, after), (before, 0)))
    assert bounds is not None
    return bounds


@dataclass(frozen=True)
class MatchOptions:
    """The arguments of an as-of join, as they were given.

    - ``match``, ``is_strict``: as of a ``MatchRule``.
    - ``order``: by alias, the column that is compared; empty: the event time.
    - ``tolerance``: a span as text for times, else a number; None: any distance.
    - ``ties``: columns of the second stream; None: all of them, in order.
    """

    match: Match
    order: Mapping[str, str]
    tolerance: str | float | None
    is_strict: bool
    ties: tuple[str, ...] | None

    def to_json(self) -> dict[str, Any]:
        """Return the arguments of ``parse_match`` for these options."""
        return {
            "match": self.match,
            "order": dict(self.order) or None,
            "tolerance": self.tolerance,
            "strict": self.is_strict,
            "ties": None if self.ties is None else list(self.ties),
        }

    def describe_options(self) -> str:
        """Return the options as text."""
        sides = {
            "latest": "at or before it",
            "first": "at or after it",
            "nearest": "before or after",
        }
        order = " and ".join(f"{a}.{c}" for a, c in self.order.items()) or "event time"
        side = sides[self.match].replace("at or ", "") if self.is_strict else sides[self.match]
        limit = "" if self.tolerance is None else f", within {self.tolerance}"
        return f"the {self.match} partner by {order}, {side}{limit}"


class MatchArguments(NamedTuple):
    """Arguments of an as-of join that are not checked yet; see above."""

    match: Any = None
    order: Any = None
    tolerance: Any = None
    strict: Any = False
    ties: Any = None


NO_MATCH = MatchArguments()
"""The arguments of a join with all partners."""


def parse_match(
    given: MatchArguments,
    schemas: Mapping[str, Mapping[str, str]],
    times: Mapping[str, str],
) -> MatchOptions | None:
    """Return the options of an as-of join; None: it is none.

    ``schemas``: by alias, the columns with their types. ``times``: event-time columns by alias.

    Raises ValueError if an argument is invalid, or given without ``match``.
    """
    match, order, tolerance, strict, ties = given
    if match is None:
        others = {**given._asdict(), "strict": strict or None}
        if named := [name for name, value in others.items() if value is not None]:
            raise ValueError(f"{named[0]} is given without match; {_describe_matches()}")
        return None
    if match not in MATCHES:
        raise ValueError(f"match is {format_value(match)}; {_describe_matches()}")
    if len(schemas) != 2:
        raise ValueError(f"match is for two streams, and these are {', '.join(schemas)}")
    if missing := [alias for alias in schemas if alias not in times]:
        raise ValueError(
            f"match is {match!r}, but stream {missing[0]} has no event-time column, by which a "
            "tuple knows when to take its partner: name it with time="
        )
    columns = _parse_order(order, schemas)
    if tolerance is not None and not isinstance(tolerance, str | timedelta | int | float | Decimal):
        raise ValueError(
            f"tolerance is {format_value(tolerance)}; it must be a span such as '5 seconds', or a "
            "number if numbers are compared"
        )
    if isinstance(tolerance, timedelta):
        tolerance = normalize_duration(tolerance, "tolerance", zero=True)
    if isinstance(tolerance, Decimal):
        tolerance = float(tolerance)
    check_bool(strict, "strict")
    return MatchOptions(match, columns, tolerance, strict, _parse_ties(ties, schemas))


def make_time_rule(options: MatchOptions, columns: Sequence[str]) -> MatchRule:
    """Return the rule of an as-of join by event time.

    ``columns``: the columns of the second stream. Raises ValueError if the tolerance is no span.
    """
    ties = tuple(columns) if options.ties is None else options.ties
    tolerance = None if options.tolerance is None else parse_time_tolerance(options.tolerance)
    return MatchRule(options.match, (TIME, TIME), tolerance, options.is_strict, ties)


def parse_time_tolerance(given: str | float) -> int:
    """Return a tolerance of times in microseconds. Raises ValueError if it is no span."""
    if not isinstance(given, str):
        raise ValueError(
            f"tolerance is {given!r}, but times are compared; it must be a span such as '5 seconds'"
        )
    try:
        return parse_duration(given, "tolerance", zero=True)
    except ValueError:
        units = ", ".join(f"{unit}s" for unit in reversed(UNITS))
        raise ValueError(
            f"tolerance is {given!r}; it must be a span of 0 or more, each number with a unit of "
            f"{units}, such as '1 hour 30 minutes'"
        ) from None


def _describe_matches() -> str:
    return f"match must be one of {', '.join(MATCHES)}"


def _parse_order(order: Any, schemas: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    if order is None:
        return {}
    if isinstance(order, str):
        order = dict.fromkeys(schemas, order)
    if not isinstance(order, Mapping) or order.keys() != schemas.keys():
        raise ValueError(
            f"order is {order!r}; it must be a column of both streams, or name one "
            f"for each of {', '.join(schemas)}"
        )
    for alias, column in order.items():
        _check_column("order", alias, column, schemas)
    return {alias: order[alias] for alias in schemas}


def _parse_ties(ties: Any, schemas: Mapping[str, Mapping[str, str]]) -> tuple[str, ...] | None:
    if ties is None:
        return None
    names = [ties] if isinstance(ties, str) else ties
    alias = [*schemas][1]
    if not isinstance(names, Sequence) or not names:
        raise ValueError(f"ties is {format_value(ties)}; it must name columns of {alias}")
    for name in names:
        _check_column("ties", alias, name, schemas)
    return tuple(names)


def _check_column(
    what: str, alias: str, column: Any, schemas: Mapping[str, Mapping[str, str]]
) -> None:
    if column not in schemas[alias]:
        raise ValueError(
            f"{what} names {format_value(column)}, but stream {alias} has no such column; it has: "
            f"{', '.join(schemas[alias])}"
        )
