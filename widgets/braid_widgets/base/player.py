"""A film: pictures of a run, one after the other, that can be gone through forwards and backwards,
with or without a kernel.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import anywidget
import plotly.graph_objects as go
import traitlets
from braid.core.events import BatchCommitted
from braid.util.error_summary import summarize_error

from braid_widgets.base import colors, svg_chart
from braid_widgets.base.colors import Palette

_PACKAGE = Path(__file__).parents[1]


def read_bundle(name: str) -> str:
    """The JavaScript of a film or of the stage: ``make js`` makes it from widgets/js."""
    return (_PACKAGE / "static" / f"{name}.js").read_text(encoding="utf-8")


def read_styles(*names: str) -> str:
    """Style sheets of this folder as one."""
    return "".join((_PACKAGE / "base" / name).read_text(encoding="utf-8") for name in names)


_CSS = read_styles("stage.css", "film.css")

MOST = 200
"""Pictures that a film has at most; of longer runs some batches are left out."""

Item = TypeVar("Item")


class ViewState(Protocol):
    """What there is to see of a run, into which its events are folded."""

    def apply_event(self, event: Any) -> None:
        """Take in one event."""


S = TypeVar("S", bound=ViewState)


def thin(items: Sequence[Item], most: int = MOST) -> list[Item]:
    """At most ``most`` of the items and the last one, evenly spread."""
    every = -(-len(items) // most) or 1
    return [item for k, item in enumerate(items) if k % every == 0 or k == len(items) - 1]


def collect_frames(
    events: Iterable[Any],
    scene: S,
    draw: Callable[[S], Item],
    most: int = MOST,
    shown: Callable[[BatchCommitted], bool] = lambda commit: True,
) -> list[Item]:
    """A picture for each committed batch that is ``shown``, thinned to ``most``."""
    found = []
    for event in events:
        scene.apply_event(event)
        if isinstance(event, BatchCommitted) and shown(event):
            found.append(draw(scene))
    return thin(found, most)


def render_page(
    name: str, style: str, frames: Sequence[Any], palette: Palette, position: int, plain: str = ""
) -> str:
    """Frames as HTML that needs no kernel and no network: the bundle of that name finds its data by
    ``data-film``. ``plain`` is HTML for who has no JavaScript.
    """
    data = {"frames": list(frames), "palette": palette, "position": position}
    body = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return (
        f'<style>{style}</style><div data-film="{name}">'
        f'<script type="application/json">{body}</script></div><noscript>{plain}</noscript>'
        f'<script type="module">{read_bundle(name)}</script>'
    )


def _make_traits(frames: Sequence[Mapping[str, Any]], position: int) -> dict[str, Any]:
    """What a film's traits are that shows these. Raises ValueError without a frame."""
    if not frames:
        raise ValueError("there is nothing to show: pass at least one frame")
    return {"frames": list(frames), "position": position % len(frames)}


class Player(anywidget.AnyWidget):
    """``frames`` (JSON values) and the ``position`` of the one that is shown; a subclass names what
    draws them.

    The root element carries ``data-seq``, the position, once it is drawn. ``to_html`` is the static
    twin: the same pictures, offline, opening on the frame that is shown.
    """

    _name: ClassVar[str]
    _esm: ClassVar[str]
    _css = _CSS
    frames: traitlets.List[Any] = traitlets.List().tag(sync=True)
    palette = traitlets.Dict().tag(sync=True)
    position = traitlets.Int(0).tag(sync=True)

    def __init__(self, frames: Sequence[Mapping[str, Any]], position: int = -1) -> None:
        """Raises ValueError without a frame."""
        self._palette = colors.make_palette(64)
        super().__init__(palette=self._palette, **_make_traits(frames, position))
        self.on_msg(self._handle_query_message)

    def set_frames(self, frames: Sequence[Mapping[str, Any]], position: int = -1) -> None:
        """Show other frames from now on, at a position (-1 is the last). Raises ValueError without
        a frame.
        """
        with self.hold_sync():
            for name, value in _make_traits(frames, position).items():
                self.set_trait(name, value)

    def refresh(self, frames: Sequence[Mapping[str, Any]]) -> None:
        """Show another run, or the same one as far as it is now: then a frame that is looked at,
        but the last, stays; if it has been thinned out, the nearest before it.
        """
        self.set_frames(
            frames, self._find_current_frame(frames) if self.position < len(self.frames) - 1 else -1
        )

    def _find_current_frame(self, frames: Sequence[Mapping[str, Any]]) -> int:
        """Where among the frames of the same run the one is that is looked at; -1: another run."""
        if list(frames[: len(self.frames)]) == self.frames:
            return self.position
        if not any(frame in frames for frame in self.frames[1:-1]):
            return -1
        kept = (f for f in reversed(self.frames[: self.position + 1]) if f in frames)
        return next(map(list(frames).index, kept), -1)

    def describe_query(self, query: str, frame: Mapping[str, Any]) -> str:
        """What is told of a query that is clicked in a frame. Raises ValueError for none of its."""
        return ""

    def _handle_query_message(self, widget: Any, content: Any, buffers: Any) -> None:
        if not isinstance(content, dict) or (query := content.get("query")) is None:
            return
        try:
            told = self.describe_query(str(query), self.frames[int(content["position"])])
        except (ValueError, KeyError, IndexError, TypeError) as error:
            told = summarize_error(error)
        self.send({"inspected": told})

    def to_html(self) -> str:
        """The film as HTML that needs no kernel and no network."""
        kept, plain = (
            [self.static_frame(f) for f in self.frames],
            self.frame_text(self.frames[self.position]),
        )
        return render_page(self._name, self._css, kept, self._palette, self.position, plain)

    def static_frame(self, frame: Mapping[str, Any]) -> Mapping[str, Any]:
        """A frame for a page, where no kernel answers clicks."""
        return frame

    def frame_text(self, frame: Mapping[str, Any]) -> str:
        """A frame for who has no JavaScript: what is held where, as bars; HTML."""
        bars = [
            go.Bar(
                name=name, x=list(rows), y=list(rows.values()), marker_color=colors.stream_color(k)
            )
            for k, (name, rows) in enumerate(self.held_tuples(frame).items())
        ]
        plot = go.Figure(bars, layout=dict(title=frame["title"], barmode="stack", height=360))
        plot.update_yaxes(title="tuples held")
        return f"{svg_chart.chart_svg(plot, frame['title'])}<p>{escape(frame['note'])}</p>"

    def held_tuples(self, frame: Mapping[str, Any]) -> Mapping[str, Mapping[str, float]]:
        """By stream and place, the tuples that a frame shows."""
        return {}

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """HTML, which a saved notebook shows without its kernel; panels hold the widget."""
        name = f"{type(self).__name__}({len(self.frames)} pictures)"
        return {"text/html": self.to_html(), "text/plain": name}, {}
