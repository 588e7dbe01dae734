"""The stage: one canvas on which a run's join matrix, hosts and time line move."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import anywidget
import traitlets

from braid_widgets.base import colours, progress
from braid_widgets.base.charts import save_page
from braid_widgets.base.film import thinned
from braid_widgets.base.fold import Scene
from braid_widgets.base.recording import Recording
from braid_widgets.base.words import origin
from braid_widgets.theta import grid, matrix, timeline

_HERE = Path(__file__).parent


def frame(scene: Scene) -> dict[str, Any]:
    """One picture: ``title``, ``note``, and what to paint of ``matrix``, ``grid`` and ``line``
    (JSON values).
    """
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


def page(frames: Sequence[dict[str, Any]]) -> str:
    """Frames as HTML that needs no kernel and no network: one picture, or a slider with Play when
    there are several.
    """
    name = f"braid-{uuid4().hex[:12]}"
    script = (_HERE / "stage.js").read_text(encoding="utf-8")
    body = json.dumps(list(frames), separators=(",", ":")).replace("</", "<\\/")
    shades = json.dumps(colours.palette(_hosts(frames)))
    return (
        f"<style>{(_HERE.parent / 'base' / 'stage.css').read_text(encoding='utf-8')}</style><div "
        f'id="{name}"></div>'
        f'<script type="module">{script}\nreplay(document.getElementById("{name}"), {body}, '
        f"{shades});</script>"
    )


def _hosts(frames: Iterable[dict[str, Any]]) -> int:
    seen: list[int] = [c[0] for f in frames for g in f["grid"]["groups"] for c in g["cells"]]
    return max(seen, default=0) + 1


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

    _esm = _HERE / "stage.js"
    _css = _HERE.parent / "base" / "stage.css"
    frame = traitlets.Dict().tag(sync=True)
    palette = traitlets.Dict().tag(sync=True)
    seq = traitlets.Int(0).tag(sync=True)

    def __init__(self, scene: Scene | None = None) -> None:
        super().__init__(frame=frame(scene or Scene()), palette=colours.palette(256))

    def show(self, scene: Scene) -> bool:
        """Paint a scene; nothing is sent when its picture is the one that is there. Returns whether
        it was painted.
        """
        new = frame(scene)
        if new == self.frame:
            return False
        with self.hold_sync():
            self.frame = new
            self.seq += 1
        return True

    def to_html(self) -> str:
        """The current picture without a kernel."""
        return page([self.frame])

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**(data or {}), "text/html": self.to_html()}, metadata
