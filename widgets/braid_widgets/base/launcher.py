"""Launch, Pause and Stop buttons of a run on Spark, shared by the panels of all notebooks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from html import escape
from typing import Any, Literal, Protocol, Self

import ipywidgets as W
from traitlets import TraitError

from braid_widgets.base.charts import STYLE, WIDTH
from braid_widgets.base.controls import describe_values
from braid_widgets.base.live_updates import ObservableRun, RunFollower, error_html
from braid_widgets.base.progress_line import follow_run

State = Literal["idle", "simulating", "starting", "running", "paused", "stopping"]

BETWEEN = ("simulating", "starting", "stopping")
"""States in which no button can be pressed."""
ACTS = "braid-acts"
"""The CSS class of a button that shows that the kernel is busy."""


class ControllableRun(ObservableRun, Protocol):
    """A run that can be paused and stopped, such as JoinRun."""

    def pause(self) -> None:
        """Pause the run before its next batch."""

    def unpause(self) -> None:
        """Continue a paused run."""

    def stop(self) -> None:
        """Stop the run within one batch."""

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait at most ``timeout`` seconds; return whether the run has ended."""


Launch = Callable[[dict[str, Any]], ControllableRun]
Cost = Callable[[dict[str, Any]], Any]


class LaunchPanel(W.VBox):
    """Controls of a live run with Launch, Pause and Stop buttons.

    A subclass defines the functions below. Launching while a run is active stops that run first.

    - ``launch``: called with the settings in a background thread; returns the run.
    - ``inputs``: the controls by name.
    - ``defaults``: initial values of the controls.
    - ``width``: minimum width of a control, in pixels.

    Attributes:

    - ``run``, ``launched``: the latest run and its settings.
    - ``follower``: the follower of that run.
    - ``error``: the latest error.
    - ``lock``: held while widgets change.
    - ``cost``: describes in a sentence what a launch with these settings will cost; raises
      ValueError if it cannot.
    - ``settled``: callbacks for the end of a run.

    Raises ValueError for a default that has no control or that its control refuses.
    """

    events: list[Any]
    """The visible events; after a launch, those that were visible before it."""
    follow_run: Callable[[ControllableRun], RunFollower]
    """Shows the run while it is active, and calls ``handle_run_end`` when it has ended."""
    static_views: Callable[[], Iterable[Any]]
    """Returns views that need no kernel, which a report shows instead of the panel; launches a run
    and waits for it if necessary.
    """
    children: Any
    """The child widgets, as ipywidgets stores them."""

    starts = "starting Spark…"
    """The message at the start of the first launch."""

    def __init__(
        self,
        launch: Launch,
        inputs: dict[str, Any],
        defaults: dict[str, Any],
        width: int = 300,
    ) -> None:
        self.launch, self.inputs, self.lock = launch, inputs, threading.RLock()
        self.cost: Cost | None = None
        self.run: ControllableRun | None = None
        self.launched: dict[str, Any] = {}
        self.error: BaseException | None = None
        self.settled: list[Callable[[], Any]] = []
        self._worker: threading.Thread | None = None
        self.follower: RunFollower | None = None
        self._set_defaults(defaults)
        self.given = {n: v for n, v in defaults.items() if not hasattr(inputs[n], "setting")}
        self.start = W.Button(description="Launch on Spark", button_style="primary", icon="play")
        self.start.add_class(ACTS)
        self.start.layout.width = "auto"
        self.pause = W.Button(tooltip="pause the run before its next batch")
        self.stop = W.Button(
            description="Stop", icon="stop", tooltip="end the run after this batch"
        )
        self.start.on_click(self._handle_launch_click)
        self.pause.on_click(self._toggle_pause)
        self.stop.on_click(self._stop_run)
        self.status, self.message, self.price = W.Label(), W.HTML(), W.HTML()
        each = f"minmax(min(100%, {width}px), 1fr)"
        columns = W.Layout(grid_template_columns=f"repeat(auto-fit, {each})", grid_gap="0 16px")
        grid = W.GridBox(list(self.inputs.values()), layout=columns)
        self.bar = W.HBox(
            [self.start, self.pause, self.stop, self.status], layout=W.Layout(flex_flow="row wrap")
        )
        parts = [W.HTML(STYLE), grid, self.bar, self.price, self.message]
        super().__init__(parts, layout=W.Layout(max_width=WIDTH))
        self.add_class("braid-panel")
        for control in self.inputs.values():
            control.observe(self._handle_control_change, "value")
        self.set_state("idle")

    def with_cost(self, cost: Cost) -> Self:
        """Return this panel, which now shows the cost of a launch."""
        self.cost = cost
        self._show_cost()
        return self

    def settings(self) -> dict[str, Any]:
        """Return the controls' values by name: plain literals, and queries."""
        return {n: getattr(control, "setting", control.value) for n, control in self.inputs.items()}

    def requested_settings(self) -> dict[str, Any]:
        """Return the settings with the choices as given, although another control rules one out."""
        return self.settings() | self.given

    def run_to_end(self) -> list[Any]:
        """Launch a run with the requested settings, wait for its end and return its events."""
        self.launched = self.requested_settings()
        self.run = self.launch(self.launched)
        return follow_run(self.run)

    def wait_for_work(self, timeout: float | None = None) -> None:
        """Wait until the action of a button (a launch, a stop) is done; the run may still be
        active.
        """
        if self._worker is not None:
            self._worker.join(timeout)

    def set_state(self, state: State, text: str | None = None) -> None:
        """Enter a state and show its message, or this text."""
        with self.lock:
            self.state = state
            self.status.value = text or self._describe_state()
            if state == "starting":
                self.mark_stale()
            self.update_start()
            is_live, is_paused = state in ("running", "paused"), state == "paused"
            self.start.tooltip = "stops the run that goes on, and starts another" if is_live else ""
            self.pause.disabled = self.stop.disabled = not is_live
            self.pause.description = "Resume" if is_paused else "Pause"
            self.pause.icon = "play" if is_paused else "pause"

    def update_start(self) -> None:
        """Let Launch be pressed unless it would be refused."""
        self.start.disabled = self.state in BETWEEN or bool(self._find_validation_errors())

    def mark_stale(self) -> None:
        """Mark the view as showing the previous run while the next one starts."""

    def start_work(self, state: State, work: Callable[[], Any]) -> None:
        """Run the action of a button in a background thread, after the previous action is done."""
        with self.lock:
            self.message.value, self.error = "", None
            self.set_state(state)
        self._worker = threading.Thread(
            target=self._run_and_show_errors,
            args=(work, self._worker),
            name="braid-panel",
            daemon=True,
        )
        self._worker.start()

    def visible_events(self) -> list[Any]:
        """Return the events that are shown, to show them without a kernel too."""
        return self.run.events() if self.run is not None else self.events

    def handle_run_end(self, error: BaseException | None) -> None:
        """Show that the run has ended, and how, unless the next one is already starting."""
        if error is not None:
            self.show_error(error)
        with self.lock:
            if self.state != "starting":
                self.set_state("idle", "ended" if error is None else "failed")
        for tell in self.settled:
            tell()

    def show_error(self, error: BaseException) -> None:
        """Store the error and show it in a sentence."""
        with self.lock:
            self.error = error
            self.message.value = error_html(error)

    def _describe_state(self) -> str:
        if self.state in ("running", "paused", "stopping"):
            return self.state
        starting = "preparing the streams…" if self.run else self.starts
        return {"idle": "ready", "simulating": "simulating…"}.get(self.state, starting)

    def _set_defaults(self, defaults: dict[str, Any]) -> None:
        if unknown := sorted(set(defaults) - set(self.inputs)):
            raise ValueError(
                f"the panel has no control {unknown[0]!r}; it has: {', '.join(self.inputs)}"
            )
        for name, value in defaults.items():
            control = self.inputs[name]
            with suppress(TraitError):
                control.value = value
                if value is not None:  # a choice takes it as nothing chosen
                    continue
            raise ValueError(f"{name} is {value!r}; it must be {describe_values(control)}")

    def _run_and_show_errors(
        self, work: Callable[[], Any], before: threading.Thread | None = None
    ) -> None:
        try:
            if before is not None:  # it can be stopped before its launch is done
                before.join()
            work()
        except Exception as error:
            self.show_error(error)
            self.set_state("idle", "failed")

    def has_invalid_controls(self) -> bool:
        """Return whether a control has an invalid value; the message then names it."""
        texts = self._find_validation_errors()
        if texts:
            self.show_error(ValueError(texts[0]))
        return bool(texts)

    def _find_validation_errors(self) -> list[str]:
        """Return why the values of the controls that are used are invalid, one sentence each."""
        used = [control for control in self.inputs.values() if not control.disabled]
        return [text for control in used if (text := getattr(control, "refusal", ""))]

    def can_launch(self) -> bool:
        """Return whether nothing has been launched yet and Launch would start a run now."""
        return self.state == "idle" and self.run is None and not self._find_validation_errors()

    def _show_cost(self) -> None:
        """Show what a launch will cost; nothing if a control has an invalid value."""
        is_valid = not self._find_validation_errors()
        try:
            cost = escape(str(self.cost(self.settings()))) if self.cost and is_valid else ""
        except ValueError:  # Launch reports the error
            cost = ""
        self.price.value = cost and f'<span style="opacity:0.8">{cost[0].upper()}{cost[1:]}.</span>'

    def _handle_control_change(self, change: Any) -> None:
        """While a run is active, show that a change waits for the next launch."""
        with self.lock:
            self.update_start()
            self._show_cost()
            if self.state in ("running", "paused"):
                self.message.value = "<i>A change counts from the next launch on.</i>"
            elif (
                self.state == "idle" and not self.has_invalid_controls() and self.error is not None
            ):
                self.message.value, self.error = "", None

    def _handle_launch_click(self, button: Any) -> None:
        with self.lock:
            if self.state not in BETWEEN and not self.has_invalid_controls():
                settings = self.settings()
                self.start_work("starting", lambda: self._start_run(settings))

    def _start_run(self, settings: dict[str, Any]) -> None:
        if self.run is not None and self.follower is not None:
            if self.run.isActive:
                with self.lock:
                    self.message.value = "<i>The run before was stopped for this one.</i>"
            self.run.stop()
            self.follower.wait_for_end()
        run = self.launch(settings)
        self.run, self.launched = run, settings
        self.set_state("running")
        self.follower = self.follow_run(run)

    def _toggle_pause(self, button: Any) -> None:
        with self.lock:
            if self.run is not None and self.state == "paused":
                self.run.unpause()
                self.set_state("running")
            elif self.run is not None and self.state == "running":
                self.run.pause()
                self.set_state("paused")

    def _stop_run(self, button: Any) -> None:
        with self.lock:
            if self.run is not None and self.state in ("running", "paused"):
                self.start_work("stopping", self.run.stop)
