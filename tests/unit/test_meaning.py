"""Conditions are answered as written, on tables and in a hub, without ignoring a word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.execution.thread_executor import ThreadExecutor
from braid.hub.hub import QueryHub
from braid.stream_join import StreamJoin
from hub_cases import query_rows
from scatter import Scatter

pytestmark = pytest.mark.unit
TEXTS = ["abc", "xyz", "a%", "ABC", "", None]
PATTERNS = ["a%", "_b%", "a!%", "%", None]
NEGATED: dict[str, Callable[[str, str], bool]] = {
    "a.s NOT LIKE b.p": lambda s, p: not is_like(s, p),
    "NOT a.s LIKE b.p": lambda s, p: not is_like(s, p),
    "NOT (a.s NOT LIKE b.p)": lambda s, p: is_like(s, p),
    "a.s NOT LIKE b.p ESCAPE '!'": lambda s, p: not is_like(s, p, "!"),
    "a.s NOT LIKE b.p AND a.s NOT LIKE 'x%'": lambda s, p: not is_like(s, p) and s[:1] != "x",
    "a.s NOT LIKE 'a!%' ESCAPE '!' AND b.p NOT LIKE '|_b%' ESCAPE '|'": (
        lambda s, p: s != "a%" and not p.startswith("_b")
    ),
}


def is_like(text: str, pattern: str, escape: str = "") -> bool:
    """Return whether a text matches a pattern, by a regular expression."""
    parts, letters = [], iter(pattern)
    for letter in letters:
        if letter == escape:
            parts.append(re.escape(next(letters)))
        else:
            parts.append({"%": ".*", "_": "."}.get(letter) or re.escape(letter))
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def joined(streams: dict[str, pa.Table], on: str, folder: Path, **given: Any) -> Counter[Any]:
    """Return the pairs of row numbers of a join of tables."""
    run = StreamJoin(streams, on, Scatter(), **given).start(folder, batches=2)
    assert run.awaitTermination()
    rows = run.results()
    ids = (rows[alias].combine_chunks().field("n").to_pylist() for alias in streams)
    return Counter(zip(*ids, strict=True))


def numbered(name: str, values: list[Any], kind: pa.DataType) -> pa.Table:
    return pa.table({"n": range(len(values)), name: pa.array(values, kind)})


@pytest.mark.parametrize("on", NEGATED)
def test_not_like_is_the_negation_of_like(on: str, tmp_path: Path) -> None:
    streams = {
        "a": numbered("s", TEXTS, pa.string()),
        "b": numbered("p", PATTERNS, pa.string()),
    }
    wanted = Counter(
        (i, k)
        for i, s in enumerate(TEXTS)
        for k, p in enumerate(PATTERNS)
        if s is not None and p is not None and NEGATED[on](s, p)
    )
    assert wanted and joined(streams, on, tmp_path) == wanted


def test_not_like_is_the_negation_in_processes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("braid.arrow_join.make_executor", lambda _: ThreadExecutor(2, alone=0))
    test_not_like_is_the_negation_of_like("a.s NOT LIKE b.p", tmp_path)


AT = datetime(2024, 1, 1, tzinfo=UTC)


def answer_query(streams: dict[str, pa.Table], sql: str, folder: Path) -> Counter[Any]:
    """Return the rows of a hub's answer to a query."""
    run = QueryHub(streams, "ts").start(folder, 2, {"it": sql})
    run.awaitTermination()
    return query_rows(run, "it")


def timed(rows: pa.Table) -> pa.Table:
    """Return the rows with event times one second apart."""
    times = [AT + timedelta(seconds=k) for k in range(rows.num_rows)]
    return rows.append_column("ts", pa.array(times, pa.timestamp("us", "UTC")))


def test_a_hub_knows_not_like_between_streams_in_filters_and_in_what_it_selects(
    tmp_path: Path,
) -> None:
    streams = {
        "a": timed(numbered("s", TEXTS, pa.string())),
        "b": timed(numbered("p", PATTERNS, pa.string())),
    }
    sql = (
        "SELECT a.n, b.n AS m, b.p NOT LIKE '%' AS other FROM a [RANGE UNBOUNDED], "
        "b [RANGE UNBOUNDED] WHERE a.s NOT LIKE b.p AND a.s NOT LIKE 'x%' AND a.n >= b.n - 9"
    )
    wanted = Counter(
        (i, k, not is_like(p, "%"))
        for i, s in enumerate(TEXTS)
        for k, p in enumerate(PATTERNS)
        if s is not None and p is not None and not is_like(s, p) and s[:1] != "x"
    )
    assert wanted and answer_query(streams, sql, tmp_path) == wanted
