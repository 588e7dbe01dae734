"""The cockpit as a widget, live or recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from braid.core.run_events import BatchCommitted, RunEnded, RunStarted, count_event_numbers
from braid.run_touches import apply_touch, list_touches
from braid.util.error_summary import summarize_error
from IPython.display import HTML, display

from braid_widgets.base.interactivity import is_headless
from braid_widgets.base.live_updates import INTERVAL, ObservableRun, RunFollower, is_paused
from braid_widgets.base.player import read_bundle, thin
from braid_widgets.base.run_view import HISTORY, RunView
from braid_widgets.base.static_fallback import StaticFallback
from braid_widgets.base.time_left import TimeLeftEstimator
from braid_widgets.cockpit import block_details
from braid_widgets.cockpit.frames import (
    BatchFrame,
    CockpitPage,
    FrameCollector,
    make_page,
    run_state,
)
from braid_widgets.cockpit.page import CSS, FRAMES, load_events, page_html, recorded_page
from braid_widgets.reuse.hub_run import get_batch_number
from braid_widgets.reuse.query_details import describe_live_query
from braid_widgets.slices import query_details

FALLBACK_FRAMES = 60
"""Maximum number of frames of the picture saved with a notebook."""
Imagine = Callable[[list[Any], str, int, int], Any]
"""A function for what-ifs: events, placement name, hosts and start batch to a baseline curve.

