"""Faults that were fixed, each put back by one patch.

The fuzzer must find every one of them within five minutes: ``make fuzz-faults``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from sqlglot import exp

from mutations import asof, changes, clocks, kinds


@dataclass(frozen=True)
class SeededFault:
    """A fixed fault that is put back.

    - ``at``: dotted name of the replaced object.
    - ``fault``: returns its replacement, given the original.
    - ``needs``: what finds it: conditions over tables, conditions over Spark's frames, statements of
      a hub, or runs of every kind.
    - ``shows``: a pattern of the condition or statement, or of the sentence that describes its
      wrong answer; for runs, of the checks that are to find it.
    """

    name: str
    at: str
    fault: Callable[[Any], Any]
    needs: Literal["tables", "Spark", "hub", "runs"]
    shows: str


def _drop_not(negate: Any) -> Any:
    """Read NOT LIKE as LIKE."""

    def replacement(self: Any, this: Any = None) -> Any:
        like = this.this if isinstance(this, exp.Escape) else this
        return this if isinstance(like, exp.Like) else negate(self, this)

    return replacement


def _keep_negated(turn: Any) -> Any:
    """Keep both sides of a comparison of floats negated, which leaves NaN the largest.

    Raises LookupError if another function than the two known ones turns a comparison.
    """
    turns = {"_try_add_comparison_link": False, "_try_add_key_bound": True}

    def replacement(comparison: Any) -> Any:
        caller = sys._getframe(1).f_code.co_name
        if caller not in turns:
            raise LookupError(f"{caller} turns a comparison; this fault knows {[*turns]}")
        return turn(comparison) if turns[caller] else comparison

    return replacement


def _reading(kind: type[exp.Expr], *names: str) -> Callable[[Any], Any]:
    """Accept statements with words that no rule reads.

    Raises LookupError if the table has them.
    """

    def accept(table: Any) -> Any:
        if {*names} <= {*table[kind]}:
            raise LookupError(f"{kind.__name__} is read with {names}: the fault changes nothing")
        return {**table, kind: (*table[kind], *names)}

    return accept


def _take_as_inner(parse: Callable[..., Any]) -> Callable[..., Any]:
    """Take every join for an inner join."""
    return lambda joins, *given: parse([], *given)


_RUNS = (
    (kinds, "check_join", "an early answer|until they are final"),
    (kinds, "check_early_join", "^(?!an early answer)"),
    (asof, "check_asof_join", "held for ever|defers|shared run|queries|query"),
    (asof, "check_shared_join", "^(?!a shared run|.* quer)"),
    (changes, "check_changes", "held for ever|before an update"),
    (clocks, "check_join", "its own watermark"),
)
"""Modules of faults, the check of runs that finds them, and a pattern of those that it does not."""
_MOVED = {
    "unit.test_asof_rules.find_dominated_rows": "braid.kernels.dominance.find_dominated_rows",
    "unit.test_ended_streams.find_watermarks": "braid.core.batch_work.find_watermarks",
}
"""Where a run looks up what a unit test calls itself."""


def _list_faults_of_runs() -> list[SeededFault]:
    return [
        SeededFault(each.name, _MOVED.get(each.at, each.at), each.fault, "runs", check)
        for module, check, without in _RUNS
        for each in module.BROKEN
        if not re.search(without, each.name)
    ]


def _drop_uncopied(move: Any) -> Any:
    """Drop a block that is to move, and copy nothing."""
    return lambda builder, block, table: builder.drop_replicas(block, block.hosts)


def _leave_last_out(list_groups: Callable[..., range]) -> Callable[..., range]:
    """Leave out the last group of values that a block has."""
    return lambda *given: list_groups(*given)[: max(1, len(list_groups(*given)) - 1)]


_STATEMENT = "braid.hub.query_dialect.STATEMENT"
_KINDS = "braid.hub.query_parser.parse_query_kind"
FAULTS = (
    SeededFault(
        "NOT LIKE", "braid.condition.spark_dialect.SparkSql.Parser._negate_range", _drop_not, "tables", "NOT LIKE"
    ),
    SeededFault("ASOF", _KINDS, _take_as_inner, "hub", "ASOF"),
    SeededFault("NATURAL", _KINDS, _take_as_inner, "hub", "NATURAL"),
    SeededFault("ANTI", _KINDS, _take_as_inner, "hub", "ANTI"),
    SeededFault("EXCEPT", _STATEMENT, _reading(exp.Star, "except_"), "hub", r"\* EXCEPT"),
    SeededFault("TABLESAMPLE", _STATEMENT, _reading(exp.Table, "sample"), "hub", "TABLESAMPLE"),
    SeededFault("alias columns", _STATEMENT, _reading(exp.TableAlias, "columns"), "hub", r"\w\(id"),
    SeededFault(
        "NaN turned", "braid.condition.sum_comparisons.SumComparison.negate", _keep_negated, "tables", "too many|lost"
    ),
    SeededFault(
        "overflow", "braid.condition.comparison_indexer.find_sums", lambda find: lambda *given: [], "tables", "results where Spark fails"
    ),
    SeededFault(
        "unmatched rows", "braid.execution.tuple_answers.AnswerWriter._write_unmatched", lambda write: lambda *given: None, "tables", "lost"
    ),
    SeededFault(
        "NULL of a struct with a required field",
        "braid.core.reserved_columns._make_nested_nullable",
        lambda nullable: lambda kind: kind,
        "Spark",
        "non-nullable",
    ),
    *_list_faults_of_runs(),
    SeededFault(
        "moves of HotKeys", "braid.papers.hotkeys.block_moves._move_block", _drop_uncopied, "runs", "check_shifting_join"
    ),
    SeededFault(
        "values of a block", "braid.papers.hotkeys.spread.TileTable.overlapped_groups", _leave_last_out, "runs", "check_shifting_join"
    ),
    SeededFault(
        "moves of a hypercube", "braid.papers.hypercube.hypercube.move_stored_blocks", lambda move: lambda *given: None, "runs", "check_shifting_join"
    ),
)  # fmt: skip
