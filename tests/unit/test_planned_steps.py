"""Steps of placements that the engine's own planning makes: results, places and moves."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from braid.papers.hotkeys import hot_keys
from braid_lab.common.tuple_models import NAMES
from braid_lab.common.typed_batches import TypedTuple, parse_batches
from braid_lab.hotkeys import spread_steps
from braid_lab.hypercube import cell_steps
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.unit

COLUMNS: dict[str, tuple[str, ...]] = {"hot keys": ("k", "k"), "hypercube": ("x", "xy", "y")}
RUN: dict[str, Any] = {"hot keys": spread_steps.run_typed, "hypercube": cell_steps.run_typed}


def draw_text(data: Any, columns: tuple[str, ...]) -> str:
    """A text of some batches in which few values are frequent."""
    digit = st.sampled_from("333364012")
    words = [
        st.lists(digit, min_size=len(own), max_size=len(own)).map(
            lambda d, letter=letter: f"{letter}:{''.join(d)}"  # type: ignore[misc]
        )
        for letter, own in zip(NAMES, columns, strict=False)
    ]
    sizes = data.draw(st.sampled_from([(12, 6, 6, 6), (4, 12, 4, 4), (1, 1, 30, 2)]))
    batches = [data.draw(st.lists(st.one_of(words), min_size=1, max_size=n)) for n in sizes]
    return " / ".join(" ".join(batch) for batch in batches)


def join_by_brute_force(text: str, columns: tuple[str, ...]) -> list[str]:
    rows = [t for batch in parse_batches(text, [*map(len, columns)]) for t in batch]
    found = []
    for group in product(*([t for t in rows if t.stream == s] for s in range(len(columns)))):
        seen: dict[str, int] = {}
        for t in group:
            for column, value in zip(columns[t.stream], t.values, strict=True):
                if seen.setdefault(column, value) != value:
                    break
            else:
                continue
            break
        else:
            found.append(" ".join(map(str, group)))
    return sorted(found)


@pytest.mark.parametrize("name", COLUMNS)
@given(st.data())
def test_rows_of_batches_are_joined_once_wherever_they_move(name: str, data: Any) -> None:
    text = draw_text(data, COLUMNS[name])
    found = [" ".join(map(str, group)) for group in RUN[name](text).all_results]
    assert sorted(found) == join_by_brute_force(text, COLUMNS[name])


def list_rows(text: str, columns: list[int]) -> dict[str, TypedTuple]:
    return {str(t): t for batch in parse_batches(text, columns) for t in batch}


@pytest.mark.parametrize("texts", [cell_steps.EXAMPLE.texts, *cell_steps.EXAMPLE.variants.values()])
def test_a_row_is_in_the_cells_of_its_columns_before_and_after_the_shares_change(
    texts: tuple[str, ...],
) -> None:
    rows = list_rows(texts[0], [1, 2, 1])
    trace = cell_steps.run_typed(*texts)
    seen = set()
    for step in trace.steps:
        if step.before or (step.line and step.line.first == 5):
            continue
        shares = tuple(1 + max(place[side] for place in step.places) for side in (0, 1))
        seen.add(shares)
        for place, stored in zip(step.places, step.stored, strict=True):
            parts = dict(zip("xy", zip(place, shares, strict=True), strict=True))
            held = {name.split()[0] for names in stored for name in names}
            arrived = {name.split()[0] for of in step.stored for names in of for name in names}
            assert held == {
                name
                for name in arrived
                if all(
                    value % 4 * parts[c][1] // 4 == parts[c][0]
                    for c, value in zip(
                        COLUMNS["hypercube"][rows[name].stream], rows[name].values, strict=True
                    )
                )
            }
    assert len(seen) == 2 and any(step.before for step in trace.steps)


def test_rows_of_a_shared_value_are_on_its_hosts_and_all_others_at_home(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The spread is what the policy's state has, read apart from the steps."""
    states: list[Any] = []
    plan = hot_keys.HotKeys.plan_batch

    def keep_state(self: Any, facts: Any, state: Any) -> Any:
        planned = plan(self, facts, state)
        states.append(planned.state)
        return planned

    monkeypatch.setattr(hot_keys.HotKeys, "plan_batch", keep_state)
    first, copied, _ = (spread_steps.EXAMPLE.texts, *spread_steps.EXAMPLE.variants.values())
    for text in (first, copied):
        states.clear()
        trace = spread_steps.run_typed(*text)
        rows = list_rows(text[0], [1, 1])
        at: dict[str, set[int]] = {}
        for host, stored in enumerate(trace.steps[-1].stored):
            for name in (n for names in stored for n in names):
                at.setdefault(name.split()[0], set()).add(host)
        assert at.keys() == rows.keys() and states[-1].spread and states[-1].is_settled
        shared = {each.value: each for each in states[-1].spread}
        for name, hosts in at.items():
            value = rows[name].values[0]
            if value not in shared:
                assert hosts == {value // 2}
            elif shared[value].kept_stream in (None, rows[name].stream):
                assert len(hosts) == 1 and hosts <= {*shared[value].hosts}
            else:
                assert hosts == {*shared[value].hosts}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a:1 / x:1", "'x:1' is no row; one is the letter of a stream, a colon, and a digit for"),
        ("a", "'a' is no row"),
        ("a:12", "'a:12' is no row"),
        ("a:-1", "'a:-1' is no row"),
        ("a:1 b:²", "'b:²' is no row"),
        ("a:8", "a1 has the value 8; values are 0 to 7"),
        ("/", "there are 0 rows in 2 batches; give 1 to 40 rows, in at most 40 batches"),
        ("a:1 " * 41, "there are 41 rows in 1 batches"),
        ("a:1" + " /" * 40, "there are 1 rows in 41 batches"),
    ],
)
def test_rows_that_cannot_be_read_are_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        spread_steps.run_typed(text)
