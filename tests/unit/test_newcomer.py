"""The promise of docs/add-a-placement.md: one class in a new file is available everywhere."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location

import pytest
from braid.core.placement import PLACEMENTS, Placement, registered_placements
from braid.core.run_events import BatchCommitted, RunStarted
from braid.simulation.simulator import simulate
from braid.util.json_codec import to_plain
from braid_lab.diffusion import experiments as diffusion_experiments
from braid_lab.launches.launching import make_placement
from braid_widgets.cockpit.view import Cockpit
from braid_widgets.theta.panel import ThetaPanel
from placement_checks import check_placement, list_examples
from unit.scripted import MIGRATION

FILE = """
from dataclasses import dataclass

from braid.core.placement import Placement
from braid.core.plan import Plan
from braid.papers.common.route_builders import local_routes


@dataclass(frozen=True, slots=True)
class Turns:
    batches: int = 0


@dataclass(frozen=True)
class Newcomer(Placement):
    \"\"\"All on one host of several, the last.\"\"\"

    State = Turns
    label = "A newcomer"

    hosts: int
    lazy: bool = False

    def initial_state(self, streams):
        return Turns()

    def plan_batch(self, facts, state):
        routes = local_routes(facts, [((0, 1), self.hosts - 1)])
        %s
        return Plan(tuple(routes), state=Turns(state.batches + 1))
"""
SOUND, LOSING = "", "routes = [type(r)(r.block, ()) for r in routes]"


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write the file with a line of its own, and import it; it is removed after the test."""
    monkeypatch.setattr(PLACEMENTS, "classes", dict(PLACEMENTS.classes))

    def write(line: str) -> type[Placement]:
        file = tmp_path / "newcomer.py"
        file.write_text(FILE % line)
        spec = spec_from_file_location("newcomer", file)
        made = module_from_spec(spec)
        monkeypatch.setitem(__import__("sys").modules, "newcomer", made)
        spec.loader.exec_module(made)
        return made.Newcomer

    return write


def test_a_new_placement_is_in_the_generic_checks(written):
    kind = written(SOUND)
    assert "Newcomer(hosts=4)" in list_examples()
    check_placement(kind)


def test_the_generic_checks_would_find_a_lost_result(written):
    with pytest.raises(AssertionError, match="blocks never met"):
        check_placement(written(LOSING))


def test_a_new_placement_is_simulated_launched_and_offered(written):
    kind = written(SOUND)
    events = simulate(kind(3), [(4, 5)] * 6, windows=(2.0, None))
    assert isinstance(events[0], RunStarted) and events[0].placement == "Newcomer"
    last = [e for e in events if isinstance(e, BatchCommitted)][-1]
    assert [h.stored_tuples > 0 for h in last.host_metrics] == [False, False, True]
    assert make_placement("Newcomer", 7, lazy=True) == kind(7, lazy=True)
    stored = json.loads(json.dumps(to_plain(kind(2))))
    assert registered_placements()["Newcomer"] is kind and kind.from_settings(stored) == kind(2)
    panel = ThetaPanel(lambda settings: None, Cockpit(MIGRATION), placement="Newcomer")
    assert ("A newcomer", "Newcomer") in panel.inputs["placement"].options
    assert panel.inputs["epsilon"].disabled and not panel.inputs["hosts"].disabled
    assert "Newcomer" in diffusion_experiments.placement_names()
    assert diffusion_experiments.make_placement(
        "Newcomer", diffusion_experiments.DiffusionSetting(hosts=5)
    ) == kind(5)
