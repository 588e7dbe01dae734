"""Whether blocks that another version wrote hold what a condition reads of them now."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp

from braid.condition.names import read
from braid.condition.predicate import Predicate

Computed = Sequence[Mapping[str, str]]
"""By stream, Spark SQL by name of column."""
_COMPARE = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
_SIMPLE = (
    *(*_COMPARE, exp.And, exp.Or, exp.Not, exp.Paren, exp.Column, exp.Identifier, exp.Literal),
    *(exp.Interval, exp.Var, exp.Abs, exp.Add, exp.Sub, exp.In, exp.Is, exp.Null, exp.Boolean),
)


def computed_by(predicate: Predicate) -> list[dict[str, str]]:
    """What blocks hold besides a stream's columns: keys, and what residuals read."""
    return [{**k, **c} for k, c in zip(predicate.keys, predicate.computed, strict=True)]


def same(known: Computed | None, now: Computed, on: str) -> bool:
    """Whether what was ``known`` to be computed is what is computed ``now``. None: of a version
    that did not write it down; then it is where a condition compares columns by themselves, which
    all versions do alike.
    """
    if known is not None:
        return [*map(dict, known)] == [*map(dict, now)]
    tree = read(on)
    columns = ([c.table for c in n.find_all(exp.Column)] for n in tree.find_all(*_COMPARE))
    return (
        all(isinstance(node, _SIMPLE) for node in tree.walk())
        and all(len(each) == len(set(each)) for each in columns)
        and not any(_turned(sql) for stream in now for sql in stream.values())
    )


def _turned(sql: str) -> bool:
    """Whether something is added, taken away or turned round in it."""
    return bool(re.search("[-+~]", re.sub("`[^`]*`|'[^']*'", "", sql)))
