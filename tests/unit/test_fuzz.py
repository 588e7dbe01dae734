"""The fuzzer for a few seconds with fixed seeds, without Spark, and proof that it finds faults."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from itertools import product
from pkgutil import resolve_name
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from braid.condition import duckdb_compiler
from braid.condition.column_names import parse_condition
from braid.condition.duckdb_functions import CALLS
from braid.condition.parser import parse_predicate
from braid.errors import PredicateError
from fuzz.brute_force import brute_force, matches
from fuzz.campaign import Campaign
from fuzz.cases import Case, Stream, load, save
from fuzz.column_types import DECIMALS, TYPES, column_type, decimal_name, to_arrow, to_json
from fuzz.grammar import (
    ExpressionMaker,
    condition,
    count_nodes,
    random_case,
    random_schemas,
    random_streams,
    write_tree,
)
from fuzz.hub_campaign import StatementCampaign, wrong_answers
from fuzz.operators import ANY_CLASSES, LENGTHENING, OPERATORS
from fuzz.outcomes import Answer, Truth, judge, to_answer
from fuzz.routes import table_kernels, table_run
from fuzz.shrinking import shrink
from fuzz.statements import random_statement
from hypothesis import given, settings
from msgspec.structs import replace
from mutations.fuzzed import FAULTS, SeededFault
from sqlglot import exp

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_conditions_of_a_fixed_seed_are_answered_rightly(seed: int) -> None:
    report = Campaign(seed).run(count=250)
    assert not report.findings, [(f.route, f.wrong, f.shrunk.on) for f in report.findings]
    assert report.verdicts["tables", "rows"] > 80 and report.verdicts["table run", "rows"] > 3


def test_statements_of_a_fixed_seed_are_answered_rightly_or_refused() -> None:
    report = StatementCampaign(1).run(count=80)
    assert not report.wrong, [(c.statement, c.why) for c in report.wrong]
    assert report.counts["equal"] > 25


def test_a_seed_draws_the_same_cases_each_time() -> None:
    first, second = (list(Campaign(7).cases(3)) for _ in range(2))
    assert first == second
    assert first != list(Campaign(8).cases(3))
    drawn = [random_statement(random.Random(5)) for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_whole_runs_draw_every_kind_of_join() -> None:
    cases = [case for number in range(24) for case in Campaign(2).cases(number, 20)]
    words = {case.how for case in cases if isinstance(case.how, str)}
    assert words == {"inner", "left", "right", "full", "semi", "anti"}
    assert {case.match for case in cases} == {"", "latest", "first", "nearest"}
    assert any(len(case.how) > 1 for case in cases if isinstance(case.how, dict))


def test_whole_runs_draw_placements_by_value() -> None:
    campaign, drawn = Campaign(3), Counter[str]()
    for number in range(60):
        for case in campaign.cases(number, 4):
            drawn[campaign._place_by_value(case, number).placement.split("(")[0]] += 1
    assert drawn["HotKeys"] > 4 and drawn["HyperCube"], drawn


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ({"how": "full", "emit": "early"}, [(0, 1), (1, None), (2, None), (None, 0)]),
        ({"how": "right"}, [(0, 1), (None, 0)]),
        ({"how": "semi"}, [(0,)]),
        ({"how": "anti"}, [(1,), (2,)]),
        ({"how": {"b": "keep"}}, [(0, 1), (None, 0)]),
        ({"how": "left", "match": "latest"}, [(0, None), (1, None), (2, None)]),
        ({"how": "left", "match": "nearest"}, [(0, 1), (1, None), (2, None)]),
        ({"match": "first", "tolerance": 1}, [(0, 1)]),
        ({"match": "first", "tolerance": 0}, []),
    ],
)
def test_a_whole_run_has_the_results_of_its_kind(given: Any, rows: list[Any]) -> None:
    """Row 0 of a is a microsecond before its partner; a lost row is reported."""
    case = replace(of_ints("a.n = b.n", ["eq", A, B], [1, None, 2], [7, 1]), **given)
    campaign = Campaign(0)
    truth = campaign.quiet_truth(case)
    assert Answer("rows", Counter(rows)) == table_run(case)
    assert not campaign.wrong(case, table_run(case), truth)
    if rows:
        assert "1 of" in campaign.wrong(case, Answer("rows", Counter(rows[1:])), truth)


def test_conditions_use_every_operator_and_most_are_over_two_streams() -> None:
    used: Counter[str] = Counter()
    crossing = 0

    def count(tree: Any) -> None:
        used[tree[0]] += 1
        for operand in tree[1:]:
            if isinstance(operand, list):
                count(operand)

    draw = random.Random(1)
    streams = random_streams(draw)
    for _ in range(6000):
        case = random_case(draw, streams)
        crossing += "a." in case.on and "b." in case.on
        if case.tree is not None:
            count(case.tree)
    assert not {*OPERATORS} - {*used}
    assert crossing > 3000


def test_all_that_tables_accept_is_drawn() -> None:
    """A function that the compiler learns has to be added to the grammar."""
    draw = random.Random(1)
    maker, drawn = ExpressionMaker(draw, random_schemas(draw)), set[type]()
    for name in [name for name in OPERATORS for _ in range(5)]:
        shared = draw.choice(ANY_CLASSES)
        operands = (maker.operand(what, shared, 0, ["a"]) for what in OPERATORS[name].takes)
        with suppress(PredicateError):  # a text that Spark's grammar lacks
            drawn |= {type(n) for n in parse_condition(write_tree([name, *operands])).walk()}
    assert {*duckdb_compiler._RULES, *CALLS} <= drawn


@pytest.mark.parametrize("name", [*TYPES, *(decimal_name(*d) for d in DECIMALS)])
def test_every_value_of_a_type_is_kept_in_json_and_in_arrow(name: str) -> None:
    kind = column_type(name)
    values = [*kind.common, *kind.edges, None]
    made = to_arrow(values, name)
    assert made.type == kind.arrow and made.null_count == 1
    if kind.kind in ("int", "decimal", "text", "bytes", "date", "bool"):
        again = to_arrow([to_json(v, name) for v in made.to_pylist()], name)
        assert again.equals(made)


def of_ints(on: str, tree: Any, a: list[Any], b: list[Any], kind: str = "int") -> Case:
    streams = {
        alias: Stream({"n": kind}, [[v] for v in values], [0] * len(values))
        for alias, values in (("a", a), ("b", b))
    }
    return Case(streams, on, tree)


A, B = ["col", "a", "n"], ["col", "b", "n"]


@pytest.mark.parametrize(
    ("tree", "a", "b", "truth"),
    [
        (["eq", A, B], [1, None], [1, None], Truth(Counter([(0, 0)]))),
        (["null_eq", A, B], [1, None], [1, None], Truth(Counter([(0, 0), (1, 1)]))),
        (["gt", ["add", A, B], ["lit", "0"]], [2**31 - 1], [1], Truth(Counter(), True, True)),
        (
            ["and", ["eq", A, B], ["gt", ["add", A, B], ["lit", "0"]]],
            [2**31 - 1, 1],
            [1],
            Truth(Counter([(1, 0)]), True, False),
        ),
        (
            ["or", ["eq", B, ["lit", "1"]], ["gt", ["add", A, B], ["lit", "0"]]],
            [2**31 - 1],
            [1],
            Truth(Counter([(0, 0)])),
        ),
        (["eq", ["div", A, B], ["lit", "-3"]], [7, -7], [-2], Truth(Counter([(0, 0)]))),
        (["eq", ["mod", A, B], ["lit", "-1"]], [7, -7], [3], Truth(Counter([(1, 0)]))),
        (["not_in", A, ["lit", "1"], B], [1, 2], [None], Truth(Counter())),
    ],
)
def test_brute_force_has_sparks_rules_of_whole_numbers(
    tree: Any, a: list[Any], b: list[Any], truth: Truth
) -> None:
    assert brute_force(of_ints("", tree, a, b)) == truth


def test_brute_force_takes_fields_of_structs_or_null() -> None:
    rows, kind = [{"k": 1, "s": "a"}, {"k": None, "s": None}, None], "struct<k:int,s:string>"
    for field in ("field", "field_apart", "field_text"):
        case = of_ints("", ["null_eq", [field, A], [field, B]], rows, rows, kind)
        assert brute_force(case).rows == Counter([(0, 0), *product((1, 2), repeat=2)])


def test_brute_force_has_sparks_order_of_reals() -> None:
    values = ["nan", 0.5, "inf", -0.0]
    case = of_ints("", ["lt", A, B], values, ["nan", 0.0], "double")
    assert brute_force(case).rows == Counter([(1, 0), (2, 0), (3, 0)])
    case = of_ints("", ["eq", A, B], values, ["nan", 0.0], "double")
    assert brute_force(case).rows == Counter([(0, 0), (3, 1)])


@pytest.mark.parametrize(
    ("precision", "scale", "is_known"), [(38, 0, False), (38, 37, True), (19, 4, True)]
)
def test_brute_force_says_nothing_of_decimals_that_spark_rounds(
    precision: int, scale: int, is_known: bool
) -> None:
    """Spark rounds 0.01 to 0 if it is combined with a number of 38 integer digits."""
    kind = decimal_name(precision, scale)
    compared, multiplied = ["gt", ["lit", "0.01"], A], ["gt", ["multiply_decimal", A, B], A]
    assert brute_force(of_ints("", compared, ["0"], ["0"], kind)).is_known is is_known
    assert not brute_force(of_ints("", multiplied, ["0"], ["0"], kind)).is_known


@pytest.mark.parametrize(
    ("text", "pattern", "is_like"),
    [("abc", "a%", True), ("a%", "a\\%", True), ("abc", "a\\%", False), ("é", "_", True), ("a\nb", "a%b", True)],
)  # fmt: skip
def test_brute_force_knows_like(text: str, pattern: str, is_like: bool) -> None:
    assert matches(text, pattern) is is_like


def test_an_answer_is_judged_by_what_spark_may_do() -> None:
    rows, none = Answer("rows", Counter([(0, 0)])), Truth(Counter(), True, True)
    assert judge(rows, Truth(Counter([(0, 0)]))) == ""
    assert "1 too many" in judge(rows, Truth(Counter()))
    assert judge(rows, none) == "it has results where Spark fails"
    failed = to_answer(OSError("overflow"), True)
    assert judge(failed, none) == ""
    assert "where Spark does not" in judge(failed, Truth(Counter()))
    assert judge(to_answer(ValueError("no"), False), none) == ""
    assert "unclear" in judge(to_answer(ValueError("no\nway"), False), none)
    assert "unclear" in judge(to_answer(KeyError("x"), True), none)


def test_a_wrong_case_is_shrunk_to_what_is_wrong_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault: every sum of ints is one too large."""
    arithmetic = duckdb_compiler.DuckDBCompiler._compile_arithmetic

    def wrong(self: Any, node: Any) -> Any:
        sql, kind = arithmetic(self, node)
        return (f"({sql} + 1)", kind) if kind.name == "int" else (sql, kind)

    monkeypatch.setitem(duckdb_compiler._RULES, exp.Add, wrong)  # type: ignore[index]
    tree = ["and", ["or", ["ne", ["add", A, B], ["lit", "3"]], ["is_null", B]], ["lit", "true"]]
    case = of_ints(write_tree(tree), tree, [1, 2, None, 5], [2, 3, 9])
    campaign = Campaign(0)

    def is_wrong(case: Case) -> bool:
        return bool(campaign.wrong(case, table_kernels(case), campaign.quiet_truth(case)))

    assert is_wrong(case)
    small = shrink(case, is_wrong)
    assert small.tree == ["ne", ["add", A, B], ["lit", "3"]]
    assert [len(s.rows) for s in small.streams.values()] == [1, 1]


