"""The cockpit as a widget, live or recorded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from braid.core.run_events import BatchCommitted, RunStarted
from braid.run_touches import apply_touch, list_touches
from braid.util.error_summary import summarize_error
from IPython.display import HTML, display

from braid_widgets.base.interactivity import is_headless
from braid_widgets.base.live_updates import INTERVAL, ObservableRun, RunFollower, is_paused
from braid_widgets.base.player import read_bundle, thin
from braid_widgets.base.static_fallback import StaticFallback
from braid_widgets.base.track_records import make_series
from braid_widgets.cockpit import block_details
from braid_widgets.cockpit.frames import FrameCollector
from braid_widgets.cockpit.page import CSS, FRAMES, fold_recording, load_events, page_html
from braid_widgets.reuse.query_details import describe_live_query
from braid_widgets.slices import query_details

FALLBACK_FRAMES = 60
"""Maximum number of frames of the picture saved with a notebook."""
Imagine = Callable[[list[Any], str, int, int], Any]
"""A function for what-ifs: events, placement name, hosts and start batch to a baseline curve.

The start batch counts from 0; -1 means from the start. The result is an
``alternative_placement.BaselineCurve``. Raises ValueError if it cannot be simulated.
"""

Ended = Callable[[BaseException | None], Any]
"""A function that is called at the end of a run, with its error or None."""


class Cockpit(anywidget.AnyWidget):
    """A widget that shows a run: events, or the path of a .jsonl file. It opens on the last batch.

    ``follow`` replaces a recording by a live run. Only new data is sent to the browser, which keeps
    the rest, so every batch can be viewed while the run is active; ``page`` is complete, for
    browsers that connect later. ``events`` are the events shown; ``error`` is the error of the run
    or the view.
    """

    _esm = read_bundle("cockpit")
    _css = CSS
    page: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        source: Iterable[Any] | str | Path = (),
        interval: float = INTERVAL,
        imagine: Imagine | None = None,
        offers: Callable[[RunStarted], dict[str, str]] = lambda start: {},
        is_followed: bool = False,
    ) -> None:
        """``is_followed``: whether the run was started here; else it is a recording."""
        self.interval = interval
        self.error: BaseException | None = None
        self._follower: RunFollower | None = None
        self._fallbacks: list[StaticFallback] = []
        self._imagine, self._offers = imagine, offers
        self._imagining: threading.Thread | None = None
        self._touching = ThreadPoolExecutor(1, "braid-touches")
        self._gate = threading.RLock()
        super().__init__(page=self._fold_run(source, is_followed))
        self.on_msg(self._handle_browser_message)

    def load_run(self, source: Iterable[Any] | str | Path) -> None:
        """Show another run."""
        self.stop_following()
        self.page = self._fold_run(source)

    def _fold_run(
        self, source: Iterable[Any] | str | Path, is_followed: bool = False
    ) -> dict[str, Any]:
        """Fold another run, and return its page."""
        self.events, omissions = load_events(source)
        self._run: ObservableRun | None = None
        self._has_begun, self._committed_at = True, 0.0
        self._track = fold_recording(self.events, FRAMES, is_followed, omissions)
        self._offer_what_ifs()
        return dict(self._track.make_page())

    def _offer_what_ifs(self) -> None:
        """Add the placements that a what-if can simulate to the page of the run."""
        start = self._track.scene.start
        if start is not None and self._imagine is not None and not self._track.offers:
            self._track.offers = self._offers(start)

    def follow(self, run: ObservableRun, ended: Ended = lambda error: None) -> RunFollower:
        """Follow a live run from its start.

        ``ended`` is called at the end with the error of the run or the view, or None. The previous
        run stays visible, marked as such, until the first batch.
        """
        self.stop_following()
        self.error = None
        self._run, self._has_begun = run, False
        self._track = FrameCollector(is_followed=True)
        if self.page["frames"]:
            self.mark_stale()
        else:
            self._show_batches("live")
        finish = partial(self._finish_run, run, ended)
        self._follower = RunFollower(run, self._show_events, finish, self.interval)
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
        self._touching.shutdown(wait=False)
        super().close()

    def _finish_run(self, run: ObservableRun, ended: Ended, error: BaseException | None) -> None:
        try:
            self.events = run.events()
        except Exception as failure:
            error = error or failure
        self.error = error
        end = self._track.scene.end
        note = "" if error is None or (end and end.error) else f" · {summarize_error(error)}"
        state = "failed" if error is not None else self._track.state if end else "ended"
        self._show_batches(state, self._track.last_batch, note)
        for static_view in self._fallbacks:
            static_view.refresh()
        ended(error)

    def _show_events(self, events: list[Any]) -> None:
        """Fold in new events of the followed run, and show them from the first batch on."""
        assert self._run is not None
        since = self._track.last_batch
        with self._gate:  # a what-if reads the batches in its own thread
            self._track.apply_events(events)
        if self._track.last_batch > since:
            self._committed_at = time.monotonic()
        if self._has_begun or self._track.frames or self._track.scene.end is not None:
            is_held = self._track.state == "live" and is_paused(self._run)
            self._show_batches("paused" if is_held else self._track.state, since)

    def _show_batches(self, state: str, since: int = 0, note: str = "") -> None:
        """Show the followed run, on a new page at first, and send what came after a batch."""
        track, is_open = self._track, state in ("live", "paused")
        self._offer_what_ifs()
        track.touches = list_touches(self._run, track.scene.last) if is_open else []
        lag = time.monotonic() - self._committed_at if track.last_batch else None
        page = track.make_page(state, lag=lag)
        page["note"] += note
        if not self._has_begun:
            hosts = track.host_rows(track.last_batch)
            self._has_begun, self.page = True, {**page, "frames": [], "hosts": hosts}
        self.page.update(page)
        fresh = [frame for frame in page["frames"] if frame["batch"] > since]
        self.send({"more": {**page, "frames": fresh, "hosts": track.host_rows(since)}})

    def draw_alternative(self, placement: str, hosts: int, since: int = 0) -> None:
        """Draw the simulated curve of another placement beside the run.

        It takes over from the start, or after batch ``since`` (from 1), and is simulated from the
        run's events. Raises ValueError if it cannot be simulated, or if the cockpit was not made by
        ``braid.watch``.
        """
        if self._imagine is None:
            raise ValueError("this view cannot simulate; braid.watch makes one that can")
        if not self._has_begun:
            raise ValueError("this is an earlier run; ask again when the new one has a batch")
        track, events = self._track, self._get_events()
        curve = self._imagine(events, placement, hosts, since - 1)
        with self._gate:
            if track is not self._track:
                return  # another run is shown meanwhile
            name, batches = f"{curve.name}, modelled", [number + 1 for number in curve.batch]
            series = make_series(name, "baseline", batches, curve.max_host_tuples)
            track.baselines = [*(g for g in track.baselines if g["name"] != name), series]
            last = [e for e in events if isinstance(e, BatchCommitted)][-1]
            track.what_if_message = curve.compare(last)
            page = track.make_page()
        self._send_page_update({name: page[name] for name in ("timeline", "what_if_message")})

    def _get_events(self) -> list[Any]:
        is_live = self._run is not None and self._follower is not None
        return self._run.events() if is_live and self._run else self.events

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
        if (imagined := content.get("what_if")) is not None:
            call, given = self._answer_what_if, (imagined,)
            self._imagining = threading.Thread(None, call, "braid-what-if", given, daemon=True)
            self._imagining.start()

    def _answer_touch(self, request: dict[str, Any]) -> None:
        """Change the followed run, and send a sentence about it."""
        try:
            if self._run is None or not self._is_following_run:
                raise RuntimeError("no run is active that could be changed; launch one")
            text = apply_touch(self._run, request)
        except Exception as error:
            text = summarize_error(error)
        self.send({"touched": text})

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
        if hasattr(self._run, "deployment"):
            return describe_live_query(self._run, name)
        return query_details.describe_query(self._get_events(), name, batch)

    def _answer_what_if(self, imagined: dict[str, Any]) -> None:
        try:
            names = {label: name for name, label in self._track.offers.items()}
            label = str(imagined["placement"])
            self.draw_alternative(
                names.get(label, label), int(imagined["hosts"]), int(imagined["since"])
            )
        except (ValueError, KeyError, TypeError) as error:
            text = summarize_error(error)
            if self._has_begun:  # else it is about the previous run
                self._track.what_if_message = text
            self._send_page_update({"what_if_message": text})

    @property
    def _is_following_run(self) -> bool:
        return self._follower is not None and self._follower.is_active

    @property
    def _is_interactive(self) -> bool:
        return self._is_following_run or self._imagine is not None

    def to_html(self, most: int = FRAMES) -> str:
        """Return the run as HTML that needs neither a kernel nor a network, with at most ``most``
        frames.
        """
        inert = dict[str, Any](what_if_placements=[], seconds_since_commit=None, touches=[])
        page = {**self.page, **inert, "frames": thin(self.page["frames"], most)}
        return page_html(page)  # type: ignore[arg-type]

    def _ipython_display_(self) -> None:
        """Display the widget while a run is active, with its last picture for a saved notebook;
        else HTML.
        """
        if is_headless() or not self._is_interactive:
            display(HTML(self.to_html()))  # type: ignore[no-untyped-call]
            return
        self.add_class("braid-live")
        self._fallbacks.append(StaticFallback(_Alive(self), lambda: self.to_html(FALLBACK_FRAMES)))

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Return the widget if a user can interact with it, else only HTML."""
        plain = f"Cockpit({self.page['note']!r})"
        if not self._is_interactive:
            return {"text/html": self.to_html(), "text/plain": plain}, {}
        shown = super()._repr_mimebundle_(**options)
        data, metadata = shown if isinstance(shown, tuple) else (shown, {})
        html = self.to_html(FALLBACK_FRAMES)
        return {**(data or {}), "text/html": html, "text/plain": plain}, metadata


class _Alive:
    """A cockpit as a widget, for a display that asks for a MIME bundle."""

    def __init__(self, cockpit: Cockpit) -> None:
        self._cockpit = cockpit

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self._cockpit._repr_mimebundle_(**options)
