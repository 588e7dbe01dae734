"""Steps of all algorithms: lines that their listings have, places by the mapping, the policy's
decisions, a question about the next step, and a fork with other rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from braid.papers.reuse.deployment import Deployment
from braid.papers.theta.host_groups import make_groups
from braid_lab.common.tuple_models import StepExample, TraceStep
from braid_lab.psp import relocation_steps
from braid_lab.reuse import pair_steps
from braid_lab.slices import reference as slices
from braid_lab.theta import reference as theta
from braid_widgets.base import stepper
from braid_widgets.base.stepper import Stepper, compare_rows, step_frames
from step_examples import EXAMPLES

pytestmark = pytest.mark.unit

each_example = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)


@each_example
def test_each_step_names_lines_that_its_listing_has(example: StepExample) -> None:
    for texts in (example.texts, *example.variants.values()):
        trace = example.run(*texts)
        listings = {listing.algorithm: listing.lines for listing in trace.listings}
        lines = [step.line for step in trace.steps if step.line is not None]
        assert len(lines) > len(trace.steps) / 2
        for algorithm, first, last in lines:
            numbers = {n for a, b, _ in listings[algorithm] for n in range(a, b + 1)}
            assert {first, last} <= numbers and first <= last
        frames = step_frames(trace, example.letter)
        assert all(bool(f["lit"]) == bool(s.line) for f, s in zip(frames, trace.steps, strict=True))


@each_example
def test_each_node_has_a_place_of_its_own_and_stores_rows_there(example: StepExample) -> None:
    trace = example.trace()
    for step in trace.steps:
        assert len(step.places) == len(step.stored) == trace.nodes
        assert len({*step.places}) == trace.nodes and len({*step.before}) == len(step.before)
        rows, columns = (1 + max(place[side] for place in step.places) for side in (0, 1))
        assert all(
            len(heads) in (0, n) for heads, n in zip(step.heads, (rows, columns), strict=True)
        )


def test_joiners_are_in_the_cells_of_the_mapping_and_the_old_ones_beside() -> None:
    for step in theta.grid_example().steps:
        now, _, ahead = step.table[1][0].partition(" → ")
        old, new = ((*map(int, re.findall(r"\d+", text)),) for text in (now, ahead or now))
        (group,) = make_groups(4, [(2, 2)], 4)
        for places, mapping in ((step.places, new), (step.before, old)):
            cells = group.with_mapping(mapping).cells_by_host()
            assert not places or dict(enumerate(places)) == cells
        assert bool(step.before) == bool(ahead)


def test_the_ring_is_drawn_in_its_order_also_while_nodes_go_in_between() -> None:
    first, *_, last = relocation_steps.relocation_example(3, 1).steps
    assert first.places == ((0, 0), (0, 1), (1, 1), (1, 0)), "M4 is between M3 and M1"
    assert first.before == ((0, 0), (0, 1), (1, 1)) and not last.before


def _reverse(found: Any) -> Any:
    return lambda *given: found(*given)[::-1]


CHANGED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "grid": ("braid_lab.theta.reference.optimal_mapping", lambda best: lambda r, s, j, now: now),
    "ATR": (
        "braid.papers.common.load_balance.LoadBalance.least_loaded_host",
        lambda least: lambda self, chosen, last: 0,
    ),
    "CTR": ("braid_lab.diffusion.reference_ctr.greedy_cover", lambda cover: lambda s, w, n: [*s]),
    "ring": ("braid.papers.psp.slice_table.SliceTable.slice_ends", _reverse),
    "relocation": (
        "braid.papers.psp.slice_table.insertion_points",
        lambda points: lambda nodes, added: (1,) * added,
    ),
    "chain": ("braid_lab.slices.reference.memory_chain", lambda chain: lambda windows: (1, 4)),
    "bitmaps": (
        "braid.kernels.query_bitmaps.QueryBitmaps.queries_by_age",
        lambda queries: lambda self, stream, age: queries(self, 2, age),
    ),
    "shedding": ("braid_lab.shedding.reference.fill_budget", _reverse),
    "index": (
        "braid_lab.shedding.set_indexes.InvertedIndex.merge_lists",
        lambda merge: lambda self, query, since=None: merge(self, frozenset({1}), since),
    ),
    "pair": ("braid_lab.reuse.pair_steps.can_serve", lambda serve: lambda first, second: True),
    "hot keys": (
        "braid.papers.hotkeys.hot_keys.pack_values",
        lambda pack: lambda work, present, *rest: present,
    ),
    "hypercube": (
        "braid.papers.hypercube.hypercube.find_best_shares",
        lambda best: lambda size, dimensions, rates: (2, 2),
    ),
    "rates": (
        "braid_lab.shedding.rate_steps.split_directions",
        lambda split: lambda r, windows, o: split(r, windows, o[::-1]),
    ),
    "utility": (
        "braid_lab.shedding.utility_steps.fill_budget",
        lambda fill: lambda values, volumes, budget: fill(-values, volumes, budget),
    ),
    "lattice": (
        "braid.papers.reuse.reuse_lattice.LatticeGroup.find_serving_operators",
        lambda find: lambda self, *given: set(),
    ),
}
"""By example, a decision of its policy, and another one."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_another_decision_of_the_policy_gives_other_steps(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    example, (target, change) = EXAMPLES[name], CHANGED[name]
    variant = next(iter(example.variants.values()))
    texts = variant if name in ("chain", "shedding") else example.texts
    before = example.run(*texts).steps
    path, _, attribute = target.rpartition(".")
    owner = pytest.importorskip(path) if path.split(".")[-1].islower() else None
    if owner is None:
        module, _, kind = path.rpartition(".")
        owner = getattr(pytest.importorskip(module), kind)
    monkeypatch.setattr(owner, attribute, change(getattr(owner, attribute)))
    assert example.run(*texts).steps != before


