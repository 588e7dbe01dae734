"""The stage: one canvas on which a run's join matrix, hosts and time line move."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypedDict

import anywidget
import traitlets

from braid_widgets.base import colours, film, progress
from braid_widgets.base.charts import save_page
from braid_widgets.base.film import bundle, css, thinned
from braid_widgets.base.fold import Scene
from braid_widgets.base.recording import Recording
from braid_widgets.base.words import origin
from braid_widgets.theta import grid, matrix, timeline
from braid_widgets.theta.grid import HostsFrame
from braid_widgets.theta.matrix import MatrixFrame
from braid_widgets.theta.timeline import LineFrame


class StageFrame(TypedDict):
    """One picture: the join matrix, the hosts' grid and the time line, under a title and a note."""

    title: str
    note: str
    matrix: MatrixFrame
    grid: HostsFrame
    line: LineFrame


def frame(scene: Scene) -> StageFrame:
    """The picture of a scene."""
    return {
        "title": _title(scene),
        "note": _note(scene),
        "matrix": matrix.data(scene),
        "grid": grid.data(scene),
        "line": timeline.data(scene),
    }


def _title(scene: Scene) -> str:
    if scene.start is None:
        return "No run yet"
    batch = "no batch yet" if scene.last is None else f"batch {progress.fed(scene):,}"
    of = f" of {scene.start.batches:,}" if scene.last and scene.start.batches else ""
    on = f" ON {scene.start.on}" if scene.start.on else ""
    ended = (
        f" · {scene.end.reason}"
        if scene.end
        else f" · {progress.FINISHING}"
        if progress.finishing(scene)
        else ""
    )
    return f"{batch}{of} · {' ⋈ '.join(scene.streams)}{on}{ended}"


def _note(scene: Scene) -> str:
    if scene.start is None:
        return ""
    hosts = scene.points[-1].hosts if scene.points else scene.start.hosts
    windows = ", ".join(f"{a} {w}" for a, w in scene.start.windows.items()) or "full history"
    results = "" if scene.modelled else f"{scene.totals.results:,} results · "
    facts = results + origin(scene.start)
    return f"{scene.start.placement}, {hosts} hosts · windows: {windows} · {facts}"


def page(frames: Sequence[StageFrame]) -> str:
    """Frames as HTML that needs no kernel and no network: one picture, or a slider with Play when
    there are several.
    """
    shades = colours.palette(_hosts(frames))
    return film.page("stage", css("stage.css"), frames, shades, len(frames) - 1)


def _hosts(frames: Iterable[StageFrame]) -> int:
    groups = [group for frame in frames for group in frame["grid"]["groups"]]
    hosts: list[int] = [host for group in groups for host in group["cells"]["host"]]
    return max(hosts, default=0) + 1


def replay(events: Iterable[Any] | str | Path, most: int = 200) -> str:
    """A recorded run as HTML that plays offline, in the same pictures as the live widget; at most
    ``most`` frames.
    """
    recording = Recording(events)
    kept = set(thinned(range(len(recording)), most))
    return page([frame(scene) for k, scene in enumerate(recording) if k in kept])


def save(events: Iterable[Any] | str | Path, path: str | Path, overwrite: bool = False) -> Path:
    """Write the replay as a page. Raises FileExistsError rather than replace a file silently."""
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" '
        'content="light dark">'
    )
    head += "<title>Braid: a recorded run</title></head><body>"
    return save_page(path, f"{head}{replay(events)}</body></html>", overwrite)


class Stage(anywidget.AnyWidget):
    """A live picture. Its traits hold the current frame only; ``seq`` counts the frames and makes
    the page repaint.

    The root element carries ``data-seq`` and ``data-hash`` (of the frame's content) once a frame is
    painted.
    """

    _esm = bundle("stage")
    _css = css("stage.css")
    frame = traitlets.Dict().tag(sync=True)
    palette = traitlets.Dict().tag(sync=True)
    seq = traitlets.Int(0).tag(sync=True)

    def __init__(self, scene: Scene | None = None) -> None:
        self._shown = frame(scene or Scene())
        super().__init__(frame=dict(self._shown), palette=colours.palette(256))

    def show(self, scene: Scene) -> bool:
        """Paint a scene; nothing is sent when its picture is the one that is there. Returns whether
        it was painted.
        """
        new = frame(scene)
        if new == self._shown:
            return False
        with self.hold_sync():
            self._shown = new
            self.frame = dict(new)
            self.seq += 1
        return True

    def to_html(self) -> str:
        """The current picture without a kernel."""
        return page([self._shown])

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**(data or {}), "text/html": self.to_html()}, metadata
