"""A case of the fuzzer, and its JSON file."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec
import pyarrow as pa

from fuzz.column_types import Value, to_arrow

Tree = list[Any]
"""A condition as a tree: an operator's name, then its operands; see ``grammar``."""
Verdict = Literal["equal", "refused", "fails", "either"]
_BEGIN, _MINUTE = 1_709_251_200_000_000, 60_000_000
"""Event time of the first micro-batch, and the duration of each, in microseconds."""
AUTO = "auto"
"""The placement that is chosen by simulation, which is the default of a join."""
CORPUS = Path(__file__).parent.parent / "corpus"


class Stream(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stream of a case.

    It has the types of its columns by name, its rows in that order, and the micro-batch of each
    row. ``times`` are the event times in microseconds since 1970; without them each micro-batch
    lasts a minute.
    """

    columns: dict[str, str]
    rows: list[list[Value]]
    batches: list[int]
    times: list[int] | None = None

    def event_times(self) -> list[int]:
        """Return the event time of each row, in microseconds since 1970."""
        if self.times is not None:
            return self.times
        return [_BEGIN + batch * _MINUTE + row for row, batch in enumerate(self.batches)]


class Case(msgspec.Struct, frozen=True, omit_defaults=True):
    """Streams by alias and a condition over them.

    - ``tree``: the condition as the grammar made it.
    - ``windows``: microseconds by alias.
    - ``placement``: a name of ``oracle.PLACEMENTS``, or ``AUTO``.
    - ``how``: kind of the join.
    - ``emit``: "early" if whole runs of tables give early answers, whose net is compared.
    - ``match``, ``tolerance``, ``is_strict``: an as-of join by event time, with its tolerance in
      microseconds (None: any); match "": none. The pairs of windows are not for it.
    - ``verdict``: the right outcome of a stored case; "either" if Spark's own outcome depends on
      its order of evaluation.
    - ``why``: the fault that the case once showed.
    """

    streams: dict[str, Stream]
    on: str
    tree: Tree | None = None
    windows: dict[str, int] = {}
    placement: str = "Centralized()"
    verdict: Verdict = "equal"
    why: str = ""
    how: str | dict[str, str] = "inner"
    emit: str = "final"
    match: str = ""
    tolerance: int | None = None
    is_strict: bool = False


class StatementCase(msgspec.Struct, frozen=True, omit_defaults=True):
    """A statement of a hub over the streams of ``statements.streams(seed)``.

    ``truth`` is DuckDB SQL of the right answer; without it the statement must be refused.
    """

    statement: str
    truth: str | None
    seed: int = 0
    verdict: Verdict = "equal"
    why: str = ""


class _Same:
    """A stream as the key of a cache, compared by identity."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def __hash__(self) -> int:
        return id(self.stream)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.stream is other.stream


def table(stream: Stream) -> pa.Table:
    """Return the rows as an Arrow table, with their number as column ``id``."""
    return _table(_Same(stream))


@lru_cache(64)
def _table(same: _Same) -> pa.Table:
    stream = same.stream
    made = {"id": pa.array(range(len(stream.rows)), pa.int64())}
    for place, (name, kind) in enumerate(stream.columns.items()):
        made[name] = to_arrow([row[place] for row in stream.rows], kind)
    return pa.table(made)


def encode(case: Case | StatementCase) -> bytes:
    """Return the JSON of a case."""
    return msgspec.json.format(msgspec.json.encode(case), indent=1) + b"\n"


def load(path: Path) -> Case | StatementCase:
    """Return the case in a file. Raises msgspec.ValidationError for an invalid file."""
    raw = path.read_bytes()
    is_statement = "statement" in msgspec.json.decode(raw)
    return msgspec.json.decode(raw, type=StatementCase if is_statement else Case)


def save(case: Case | StatementCase, path: Path) -> None:
    """Write a case."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(case))
