"""Every control of every panel has a name, a range, and an explanation in its tooltip."""

from __future__ import annotations

from typing import Any

import ipywidgets as W
import pytest
from braid_widgets.base.controls import FloatControl, IntControl, QueriesControl
from braid_widgets.cockpit import workbench_panel
from braid_widgets.diffusion import panel as diffusion
from braid_widgets.psp import panel as psp
from braid_widgets.shedding import panel as shedding
from braid_widgets.slices import chain_panel, shared_ring_panel
from braid_widgets.theta import panel as theta

pytestmark = pytest.mark.unit
PANELS: dict[str, dict[str, Any]] = {
    "theta": theta._make_controls(),
    "diffusion": diffusion._make_controls(("ATR", "CTR")),
    "psp": psp._make_controls(),
    "shedding": shedding._make_controls(),
    "chain": chain_panel._make_controls(chain_panel.SOURCES["arrivals"]),
    "shared ring": shared_ring_panel._make_controls("dw", chain_panel.SOURCES["flights"].queries),
    "board": workbench_panel._make_controls(("swing",)),
}


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
        elif isinstance(control, W.FloatSlider):
            assert f"{control.min:,} to {control.max:g}" in control.description
        else:
            others = W.Dropdown | W.Checkbox | W.Text | W.Combobox | QueriesControl
            assert isinstance(control, others), name
