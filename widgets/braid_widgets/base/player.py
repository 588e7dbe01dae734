"""A player of frames: pictures of a run, one per batch, with and without a kernel."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import anywidget
import plotly.graph_objects as go
import traitlets
from braid.core.run_events import BatchCommitted
from braid.util.error_summary import summarize_error

from braid_widgets.base import colors, svg_chart
from braid_widgets.base.colors import Palette

_PACKAGE = Path(__file__).parents[1]


def read_bundle(name: str) -> str:
    """Return the JavaScript of a player or of the stage; ``make js`` builds it from widgets/js."""
    return (_PACKAGE / "static" / f"{name}.js").read_text(encoding="utf-8")


def read_styles(*names: str) -> str:
    """Return the style sheets of this folder as one."""
    return "".join((_PACKAGE / "base" / name).read_text(encoding="utf-8") for name in names)


_CSS = read_styles("stage.css", "film.css")

MOST = 200
"""Maximum number of frames; batches of longer runs are thinned out."""

Item = TypeVar("Item")


class ViewState(Protocol):
    """The visible state of a run, folded from its events."""

    def apply_event(self, event: Any) -> None:
        """Fold in one event."""


S = TypeVar("S", bound=ViewState)


def thin(items: Sequence[Item], most: int = MOST) -> list[Item]:
    """Return at most ``most`` of the items, evenly spread, and the last one."""
    every = -(-len(items) // most) or 1
    return [item for k, item in enumerate(items) if k % every == 0 or k == len(items) - 1]


def collect_frames(
    events: Iterable[Any],
    scene: S,
    draw: Callable[[S], Item],
    most: int = MOST,
    shown: Callable[[BatchCommitted], bool] = lambda commit: True,
) -> list[Item]:
    """Return a frame for each committed batch that is ``shown``, thinned to ``most``."""
    frames = []
    for event in events:
        scene.apply_event(event)
        if isinstance(event, BatchCommitted) and shown(event):
            frames.append(draw(scene))
    return thin(frames, most)


def render_page(
    name: str, style: str, frames: Sequence[Any], palette: Palette, position: int, plain: str = ""
) -> str:
    """Return frames as HTML that needs neither a kernel nor a network.

    - ``name``: the JavaScript bundle; it finds its data by the attribute ``data-film``.
    - ``plain``: HTML for readers without JavaScript.
    """
    data = {"frames": list(frames), "palette": palette, "position": position}
    body = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return (
        f'<style>{style}</style><div data-film="{name}">'
        f'<script type="application/json">{body}</script></div><noscript>{plain}</noscript>'
        f'<script type="module">{read_bundle(name)}</script>'
    )


def _make_traits(frames: Sequence[Mapping[str, Any]], position: int) -> dict[str, Any]:
    """Return the traits of a player with these frames. Raises ValueError without frames."""
    if not frames:
        raise ValueError("there is nothing to show: pass at least one frame")
    return {"frames": list(frames), "position": position % len(frames)}


class Player(anywidget.AnyWidget):
    """A widget that plays frames of a run; a subclass names the JavaScript that draws them.

    - ``frames``: the frames, as JSON values.
    - ``position``: the index of the visible frame.

    The root element has the attribute ``data-seq`` with the position once it is drawn. ``to_html``
    returns the same frames for offline use; it opens on the visible frame.
    """

    _name: ClassVar[str]
    _esm: ClassVar[str]
    _css = _CSS
    frames: traitlets.List[Any] = traitlets.List().tag(sync=True)
    palette = traitlets.Dict().tag(sync=True)
    position = traitlets.Int(0).tag(sync=True)

    def __init__(self, frames: Sequence[Mapping[str, Any]], position: int = -1) -> None:
        """Create a player. Raises ValueError without frames."""
        self._palette = colors.make_palette(64)
        super().__init__(palette=self._palette, **_make_traits(frames, position))
        self.on_msg(self._handle_query_message)

    def set_frames(self, frames: Sequence[Mapping[str, Any]], position: int = -1) -> None:
        """Replace the frames and go to a position (-1: the last). Raises ValueError without
        frames.
        """
        with self.hold_sync():
            for name, value in _make_traits(frames, position).items():
                self.set_trait(name, value)

    def refresh(self, frames: Sequence[Mapping[str, Any]]) -> None:
        """Show another run, or new frames of the same run.

        If the user looks at a frame of the same run other than the last, that frame stays visible.
        If it was thinned out, the nearest earlier frame is shown.
        """
        self.set_frames(
            frames, self._find_current_frame(frames) if self.position < len(self.frames) - 1 else -1
        )

    def _find_current_frame(self, frames: Sequence[Mapping[str, Any]]) -> int:
        """Return the index, among new frames of the same run, of the visible frame; -1: another
        run.
        """
        if list(frames[: len(self.frames)]) == self.frames:
            return self.position
        if not any(frame in frames for frame in self.frames[1:-1]):
            return -1
        candidates = (f for f in reversed(self.frames[: self.position + 1]) if f in frames)
        return next(map(list(frames).index, candidates), -1)

    def describe_query(self, query: str, frame: Mapping[str, Any]) -> str:
        """Describe a query that is clicked in a frame. Raises ValueError for a name that is no
        query.
        """
        return ""

    def _handle_query_message(self, widget: Any, content: Any, buffers: Any) -> None:
        if not isinstance(content, dict) or (query := content.get("query")) is None:
            return
        try:
            answer = self.describe_query(str(query), self.frames[int(content["position"])])
        except (ValueError, KeyError, IndexError, TypeError) as error:
            answer = summarize_error(error)
        self.send({"inspected": answer})

    def to_html(self) -> str:
        """Return the player as HTML that needs neither a kernel nor a network."""
        shown, plain = (
            [self.static_frame(f) for f in self.frames],
            self.frame_text(self.frames[self.position]),
        )
        return render_page(self._name, self._css, shown, self._palette, self.position, plain)

    def static_frame(self, frame: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a frame for a static page, where no kernel answers clicks."""
        return frame

    def frame_text(self, frame: Mapping[str, Any]) -> str:
        """Return a frame as HTML for readers without JavaScript: bars of held tuples."""
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
        """Return the tuples that a frame shows, by stream and place."""
        return {}

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Return HTML, which a saved notebook shows without its kernel; panels hold the widget."""
        name = f"{type(self).__name__}({len(self.frames)} pictures)"
        return {"text/html": self.to_html(), "text/plain": name}, {}