The start batch counts from 0; -1 means from the start. The result is an
``alternative_placement.BaselineCurve``. Raises ValueError if it cannot be simulated.
"""


class Cockpit(anywidget.AnyWidget):
    """A widget that shows a run: events, or the path of a .jsonl file. It opens on the last batch.

    ``follow`` replaces a recording by a live run. Only new data is sent to the browser, which keeps
    the rest, so every batch can be viewed while the run is active. ``events`` are the events shown;
    ``error`` is the error of the run or the view.
    """

    _esm = read_bundle("cockpit")
    _css = CSS
    page: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        source: Iterable[Any] | str | Path = (),
        interval: float = INTERVAL,
        imagine: Imagine | None = None,
        offers: Callable[[RunStarted], Iterable[str]] = lambda start: (),
        is_followed: bool = False,
    ) -> None:
        """``is_followed``: whether the run was started here; else it is a recording."""
        self.events, self.interval = load_events(source), interval
        self.error: BaseException | None = None
        self._follower: RunFollower | None = None
        self._showing: LiveUpdater | None = None
        self._folded: FrameCollector | None = None
        self._fallbacks: list[StaticFallback] = []
        self._imagine, self._offers = imagine, offers
        self._imagining: threading.Thread | None = None
        self._touching = ThreadPoolExecutor(1, "braid-touches")
        self._gate = threading.RLock()
        shown = self._with_what_if_placements(recorded_page(self.events, is_own=is_followed))
        super().__init__(page=dict(shown))
        self.on_msg(self._handle_browser_message)

    def load_run(self, source: Iterable[Any] | str | Path) -> None:
        """Show another run."""
        self.stop_following()
        self.events = load_events(source)
        self._showing = self._folded = None
        self.page = dict(self._with_what_if_placements(recorded_page(self.events)))

    def _with_what_if_placements(self, page: CockpitPage) -> CockpitPage:
        """Return the page with the placements for a what-if."""
        start = next((e for e in self.events if isinstance(e, RunStarted)), None)
        return {
            **page,
            "what_if_placements": [] if start is None else self.what_if_placements(start),
        }

    def what_if_placements(self, start: RunStarted) -> list[str]:
        """Return the placements that a what-if can simulate."""
        return [] if self._imagine is None else [*self._offers(start)]

    def follow(
        self, run: ObservableRun, ended: Callable[[BaseException | None], Any] = lambda error: None
    ) -> RunFollower:
        """Follow a live run from its start.

        ``ended`` is called at the end with the error of the run or the view, or None. The previous
        run stays visible, marked as such, until the first batch.
        """
        self.stop_following()
        self.error = None
        self._showing = LiveUpdater(self, run)
        if self.page["frames"]:
            self.mark_stale()
        else:
            self._showing.start()
        self._follower = RunFollower(
            run,
            self._showing.send_new,
            lambda error: self._finish_run(run, error, ended),
            self.interval,
        )
        return self._follower

    def stop_following(self, timeout: float | None = None) -> None:
        """Stop following the run, which continues, and wait for the thread."""
        if self._follower is not None:
            self._follower.stop(timeout)

    def wait_for_end(self, timeout: float | None = None) -> None:
        """Wait until the followed run has ended and its last state is shown."""
        if self._follower is not None:
            self._follower.wait_for_end(timeout)

    def close(self) -> None:
        self.stop_following(2 * self.interval)
        super().close()

    def _finish_run(
        self,
        run: ObservableRun,
        error: BaseException | None,
        ended: Callable[[BaseException | None], Any],
    ) -> None:
        try:
            self.events = run.events()
        except Exception as failure:
            error = error or failure
        self.error = error
        assert self._showing is not None
        self._showing.finish(error)
        for static_view in self._fallbacks:
            static_view.refresh()
        ended(error)

    def draw_alternative(self, placement: str, hosts: int, since: int = 0) -> None:
        """Draw the simulated curve of another placement beside the run.

        It takes over from the start, or after batch ``since`` (from 1), and is simulated from the
        run's events. Raises ValueError if it cannot be simulated, or if the cockpit was not made by
        ``braid.watch``.
        """
        if self._imagine is None:
            raise ValueError("this view cannot simulate; braid.watch makes one that can")
        if self._is_showing_previous_run:
            raise ValueError("this is an earlier run; ask again when the new one has a batch")
        track, events = self._get_frame_collector(), self._get_events()
        curve = self._imagine(events, placement, hosts, since - 1)
        with self._gate:
            if track is not self._get_frame_collector():
                return  # another run is shown meanwhile
            track.baselines = [g for g in track.baselines if g["name"] != f"{curve.name}, modelled"]
            track.baselines.append(
                {
                    "name": f"{curve.name}, modelled",
                    "role": "baseline",
                    "batch": [b + 1 for b in curve.batch],
                    "values": [float(n) for n in curve.max_host_tuples],
                }
            )
            last = [e for e in events if isinstance(e, BatchCommitted)][-1]
            track.what_if_message = curve.compare(last)
        self._send_timeline()

    @property
    def _is_showing_previous_run(self) -> bool:
        """Return whether the visible run is not yet the followed one."""
        return self._showing is not None and not self._showing.begun

    def _get_events(self) -> list[Any]:
        live = self._showing is not None and self._follower is not None
        return self._showing.run.events() if live and self._showing else self.events

    def _get_frame_collector(self) -> FrameCollector:
        """Return the folded state of the visible run; a recording is folded on first use."""
        if self._showing is not None:
            return self._showing.track
        if self._folded is None:
            self._folded = FrameCollector()
            self._folded.apply_events(self.events, draw=False)
        return self._folded

    def _send_timeline(self) -> None:
        """Send the timeline with its baselines to the browser."""
        rest = self._get_frame_collector().page_fields(self.page["state"])
        self._send_page_update({name: rest[name] for name in ("timeline", "what_if_message")})

    def _send_page_update(self, new: dict[str, Any]) -> None:
        """Send the changed fields of the page, other than frames, to the browser."""
        self.page.update(new)
        hosts = {**self.page["hosts"], "batch": [], "values": []}
        self.send({"more": {**self.page, "frames": [], "hosts": hosts}})

    def mark_stale(self) -> None:
        """Mark the view as showing the previous run while the next one starts."""
        self._send_page_update({"state": "earlier run"})

    def _handle_browser_message(self, widget: Any, content: Any, buffers: Any) -> None:
        """Answer the browser: a what-if, or details of a host, a query or blocks."""
        if not isinstance(content, dict):
            return
        if (place := content.get("inspect")) is not None:
            if "query" in place:  # the latest rows of its answer may take long to read
                self._touching.submit(self._send_details, place)
            else:
                self._send_details(place)
        if (touch := content.get("touch")) is not None:
            self._touching.submit(self._answer_touch, touch)
        if (imagined := content.get("what_if")) is None:
            return
        call, given = self._answer_what_if, (imagined,)
        self._imagining = threading.Thread(None, call, "braid-what-if", given, daemon=True)
        self._imagining.start()

    def _answer_touch(self, request: dict[str, Any]) -> None:
        """Change the followed run, and send a sentence about it."""
        try:
            if self._showing is None or not self._is_following_run:
                raise RuntimeError("no run is active that could be changed; launch one")
            text = apply_touch(self._showing.run, request)
        except Exception as error:
            text = summarize_error(error)
        self.send({"touched": text})

    def wait_for_touches(self, timeout: float | None = None) -> None:
        """Wait until the requested changes of the run are done."""
        self._touching.submit(lambda: None).result(timeout)

    def _send_details(self, place: dict[str, Any]) -> None:
        try:
            events = self._get_events()
            if (ids := place.get("blocks")) is not None:
                text = block_details.block_details(events, [int(id) for id in ids])
            elif (query := place.get("query")) is not None:
                text = self._describe_query(str(query), int(place["batch"]))
            else:
                text = block_details.host_details(events, int(place["host"]), int(place["batch"]))
        except Exception as error:
            text = summarize_error(error)
        self.send({"inspected": text})

    def _describe_query(self, name: str, batch: int) -> str:
        run = self._showing.run if self._showing is not None else None
        if hasattr(run, "deployment"):
            return describe_live_query(run, name)
        return query_details.describe_query(self._get_events(), name, batch)

    def _answer_what_if(self, imagined: dict[str, Any]) -> None:
        try:
            self.draw_alternative(
                str(imagined["placement"]), int(imagined["hosts"]), int(imagined["since"])
            )
        except (ValueError, KeyError, TypeError) as error:
            if self._is_showing_previous_run:  # the details would be of the previous run
                self._send_page_update({"what_if_message": summarize_error(error)})
                return
            self._get_frame_collector().what_if_message = summarize_error(error)
            self._send_timeline()

    @property
    def _is_following_run(self) -> bool:
        return self._follower is not None and self._follower.is_active

    def to_html(self, most: int = FRAMES) -> str:
        """Return the run as HTML that needs neither a kernel nor a network, with at most ``most``
        frames.
        """
        visible = {
            "frames": thin(self.page["frames"], most),
            "what_if_placements": [],
            "seconds_since_commit": None,
            "touches": [],
        }
        return page_html({**self.page, **visible})  # type: ignore[typeddict-item]

    def _ipython_display_(self) -> None:
        """Display the widget while a run is active, with its last picture for a saved notebook;
        else HTML.
        """
        if is_headless() or not (self._is_following_run or self._imagine):
            display(HTML(self.to_html()))  # type: ignore[no-untyped-call]
            return
        self.add_class("braid-live")
        self._fallbacks.append(StaticFallback(_Alive(self), lambda: self.to_html(FALLBACK_FRAMES)))

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Return the widget if a user can interact with it, else only HTML."""
        plain = f"Cockpit({self.page['note']!r})"
        if not (self._is_following_run or self._imagine):
            return {"text/html": self.to_html(), "text/plain": plain}, {}
        shown = super()._repr_mimebundle_(**options)
        data, metadata = shown if isinstance(shown, tuple) else (shown, {})
        return {
            **(data or {}),
            "text/html": self.to_html(FALLBACK_FRAMES),
            "text/plain": plain,
        }, metadata


