"""Every control of every panel has a name, a range, and an explanation in its tooltip."""

from __future__ import annotations

from typing import Any

import ipywidgets as W
import pytest
from braid_widgets.base.controls import FloatControl, IntControl, QueriesControl
from braid_widgets.base.screen_panel import ScreenPanel
from braid_widgets.cockpit.view import Cockpit
from braid_widgets.cockpit.workbench_panel import WorkbenchPanel
from braid_widgets.diffusion.panel import DiffusionPanel
from braid_widgets.psp.panel import RingPanel
from braid_widgets.shedding.panel import ShedPanel
from braid_widgets.slices.chain_panel import SOURCES, ChainPanel
from braid_widgets.slices.shared_ring_panel import SharedRingPanel
from braid_widgets.theta.panel import ThetaPanel

pytestmark = pytest.mark.unit


def launch_nothing(settings: dict[str, Any]) -> Any:
    raise NotImplementedError


SCREEN = Cockpit([])
MAKERS: dict[str, Any] = {
    **{kind.__name__: kind for kind in (ThetaPanel, RingPanel, ShedPanel, ChainPanel)},
    "DiffusionPanel": lambda *given, **more: DiffusionPanel(*given, None, ("ATR", "CTR"), **more),
    "SharedRingPanel": lambda launch, screen, **more: SharedRingPanel(
        launch, "dw", SOURCES["flights"].queries, screen, **more
    ),
    "WorkbenchPanel": lambda *given, **more: WorkbenchPanel(*given, None, str, ("swing",), **more),
}


def make_panel(name: str, **defaults: Any) -> ScreenPanel:
    """Return a panel that does not simulate."""
    panel: ScreenPanel = MAKERS[name](launch_nothing, SCREEN, **defaults)
    return panel


PANELS = {name: make_panel(name).inputs for name in MAKERS}


@pytest.mark.parametrize("panel", PANELS)
def test_a_control_says_what_it_is_and_its_range(panel: str) -> None:
    for name, control in PANELS[panel].items():
        assert control.tooltip and control.tooltip != control.description, name
        assert control.description[0].isascii() and control.description[:1].islower(), "words first"
        if isinstance(control, IntControl | FloatControl):
            assert control.description.endswith(f" · {control.low:,} to {control.high:,}"), name
            before = control.value
            control.value = 2 * control.high + 1
            assert "must be from" in control.refusal, f"{name} has a bound"
            control.value = before
        else:
            others = W.Dropdown | W.Checkbox | W.Combobox | QueriesControl
            assert isinstance(control, others), name


@pytest.mark.parametrize("panel", PANELS)
def test_a_default_that_a_control_does_not_take_is_refused_in_a_sentence(panel: str) -> None:
    for name, control in PANELS[panel].items():
        if isinstance(control, QueriesControl):
            continue
        is_text = isinstance(control, W.Combobox)
        for value in (None, [1]) if is_text else (None, [1], "nothing"):
            with pytest.raises(ValueError, match=rf"^{name} is .*; it must be \S") as refused:
                make_panel(panel, **{name: value})
            if isinstance(control, W.Dropdown):
                assert repr(control.value) in str(refused.value), "one that it takes"


def test_an_unknown_source_of_streams_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"source is 'flight'; it must be one of 'arrivals', 'fli"):
        make_panel("ChainPanel", source="flight")
    assert make_panel("ChainPanel", source="flights").settings()["rate"] == 0.01


def test_queries_that_are_given_as_text_are_launched_as_queries() -> None:
    panel = make_panel("ChainPanel", queries="late: 10 minutes")
    (query,) = panel.requested_settings()["queries"]
    assert query.name == "late"
