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


def make_panels() -> list[ScreenPanel]:
    """Return a panel of each kind; none simulates."""
    launch, screen = launch_nothing, Cockpit([])
    return [
        *(panel(launch, screen) for panel in (ThetaPanel, RingPanel, ShedPanel, ChainPanel)),
        DiffusionPanel(launch, screen, None, ("ATR", "CTR")),
        SharedRingPanel(launch, "dw", SOURCES["flights"].queries, screen),
        WorkbenchPanel(launch, screen, None, str, ("swing",)),
    ]


PANELS = {type(panel).__name__: panel.inputs for panel in make_panels()}


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
