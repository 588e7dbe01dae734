"""A film: pictures of a run, one after the other, that can be gone through forwards and backwards,
with or without a kernel.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar
from uuid import uuid4

import anywidget
import traitlets
from braid.core.events import BatchCommitted

from braid_widgets.base import colours

_HERE = Path(__file__).parent
_CSS = "".join((_HERE / name).read_text(encoding="utf-8") for name in ("stage.css", "film.css"))
_BAR = (_HERE / "film.js").read_text(encoding="utf-8")


MOST = 200
"""Pictures that a film has at most; of longer runs some batches are left out."""

Item = TypeVar("Item")


class Scene(Protocol):
    """What there is to see of a run, into which its events are folded."""

    def apply(self, event: Any) -> None:
        """Take in one event."""


S = TypeVar("S", bound=Scene)


def thinned(items: Sequence[Item], most: int = MOST) -> list[Item]:
    """At most ``most`` of the items and the last one, evenly spread."""
    every = -(-len(items) // most) or 1
    return [item for k, item in enumerate(items) if k % every == 0 or k == len(items) - 1]


def pictures(
    events: Iterable[Any],
    scene: S,
    draw: Callable[[S], dict[str, Any]],
    most: int = MOST,
    shown: Callable[[BatchCommitted], bool] = lambda commit: True,
) -> list[dict[str, Any]]:
    """A picture for each committed batch that is ``shown``, thinned to ``most``."""
    found = []
    for event in events:
        scene.apply(event)
        if isinstance(event, BatchCommitted) and shown(event):
            found.append(draw(scene))
    return thinned(found, most)


def script(*painters: str) -> str:
    """The JavaScript of a film whose frames ``painters``, files of this package, draw."""
    return "\n".join(
        [*((_HERE.parent / name).read_text(encoding="utf-8") for name in painters), _BAR]
    )


class Film(anywidget.AnyWidget):
    """``frames`` (JSON values) and the ``position`` of the one that is shown; a subclass names what
    draws them.

    The root element carries ``data-seq``, the position, once it is drawn. ``to_html`` is the static
    twin: the same pictures, offline, opening on the frame that is shown.
    """

    _esm: ClassVar[str]
    _css = _CSS
    frames: traitlets.List[Any] = traitlets.List().tag(sync=True)
    palette = traitlets.Dict().tag(sync=True)
    position = traitlets.Int(0).tag(sync=True)

    def __init__(self, frames: Sequence[dict[str, Any]], position: int = -1) -> None:
        """Raises ValueError without a frame."""
        super().__init__(palette=colours.palette(64))
        self.show(frames, position)

    def show(self, frames: Sequence[dict[str, Any]], position: int = -1) -> None:
        """Show other frames from now on, at a position (-1 is the last). Raises ValueError without
        a frame.
        """
        if not frames:
            raise ValueError("there is nothing to show: pass at least one frame")
        with self.hold_sync():
            self.frames = list(frames)
            self.position = position % len(frames)

    def update(self, frames: Sequence[dict[str, Any]]) -> None:
        """Show another run, or the same one as far as it is now: then a frame that is looked at,
        but the last, stays.
        """
        same = (
            self.position < len(self.frames) - 1 and list(frames[: len(self.frames)]) == self.frames
        )
        self.show(frames, self.position if same else -1)

    def to_html(self) -> str:
        """The film as HTML that needs no kernel and no network."""
        name = f"braid-{uuid4().hex[:12]}"
        body = json.dumps(self.frames, separators=(",", ":"), ensure_ascii=False).replace(
            "</", "<\\/"
        )
        return (
            f'<style>{self._css}</style><div id="{name}"></div><script type="module">{self._esm}\n'
            f'film(document.getElementById("{name}"), {body}, {json.dumps(self.palette)}, '
            f"{self.position});</script>"
        )

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**(data or {}), "text/html": self.to_html()}, metadata
