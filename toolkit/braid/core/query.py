"""The one type of a query: from what people ask for to the bits of bitmaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from braid.util.durations import Span, format_duration, parse_duration
from braid.util.validation import format_value

MOST = 63
"""How many queries one run can serve: the bits of a signed 64-bit number but for the sign."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query over the streams of a join. ``windows`` and ``where`` are by stream, in its order.

    What is known of it grows on its way down:

    - As people ask for it (``of``): ``name``, the ``windows`` W_i in microseconds, and the
      selections ``where``, Spark SQL over ``alias.column``; None: every tuple.
    - Once a join has read it (``SharedJoin.add``): ``where`` is over the stream's own columns.
    - Once it is served: ``bit``, its place in bitmaps, and ``complete``, the event time from which
      on the state held all tuples that it can use when it came; None: all of them. Tasks and
      bitmaps need no more than ``windows`` and ``bit``.
    """

    name: str
    windows: tuple[int, ...]
    selections: tuple[str | None, ...]
    bitmap_position: int = 0
    complete_since: tuple[int | None, ...] = ()

    @classmethod
    def parse(
        cls,
        name: str,
        streams: Sequence[str],
        windows: Span | Mapping[str, Span],
        where: Mapping[str, str] | None = None,
    ) -> Query:
        """A query as people ask for it: one span for all streams, or spans by alias; selections by
        alias. Raises ValueError, with one sentence, for what is no span and for other streams.

        >>> Query.of("late", ("a", "d"), "1 minute", {"d": "d.delay >= 15"})
        Query(name='late', windows=(60000000, 60000000), where=(None, 'd.delay >= 15'), bit=0, \
complete=())
        """
        known, where = ", ".join(streams), {} if where is None else where
        if not isinstance(name, str) or not name.strip():
            raise ValueError(
                f"a query is named {format_value(name)}; a name must be text, and not empty"
            )
        if not isinstance(where, Mapping):
            raise ValueError(
                f"query {name!r} has where {format_value(where)}; it must be a condition by "
                "alias, as in "
                "{'a': 'a.x > 3'}"
            )
        spans = dict(windows) if isinstance(windows, Mapping) else dict.fromkeys(streams, windows)
        if set(spans) != set(streams):
            raise ValueError(
                f"query {name!r} has windows for {', '.join(spans) or 'no stream'}; it needs one "
                f"for each of {known}"
            )
        if unknown := sorted(set(where) - set(streams)):
            raise ValueError(
                f"query {name!r} selects on {', '.join(unknown)}; the streams are {known}"
            )
        lengths = tuple(parse_duration(spans[a], f"window of {name!r} on {a}") for a in streams)
        return cls(name, lengths, tuple(where.get(a) for a in streams))

    def to_arguments(self, streams: Sequence[str]) -> dict[str, Any]:
        """As people ask for it, the arguments of ``SharedJoin.add``: name, windows and where."""
        windows = {
            a: format_duration(w, exact=True) for a, w in zip(streams, self.windows, strict=True)
        }
        return dict(name=self.name, windows=windows, where=self.selections_by_alias(streams))

    def selections_by_alias(self, streams: Sequence[str]) -> dict[str, str]:
        """By alias, the selections that there are."""
        return {a: sql for a, sql in zip(streams, self.selections, strict=True) if sql is not None}

    def restrict_to(self, places: Sequence[int]) -> Query:
        """The same of some streams only, which are named by their places."""
        return replace(
            self,
            windows=tuple(self.windows[i] for i in places),
            selections=tuple(self.selections[i] for i in places),
            complete_since=tuple(self.complete_since[i] for i in places if self.complete_since),
        )


def longest_windows(queries: Sequence[Query]) -> tuple[int, ...]:
    """By stream, the longest window of any query."""
    return tuple(max(ws) for ws in zip(*(q.windows for q in queries), strict=True))
