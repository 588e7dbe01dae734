"""The panel: what to run, and Launch, Pause, Stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import ipywidgets as W

from widgets.player import Player, Run, problem
from widgets.stage import WIDTH


@dataclass(frozen=True)
class Workload:
    """A choice of the panel: the controls that it heeds, the unit of its band width, and whether it joins on equality."""

    label: str
    heeds: frozenset[str] = frozenset()
    width: str = ""
    equality: bool = True


WORKLOADS = {
    "eq5": Workload("EQ5: supplier ⋈ lineitem, equality", frozenset({"skew"})),
    "eq7": Workload("EQ7: supplier ⋈ lineitem 1995-96, equality", frozenset({"skew"})),
    "bci": Workload("BCI: ship dates, band", frozenset({"width"}), "days", False),
    "bnci": Workload("BNCI: order keys, band", frozenset({"skew", "width"}), "order keys", False),
    "fluct": Workload("Fluct-Join: orders ⋈ lineitem, sides alternate", frozenset({"skew", "fluctuation"})),
}
"""Section 5 of Elseidy 2014. Skew changes foreign keys, so it cannot matter to a join of ship dates."""

PLACEMENTS = {
    "dynamic": "Dynamic (adaptive grid)",
    "static_mid": "StaticMid (square grid)",
    "static_opt": "StaticOpt (oracle's grid)",
    "hash": "SHJ (hash of the join key)",
    "biclique": "Join-biclique",
}

State = Literal["idle", "starting", "running", "paused", "stopping"]


class Launched(Run, Protocol):
    """A run that can be held and stopped; JoinRun is one."""

    def pause(self) -> None: ...

    def unpause(self) -> None: ...

    def stop(self) -> None: ...


class Panel(W.VBox):
    """Controls of a live run. ``launch`` gets the settings and returns the run; it is called in a thread of its own.

    The player shows the run. ``defaults`` set controls by name: workload, skew, scale, width, hosts, placement, fluctuation,
    epsilon, batches, pace. Raises ValueError for a name that is not among them. ``error`` keeps what made a launch fail.
    """

    def __init__(self, launch: Callable[[dict[str, Any]], Launched], player: Player, **defaults: Any) -> None:
        self.launch, self.player = launch, player
        self.run: Launched | None = None
        self.error: BaseException | None = None
        self._worker: threading.Thread | None = None
        self.inputs = _inputs()
        self._default(defaults)
        self.start = W.Button(description="Launch", button_style="primary", icon="play")
        self.pause = W.Button(description="Pause", icon="pause")
        self.stop = W.Button(description="Stop", icon="stop")
        self.status, self.message = W.Label(), W.HTML()
        for button, action in ((self.start, self._launch), (self.pause, self._pause), (self.stop, self._stop)):
            button.on_click(action)
        for name in ("workload", "placement"):
            self.inputs[name].observe(self._relevant, "value")
        columns = W.Layout(grid_template_columns="repeat(auto-fit, minmax(380px, 1fr))", grid_gap="0 16px")
        grid = W.GridBox(list(self.inputs.values()), layout=columns)
        bar = W.HBox([self.start, self.pause, self.stop, self.status])
        super().__init__([grid, bar, self.message], layout=W.Layout(max_width=WIDTH))
        self._relevant()
        self._state("idle")

    def settings(self) -> dict[str, Any]:
        """The controls' values by name: plain literals."""
        return {name: control.value for name, control in self.inputs.items()}

    def wait(self, timeout: float | None = None) -> None:
        """Wait until what a button began (a launch, a stop) is done."""
        if self._worker is not None:
            self._worker.join(timeout)

    def _default(self, defaults: dict[str, Any]) -> None:
        if unknown := sorted(set(defaults) - set(self.inputs)):
            raise ValueError(f"the panel has no control {unknown[0]!r}; it has: {', '.join(self.inputs)}")
        for name, value in defaults.items():
            self.inputs[name].value = value

    def _relevant(self, change: Any = None) -> None:
        """Grey out what the chosen workload and placement do not heed; SHJ is offered for equality only."""
        workload = WORKLOADS[self.inputs["workload"].value]
        placement = self.inputs["placement"]
        kinds = [(label, key) for key, label in PLACEMENTS.items() if workload.equality or key != "hash"]
        if list(placement.options) != kinds:
            chosen = placement.value
            placement.options = kinds
            placement.value = chosen if chosen in [key for _, key in kinds] else "dynamic"
        for name in ("skew", "width", "fluctuation"):
            self.inputs[name].disabled = name not in workload.heeds
        self.inputs["width"].description = f"band width ({workload.width or 'none'})"
        self.inputs["epsilon"].disabled = placement.value != "dynamic"

    def _state(self, state: State, text: str | None = None) -> None:
        with self.player.lock:
            self.state = state
            starting = "preparing the streams…" if self.run else "starting Spark…"
            self.status.value = text or {"idle": "ready", "starting": starting}.get(state, state)
            self.start.disabled = state != "idle"
            self.pause.disabled = state not in ("running", "paused")
            self.stop.disabled = state not in ("running", "paused")
            self.pause.description = "Resume" if state == "paused" else "Pause"
            self.pause.icon = "play" if state == "paused" else "pause"

    def _begin(self, work: Callable[[], None]) -> None:
        self._worker = threading.Thread(target=self._guarded, args=(work,), name="braid-panel", daemon=True)
        self._worker.start()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            with self.player.lock:
                self.error = error
                self.message.value = problem(error)
            self._state("idle")

    def _launch(self, button: Any) -> None:
        if self.state != "idle":
            return
        self.message.value, self.error = "", None
        self._state("starting")
        settings = self.settings()
        self._begin(lambda: self._started(self.launch(settings)))

    def _started(self, run: Launched) -> None:
        self.run = run
        self._state("running")
        self.player.attach(run, self._ended)

    def _ended(self) -> None:
        self._state("idle", "failed" if self.player.error is not None else "ended")

    def _pause(self, button: Any) -> None:
        if self.run is None:
            return
        if self.state == "paused":
            self.run.unpause()
            self._state("running")
        elif self.state == "running":
            self.run.pause()
            self._state("paused")

    def _stop(self, button: Any) -> None:
        if self.run is None or self.state not in ("running", "paused"):
            return
        self._state("stopping")
        self._begin(self.run.stop)


def _inputs() -> dict[str, Any]:
    style: dict[str, Any] = {"style": {"description_width": "150px"}, "layout": W.Layout(width="auto")}
    return {
        "workload": W.Dropdown(description="workload", options=[(w.label, k) for k, w in WORKLOADS.items()], **style),
        "skew": W.BoundedFloatText(description="skew z (Zipf)", min=0, max=4, step=0.25, value=0.0, **style),
        "scale": W.BoundedFloatText(description="scale factor (TPC-H)", min=0.001, max=100, step=0.01, value=0.01, **style),
        "width": W.BoundedIntText(description="band width", min=0, max=365, value=1, **style),
        "hosts": W.BoundedIntText(description="hosts J", min=1, max=256, value=16, **style),
        "placement": W.Dropdown(description="placement", options=[(label, k) for k, label in PLACEMENTS.items()], **style),
        "fluctuation": W.BoundedIntText(description="fluctuation k (ratio)", min=2, max=16, value=4, **style),
        "epsilon": W.BoundedFloatText(description="epsilon (share)", min=0.05, max=1, step=0.05, value=1.0, **style),
        "batches": W.BoundedIntText(description="micro-batches", min=1, max=1000, value=20, **style),
        "pace": W.BoundedFloatText(description="pace (s per batch)", min=0, max=60, step=0.25, value=0.0, **style),
    }
