"""Bounds of event times that a condition implies, against brute force."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import product
from random import Random
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest
from braid import PredicateError
from braid.answer_check_text import set_session_zone
from braid.condition.column_names import parse_condition, resolve_columns
from braid.condition.constant_folding import fold_constants
from braid.condition.event_time_offsets import TimeColumn
from braid.condition.parser import parse_predicate
from braid.condition.time_bounds import find_time_bounds
from braid.core.horizon import Reach, TimeBounds
from braid.util.durations import UNITS
from braid.util.time_zones import find_zone_spread
from hypothesis import given, settings
from hypothesis import strategies as st

ALIASES = ("a", "b", "c")
COLUMNS = {alias: ("id", "ts", "d", "local") for alias in ALIASES}
SECOND, DAY = UNITS["second"], UNITS["day"]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOON = int((datetime(2024, 11, 3, 6, tzinfo=UTC) - EPOCH) / timedelta(microseconds=1))
"""The hour in which New York's clocks go back."""


def find_bounds(on: str, column: str = "ts", zone: str = "UTC") -> TimeBounds:
    kind = {"ts": "timestamp", "d": "date", "local": "timestamp_ntz"}[column]
    columns = {(alias, column): TimeColumn(i, kind) for i, alias in enumerate(ALIASES)}
    tree = fold_constants(resolve_columns(parse_condition(on), COLUMNS))
    return find_time_bounds(tree, len(ALIASES), columns, find_zone_spread(zone))


def reach(on: str, column: str = "ts", zone: str = "UTC") -> Reach:
    return find_bounds(on, column, zone).reach


Times = Mapping[str, int]


class Form(NamedTuple):
    """SQL, and its value for event times by alias."""

    sql: str
    value: Callable[[Times, str], Any]


def to_local(t: int, zone: str) -> datetime:
    return (EPOCH + timedelta(microseconds=t)).astimezone(ZoneInfo(zone))


def to_instant(local: datetime) -> int:
    return (local.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)


def truncate(t: int, unit: str, zone: str) -> int:
    local = to_local(t, zone)
    changed = {"second": 0} if unit != "second" else {}
    changed |= {"minute": 0} if unit in ("hour", "day", "month") else {}
    changed |= {"hour": 0} if unit in ("day", "month") else {}
    changed |= {"day": 1} if unit == "month" else {}
    return to_instant(local.replace(microsecond=0, **changed))


def add_days(t: int, days: int, zone: str) -> int:
    return to_instant(to_local(t, zone) + timedelta(days)) if days else t


def elapsed(unit: str, x: int, y: int, zone: str) -> int:
    start, end = (to_local(t, zone).replace(tzinfo=None) for t in (x, y))
    span = (end - start) // timedelta(microseconds=1)
    return abs(span) // UNITS[unit] * (1 if span >= 0 else -1)


def divide(number: int, by: int) -> int:
    return abs(number) // by * (1 if number >= 0 else -1)


def make_times(alias: str) -> st.SearchStrategy[Form]:
    """Draw a time of one stream."""
    moved = st.builds(
        lambda n, unit: Form(
            f"{alias}.ts + INTERVAL {n} {unit}", lambda t, z: t[alias] + n * UNITS[unit.lower()]
        ),
        st.integers(-5, 5),
        st.sampled_from(["MICROSECOND", "SECOND", "MINUTE"]),
    )
    days = st.builds(
        lambda n: Form(f"{alias}.ts + INTERVAL {n} DAY", lambda t, z: add_days(t[alias], n, z)),
        st.integers(-2, 2),
    )
    cut = st.sampled_from(["second", "minute", "hour", "day", "month"]).map(
        lambda u: Form(f"date_trunc('{u}', {alias}.ts)", lambda t, z: truncate(t[alias], u, z))
    )
    date = Form(f"CAST({alias}.ts AS DATE)", lambda t, z: truncate(t[alias], "day", z))
    return st.one_of(
        st.just(Form(f"{alias}.ts", lambda t, z: t[alias])), moved, days, cut, st.just(date)
    )


