"""Kinds of joins: what ``how`` accepts, and what each kind answers."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from braid.core.join_kinds import JoinKind, check_answerable, check_complete, parse_kind

TWO, THREE = ("a", "b"), ("a", "b", "c")


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", JoinKind("inner", (), (0, 1))),
        ("left", JoinKind("left", (0,), (0, 1), writes_unmatched=True)),
        ("right", JoinKind("right", (1,), (0, 1), writes_unmatched=True)),
        ("full", JoinKind("full", (0, 1), (0, 1), writes_unmatched=True)),
        ("semi", JoinKind("semi", (0,), (0,), False, writes_matched=True)),
        ("anti", JoinKind("anti", (0,), (0,), False, writes_unmatched=True)),
    ],
)
def test_each_kind_of_two_streams_has_its_rows_and_structs(how: str, expected: JoinKind) -> None:
    assert parse_kind(how, TWO) == expected
    assert expected.to_json(TWO) == how
    assert expected.is_inner == (how == "inner")
    assert expected.has_absent_sides == (how in ("left", "right", "full"))


@pytest.mark.parametrize(
    ("spellings", "name"),
    [
        ("left leftouter left_outer LEFT", "left"),
        ("right rightouter right_outer", "right"),
        ("outer full fullouter full_outer FullOuter", "full"),
        ("semi leftsemi left_semi", "semi"),
        ("anti leftanti left_anti", "anti"),
        ("inner Inner", "inner"),
    ],
)
def test_the_spellings_of_spark_are_taken(spellings: str, name: str) -> None:
    assert {parse_kind(word, TWO).name for word in spellings.split()} == {name}


@pytest.mark.parametrize("how", ["cross", "", "left natural", "natural", None, 3, ["left"], {}])
def test_an_unknown_word_is_refused_with_those_that_are_accepted(how: Any) -> None:
    with pytest.raises(ValueError, match=r"how .*inner, left, right, full, semi, anti"):
        parse_kind(how, TWO)


@pytest.mark.parametrize("how", [{"a": "left"}, {"a": None}, {"a": "keep", "b": "drop"}])
def test_a_mapping_says_keep_alone(how: Any) -> None:
    with pytest.raises(ValueError, match=r"how is \{'a': .*\{'a': 'keep'\} with each stream"):
        parse_kind(how, TWO)


def test_a_mapping_names_streams() -> None:
    with pytest.raises(ValueError, match=r"how names 'x'; the streams are a, b, c"):
        parse_kind({"a": "keep", "x": "keep"}, THREE)


def test_a_kind_of_two_streams_is_refused_for_more_with_the_two_ways_to_say_it() -> None:
    for how in ("left", "right_outer", "full", "semi", "anti"):
        with pytest.raises(ValueError, match=r"a LEFT JOIN \(b JOIN c\).*results_stream\(\)"):
            parse_kind(how, THREE)
    assert parse_kind("inner", THREE) == JoinKind("inner", (), (0, 1, 2))


def test_any_set_of_streams_is_kept() -> None:
    for count in (1, 2, 3):
        for kept in combinations(range(3), count):
            how = {THREE[stream]: "keep" for stream in reversed(kept)}
            kind = parse_kind(how, THREE)
            assert kind == JoinKind("keep", kept, (0, 1, 2), writes_unmatched=True)
            assert parse_kind(kind.to_json(THREE), THREE) == kind


def test_keep_of_two_streams_has_one_name() -> None:
    for how, name in [("a", "left"), ("b", "right"), ("ab", "full"), ("ba", "full")]:
        assert parse_kind(dict.fromkeys(how, "keep"), TWO) == parse_kind(name, TWO)


def test_what_leaves_out_pairs_serves_inner_joins_alone() -> None:
    check_complete(parse_kind("inner", TWO), "shed")
    for how in ("left", "right", "full", "semi", "anti"):
        with pytest.raises(ValueError, match=rf"'{how}' with shed, where pairs are left out"):
            check_complete(parse_kind(how, TWO), "shed")


BOUNDED, UNBOUNDED = ((0, 10), (20, 0)), ((0, None), (20, 0))


def test_a_preserved_stream_must_have_a_bound_or_partners_that_end() -> None:
    left, right = parse_kind("left", TWO), parse_kind("right", TWO)
    check_answerable(left, TWO, BOUNDED, (True, True))
    check_answerable(left, TWO, UNBOUNDED, (True, False))
    check_answerable(right, TWO, UNBOUNDED, (True, True))
    check_answerable(parse_kind("inner", TWO), TWO, UNBOUNDED, (True, True))
    with pytest.raises(ValueError, match=r"a tuple of a .* in b .*never be answered.*windows="):
        check_answerable(left, TWO, UNBOUNDED, (True, True))


def test_sql_spellings_with_a_space_are_taken() -> None:
    assert parse_kind("LEFT OUTER", TWO) == parse_kind("left", TWO)
    assert parse_kind("left anti", TWO) == parse_kind("anti", TWO)