class _Alive:
    """A cockpit as a widget, for a display that asks for a MIME bundle."""

    def __init__(self, cockpit: Cockpit) -> None:
        self._cockpit = cockpit

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self._cockpit._repr_mimebundle_(**options)


class LiveUpdater:
    """Shows a live run in a cockpit: it sends new data to the browser and extends the widget's
    page.

    The page is complete, for browsers that connect later.
    """

    def __init__(self, cockpit: Cockpit, run: ObservableRun) -> None:
        self.cockpit, self.run = cockpit, run
        self.track, self.pace = FrameCollector(), TimeLeftEstimator()
        self.frames: list[BatchFrame] = []
        self.taken, self.begun = 0, False

    def start(self) -> None:
        """Show the run in place of the previous one."""
        self.begun = True
        self.cockpit.page = dict(self.make_page("live"))

    def send_new(self, scene: RunView) -> None:
        """Fold in new events and send the changes."""
        events = self.run.events(self.taken)
        if not self.begun:
            if not any(isinstance(e, RunEnded) or get_batch_number(e) is not None for e in events):
                return
            self.start()
        self.taken += count_event_numbers(events)
        since = self.frames[-1]["batch"] if self.frames else 0
        self.track.frames = []
        self.track.apply_events(events)
        self.frames = [*self.frames, *self.track.frames][-HISTORY:]
        self.pace.note_batches(self.frames[-1]["batch"] if self.frames else 0)
        state = run_state(self.track.scene, is_followed=True)
        self._send_update("paused" if state == "live" and is_paused(self.run) else state, since)

    def finish(self, error: BaseException | None) -> None:
        """Show that the run has ended or its view has failed."""
        if not self.begun:
            self.start()
        end = self.track.scene.end
        note = "" if error is None or (end and end.error) else f" · {summarize_error(error)}"
        state = run_state(self.track.scene, is_followed=True) if end else "ended"
        self._send_update("failed" if error is not None else state, 10**9, note)

    def make_page(self, state: str) -> CockpitPage:
        """Return the complete page."""
        return make_page(
            self.track,
            self.frames,
            state,
            self._estimate_seconds_left(),
            self.pace.seconds_since_batch(),
        )

    def _send_update(self, state: str, since: int, note: str = "") -> None:
        if (start := self.track.scene.start) is not None and not self.track.offers:
            self.track.offers = self.cockpit.what_if_placements(start)
        is_open = state in ("live", "paused")
        self.track.touches = list_touches(self.run, self.track.scene.last) if is_open else []
        rest = self.track.page_fields(
            state, self._estimate_seconds_left(), self.pace.seconds_since_batch()
        )
        rest["note"] += note
        fresh = [frame for frame in self.frames if frame["batch"] > since]
        self.cockpit.page.update({**rest, "frames": self.frames, "hosts": self.track.host_rows()})
        more = {**rest, "frames": fresh, "hosts": self.track.host_rows(since)}
        self.cockpit.send({"more": more})

    def _estimate_seconds_left(self) -> float | None:
        start = self.track.scene.start
        if start is None or start.planned_batches is None or self.track.scene.end is not None:
            return None
        return self.pace.seconds_left(start.planned_batches + self.track.scene.changes)