@st.composite
def make_numbers(draw: st.DrawFn, alias: str) -> tuple[int, Form]:
    """Draw a number of units since 1970, and microseconds of the unit.

    It counts a time that may be moved by a part of a unit.
    """
    moved, size = draw(
        st.sampled_from([(0, 1), (3, 1), (-300_000, 1), (500_000, 1), (-6, 3600 * SECOND)])
    )
    word = "MICROSECOND" if size == 1 else "HOUR"
    time = f"{alias}.ts + INTERVAL {moved} {word}" if moved else f"{alias}.ts"

    def find_time(times: Times) -> int:
        return times[alias] + moved * size

    plain = [
        (unit, Form(sql.format(time), lambda t, z, unit=unit: find_time(t) // unit))
        for unit, sql in (
            (1, "unix_micros({})"),
            (1000, "unix_millis({})"),
            (SECOND, "unix_seconds({})"),
            (SECOND, "CAST({} AS BIGINT)"),
            (SECOND, "to_unix_timestamp({})"),
        )
    ]
    return draw(
        st.sampled_from(
            [
                *plain,
                (
                    DAY,
                    Form(
                        f"unix_date(CAST({time} AS DATE))",
                        lambda t, z: (to_local(find_time(t), z).date() - EPOCH.date()).days,
                    ),
                ),
                (5, Form(f"unix_micros({time}) div 5", lambda t, z: divide(find_time(t), 5))),
                (
                    1,
                    Form(
                        f"unix_micros({time}) - pmod(unix_micros({time}) - 3, 7)",
                        lambda t, z: find_time(t) - (find_time(t) - 3) % 7,
                    ),
                ),
                (
                    1,
                    Form(f"unix_millis({time}) * 1000", lambda t, z: find_time(t) // 1000 * 1000),
                ),
            ]
        )
    )


OPERATORS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}


@st.composite
def comparisons(draw: st.DrawFn) -> Form:
    """Draw a comparison of two streams."""
    one, other = draw(st.permutations(ALIASES))[:2]
    op = draw(st.sampled_from(sorted(OPERATORS)))
    compare, kind = OPERATORS[op], draw(st.integers(0, 5))
    number = draw(st.integers(-4, 4))
    if kind <= 1:
        left, right = draw(make_times(one)), draw(make_times(other))
        holds = lambda t, z: compare(left.value(t, z), right.value(t, z))  # noqa: E731
        return Form(f"{left.sql} {op} {right.sql}", holds)
    if kind == 2:
        unit = draw(st.sampled_from(["microsecond", "second", "minute", "hour", "day"]))
        return Form(
            f"timestampdiff({unit}, {one}.ts, {other}.ts) {op} {number}",
            lambda t, z: compare(elapsed(unit, t[one], t[other], z), number),
        )
    if kind == 3:
        distance = f"abs(unix_micros({one}.ts) - unix_micros({other}.ts))"
        return Form(
            f"{abs(number)} {op} {distance}",
            lambda t, z: compare(abs(number), abs(t[one] - t[other])),
        )
    if kind == 4:
        return Form(
            f"greatest({one}.ts, {other}.ts) {op} {one}.ts + INTERVAL {number} SECOND",
            lambda t, z: compare(max(t[one], t[other]), t[one] + number * SECOND),
        )
    unit, first = draw(make_numbers(one))
    second = draw(make_numbers(other).filter(lambda each: each[0] == unit))[1]
    return Form(
        f"{first.sql} - ({second.sql}) {op} {number}",
        lambda t, z: compare(first.value(t, z) - second.value(t, z), number),
    )


def combine(parts: st.SearchStrategy[Form]) -> st.SearchStrategy[Form]:
    pairs = st.tuples(parts, parts)
    return st.one_of(
        pairs.map(lambda p: _join(p, "AND", all)),
        pairs.map(lambda p: _join(p, "OR", any)),
        parts.map(lambda p: Form(f"NOT ({p.sql})", lambda t, z: not p.value(t, z))),
        pairs.map(
            lambda p: Form(
                f"CASE WHEN {p[0].sql} THEN {p[1].sql} ELSE false END",
                lambda t, z: p[0].value(t, z) and p[1].value(t, z),
            )
        ),
    )


def _join(parts: tuple[Form, ...], word: str, fold: Callable[[Any], bool]) -> Form:
    sql = f" {word} ".join(f"({part.sql})" for part in parts)
    return Form(sql, lambda t, z: fold(part.value(t, z) for part in parts))


CONDITIONS = st.recursive(comparisons(), combine, max_leaves=5)
SIZES = (1, 1, 7, 1000, 250_000, SECOND, 60 * SECOND, 3600 * SECOND, 6 * 3600 * SECOND, DAY)


def draw_times(random: Random) -> dict[str, int]:
    """Return event times that are near each other in some unit."""
    base = random.choice([0, NOON, NOON - 26 * 3600 * SECOND])
    return {
        alias: base + random.randint(-4, 4) * random.choice(SIZES) + random.randint(-1, 1)
        for alias in ALIASES
    }


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@given(condition=CONDITIONS, seed=st.integers(0, 1 << 32))
@settings(deadline=None)
def test_every_satisfying_assignment_is_within_the_bounds(
    zone: str, condition: Form, seed: int
) -> None:
    random = Random(seed)
    times = [draw_times(random) for _ in range(30)]
    matching = [t for t in times if condition.value(t, zone)]
    try:
        bounds = reach(condition.sql, zone=zone)
    except PredicateError:
        assert not matching, condition.sql
        return
    for t in matching:
        for (i, start), (j, end) in product(enumerate(ALIASES), repeat=2):
            most = bounds[i][j]
            assert most is None or t[end] - t[start] <= most, (condition.sql, t, start, end)


@given(
    st.lists(
        st.tuples(st.permutations(range(3)), st.sampled_from(["<", "<="]), st.integers(-3, 3)),
        min_size=1,
        max_size=6,
    )
)
def test_plain_differences_have_tight_bounds(parts: list[tuple[list[int], str, int]]) -> None:
    texts, tests = [], []
    for (i, j, _), op, most in parts:
        texts.append(f"{ALIASES[j]}.ts {op} {ALIASES[i]}.ts + INTERVAL {most} MICROSECONDS")
        tests.append((i, j, most - (op == "<")))
    valid = [
        t
        for t in product(range(-13, 14), range(-13, 14), [0])
        if all(t[j] - t[i] <= c for i, j, c in tests)
    ]
    try:
        found = reach(" AND ".join(texts))
    except PredicateError:
        assert not valid
        return
    assert valid
    for i, j in product(range(3), repeat=2):
        if (most := found[i][j]) is not None:
            assert max(t[j] - t[i] for t in valid) == most


FORMS = {
    "b.ts BETWEEN a.ts - INTERVAL 1 MINUTE AND a.ts + INTERVAL '2' MINUTES": (60, 120),
    "b.ts - a.ts <= INTERVAL 5 SECONDS AND a.ts <= b.ts": (0, 5),
    "b.ts <= a.ts + INTERVAL '1 00:00:02' DAY TO SECOND AND a.ts <= b.ts": (0, 86402),
    "b.ts <= a.ts + INTERVAL '1:30' MINUTE TO SECOND AND a.ts <= b.ts": (0, 90),
    "b.ts <= a.ts + INTERVAL 1 MINUTE 30 SECONDS AND a.ts <= b.ts": (0, 90),
    "b.ts <= a.ts + INTERVAL '1 minute 30 seconds' AND a.ts <= b.ts": (0, 90),
    "b.ts <= a.ts + 3 * INTERVAL 1 SECOND AND a.ts <= b.ts": (0, 3),
    "b.ts <= a.ts - INTERVAL '-3' SECOND AND a.ts <= b.ts": (0, 3),
    "abs(unix_micros(a.ts) - unix_micros(b.ts)) <= 2000000": (2, 2),
    "timestampadd(SECOND, 5, a.ts) >= b.ts AND a.ts <= b.ts": (0, 5),
    "dateadd(MINUTE, 5, a.ts) >= b.ts AND a.ts <= b.ts": (0, 300),
    "b.ts = a.ts": (0, 0),
    "b.ts IN (a.ts, a.ts + INTERVAL 3 SECONDS)": (0, 3),
    "NOT (b.ts > a.ts + INTERVAL 5 SECONDS OR b.ts < a.ts)": (0, 5),
    "least(a.ts, b.ts) >= a.ts AND greatest(b.ts, a.ts) <= a.ts AND a.ts = a.ts + INTERVAL 0 SECOND"
    " AND b.ts < a.ts + INTERVAL 1 DAY": (0, 0),
    "if(a.ts <= b.ts, b.ts <= a.ts + INTERVAL 1 SECOND, false)": (0, 1),
    "coalesce(a.ts <= b.ts, false) AND (b.ts <= a.ts + INTERVAL 1 SECOND) IS TRUE": (0, 1),
    "b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 SECOND"
    " OR b.ts BETWEEN a.ts - INTERVAL 3 SECONDS AND a.ts": (3, 1),
}


@pytest.mark.parametrize("on", FORMS)
def test_each_form_has_its_bounds(on: str) -> None:
    """The bounds are seconds: how far a may be after b, and b after a."""
    after = {c: n * SECOND for c, n in zip("ab", FORMS[on], strict=True)}
    found = reach(on)
    assert (found[1][0], found[0][1]) == (after["a"], after["b"])


def test_coarse_units_are_bounded_as_far_as_they_may_differ() -> None:
    assert reach("unix_seconds(a.ts) = unix_seconds(b.ts)")[0][1] == SECOND - 1
    assert reach("date_trunc('HOUR', a.ts) = date_trunc('HOUR', b.ts)")[1][0] == 3600 * SECOND - 1
    assert reach("timestampdiff(SECOND, a.ts, b.ts) <= 5")[0][1] == 6 * SECOND - 1
    assert reach("timestampdiff(SECOND, a.ts, b.ts) <= -5")[0][1] == -5 * SECOND
    assert reach("timestampdiff(SECOND, a.ts, b.ts) >= 0")[1][0] == SECOND - 1
    assert reach("timestampdiff(MONTH, a.ts, b.ts) <= 1")[0][1] == 2 * 31 * DAY - 1
    assert reach("datediff(b.ts, a.ts) <= 3")[0][1] == 4 * DAY - 1
    assert reach("b.ts <= a.ts + INTERVAL 1 MONTH")[0][1] == 31 * DAY
    assert reach("b.ts >= add_months(a.ts, 1)")[1][0] == -(28 * DAY - DAY + 1)
    assert reach("b.d <= date_add(a.d, 3)", "d")[0][1] == 3 * DAY
    assert reach("b.d <= a.d + 3", "d")[0][1] == 3 * DAY


def test_a_time_moved_by_a_part_of_a_unit_is_counted_in_whole_units() -> None:
    half = "INTERVAL 500 MILLISECONDS"
    moved = reach(f"unix_seconds(b.ts - {half}) <= unix_seconds(a.ts)")
    assert moved[0][1] == 3 * SECOND // 2 - 1
    moved = reach(f"unix_seconds(b.ts + {half}) < unix_seconds(a.ts)")
    assert moved[0][1] == -SECOND // 2 - 1
    assert reach("datediff(b.ts - INTERVAL 6 HOURS, a.ts) <= 0")[0][1] == 30 * 3600 * SECOND - 1
    assert reach("(unix_micros(b.ts) - unix_micros(a.ts) + 7) div 10 <= 0")[0][1] == 2


def test_a_zone_widens_what_depends_on_it() -> None:
    spread = find_zone_spread("America/New_York")
    assert 3600 * SECOND <= spread <= 2 * 3600 * SECOND
    ny = "America/New_York"
    assert reach("b.ts <= a.ts + INTERVAL 23 HOURS", zone=ny)[0][1] == 23 * 3600 * SECOND
    assert reach("b.ts <= a.ts + INTERVAL 1 DAY", zone=ny)[0][1] == DAY + spread
    assert reach("b.ts - a.ts <= INTERVAL 1 SECOND", zone=ny)[0][1] == SECOND + spread
    assert reach("b.local <= a.local", "local", ny)[0][1] == spread
    assert reach("unix_micros(b.ts) <= unix_micros(a.ts)", zone=ny)[0][1] == 0


@pytest.mark.parametrize(
    "on",
    [
        "a.id = b.id",
        "b.ts <> a.ts",
        "b.ts <=> a.ts",
        "b.ts <= a.ts OR a.id = b.id",
        "NOT (b.ts <= a.ts AND a.id = b.id)",
        "greatest(a.ts, b.ts) <= c.ts",
        "greatest(a.ts, b.ts) >= c.ts",
        "unix_micros(a.ts) / 2 <= unix_micros(b.ts) / 2",
        "unix_micros(b.ts) <= unix_seconds(a.ts)",
        "NOT coalesce(a.ts < b.ts, false)",
        "CASE WHEN a.ts < b.ts THEN true ELSE a.id = b.id END",
        "hour(a.ts) = hour(b.ts)",
        "unix_timestamp(b.ts) <= unix_timestamp()",
    ],
)
def test_others_bound_nothing(on: str) -> None:
    """A greatest of times leaves NULL out, so that it says nothing of tuples without time."""
    assert all(
        most is None for i, row in enumerate(reach(on)) for j, most in enumerate(row) if i != j
    )


def test_bounds_are_closed_over_all_streams() -> None:
    found = reach("b.ts <= a.ts + INTERVAL 1 SECOND AND c.ts <= b.ts + INTERVAL 2 SECONDS")
    assert found[0] == (0, SECOND, 3 * SECOND)
    assert found[2] == (None, None, 0)


def test_a_branch_that_contradicts_the_rest_is_left_out_and_noted() -> None:
    choice = "b.ts < a.ts OR b.ts < a.ts + INTERVAL 5 SECONDS"
    found = find_bounds(f"b.ts >= a.ts AND ({choice})")
    assert found.reach[0][1] == 5 * SECOND - 1
    assert found.dropped == ("b.ts < a.ts OR b.ts < a.ts + INTERVAL '5' SECONDS",)


@pytest.mark.parametrize(
    ("on", "conjuncts"),
    [
        (
            "b.ts >= a.ts AND a.id = b.id AND b.ts < a.ts - INTERVAL '1' SECOND",
            "both `b.ts >= a.ts` and `b.ts < a.ts - INTERVAL '1' SECOND`",
        ),
        ("b.ts < a.ts AND a.ts < b.ts", "both `b.ts < a.ts` and `a.ts < b.ts`"),
        (
            "b.ts > a.ts AND c.ts > b.ts AND a.ts > c.ts",
            "all of `b.ts > a.ts`, `c.ts > b.ts` and `a.ts > c.ts`",
        ),
        (
            "b.ts BETWEEN a.ts + INTERVAL '2' SECOND AND a.ts",
            "`b.ts BETWEEN a.ts + INTERVAL '2' SECOND AND a.ts`",
        ),
        (
            "b.ts > a.ts AND (b.ts < a.ts OR b.ts = a.ts)",
            "both `b.ts > a.ts` and `b.ts < a.ts OR b.ts = a.ts`",
        ),
    ],
)
def test_a_contradiction_names_its_conjuncts(on: str, conjuncts: str) -> None:
    with pytest.raises(PredicateError) as refused:
        find_bounds(on)
    assert str(refused.value) == (f"no rows can satisfy {conjuncts}, so no rows would match")


def test_a_predicate_has_bounds_of_event_time_only() -> None:
    schema = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
    streams, on = {"a": schema, "b": schema}, "a.k = b.k AND b.ts = a.ts"
    bounds = parse_predicate(on, streams, (None, None), times={"a": "ts", "b": "ts"}).time_bounds
    assert bounds == TimeBounds(((0, 0), (0, 0)))
    assert parse_predicate(on, streams, (None, None)).time_bounds is None


def test_the_spread_of_a_zone_covers_its_history() -> None:
    hour = 3600 * SECOND
    assert [find_zone_spread(zone) for zone in ("UTC", "GMT+05:30", "Etc/GMT-3")] == [0, 0, 0]
    assert find_zone_spread("Pacific/Apia") >= 24 * hour
    assert find_zone_spread("No/Zone") == 27 * hour


def test_duckdb_reads_times_without_a_zone_in_every_form_of_an_offset() -> None:
    """``UTC+5:30`` would be five hours in DuckDB, and ``UT`` is unknown to it."""
    offsets = {"+05:30": 5.5, "UTC+5:30": 5.5, "-8": -8, "GMT-0030": -0.5, "UT+01:00": 1, "UT": 0}
    for zone, hours in offsets.items():
        with duckdb.connect() as database:
            set_session_zone(database, {"zone": zone})
            text = "SELECT epoch_us(TIMESTAMP '2026-01-02 12:00:00'::TIMESTAMPTZ)"
            ((micros,),) = database.execute(text).fetchall()
        noon = (datetime(2026, 1, 2, 12, tzinfo=UTC) - EPOCH) / timedelta(microseconds=1)
        assert micros == noon - hours * 3600 * SECOND, zone


def outcome(on: str) -> Reach | str:
    """Return the bounds of a condition; "refused" if it contradicts itself."""
    try:
        return reach(on)
    except PredicateError:
        return "refused"


@given(CONDITIONS, CONDITIONS)
@settings(deadline=None, max_examples=15)
def test_the_same_condition_written_otherwise_has_the_same_bounds(one: Form, other: Form) -> None:
    both = outcome(f"({one.sql}) AND ({other.sql})")
    assert outcome(f"({other.sql}) AND ({one.sql})") == both
    assert outcome(f"({one.sql}) AND true AND ({other.sql}) AND ({one.sql})") == both
    assert outcome(f"NOT (NOT ({one.sql}) OR NOT ({other.sql}))") == both
    assert outcome(f"NOT NOT ({one.sql})") == outcome(one.sql)
    either = outcome(f"({one.sql}) OR ({other.sql})")
    assert outcome(f"({other.sql}) OR ({one.sql})") == either


@given(CONDITIONS)
@settings(deadline=None)
def test_streams_renamed_have_their_bounds(condition: Form) -> None:
    turned = dict(zip("abc", "bca", strict=True))
    renamed = re.sub(r"\b([abc])\.", lambda m: f"{turned[m[1]]}.", condition.sql)
    before, after = outcome(condition.sql), outcome(renamed)
    if isinstance(before, str) or isinstance(after, str):
        assert before == after
        return
    places = [ALIASES.index(turned[alias]) for alias in ALIASES]
    for i, j in product(range(3), repeat=2):
        assert after[places[i]][places[j]] == before[i][j]
