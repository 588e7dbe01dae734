"""Durations are parsed and formatted by one module."""

from __future__ import annotations

from datetime import timedelta

import pytest
from braid.util.durations import UNITS, format_duration, parse_duration
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("span", "seconds"),
    [
        ("60 seconds", 60),
        ("1 hour 30 minutes", 5400),
        ("1hour 1 Second", 3601),
        ("1.5 hours", 5400),
        ("10 min", 600),
        ("5s", 5),
        ("5 sec 5 mins", 305),
        ("INTERVAL 10 MINUTES", 600),
        ("interval '10' minute", 600),
        ("INTERVAL '1 hour 30 minutes'", 5400),
        ("2 h 5 min", 7500),
        ("1 week 1 d", 8 * 86400),
        ("250 ms", 0.25),
        ("250 µs 250 us", 0.0005),
        ("0.3 seconds", 0.3),
        (timedelta(minutes=2, microseconds=1), 120.000001),
    ],
)
def test_a_span_is_numbers_each_with_a_unit(span, seconds):
    assert parse_duration(span, "window") == round(seconds * UNITS["second"])


@pytest.mark.parametrize(
    "span",
    [
        "",
        "60",
        "seconds",
        "1 parsec",
        "5 moons",
        "1 hour,",
        "-5 s",
        "0 s",
        5,
        None,
        timedelta(0),
        "interval",
        "9" * 40 + " s",
        "20000000 days",
        timedelta.max,
    ],
)
def test_anything_else_is_refused_in_one_sentence(span):
    with pytest.raises(ValueError, match=r"^the lateness is .*; it must be a positive span") as e:
        parse_duration(span, "lateness")
    assert "\n" not in str(e.value)


def test_no_time_at_all_is_a_span_only_where_it_is_asked_for():
    assert parse_duration("0 seconds", "lateness", zero=True) == 0
    assert parse_duration(timedelta(0), "lateness", zero=True) == 0


def test_a_text_is_short():
    texts = [format_duration(s * 1e6) for s in (0, 1.5e-3, 45, 59.9999, 90, 200, 3600, 7500, 95510)]
    assert texts == [
        *("0 s", "1.5 ms", "45 s", "1 min", "1 min 30 s", "3 min 20 s", "1 h", "2 h 5 min"),
        "1 d 3 h",
    ]
    assert [
        format_duration(4),
        format_duration(73_500_000),
        format_duration(73_500_000, exact=True),
    ] == [
        *("4 µs", "1 min 14 s", "1 min 13.5 s"),
    ]


@given(st.integers(0, 10**14))
def test_an_exact_text_is_read_back_as_the_same_span(span):
    assert parse_duration(format_duration(span, exact=True), "span", zero=True) == span
    half_of_the_second_unit = 0.5 / 24
    short = parse_duration(format_duration(span), "span", zero=True)
    assert short == pytest.approx(span, rel=half_of_the_second_unit)
