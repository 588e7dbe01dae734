"""A query of a running hub, as people hold it."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

from braid.hub.hub_state import HubState, RegisteredQuery


class _Run(Protocol):
    """What a query needs of its hub."""

    @property
    def state(self) -> HubState: ...

    def query_results(self, number: int | str) -> Any: ...

    def withdraw(self, name: str) -> None: ...


class HubQuery:
    """A query that a hub answers, or has answered."""

    def __init__(self, run: _Run, number: int) -> None:
        self._run, self._number = run, number

    @property
    def _registered_query(self) -> RegisteredQuery:
        return self._run.state.queries[self._number]

    @property
    def name(self) -> str:
        """What it is called."""
        return self._registered_query.name

    @property
    def sql(self) -> str:
        """Its text."""
        return self._registered_query.sql

    @property
    def sink(self) -> str:
        """The node that it was asked at."""
        return self._registered_query.sink

    @property
    def reuse_kind(self) -> str:
        """How it came to be answered: by a "new" operator, "derived", by a new one that reads one
        that was there, by one that "holds" it, or by one that was "relaxed".
        """
        return self._registered_query.reuse_kind

    @property
    def complete_since(self) -> dict[str, int | None]:
        """By stream the event time (microseconds) from which on the hub had all tuples that this
        query can use, when it came; None: all. Answers whose members are no older are complete.
        """
        return dict(self._registered_query.complete_since)

    @property
    def end_reason(self) -> str | None:
        """Why it is answered no longer: "withdrawn", or a sentence; None: it is answered."""
        return (
            None if self._registered_query.end_epoch is None else self._registered_query.end_reason
        )

    def results(self) -> Any:
        """All that it was told so far: a row for each match, or, with a SLIDE, what held at each
        tick, with a column ``tick``. A DataFrame of Spark; an Arrow table if the streams are
        tables.
        """
        return self._run.query_results(self._number)

    def current_answer(self) -> Any:
        """The answer at the last tick, or all matches if there is no SLIDE, as a pandas frame."""
        found: Any = self.results()
        found = found.to_pandas() if isinstance(found, pa.Table) else found.toPandas()
        if "tick" not in found.columns or not len(found):
            return found
        return found[found["tick"] == found["tick"].max()].reset_index(drop=True)

    def withdraw(self) -> None:
        """Have it answered no longer. What it was told stays."""
        self._run.withdraw(self.name)

    def __repr__(self) -> str:
        served = self._registered_query
        state = "served" if served.end_epoch is None else f"ended, {served.end_reason}"
        return f"HubQuery({served.name}: {state}, {served.reuse_kind})"
