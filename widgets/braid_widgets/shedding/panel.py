"""Controls of a join that sheds load: each change is modelled at once and shown; Launch runs the
same on Spark, and the budget then acts on that run while it goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as W

from braid_widgets.base import inputs
from braid_widgets.base.charts import BELOW
from braid_widgets.base.launcher import PICTURE, Launch
from braid_widgets.base.modelled import ModelledPanel, Simulate
from braid_widgets.shedding import views

METHODS = {
    "selective (Algorithm 5)": "selective",
    "direction first (Algorithm 4)": "direction",
    "time correlation": "time",
    "newest first": "partial",
    "any (uniform)": "uniform",
    "drop tuples": "drop",
}


BUDGETS = {"a share of all pairs (r)": "fraction", "seconds a batch": "seconds"}
BURST = "so many times as many tuples come in the middle third"
DEAR = "so many of the tuples are worth ten times as much as others; 0: all alike"
ALLOWED = "what a batch may take, if the budget is in seconds; it acts on a run that goes on"
SHIFT = "how much later the second stream has the items that the first one had"
BUDGET = "share of all pairs that there is time for; it acts on a run that goes on"
SAMPLE = "share of the work that goes to all ages alike, to learn where matches are"


class ShedPanel(ModelledPanel):
    """``defaults`` set controls by name: kappa, theta, window, shift, rate, burst, dear, method,
    budget, fraction, allowed, sample, pace. While a run goes on, a change of its budget (that
    control, ``fraction`` or ``allowed``) adjusts it; the other changes wait for the next launch.
    """

    def __init__(self, simulate: Simulate, launch: Launch, **defaults: Any) -> None:
        super().__init__(simulate, launch, _inputs(), defaults)
        self.outputs = [W.Output(layout=W.Layout(min_height=h)) for h in ("640px", "430px")]
        for output in self.outputs:
            output.add_class(PICTURE)
        self.children = (*self.children, *self.outputs)
        self.show(self.events)

    def show(self, events: list[Any]) -> None:
        """Draw the throttle and the harvest of these events."""
        with self.lock:
            self.events = events
            charts = (views.timeline(events), views.film(events, played=False))
            for output, chart in zip(self.outputs, charts, strict=True):
                legend = {"xanchor": "left", **BELOW}
                chart.figure.update_layout(legend=legend, margin_b=100)
                data = chart._repr_mimebundle_()
                output.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},)

    def twins(self) -> list[Any]:
        """The pictures of the modelled run."""
        self.events = list(self.simulate(self.asked()))
        return [views.timeline(self.events), views.film(self.events)]

    def acts_at_once(self, control: Any) -> bool:
        """The budget does."""
        return control in [self.inputs[name] for name in ("budget", "fraction", "allowed")]

    def _changed(self, change: Any) -> None:
        if self.state in ("running", "paused") and self.acts_at_once(change.owner):
            adjust = getattr(self.run, "adjust", None)
            if adjust is not None and not self.refused():
                self._adjusted(adjust)
            return
        super()._changed(change)

    def _adjusted(self, adjust: Callable[..., None]) -> None:
        kind = self.inputs["budget"].value
        amount = self.inputs["allowed" if kind == "seconds" else "fraction"].value
        try:
            adjust(**{kind: amount})
        except (ValueError, RuntimeError) as error:
            self.fail(error)


def _inputs() -> dict[str, Any]:
    return {
        "kappa": inputs.number("skew of items (κ)", 0, 2, 0.8, 0.1, "Zipf; 0: all as often"),
        "theta": inputs.whole("common items (θ)", 1, 8, 3, "two sets join if they share so many"),
        "window": inputs.number("window (w, s)", 2, 60, 10, 1, "how long a tuple can be joined"),
        "shift": inputs.number("delay (τ / cycle)", 0, 1, 0.625, 0.025, SHIFT),
        "rate": inputs.number("rate (tuples/s)", 5, 2000, 100, 10, "of each stream"),
        "burst": inputs.number("burst (times the rate)", 1, 10, 3, 0.5, BURST),
        "dear": inputs.number("dear tuples (share)", 0, 1, 0, 0.05, DEAR),
        "method": inputs.choice("method", METHODS, "selective", "which pairs are left out"),
        "budget": inputs.choice("budget", BUDGETS, "fraction", "what bounds the work of a batch"),
        "fraction": inputs.slider("processed (r)", 0.02, 1, 0.25, 0.01, BUDGET),
        "allowed": inputs.number("allowance (s a batch)", 0.05, 60, 1, 0.05, ALLOWED),
        "sample": inputs.number("sample (γ)", 0.01, 1, 0.3, 0.05, SAMPLE),
        "pace": inputs.pace(0),
    }
