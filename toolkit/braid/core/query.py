"""Queries over the streams of a join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from braid.core.asof_releases import LEFT
from braid.core.join_kinds import INNER, JoinKind, parse_kind
from braid.core.match_rules import MatchRule
from braid.util.durations import Span, format_duration, parse_duration
from braid.util.validation import format_value

MOST = 63
"""Maximum number of queries of one run: the bits of a signed 64-bit number without the sign."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query over the streams of a join. Fields with one value for each stream follow their order.

    ``Query.parse`` sets the first three fields. ``SharedJoin.add`` rewrites ``selections`` to the
    streams' own columns. The run that serves the query sets the last two. Tasks read only
    ``windows`` and ``bitmap_position``.

    - ``name``: unique name.
    - ``windows``: by stream, microseconds.
    - ``selections``: by stream, Spark SQL over ``alias.column``; None: every tuple.
    - ``bitmap_position``: bit of the query in bitmaps.
    - ``complete_since``: by stream, the event time (microseconds) from which the state held all
      tuples that the query uses; None: all were held.
    - ``kind``: kind of its join. All kinds are made of the pairs of the inner join.
    - ``match``: the rule of an as-of query, by event time, which its windows bound; None: tuples
      join with all partners.
    """

    name: str
    windows: tuple[int, ...]
    selections: tuple[str | None, ...]
    bitmap_position: int = 0
    complete_since: tuple[int | None, ...] = ()
    kind: JoinKind = field(default=INNER, repr=False)
    match: MatchRule | None = field(default=None, repr=False)

    @property
    def has_marks(self) -> bool:
        """Whether match bitmaps say what it answers: it is an outer, semi or anti join."""
        return self.match is None and not self.kind.is_inner

    @property
    def answered_streams(self) -> tuple[int, ...]:
        """The streams whose stored tuples it answers: of an as-of query, the first one."""
        return self.kind.preserved if self.match is None else (LEFT,)

    @classmethod
    def parse(
        cls,
        name: str,
        streams: Sequence[str],
        windows: Span | Mapping[str, Span] | None,
        where: Mapping[str, str] | None = None,
        how: Any = "inner",
        match: MatchRule | None = None,
    ) -> Query:
        """Return a query from its public form.

        ``windows`` is one span for all streams or spans by alias; an as-of query with a tolerance
        needs none. ``where`` has selections by alias, ``how`` is the kind of the join (see
        ``core.join_kinds``), and ``match`` the rule of an as-of query.

        Raises ValueError for an invalid name, span, selection or kind, or an unknown stream.

        >>> Query.parse("late", ("a", "d"), "1 minute", {"d": "d.delay >= 15"})
        Query(name='late', windows=(60000000, 60000000), \
selections=(None, 'd.delay >= 15'), bitmap_position=0, complete_since=())
        """
        stream_names, where = ", ".join(streams), {} if where is None else where
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
        if unknown := sorted(set(where) - set(streams)):
            raise ValueError(
                f"query {name!r} selects on {', '.join(unknown)}; the streams are {stream_names}"
            )
        lengths = _parse_lengths(name, streams, windows, match)
        kind = parse_kind(how, streams)
        if match is not None and kind.name not in ("inner", "left"):
            raise ValueError(
                f"query {name!r} has match={match.match!r} with how={kind.name!r}; it must be "
                "'inner' or 'left', as only tuples of the first stream take partners"
            )
        return cls(name, lengths, tuple(where.get(a) for a in streams), kind=kind, match=match)

    def to_arguments(self, streams: Sequence[str]) -> dict[str, Any]:
        """Return the arguments of ``SharedJoin.add`` for this query."""
        windows = {
            a: format_duration(w, exact=True) for a, w in zip(streams, self.windows, strict=True)
        }
        where = self.selections_by_alias(streams)
        how = {} if self.kind.is_inner else {"how": self.kind.to_json(streams)}
        match = {} if self.match is None else self.match.to_arguments()
        return dict(name=self.name, windows=windows, where=where, **how, **match)

    def selections_by_alias(self, streams: Sequence[str]) -> dict[str, str]:
        """Return the selections by alias, without streams that have none."""
        return {a: sql for a, sql in zip(streams, self.selections, strict=True) if sql is not None}

    def restrict_to(self, places: Sequence[int]) -> Query:
        """Return the query over some of its streams, given by position."""
        return replace(
            self,
            windows=tuple(self.windows[i] for i in places),
            selections=tuple(self.selections[i] for i in places),
            complete_since=tuple(self.complete_since[i] for i in places if self.complete_since),
        )


def _parse_lengths(
    name: str,
    streams: Sequence[str],
    windows: Span | Mapping[str, Span] | None,
    match: MatchRule | None,
) -> tuple[int, ...]:
    """Return the windows of a query in microseconds: as given, and as its as-of match bounds them.

    Raises ValueError if a stream has none.
    """
    if windows is None and match is not None:
        return _bound_windows(name, match, (None, None))
    spans: dict[str, Any]
    spans = dict(windows) if isinstance(windows, Mapping) else dict.fromkeys(streams, windows)
    if set(spans) != set(streams):
        raise ValueError(
            f"query {name!r} has windows for {', '.join(spans) or 'no stream'}; it needs one "
            f"for each of {', '.join(streams)}"
        )
    lengths = tuple(parse_duration(spans[a], f"window of {name!r} on {a}") for a in streams)
    return lengths if match is None else _bound_windows(name, match, lengths)


def _bound_windows(name: str, match: MatchRule, windows: Sequence[int | None]) -> tuple[int, ...]:
    """Return windows with what an as-of match implies. Raises ValueError if one is unbounded."""
    bounded = match.limit_windows(windows)
    if None in bounded:
        raise ValueError(
            f"query {name!r} has match={match.match!r} without tolerance and windows, and a shared "
            "join holds tuples as long as its queries say; give one of them"
        )
    return tuple(w for w in bounded if w is not None)


def longest_windows(queries: Sequence[Query]) -> tuple[int, ...]:
    """Return, by stream, the longest window of any query."""
    return tuple(max(ws) for ws in zip(*(q.windows for q in queries), strict=True))


def unite_kinds(queries: Sequence[Query]) -> JoinKind:
    """Return the kind of a join that serves queries: it preserves what any of them does."""
    if not queries:
        return INNER
    kinds = [q.kind for q in queries]
    preserved = tuple(sorted({stream for kind in kinds for stream in kind.preserved}))
    if not preserved:
        return INNER
    streams = tuple(range(len(queries[0].windows)))
    has_semi = any(kind.writes_matched for kind in kinds)
    return JoinKind("shared", preserved, streams, writes_matched=has_semi, writes_unmatched=True)
