"""Tuples typed into a stepper: every result is found, and invalid text is refused in a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from braid_lab.common.tuple_models import brute_force_join, parse_tuples
from braid_lab.psp import reference as ring
from braid_lab.slices import reference as chain
from braid_lab.theta import reference as grid
from braid_widgets.base import stepper
from hypothesis import given
from hypothesis import strategies as st

OWN = {
    "grid": (grid.run_typed, 2, 10**6),
    "chain": (chain.run_typed, 2, 4),
    "ring": (ring.run_typed, 3, 16),
}


def lines(streams: int) -> Any:
    word = st.builds("{}:{}".format, st.sampled_from("abc"[:streams]), st.integers(0, 2))
    return st.lists(st.one_of(word, st.just("-"), st.just("a")), min_size=1, max_size=12).filter(
        lambda words: any(w != "-" for w in words)
    )


@pytest.mark.parametrize("name", OWN)
@given(st.data())
def test_what_is_typed_is_joined_as_by_brute_force(name: str, data: Any) -> None:
    own, streams, window = OWN[name]
    text = " ".join(data.draw(lines(streams)))
    found = sorted(own(text).all_results)
    assert found == brute_force_join(parse_tuples(text, streams), (window,) * streams)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "a x",
            r"'x' is no tuple; one is a letter of a, b, or a letter, a colon and a whole number",
        ),
        ("a c", "'c' is no tuple"),
        ("ab", "'ab' is no tuple"),
        ("a:-1", "'a:-1' is no tuple"),
        ("a:", "'a:' is no tuple"),
        ("a:1.5", "'a:1.5' is no tuple"),
        ("- -", "there are 0 tuples in 2 seconds; give 1 to 24"),
        ("a " * 25, "there are 25 tuples in 25 seconds; give 1 to 24"),
        ("a" + " -" * 200, "in at most 96 seconds"),
    ],
)
def test_what_is_no_tuple_is_refused_in_a_sentence(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_tuples(text)


def test_an_example_alone_is_what_a_report_has(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(stepper, "is_headless", lambda: True)
    monkeypatch.setattr(stepper, "display_view", shown.append)
    stepper.show_steps(grid.EXAMPLE)
    assert [view.algorithm["texts"] for view in shown] == [list(grid.EXAMPLE.texts)]


def test_what_the_pages_for_teachers_say_of_their_tuples_is_so() -> None:
    texts = [s.text for s in grid.run_typed("a b b b b b b b b b a b").steps if "doubled" in s.text]
    assert texts[0].endswith("stays the least") and texts[1].endswith(
        "ILF 5 under (2, 2), 4 under (1, 4): migrate"
    )
    (step,) = [s for s in chain.run_typed("a - b - b - b").steps if s.results]
    assert step.node == 1 and "b1" in step.arrival
    assert len(ring.run_typed("b c a").all_results) == 1
    assert not ring.run_typed(f"b{' -' * 16} a c").all_results
