"""The player: one picture of a run that is recorded, or of one that runs now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import ipywidgets as W

from braid_widgets.base import progress, totals
from braid_widgets.base.charts import WIDTH
from braid_widgets.base.fold import Scene, fold
from braid_widgets.base.live import INTERVAL, Follower, Run, problem
from braid_widgets.base.recording import Recording
from braid_widgets.theta import stage

LEAST_INTERVAL = 0.125
"""Seconds between two repaints of a live run, at least."""

SPEEDS = {"1 batch/s": 1000, "2.5 batches/s": 400, "5 batches/s": 200}


class Player(W.VBox):
    """Plays a recording (events, or the path of a .jsonl file) with a slider, Play and a choice of
    speed.

    ``attach`` replaces it by a live run, which one thread follows, repainting every ``interval``
    seconds at most and only when something moved. When the run has ended it can be scrubbed like
    any recording. ``lock`` is held by whoever changes the widgets; ``error`` keeps what made a view
    stop. Raises ValueError for an interval below 0.125 seconds.
    """

    _follower: Follower | None = None

    def __init__(self, source: Iterable[Any] | str | Path = (), interval: float = INTERVAL) -> None:
        if interval < LEAST_INTERVAL:
            raise ValueError(f"the interval is {interval} s; it must be {LEAST_INTERVAL} s or more")
        self.interval, self.lock = interval, threading.RLock()
        self.error: BaseException | None = None
        self.recording = Recording(source)
        self.stage = stage.Stage()
        self.play = W.Play(min=0, interval=400, show_repeat=False)
        self.slider = W.IntSlider(
            min=0, readout=False, continuous_update=True, layout=W.Layout(flex="1 1 auto")
        )
        self.speed = W.Dropdown(options=SPEEDS, value=400, layout=W.Layout(width="130px"))
        W.jslink((self.play, "value"), (self.slider, "value"))
        W.dlink((self.speed, "value"), (self.play, "interval"))
        self.slider.observe(self._moved, "value")
        self.progress, self.message, self.totals = W.Label(), W.HTML(), W.HTML()
        bar = W.HBox([self.play, self.slider, self.speed])
        views = [self.progress, self.message, self.stage, bar, self.totals]
        super().__init__(views, layout=W.Layout(max_width=WIDTH))
        self._load(self.recording)
        self.seek(0)

    def seek(self, position: int) -> None:
        """Show a batch of the recording by position. Raises IndexError for a position that is not
        there.
        """
        with self.lock:
            self._show(self.recording.at(position))
            self._place(position)

    def attach(
        self, run: Run, ended: Callable[[BaseException | None], Any] = lambda error: None
    ) -> Follower:
        """Follow a live run from its start; ``ended`` gets what made it or the view fail, or None,
        when it is over.
        """
        self.detach()
        with self.lock:
            self._enable(False)
            self.message.value, self.error = "", None
        self._follower = Follower(
            run, self._show_live, lambda error: self._over(run, error, ended), self.interval
        )
        return self._follower

    def detach(self, timeout: float | None = None) -> None:
        """Stop following a run (which goes on), and wait for the thread."""
        if self._follower is not None:
            self._follower.leave(timeout)

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the run that is followed has ended and been shown."""
        if self._follower is not None:
            self._follower.wait(timeout)

    def close(self) -> None:
        if self._follower is not None:
            self._follower.leave(2 * self.interval)
        super().close()

    def _over(
        self, run: Run, error: BaseException | None, ended: Callable[[BaseException | None], Any]
    ) -> None:
        """The slider over the whole run, and what went wrong if anything did."""
        with self.lock:
            try:
                self._load(Recording(run.events()))
            except Exception as failure:
                error = error or failure
            if error is not None:
                self.error, self.message.value = error, problem(error)
        ended(error)

    def _show(self, scene: Scene, live: bool = False) -> None:
        with self.lock:
            self.stage.show(scene)
            self.progress.value = progress.line(scene, live)
            self.totals.value = totals.html(scene)

    def _show_live(self, scene: Scene) -> None:
        with self.lock:
            self._show(scene, live=True)
            done = scene.last.batch if scene.last else 0
            self._span(max(done, (scene.start.batches or 1) - 1) if scene.start else done)
            self._place(done)

    def _load(self, recording: Recording) -> None:
        self.recording = recording
        self._span(len(recording) - 1)
        self._place(len(recording) - 1)
        self._enable(len(recording) > 1)

    def _enable(self, on: bool) -> None:
        self.play.disabled = self.slider.disabled = not on

    def _span(self, last: int) -> None:
        self.play.max = self.slider.max = last

    def _place(self, position: int) -> None:
        """Move the slider without seeking."""
        self.slider.unobserve(self._moved, "value")
        self.play.value = self.slider.value = position
        self.slider.observe(self._moved, "value")

    def _moved(self, change: dict[str, Any]) -> None:
        if not self.slider.disabled:
            with self.lock:
                self._show(self.recording.at(change["new"]))

    def to_html(self, most: int = 200) -> str:
        """The recording as HTML that plays offline (of a live run: its current picture), and the
        totals.
        """
        playing = self._follower is not None and self._follower.active
        page = self.stage.to_html() if playing else stage.replay(self.recording.events, most)
        return page + (self.totals.value if playing else totals.html(fold(self.recording.events)))

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**data, "text/html": self.to_html(40)}, metadata
