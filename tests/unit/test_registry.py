"""Placements by name: papers and users add one to the list by defining a class.

A file cannot name anything else.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from html import escape
from math import inf

import pyarrow as pa
import pytest
from braid.core.placement import PLACEMENTS, Placement, registered_placements
from braid.core.plan import Plan
from braid.papers.psp.ring import Ring
from braid.papers.theta.grid import AdaptiveGrid
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from braid.util.json_codec import from_plain, round_trip, to_plain
from oracle import list_files

OURS = {name: c for name, c in registered_placements().items() if c.__module__.startswith("braid.")}

_LEFT = ' style="text-align: left"'


def test_every_paper_and_every_baseline_is_there_by_being_defined():
    papers = Counter(c.__module__.split(".")[2] for c in OURS.values())
    assert papers == {
        "baselines": 3,
        "theta": 3,
        "diffusion": 3,
        "hotkeys": 1,
        "hypercube": 1,
        "psp": 1,
        "slices": 1,
    }
    assert all(c.__name__ == name and c.label for name, c in OURS.items())
    assert len({c.label for c in OURS.values()}) == len(OURS)


@pytest.mark.parametrize("kind", OURS.values(), ids=list(OURS))
def test_settings_survive_a_file(kind):
    for placement in kind.example_instances():
        stored = json.loads(json.dumps(to_plain(placement)))
        assert kind.from_settings(stored) == placement and list(stored) == [*kind.setting_names()]


@pytest.mark.parametrize("kind", OURS.values(), ids=list(OURS))
def test_a_placement_shows_its_settings_in_a_notebook(kind):
    for placement in kind.example_instances():
        page = placement._repr_html_().replace(_LEFT, "")
        assert page.startswith(f"<b>{kind.__name__} (") and page.endswith("</table>")
        assert page.count("<tr>") == len(kind.setting_names())
        for name in kind.setting_names():
            assert f"<td>{name}</td><td>{escape(repr(getattr(placement, name)))}</td>" in page


@dataclass(frozen=True)
class _Told(Placement):
    text: str
    hosts: int = 1

    def plan_batch(self, facts, state):
        return Plan()


def test_what_a_placement_shows_is_escaped():
    page = _Told("<script>")._repr_html_().replace(_LEFT, "")
    assert "<script>" not in page and "<td>&#x27;&lt;script&gt;&#x27;</td>" in page


@pytest.mark.parametrize("kind", OURS.values(), ids=list(OURS))
def test_the_first_state_is_of_the_type_that_is_declared_and_survives_a_file(kind):
    for placement in kind.example_instances():
        state = placement.initial_state(2 if placement.supports_streams(2) else 3)
        assert type(state) is kind.State and round_trip(state, kind.State) == state


def test_a_name_that_is_unknown_is_refused_with_those_that_exist():
    with pytest.raises(ValueError, match="^no placement is named 'Grid'; there are: .*Ring") as e:
        Placement.class_by_name("Grid")
    assert all(name in str(e.value) for name in OURS)


@pytest.mark.parametrize(
    "kind, settings, sentence",
    [
        (Ring, {"hosts": 3, "nodes": 4}, "^Ring takes no nodes; it takes: hosts, form,"),
        (Ring, {"hosts": "3"}, "^a setting of Ring is not accepted: expected `int`, got `str`"),
        (Ring, {}, "^a setting of Ring is not accepted: object missing required field `hosts`$"),
        (Ring, {"hosts": 0}, "^a setting of Ring is not accepted: hosts is 0; it must be a whole"),
        (
            AdaptiveGrid,
            {"hosts": 4, "tuple_sizes": [1, 2, 3]},
            "of length 2, got 3 - at `.*sizes`$",
        ),
    ],
)
def test_settings_of_another_shape_are_refused_with_a_sentence(kind, settings, sentence):
    with pytest.raises(ValueError, match=sentence) as e:
        kind.from_settings(settings)
    assert "\n" not in str(e.value)


def test_a_run_folder_cannot_name_a_function(tmp_path):
    """It names "os.system" with a command that would create a file."""
    made, streams = tmp_path / "made", {a: pa.table({"k": [1]}) for a in "ab"}
    StreamJoin(streams, "a.k = b.k").start(tmp_path / "run", batches=1).awaitTermination()
    settings = RunStore(tmp_path / "run").read_settings()
    assert settings is not None
    for name in ("os.system", "posix.system", "subprocess.run", "braid.stream_join.StreamJoin"):
        folder = tmp_path / name
        command = {"placement": name, "settings": {"command": f"touch {made}"}}
        RunStore(folder).create_run(settings | command)
        before = list_files(folder)
        with pytest.raises(ValueError, match=f"no placement is named {name!r}; there are: "):
            StreamJoin.resume(folder, streams)
        assert not made.exists() and list_files(folder) == before


@pytest.fixture
def apart(monkeypatch):
    """Remove what a test registers after it."""
    monkeypatch.setattr(PLACEMENTS, "classes", dict(PLACEMENTS.classes))


def test_a_name_stands_for_one_placement(apart):
    with pytest.raises(
        TypeError, match="placement Ring is defined in braid.papers.psp.ring and again "
    ):
        type("Ring", (Placement,), {"plan": lambda self, facts, state: Plan()})


def test_a_placement_that_is_defined_again_replaces_its_elder(apart):
    def cell():
        @dataclass(frozen=True)
        class Mine(Placement):
            hosts: int

            def plan_batch(self, facts, state):
                return Plan()

        return Mine

    first, second = cell(), cell()
    assert registered_placements()["Mine"] is second is not first
    assert [p.hosts for p in second.example_instances()] == [4] and second(7).max_hosts == 7
    assert (second.label, second(1).key_space_size, second(1).supports_streams(9)) == (
        "Mine",
        1,
        True,
    )


def test_what_is_private_or_has_no_plan_is_not_listed(apart):
    type("_Mine", (Ring,), {})
    type("Half", (Placement,), {})
    assert not {"_Mine", "Half"} & set(registered_placements())


def test_typed_values_survive_a_file():
    values = {3: (1.5, None), 4: (2.0, "x")}
    assert round_trip(values, dict[int, tuple[float, str | None]]) == values
    assert to_plain(values) == {"3": [1.5, None], "4": [2.0, "x"]}
    with pytest.raises(
        ValueError, match="^the state is not accepted: expected `float`, got `null`"
    ):
        from_plain(to_plain(inf), float, "the state")
    assert replace(Ring(3), form="basic") == Ring.from_settings(to_plain(Ring(3, form="basic")))