def test_a_case_is_the_same_after_it_was_kept(tmp_path: Any) -> None:
    for case in (*list(Campaign(1).cases(0))[:5], random_statement(random.Random(1))):
        save(case, tmp_path / "case.json")
        assert load(tmp_path / "case.json") == case


@settings(max_examples=20)
@given(condition(random_schemas(random.Random(0))))
def test_hypothesis_draws_conditions(tree: Any) -> None:
    assert count_nodes(tree) >= 1


SHOWN = {
    "NOT LIKE": ("a.s NOT LIKE b.s", pa.string()),
    "NaN turned": ("b.s > a.s", pa.float64()),
    "overflow": ("a.s + 1 > b.s", pa.int32()),
}
"""A condition that a fault of conditions parses otherwise, and the type of its columns."""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_that_is_put_back_changes_what_it_names(fault: SeededFault) -> None:
    before = resolve_name(fault.at)
    assert fault.fault(before) != before
    if fault.name not in SHOWN:
        return
    on, kind = SHOWN[fault.name]
    schemas = {alias: pa.schema({"s": kind}) for alias in "ab"}
    right = parse_predicate(on, schemas, [None, None])
    with patch(fault.at, fault.fault(before)):
        assert parse_predicate(on, schemas, [None, None]) != right


def test_a_statement_that_is_answered_wrongly_is_told() -> None:
    case = next(
        c for n in range(99) if (c := random_statement(random.Random(n))).truth
        and not any(word in c.statement for word in ("GROUP", "/*+"))
    )  # fmt: skip
    assert not wrong_answers([case])
    other = replace(case, truth=f"{case.truth} LIMIT 0")
    assert "too many" in wrong_answers([other])[0]
    assert wrong_answers([replace(case, truth=None)]) == {0: "it is answered, and must be refused"}


def test_no_result_is_as_long_as_a_large_number_says() -> None:
    """Spark's memory would not hold it."""
    draw = random.Random(4)
    maker = ExpressionMaker(draw, random_schemas(draw))
    numbers: list[Any] = []
    for _ in range(20_000):
        tree: Any = maker.condition()
        waiting = [tree]
        while waiting:
            node = waiting.pop()
            waiting += [part for part in node if isinstance(part, list)]
            if node[0] == "call" and node[1][1] in LENGTHENING:
                numbers += [a for a in node[2:] if a[0] == "mod"]
                assert not any(a[0] == "lit" and "2147483647" in a[1] for a in node[2:])
    assert len(numbers) > 20
