"""SQL of the best partners of as-of joins, for ``answer_check``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from braid.answer_check_text import quote_text
from braid.util.durations import parse_duration

NUMBER = "__number"
"""Column with the number of a row of the first stream."""
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")


class PartnerSql:
    """SQL that keeps the best partner of each row of the first stream.

    - ``match``: the arguments of the as-of join, as in ``run.json``.
    - ``aliases``: the two streams, quoted.
    - ``times``: their event-time columns, quoted.
    - ``columns``: the columns of the second stream, quoted.
    - ``name_type``: returns DuckDB's type of an expression.
    """

    def __init__(
        self,
        match: Mapping[str, Any],
        aliases: Sequence[str],
        times: Sequence[str],
        columns: Sequence[str],
        name_type: Callable[[str], str],
    ) -> None:
        self._match, self._aliases = match, aliases
        chosen = [quote_text(name) for name in (match["order"] or {}).values()] or times
        plain = [f"{alias}.{column}" for alias, column in zip(aliases, chosen, strict=True)]
        types = [name_type(sql) for sql in plain]
        self._is_timed = types[0] in _TIMES
        self._orders = [f"epoch_us({sql}::TIMESTAMPTZ)" if self._is_timed else sql for sql in plain]
        self._may_be_nan = {*types} & {"FLOAT", "DOUBLE"}
        ties = match["ties"]
        self._ties = columns if ties is None else [quote_text(name) for name in ties]

    def list_conditions(self) -> list[str]:
        """Return the conditions on the orders of two partners."""
        a, b = self._orders
        times = [f"{alias}.__time IS NOT NULL" for alias in self._aliases]
        present = [f"{order} IS NOT NULL" for order in (a, b)]
        numbers = [f"NOT isnan({order}::DOUBLE)" for order in (a, b) if self._may_be_nan]
        strict = self._match["strict"]
        sides = {
            "latest": [f"{b} {'<' if strict else '<='} {a}"],
            "first": [f"{b} {'>' if strict else '>='} {a}"],
            "nearest": [f"{a} <> {b}"] if strict else [],
        }
        tolerance = self._match["tolerance"]
        if self._is_timed and tolerance is not None:
            tolerance = parse_duration(tolerance, "tolerance", zero=True)
        near = [] if tolerance is None else [f"{self._make_distance_sql()} <= {tolerance!r}"]
        return [*times, *present, *numbers, *sides[self._match["match"]], *near]

    def _make_distance_sql(self) -> str:
        a, b = self._orders
        return f"(greatest({a}, {b}) - least({a}, {b}))"

    def _make_window_sql(self) -> str:
        """Return the window over the partners of a row, the best one first."""
        a, b = self._aliases
        ties = (f"{b}.{column} DESC NULLS LAST" for column in self._ties)
        rank = ", ".join([f"{self._make_distance_sql()} ASC", f"{self._orders[1]} DESC", *ties])
        return f"(PARTITION BY {a}.{NUMBER} ORDER BY {rank})"

    def make_dependence_sql(self, left_late: str, right_late: str) -> str:
        """Return SQL for whether the partner of a row depends on what was held.

        It does if the row, or the best of its partners, came late; then it may have another one, or
        none. ``left_late``, ``right_late``: SQL for whether a row of a stream came late.
        """
        if left_late == right_late == "false":
            return "false"
        best = f"first_value(coalesce({right_late}, false)) OVER {self._make_window_sql()}"
        return f"(coalesce({left_late}, false) OR {best})"

    def make_choice_sql(self, depends: str) -> str:
        """Return the clause that keeps the best partner of each row; all if it ``depends``."""
        return f"QUALIFY row_number() OVER {self._make_window_sql()} = 1 OR {depends}"

    def make_released_sql(self, until: int | None, last_batch: int) -> str:
        """Return SQL for whether a row has taken its partner.

        - ``until``: event time below which the rows of earlier micro-batches have.
        - ``last_batch``: the last micro-batch.
        """
        a = self._aliases[0]
        if until is None:
            return "false"
        return f"({a}.__batch < {last_batch} AND {a}.__time < {until})"