def test_how_long_an_operator_lives_is_what_withdrawing_queries_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lifetimes() -> list[str]:
        steps = pair_steps.pair_example().steps
        (step,) = (s for s in steps if s.parts == ("lifetimes",))
        return [rows[-1][1] for rows in (step.table_before, step.table)]

    both = "until the first query and the second query are withdrawn"
    assert lifetimes() == ["until the first query is withdrawn", both]
    remove = pair_steps.remove_queries

    def remove_second(deployment: Deployment, *names: str) -> Deployment:
        return remove(deployment, *{*names} | ({"second"} & {*deployment.queries}))

    monkeypatch.setattr(pair_steps, "remove_queries", remove_second)
    assert lifetimes()[1] == "until the first query is withdrawn"


@each_example
def test_a_question_has_the_answer_that_the_next_step_gives(example: StepExample) -> None:
    trace = example.trace()
    frames = Stepper(example).frames
    assert frames[-1]["question"] is None and any(frame["question"] for frame in frames)
    for frame, following in zip(frames, trace.steps[1:], strict=False):
        if (question := frame["question"]) is None:
            continue
        right = question["options"][question["answer"]]
        assert 1 < len(question["options"]) <= stepper.CHOICES
        if following.node is not None and trace.nodes > 1:
            assert right == frame["nodes"][following.node]["name"]
        else:
            assert following.line is not None and right.startswith(following.line.algorithm)


@each_example
def test_a_fork_runs_on_what_is_typed_and_refuses_what_it_cannot_read(example: StepExample) -> None:
    view = Stepper(example)
    other = next(iter(example.variants.values()))
    view.fork = {"texts": [*other], "position": 3}
    assert view.frames == step_frames(example.run(*other), example.letter, other[0])
    assert view.position == min(3, len(view.frames) - 1) and view.algorithm["texts"] == [*other]
    before = list(view.frames)
    view.fork = {"texts": ["<b>", *example.texts[1:]], "position": 3}
    assert len(view.refusal) > 20 and view.frames == before


def test_a_fork_has_the_same_steps_up_to_the_row_at_which_it_is_made() -> None:
    view = Stepper(theta.EXAMPLE)
    first, at = list(view.frames), 20
    kept = view.algorithm["texts"][0].split()[: first[at]["arrived"]]
    view.fork = {"texts": [" ".join([*kept, "a", "a", "a"])], "position": at}
    assert view.position == at and view.frames[-1]["text"].startswith("a5")
    alike = ("text", "nodes", "moves", "matches", "table")
    assert [[f[k] for k in alike] for f in view.frames[: at + 1]] == [
        [f[k] for k in alike] for f in first[: at + 1]
    ]
    view.fork = {"texts": [" "], "position": 0}
    assert view.frames == first, "an empty text stands for the example's"


def test_a_page_without_a_kernel_has_the_recorded_variants() -> None:
    page = Stepper(theta.EXAMPLE).to_html()
    data = json.loads(page.split('<script type="application/json">')[1].split("</script>")[0])
    variants = data["algorithm"]["variants"]
    assert {*variants} == {*theta.EXAMPLE.variants} and len(page) < 160_000
    assert all(len(frames) > 10 for frames in variants.values())


def test_what_a_step_replaces_in_a_table_is_shown_beside_the_new() -> None:
    head, plain = ("part", "definition"), ["RANGE", "", ""]
    rows = compare_rows([head, ("RANGE", "5 min")], [head, ("RANGE", "1 min")])
    assert rows[1] == [plain, ["5 min", "1 min", "new"]] and rows[0] == [[t, "", ""] for t in head]
    added = compare_rows([("", "a", "b"), ("joins", "x", "y")], [("", "a"), ("joins", "x")])
    assert added[1] == [["joins", "", ""], ["x", "", ""], ["y", "", "new"]]
    new, gone = compare_rows([("level",), ("joins",)], [("other",), ("streams",)])[1:]
    assert (new, gone) == ([["joins", "", "new"]], [["streams", "", "gone"]])
    kept = compare_rows([head, ("s", "a"), ("s", "b")], [head, ("s", "a")])
    assert kept[1] == [["s", "", ""], ["a", "", ""]] and {c for *_, c in kept[2]} == {"new"}
    assert {c for row in compare_rows([head, ("RANGE", "5 min")], []) for *_, c in row} == {""}


def test_a_step_without_a_line_keeps_the_listing_of_the_step_before() -> None:
    trace = slices.chain_example()
    frames, bare = step_frames(trace), [k for k, s in enumerate(trace.steps) if s.line is None]
    assert bare[-1] > 0 and isinstance(trace.steps[0], TraceStep)
    for k in bare[1:]:
        assert frames[k]["listing"] == frames[k - 1]["listing"] and not frames[k]["lit"]
