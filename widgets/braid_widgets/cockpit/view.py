"""The cockpit as a widget, live or recorded, and as a page that needs no kernel."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path
from typing import Any

import anywidget
import plotly.graph_objects as go
import traitlets
from braid.core.causes import cause
from braid.core.events import BatchCommitted, RunStarted, numbers, read
from IPython.display import HTML, display

from braid_widgets.base import colours
from braid_widgets.base.charts import save_page
from braid_widgets.base.film import bundle, css, thinned
from braid_widgets.base.fold import HISTORY, Scene
from braid_widgets.base.live import INTERVAL, Follower, Run, paused_now
from braid_widgets.base.pace import Pace
from braid_widgets.base.somebody import headless
from braid_widgets.base.still import svg
from braid_widgets.base.twin import Twin
from braid_widgets.cockpit import inspect
from braid_widgets.cockpit.track import BatchFrame, CockpitPage, Track, page, state_of

TWIN = 60
"""The same of a picture that is saved with a notebook."""
FRAMES = 200
"""Batches of a run of which a page has a picture; of longer runs some are left out."""

HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" '
    'content="light dark"><meta name="viewport" content="width=device-width">'
)
_CSS = css("stage.css", "film.css", "cockpit.css")


def recorded(events: Iterable[Any], most: int = FRAMES, live: bool = False) -> CockpitPage:
    """The page of a run as far as these events tell; at most ``most`` of its batches have a
    picture.
    """
    happened, track = list(events), Track()
    numbers = [e.batch for e in happened if isinstance(e, BatchCommitted)]
    drawn = set(thinned(numbers, most))
    for event in happened:
        track.take([event], isinstance(event, BatchCommitted) and event.batch in drawn)
    return page(track, track.frames, state_of(track.scene, live))


def as_html(shown: CockpitPage, more: str = "") -> str:
    """A page as HTML that needs no kernel and no network. ``more`` is where a page that is served
    asks for what is new.
    """
    hosts = _most_hosts(shown)
    data = {"page": shown, "palette": colours.palette(hosts), "more": more}
    body = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return (
        f'<style>{_CSS}</style><div data-film="cockpit">'
        f'<script type="application/json">{body}</script>{plain(shown)}</div>'
        f'<script type="module">{bundle("cockpit")}</script>'
    )


def still(events: Iterable[Any], most: int = 40) -> str:
    """A run as HTML that a saved notebook holds in place of a panel; of at most ``most`` batches.
    Without a run it says so.
    """
    shown = recorded(events, most)
    if not shown["frames"]:
        return "<p><i>Nothing was run here. Run the cell again to have its controls.</i></p>"
    return "<p><i>What was seen last; run the cell again to have its controls.</i></p>" + as_html(
        shown
    )


def _most_hosts(shown: CockpitPage) -> int:
    return max([1, *(len(each) for values in shown["hosts"]["values"] for each in values)])


def plain(shown: CockpitPage) -> str:
    """What is there to read where no script runs."""
    last = shown["frames"][-1] if shown["frames"] else None
    head = escape(last["title"] if last else "no batch yet")
    facts = last["facts"] if last else {"name": [], "value": []}
    items = "".join(
        f"<li>{escape(n)}: {escape(v)}</li>"
        for n, v in zip(facts["name"], facts["value"], strict=True)
    )
    told = "".join(f"<li>{escape(flag['text'])}</li>" for flag in shown["flags"])
    return (
        f'<div class="braid"><div class="braid-title">{head}</div><div class="braid-note">'
        f"{escape(shown['note'])}</div><ul>{items}</ul>{_bars(shown)}<ul>{told}</ul></div>"
    )


def _bars(shown: CockpitPage) -> str:
    """What each host stores after the last batch, as a picture."""
    hosts = shown["hosts"]
    if "stored" not in hosts["names"]:
        return ""
    rows = hosts["values"][-1][hosts["names"].index("stored")]
    bars = go.Bar(x=[f"{h}" for h in range(len(rows))], y=rows, marker_color=colours.RATIO)
    how = "modelled" if shown["state"] == "modelled" else "counted"
    title = f"Tuples stored by each host ({how})"
    plot = go.Figure(bars, layout=dict(title=title, height=320))
    plot.update_xaxes(title="host")
    return svg(plot, title)


def save(events: Iterable[Any] | str | Path, path: str | Path, overwrite: bool = False) -> Path:
    """Write a run as a page that works offline. Raises FileExistsError rather than replace a file
    silently.
    """
    html = as_html(recorded(_events(events)))
    head = f"{HEAD}<title>Braid: a recorded run</title></head><body>"
    return save_page(path, f"{head}{html}</body></html>", overwrite)


def _events(source: Iterable[Any] | str | Path) -> list[Any]:
    return read(source) if isinstance(source, (str, Path)) else list(source)


Imagine = Callable[[list[Any], str, int, int], Any]
"""What if: events, a placement's name, hosts, and the batch (from 0; -1: none) after which it would
have taken over, to a ``braid.model.what_if.Ghost``. Raises ValueError.
"""


class Cockpit(anywidget.AnyWidget):
    """Shows a recording (events, or the path of a .jsonl file), opening on its last batch.

    ``attach`` replaces it by a live run: what is new goes to the browser, which has the rest, so
    every batch can be looked at while the run goes on. ``events`` are those that are shown;
    ``error`` keeps what made the run or the view fail.
    """

    _esm = bundle("cockpit")
    _css = _CSS
    page: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    palette = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        source: Iterable[Any] | str | Path = (),
        interval: float = INTERVAL,
        imagine: Imagine | None = None,
        offers: Callable[[RunStarted], Iterable[str]] = lambda start: (),
    ) -> None:
        self.events, self.interval = _events(source), interval
        self.error: BaseException | None = None
        self._follower: Follower | None = None
        self._showing: Showing | None = None
        self._folded: Track | None = None
        self._twins: list[Twin] = []
        self._imagine, self._offers = imagine, offers
        self._imagining: threading.Thread | None = None
        self._gate = threading.RLock()
        shown = self._offering(recorded(self.events))
        super().__init__(page=dict(shown), palette=colours.palette(256))
        self.on_msg(self._asked)

    def load(self, source: Iterable[Any] | str | Path) -> None:
        """Show another run from now on."""
        self.detach()
        self.events = _events(source)
        self._showing = self._folded = None
        self.page = dict(self._offering(recorded(self.events)))

    def _offering(self, page: CockpitPage) -> CockpitPage:
        """The page, with the placements that a what-if may take."""
        start = next((e for e in self.events if isinstance(e, RunStarted)), None)
        return {**page, "offers": [] if start is None else self.offered(start)}

    def offered(self, start: RunStarted) -> list[str]:
        """The placements that a what-if may take."""
        return [] if self._imagine is None else [*self._offers(start)]

    def attach(
        self, run: Run, ended: Callable[[BaseException | None], Any] = lambda error: None
    ) -> Follower:
        """Follow a live run from its start; ``ended`` gets what made it or the view fail, or None,
        when it is over.
        """
        self.detach()
        self.error = None
        self._showing = Showing(self, run)
        self.page = dict(self._showing.page("live"))
        self._follower = Follower(
            run, self._showing.show, lambda error: self._over(run, error, ended), self.interval
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
        self.detach(2 * self.interval)
        super().close()

    def _over(
        self, run: Run, error: BaseException | None, ended: Callable[[BaseException | None], Any]
    ) -> None:
        try:
            self.events = run.events()
        except Exception as failure:
            error = error or failure
        self.error = error
        assert self._showing is not None
        self._showing.last(error)
        for twin in self._twins:
            twin.renew()
        ended(error)

    def what_if(self, placement: str, hosts: int, since: int = 0) -> None:
        """Draw beside the run what another placement would do: from the start, or after batch
        ``since`` (from 1). It is simulated on what the events tell. Raises ValueError for what
        cannot be simulated, and for a cockpit that was not made by ``braid.watch``.
        """
        if self._imagine is None:
            raise ValueError("this view cannot simulate; braid.watch makes one that can")
        found = self._imagine(self._known(), placement, hosts, since - 1)
        with self._gate:
            track = self._track()
            track.ghosts = [g for g in track.ghosts if g["name"] != found.name]
            track.ghosts.append(
                {
                    "name": found.name,
                    "batch": [b + 1 for b in found.batch],
                    "values": [float(n) for n in found.fullest],
                }
            )
            track.told = ""
        self._resend()

    def _known(self) -> list[Any]:
        live = self._showing is not None and self._follower is not None
        return self._showing.run.events() if live and self._showing else self.events

    def _track(self) -> Track:
        """The fold of what is shown; of a recording it is made when it is first asked for."""
        if self._showing is not None:
            return self._showing.track
        if self._folded is None:
            self._folded = Track()
            self._folded.take(self.events, draw=False)
        return self._folded

    def _resend(self) -> None:
        """Tell the browser what stands beside the run."""
        rest = self._track().rest(self.page["state"])
        self._tell({name: rest[name] for name in ("line", "told")})

    def _tell(self, new: dict[str, Any]) -> None:
        """Tell the browser what is new besides batches."""
        self.page.update(new)
        hosts = {**self.page["hosts"], "batch": [], "values": []}
        self.send({"more": {**self.page, "frames": [], "hosts": hosts}})

    def stale(self) -> None:
        """Say that what is seen is not the run that is being started."""
        self._tell({"state": "earlier run"})

    def _asked(self, widget: Any, content: Any, buffers: Any) -> None:
        """The browser asks what another placement would do, what a host holds, or about blocks."""
        if not isinstance(content, dict):
            return
        if (place := content.get("inspect")) is not None:
            self._inspected(place)
        if (asked := content.get("what_if")) is None:
            return
        self._imagining = threading.Thread(
            target=self._answer, args=(asked,), name="braid-what-if", daemon=True
        )
        self._imagining.start()

    def _inspected(self, place: dict[str, Any]) -> None:
        try:
            if (ids := place.get("blocks")) is not None:
                text = inspect.blocks(self._known(), [int(id) for id in ids])
            else:
                text = inspect.host(self._known(), int(place["host"]), int(place["batch"]))
        except (ValueError, KeyError, TypeError) as error:
            text = cause(error)
        self.send({"inspected": text})

    def _answer(self, asked: dict[str, Any]) -> None:
        try:
            self.what_if(str(asked["placement"]), int(asked["hosts"]), int(asked["since"]))
        except (ValueError, KeyError, TypeError) as error:
            self._track().told = cause(error)
            self._resend()

    @property
    def _live(self) -> bool:
        return self._follower is not None and self._follower.active

    def to_html(self, most: int = FRAMES) -> str:
        """The run as far as it is, as HTML that needs no kernel and no network; of at most so many
        batches.
        """
        kept = {"frames": thinned(self.page["frames"], most), "offers": [], "lag": None}
        return as_html({**self.page, **kept})  # type: ignore[typeddict-item]

    def _ipython_display_(self) -> None:
        """A widget while a run goes on, and in a saved notebook its last picture; else HTML, which
        needs no kernel.
        """
        if headless() or not (self._live or self._imagine):
            display(HTML(self.to_html()))  # type: ignore[no-untyped-call]
            return
        self.add_class("braid-live")
        self._twins.append(Twin(_Alive(self), lambda: self.to_html(TWIN)))

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """A widget while there is somebody to ask; else HTML alone."""
        plain = f"Cockpit({self.page['note']!r})"
        if not (self._live or self._imagine):
            return {"text/html": self.to_html(), "text/plain": plain}, {}
        shown = super()._repr_mimebundle_(**options)
        data, metadata = shown if isinstance(shown, tuple) else (shown, {})
        return {**(data or {}), "text/html": self.to_html(TWIN), "text/plain": plain}, metadata


class _Alive:
    """A cockpit as the widget that it is, for a display that asks for a MIME bundle."""

    def __init__(self, cockpit: Cockpit) -> None:
        self._cockpit = cockpit

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self._cockpit._repr_mimebundle_(**options)


class Showing:
    """What a cockpit shows of a live run: the browser is sent what is new, and the widget's page
    grows with it, for browsers that come later.
    """

    def __init__(self, cockpit: Cockpit, run: Run) -> None:
        self.cockpit, self.run = cockpit, run
        self.track, self.pace = Track(), Pace()
        self.frames: list[BatchFrame] = []
        self.taken = 0

    def show(self, scene: Scene) -> None:
        """Take what happened since, and send it."""
        events = self.run.events(self.taken)
        self.taken += numbers(events)
        since = self.frames[-1]["batch"] if self.frames else 0
        self.track.frames = []
        self.track.take(events)
        self.frames = [*self.frames, *self.track.frames][-HISTORY:]
        self.pace.note(self.frames[-1]["batch"] if self.frames else 0)
        state = state_of(self.track.scene, live=True)
        self._send("paused" if state == "live" and paused_now(self.run) else state, since)

    def last(self, error: BaseException | None) -> None:
        """The run is over, or its view failed."""
        end = self.track.scene.end
        told = "" if error is None or (end and end.error) else f" · {cause(error)}"
        state = "failed" if error is not None else state_of(self.track.scene, live=False)
        self._send(state, 10**9, told)

    def page(self, state: str) -> CockpitPage:
        """All that there is to see."""
        return page(self.track, self.frames, state, self._left(), self.pace.waited())

    def _send(self, state: str, since: int, told: str = "") -> None:
        if (start := self.track.scene.start) is not None and not self.track.offers:
            self.track.offers = self.cockpit.offered(start)
        rest = self.track.rest(state, self._left(), self.pace.waited())
        rest["note"] += told
        fresh = [frame for frame in self.frames if frame["batch"] > since]
        self.cockpit.page.update({**rest, "frames": self.frames, "hosts": self.track.hosts()})
        more = {**rest, "frames": fresh, "hosts": self.track.hosts(since)}
        self.cockpit.send({"more": more})

    def _left(self) -> float | None:
        start = self.track.scene.start
        if start is None or start.batches is None or self.track.scene.end is not None:
            return None
        return self.pace.left(start.batches + self.track.scene.changes)
