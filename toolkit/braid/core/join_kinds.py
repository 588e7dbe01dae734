"""The kinds of joins: which tuples are answered without a partner, and what the results contain.

All kinds are defined from *pairs*, the results of the inner join. A stream is *preserved* if each
of its tuples is answered exactly once: *matched*, if it is in some pair, else *unmatched*. The
functions are pure.

| kind | preserved | rows of the results | structs of a row |
|---|---|---|---|
| inner | none | pairs | all |
| left, right, full | first, second, both | pairs, unmatched tuples | all; absent ones are NULL |
| semi | first | each matched tuple once | the first stream's |
| anti | first | unmatched tuples | the first stream's |
| keep | those named | pairs, unmatched tuples | all; absent ones are NULL |

``keep`` is for three or more streams: ``{"a": "keep"}`` is ``a LEFT JOIN (b JOIN c)``. For two
streams it is another spelling of left, right or full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from braid.core.horizon import Reach
from braid.util.validation import check_choice, format_value

EMITS = ("final", "early")
"""When a tuple without a partner is a result: once it is final, or at once, until it has one."""
KEEP = "keep"
"""The word for a preserved stream in a mapping by alias."""
_KINDS = ("inner", "left", "right", "full", "semi", "anti")
_SPARK_SPELLINGS = {
    "leftouter": "left",
    "rightouter": "right",
    "outer": "full",
    "fullouter": "full",
    "leftsemi": "semi",
    "leftanti": "anti",
}
"""The other words that Spark takes, without underscores and spaces."""
_PRESERVED = {"left": (0,), "right": (1,), "full": (0, 1), "semi": (0,), "anti": (0,)}


@dataclass(frozen=True)
class JoinKind:
    """The kind of a join.

    - ``name``: inner, left, right, full, semi, anti or keep.
    - ``preserved``: numbers of the streams whose tuples are answered, ascending.
    - ``structs``: numbers of the streams that have a struct in the results, ascending; empty: all.
    - ``writes_pairs``: whether pairs are results.
    - ``writes_matched``: whether a matched tuple is a result by itself, once.
    - ``writes_unmatched``: whether an unmatched tuple is a result, once it is final.
    - ``is_early``: whether it is one in the batch in which it comes. It is taken back when it
      matches, so results are changes.
    """

    name: str
    preserved: tuple[int, ...]
    structs: tuple[int, ...]
    writes_pairs: bool = True
    writes_matched: bool = False
    writes_unmatched: bool = False
    is_early: bool = False

    @property
    def keeps_new_matches(self) -> bool:
        """Whether it matters in which batch a tuple matched first."""
        return self.writes_matched or self.is_early

    @property
    def forgets_matched(self) -> bool:
        """Whether a tuple that matched changes no result any more, once that is known."""
        return not self.is_inner and not self.writes_pairs

    @property
    def is_inner(self) -> bool:
        """Whether no tuple is answered without a partner."""
        return not self.preserved

    @property
    def has_absent_sides(self) -> bool:
        """Whether some rows have NULL as the struct of a stream."""
        return self.writes_pairs and self.writes_unmatched

    def to_json(self, aliases: Sequence[str]) -> str | dict[str, str]:
        """Return the argument ``how`` for this kind. ``parse_kind`` restores the kind."""
        if self.name == KEEP:
            return {aliases[stream]: KEEP for stream in self.preserved}
        return self.name


INNER = JoinKind("inner", (), ())
"""An inner join of any streams. Each stream has a struct in the results."""


def parse_kind(how: Any, aliases: Sequence[str]) -> JoinKind:
    """Return the kind of a join.

    Parameters
    ----------
    how
        A kind, in Braid's or in Spark's spelling, or ``{"a": "keep"}`` by alias.
    aliases
        The streams, in order.

    Raises ValueError for anything else, and for a kind of two streams if there are more.

    >>> parse_kind("left_outer", ["a", "b"]).name
    'left'
    >>> parse_kind({"b": "keep"}, ["a", "b"]).name, parse_kind({"b": "keep"}, ["a", "b", "c"]).name
    ('right', 'keep')
    """
    if isinstance(how, Mapping):
        return _parse_kept(how, aliases)
    word = how.lower().replace("_", "").replace(" ", "") if isinstance(how, str) else ""
    name = _SPARK_SPELLINGS.get(word, word)
    if name not in _KINDS:
        _refuse_unknown(how)
    if name != "inner" and len(aliases) > 2:
        _refuse_several(how, aliases)
    return _make_kind(name, _PRESERVED.get(name, ()), len(aliases))


def _parse_kept(how: Mapping[Any, Any], aliases: Sequence[str]) -> JoinKind:
    if not how or any(word != KEEP for word in how.values()):
        _refuse_unknown(dict(how))
    if unknown := [alias for alias in how if alias not in aliases]:
        raise ValueError(
            f"how names {format_value(unknown[0])}; the streams are {', '.join(aliases)}"
        )
    preserved = tuple(stream for stream, alias in enumerate(aliases) if alias in how)
    names = {streams: name for name, streams in _PRESERVED.items() if name in _KINDS[1:4]}
    return _make_kind(KEEP if len(aliases) > 2 else names[preserved], preserved, len(aliases))


def _make_kind(name: str, preserved: tuple[int, ...], streams: int) -> JoinKind:
    if name in ("semi", "anti"):
        return JoinKind(name, preserved, preserved, False, name == "semi", name == "anti")
    return JoinKind(name, preserved, tuple(range(streams)), writes_unmatched=bool(preserved))


def _refuse_unknown(how: Any) -> NoReturn:
    if isinstance(how, Mapping):
        given = f"how is {how}" if how else "how names no stream"
    else:
        given = f"how is {format_value(how)}"
    raise ValueError(
        f"{given}; it must be one of {', '.join(_KINDS)}, also in Spark's spelling such as "
        f"left_outer, or {{'a': {KEEP!r}}} with each stream whose tuples must all be answered"
    )


def _refuse_several(how: str, aliases: Sequence[str]) -> NoReturn:
    raise ValueError(
        f"how is {how!r}, which is for two streams, and these are {', '.join(aliases)}; give "
        f"{{{aliases[0]!r}: {KEEP!r}}} for {aliases[0]} LEFT JOIN ({' JOIN '.join(aliases[1:])}), "
        "or chain two joins: the second one reads results_stream() of the first, with a lateness "
        "that covers its windows, or results() of a join of tables"
    )


def set_emission(kind: JoinKind, emit: Any) -> JoinKind:
    """Return a kind with the argument ``emit``: "final" or "early".

    Raises ValueError for another word, and for "early" if no tuple is a result without a partner.
    """
    if check_choice(emit, "emit", EMITS) == "final":
        return kind
    if not kind.writes_unmatched:
        raise ValueError(
            f"emit is 'early' with how={kind.name!r}, where no row may have to be taken back; "
            "it is for left, right, full and anti joins, and for kept streams"
        )
    return replace(kind, is_early=True)


def check_complete(kind: JoinKind, what: str) -> None:
    """Raise ValueError if a kind needs all pairs.

    ``what`` leaves out pairs, as "shed" or "the placement SemanticsUnaware".
    """
    if not kind.is_inner:
        raise ValueError(
            f"how is {kind.name!r} with {what}, where pairs are left out, so that no tuple can be "
            "said to have no partner; leave one of the two out"
        )


def check_answerable(
    kind: JoinKind, aliases: Sequence[str], reach: Reach, endless: Sequence[bool]
) -> None:
    """Raise ValueError if some preserved tuple can never be final.

    Parameters
    ----------
    kind
        The kind of the join.
    aliases
        The streams, in order.
    reach
        Closed bounds of event times.
    endless
        By stream, whether it never ends by itself.
    """
    for stream in kind.preserved:
        for other, most in enumerate(reach[stream]):
            if other != stream and most is None and endless[other]:
                raise ValueError(
                    f"how is {kind.name!r}, and a tuple of {aliases[stream]} can have a partner "
                    f"in {aliases[other]} at any later time, which does not end, so that it could "
                    "never be answered; bound it by windows=, or by the condition"
                )
