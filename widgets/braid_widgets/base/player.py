"""A player of frames: pictures of a run, one per batch, with and without a kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import anywidget
import traitlets

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


def thin(items: Sequence[Item], most: int = MOST) -> list[Item]:
    """Return at most ``most`` of the items, evenly spread, and the last one."""
    every = -(-len(items) // most) or 1
    return [item for k, item in enumerate(items) if k % every == 0 or k == len(items) - 1]


def render_page(
    name: str,
    style: str,
    frames: Sequence[Any],
    position: int,
    plain: str = "",
    more: Mapping[str, Any] | None = None,
) -> str:
    """Return frames as HTML that needs neither a kernel nor a network.

    - ``name``: the JavaScript bundle; it finds its data by the attribute ``data-film``.
    - ``plain``: HTML for readers without JavaScript.
    - ``more``: further data of the bundle.
    """
    data = {"frames": list(frames), "position": position, **(more or {})}
    return embed_data(name, style, data, "", name) + f"<noscript>{plain}</noscript>"


def embed_data(name: str, style: str, data: Mapping[str, Any], plain: str, bundle: str) -> str:
    """Return data as HTML with the JavaScript that shows it under the name of a view.

    ``plain`` is the HTML that stands there until then.
    """
    body = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return (
        f'<style>{style}</style><div data-film="{name}">'
        f'<script type="application/json">{body}</script>{plain}</div>'
        f'<script type="module">{read_bundle(bundle)}</script>'
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
    position = traitlets.Int(0).tag(sync=True)

    def __init__(self, frames: Sequence[Any], position: int = -1, **traits: Any) -> None:
        """Create a player with traits of a subclass. Raises ValueError without frames."""
        super().__init__(**_make_traits(frames, position), **traits)

    def set_frames(self, frames: Sequence[Mapping[str, Any]], position: int = -1) -> None:
        """Replace the frames and go to a position (-1: the last). Raises ValueError without
        frames.
        """
        with self.hold_sync():
            for name, value in _make_traits(frames, position).items():
                self.set_trait(name, value)

    def to_html(self) -> str:
        """Return the player as HTML that needs neither a kernel nor a network."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Return HTML, which a saved notebook shows without its kernel; panels hold the widget."""
        name = f"{type(self).__name__}({len(self.frames)} pictures)"
        return {"text/html": self.to_html(), "text/plain": name}, {}
