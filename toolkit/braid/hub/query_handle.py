"""HubQuery: a query of a running hub."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from braid.hub.hub_state import HubState, RegisteredQuery
from braid.util.row_tables import to_row_table


class _Run(Protocol):
    """Interface of a hub to its queries."""

    @property
    def state(self) -> HubState: ...

    def query_results(self, number: int | str) -> Any: ...

    def last_query_rows(self, number: int, limit: int) -> Any: ...

    def withdraw(self, name: str) -> None: ...


class HubQuery:
    """A query that a hub answers or has answered."""

    def __init__(self, run: _Run, number: int) -> None:
        self._run, self._number = run, number

    @property
    def _registered_query(self) -> RegisteredQuery:
        return self._run.state.queries[self._number]

    @property
    def id(self) -> int:
        """Id of the query, unlike a name never used again; ``foreachBatch`` has answers by it."""
        return self._number

    @property
    def name(self) -> str:
        """Name of the query."""
        return self._registered_query.name

    @property
    def sql(self) -> str:
        """Text of the query."""
        return self._registered_query.sql

    @property
    def sink(self) -> str:
        """Node at which the query was submitted."""
        return self._registered_query.sink

    @property
    def reuse_kind(self) -> str:
        """How the query was first answered.

        - "new": by a new operator.
        - "derived": by a new operator that reads an existing one.
        - "holds": by an operator that held it already.
        - "relaxed": by an operator that was widened.
        """
        return self._registered_query.reuse_kind

    @property
    def complete_since(self) -> dict[str, int | None]:
        """Event time, by stream, from which the hub held every tuple this query can use; None: all.

        Microseconds, as of submission. An answer is complete if none of its members is older.
        """
        return dict(self._registered_query.complete_since)

    @property
    def end_reason(self) -> str | None:
        """Why the query has ended: "withdrawn", or a sentence; None: it is active."""
        return (
            None if self._registered_query.end_epoch is None else self._registered_query.end_reason
        )

    def results(self) -> Any:
        """Return the answer so far: a Spark DataFrame, or an Arrow table for table streams.

        Without a SLIDE: one row per match. With one: the rows that hold at each tick, which is in
        the column ``tick``.
        """
        return self._run.query_results(self._number)

    def current_answer(self, limit: int | None = None) -> Any:
        """Return the answer at the last tick as a pandas frame; without a SLIDE, all matches.

        Without pandas, the frame is an Arrow table. ``limit``: how many of its last rows to read;
        None: all.
        """
        if limit is None:
            answer = self.results()
            rows = to_row_table(answer) if isinstance(answer, pa.Table) else answer.toPandas()
        else:
            rows = self._run.last_query_rows(self._number, limit)
        return _select_last_tick(rows)

    def withdraw(self) -> None:
        """End the query. Its answer remains readable."""
        self._run.withdraw(self.name)

    def __repr__(self) -> str:
        served = self._registered_query
        state = "served" if served.end_epoch is None else f"ended, {served.end_reason}"
        return f"HubQuery({served.name}: {state}, {served.reuse_kind})"


def _select_last_tick(rows: Any) -> Any:
    """Return the rows of the last tick of a pandas frame or an Arrow table; without ticks, all."""
    if isinstance(rows, pa.Table):
        is_ticked = "tick" in rows.column_names
        return rows.filter(pc.field("tick") == pc.max(rows["tick"])) if is_ticked else rows
    if "tick" not in rows.columns:
        return rows
    return rows[rows["tick"] == rows["tick"].max()].reset_index(drop=True)
