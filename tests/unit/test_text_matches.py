"""Prefixes and edit distances: candidates of their indexes, and whole runs, against plain Python."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from braid.condition.access_paths import EditDistance, Order, TextPrefix
from braid.condition.parser import parse_predicate
from braid.condition.residual_predicate import ResidualPredicate
from braid.core.reserved_columns import ROUTING, TIME
from braid.errors import EvaluationFailure
from braid.kernels import text_hashes, text_prefix_pairs
from braid.kernels.block_builder import build_block, gather_blocks, merge_blocks
from braid.kernels.candidate_pairs import find_candidate_pairs
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.range_union import RowRanges
from braid.kernels.text_hashes import Letters
from braid.stream_join import StreamJoin
from hypothesis import given, settings
from hypothesis import strategies as st
from indexed_runs import Ids, run_indexed

pytestmark = pytest.mark.unit
RESIDUAL = ResidualPredicate("true", frozenset({0, 1}), ())
TEXTS = st.lists(st.none() | st.text("abé日", max_size=9), min_size=1, max_size=8)


def count_edits(x: str, y: str) -> int:
    """Return the edit distance by its definition (Wagner and Fischer 1974)."""
    before = [*range(len(y) + 1)]
    for i, letter in enumerate(x, 1):
        row = [i]
        for j, other in enumerate(y, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (letter != other)))
        before = row
    return before[-1]


def is_like(text: str, pattern: str) -> bool:
    regex = "".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in pattern)
    return re.fullmatch(regex, text, re.DOTALL) is not None


@given(TEXTS)
def test_equal_parts_of_texts_have_equal_hashes(texts: list[str | None]) -> None:
    column = pa.concat_arrays([pa.array(["é", None, "ab"]), pa.array(texts, pa.string())])[2:]
    letters = Letters.read_code_points(column)
    hashes: dict[int, str] = {}
    parts: dict[str, int] = {}
    for n, text in enumerate(column.to_pylist()):
        assert letters.valid[n] == (text is not None)
        for begin in range(len(text or "") + 1):
            for end in range(begin, len(text or "") + 1):
                where = (pa.array([n]), pa.array([begin]), pa.array([end - begin]))
                (made,) = letters.hash_parts(*(w.to_numpy() for w in where)).tolist()
                part = (text or "")[begin:end]
                assert parts.setdefault(part, made) == made
                assert hashes.setdefault(made, part) == part


def find_pairs(
    path: EditDistance | TextPrefix, a: list[str | None], b: list[str | None], most: int
) -> list[Counter[tuple[int, int]]]:
    """Return the candidates in both directions, with b as one block, merged and gathered."""
    order = (Order(TIME),)

    def batch(texts: list[str | None], first: int = 0) -> pa.RecordBatch:
        size = len(texts)
        ids = pa.array(range(first, first + size), pa.int64())
        nothing = {
            ROUTING: pa.array([0] * size, pa.int32()),
            TIME: pa.array([0] * size, pa.int64()),
        }
        return pa.record_batch({"id": ids, "s": pa.array(texts, pa.string()), **nothing})

    half = len(b) // 2
    halves = [
        BlockRows(build_block(batch(t, n), order)) for t, n in ((b[:half], 0), (b[half:], half))
    ]
    blocks = [
        BlockRows(build_block(batch(b), order)),
        BlockRows(merge_blocks(halves, order)),
        gather_blocks(halves, order),
    ]
    other, pairs = BlockRows(build_block(batch(a), order)), []
    for block in blocks:
        for probing, stored, stream in ((other, block, 1), (block, other, 0)):
            partial = PartialMatches({1 - stream: (probing, probing.row_positions())})
            left, right = (rows.numpy_column("id") for rows in (probing, stored))
            chunks = [*find_candidate_pairs(partial, stored, stream, path, most)]
            ids = [p for c in chunks for p in zip(left[c.left], right[c.right], strict=True)]
            pairs.append(Counter(ids if stream else [pair[::-1] for pair in ids]))
    return pairs


@settings(max_examples=40)
@given(TEXTS, TEXTS, st.integers(0, 4), st.integers(1, 20))
def test_texts_within_some_edits_are_candidates_once(
    a: list[str | None], b: list[str | None], edits: int, most: int
) -> None:
    for pairs in find_pairs(EditDistance((0, "s"), (1, "s"), RESIDUAL, edits), a, b, most):
        assert set(pairs.values()) <= {1}
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                if x is None or y is None:
                    assert (i, j) not in pairs
                elif count_edits(x, y) <= edits:
                    assert (i, j) in pairs
                elif abs(len(x) - len(y)) > edits:
                    assert (i, j) not in pairs


LONG = st.lists(
    st.none() | st.text("ab\x00é", max_size=12) | st.text("ab%_\\", max_size=3),
    min_size=1,
    max_size=8,
)


@settings(max_examples=40)
@given(LONG, LONG, st.booleans(), st.integers(1, 20))
def test_texts_and_their_prefixes_are_candidates_once(
    a: list[str | None], b: list[str | None], is_pattern: bool, most: int
) -> None:
    for pairs in find_pairs(TextPrefix((0, "s"), (1, "s"), RESIDUAL, is_pattern), a, b, most):
        assert set(pairs.values()) <= {1}
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                if x is None or y is None:
                    assert (i, j) not in pairs
                    continue
                prefix = re.split("[%_]", y)[0] if is_pattern else y
                prefix = "" if is_pattern and "\\" in y else prefix
                if x.startswith(prefix):
                    assert (i, j) in pairs
                elif "\x00" not in x + prefix:
                    assert (i, j) not in pairs


def test_many_lengths_of_prefixes_are_looked_up_for_few_texts_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts: list[str | None] = ["abcdefgh"[n % 3 :] for n in range(50)]
    prefixes: list[str | None] = [*("abcdefgh"[:n] for n in range(9)), None]
    path = TextPrefix((0, "s"), (1, "s"), RESIDUAL)
    expected = [*find_pairs(path, texts, prefixes, 100)]
    sizes, search = [], text_prefix_pairs._search_length

    def search_length(*arguments: Any) -> RowRanges:
        sizes.append(len(arguments[3]))
        return search(*arguments)

    monkeypatch.setattr(text_prefix_pairs, "_search_length", search_length)
    monkeypatch.setattr(text_prefix_pairs, "_LOOKUPS", 40)
    monkeypatch.setattr(text_hashes, "_PIECE", 7)
    assert [*find_pairs(path, texts, prefixes, 100)] == expected
    assert max(sizes) <= 40 // 9


# Runs


def make_texts(seed: int, letters: str, rows: int) -> pa.Table:
    draw = Random(seed)
    texts = ["".join(draw.choices(letters, k=draw.randrange(12))) for _ in range(rows)]
    missing = [text if draw.random() < 0.95 else None for text in texts]
    return pa.table({"id": range(rows), "s": missing, "k": [draw.randrange(4) for _ in texts]})


def loop_over_pairs(a: pa.Table, b: pa.Table, holds: object) -> Ids:
    assert callable(holds)
    return Counter(
        (i, j)
        for i, x in enumerate(a["s"].to_pylist())
        for j, y in enumerate(b["s"].to_pylist())
        if x is not None and y is not None and holds(x, y)
    )


CONDITIONS = {
    "startswith(a.s, b.s)": ("ab", lambda x, y: x.startswith(y)),
    "startswith(b.s, concat(a.s, 'a'))": ("abé", lambda x, y: y.startswith(x + "a")),
    "a.s LIKE concat(b.s, '%')": ("abc%_", lambda x, y: is_like(x, y + "%")),
    "b.s LIKE a.s || '_%'": ("abcd", lambda x, y: is_like(y, x + "_%")),
    "a.s LIKE b.s": ("aaaabbbb%_", is_like),
    "levenshtein(a.s, b.s) <= 0": ("ab", lambda x, y: x == y),
    "levenshtein(a.s, b.s) < 2": ("abé", lambda x, y: count_edits(x, y) < 2),
    "2.5 >= levenshtein(a.s, b.s)": ("abcd", lambda x, y: count_edits(x, y) <= 2),
    "levenshtein(b.s, a.s) <= 4": ("abcdefgh", lambda x, y: count_edits(x, y) <= 4),
}


@pytest.mark.parametrize("on", CONDITIONS)
def test_texts_are_found_by_an_index(tmp_path: Path, on: str) -> None:
    letters, holds = CONDITIONS[on]
    streams = make_texts(1, letters, 70), make_texts(2, letters, 60)
    results, compared = run_indexed(tmp_path, on, *streams)
    assert results == loop_over_pairs(*streams, holds)
    assert compared < 70 * 60 / 1.5


def test_an_equality_is_preferred_and_an_index_of_texts_to_a_range() -> None:
    schema = make_texts(1, "ab", 1).schema
    paths = {}
    for more in ("a.k = b.k", "a.k < b.k", "abs(a.k - b.k) <= 1"):
        on = f"{more} AND levenshtein(a.s, b.s) <= 2"
        predicate = parse_predicate(on, {"a": schema, "b": schema}, (None, None))
        paths[more] = type(predicate.next_step(frozenset({0}), 1).access_path).__name__
    assert [*paths.values()] == ["OrderSearch", "EditDistance", "EditDistance"]


def test_a_band_is_preferred_to_a_pattern_that_may_begin_with_a_wildcard() -> None:
    schema = make_texts(1, "ab", 1).schema
    paths = {}
    for more in ("abs(a.k - b.k) <= 1", "a.k < b.k"):
        on = f"{more} AND a.s LIKE b.s"
        predicate = parse_predicate(on, {"a": schema, "b": schema}, (None, None))
        paths[more] = type(predicate.next_step(frozenset({0}), 1).access_path).__name__
    assert [*paths.values()] == ["IndexCondition", "TextPrefix"]


@pytest.mark.parametrize(
    "on",
    [
        "levenshtein(a.s, b.s) <= 5",
        "levenshtein(a.s, b.s) >= 2",
        "a.s NOT LIKE b.s",
        "contains(a.s, b.s)",
    ],
)
def test_other_conditions_on_texts_have_no_index_of_texts(on: str) -> None:
    schema = make_texts(1, "ab", 1).schema
    assert not parse_predicate(on, {"a": schema, "b": schema}, (None, None)).text_matches


def test_a_pattern_that_spark_refuses_fails_for_texts_without_its_prefix(tmp_path: Path) -> None:
    a, b = (pa.table({"id": [0], "s": [text]}) for text in ("xyz", "ab\\c"))
    with pytest.raises(EvaluationFailure, match="INVALID_FORMAT"):
        run_indexed(tmp_path, "a.s LIKE concat(b.s, '%')", a, b)


def test_few_pairs_of_many_texts_are_compared(tmp_path: Path) -> None:
    draw, rows = Random(5), 2_000
    texts = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=12)) for _ in range(rows)]
    edited = [text[:5] + "!" + text[6:] for text in texts]
    a, b = (pa.table({"id": range(rows), "s": column}) for column in (texts, edited))
    results, compared = run_indexed(tmp_path / "edits", "levenshtein(a.s, b.s) <= 2", a, b)
    assert len(results) == rows and compared < 1.5 * rows
    short = pa.table({"id": range(rows), "s": [text[:7] for text in texts]})
    results, compared = run_indexed(tmp_path / "prefix", "startswith(a.s, b.s)", a, short)
    assert len(results) == compared == rows


def test_a_run_says_that_texts_are_found_by_an_index() -> None:
    rows = make_texts(1, "ab", 3)
    streams = {"a": rows, "b": rows}
    assert "texts within 2 edits: LEVENSHTEIN(a.s, b.s) <= 2" in str(
        StreamJoin(streams, "levenshtein(a.s, b.s) <= 2").explain()
    )
    assert "texts that begin with another: STARTSWITH(a.s, b.s)" in str(
        StreamJoin(streams, "startswith(a.s, b.s)").explain()
    )
