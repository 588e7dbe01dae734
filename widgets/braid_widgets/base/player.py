"""Frames of a view, and the page that shows them without a kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

_PACKAGE = Path(__file__).parents[1]


def read_bundle(name: str) -> str:
    """Return the JavaScript of a view; ``make js`` builds it from widgets/js."""
    return (_PACKAGE / "static" / f"{name}.js").read_text(encoding="utf-8")


def read_styles(*names: str) -> str:
    """Return the style sheets of this folder as one."""
    return "".join((_PACKAGE / "base" / name).read_text(encoding="utf-8") for name in names)


MOST = 200
"""Maximum number of frames; batches of longer runs are thinned out."""

Item = TypeVar("Item")


def thin(items: Sequence[Item], most: int = MOST) -> list[Item]:
    """Return at most ``most`` of the items, evenly spread, and the last one."""
    every = -(-len(items) // most) or 1
    return [item for k, item in enumerate(items) if k % every == 0 or k == len(items) - 1]


def embed_data(name: str, style: str, data: Mapping[str, Any], plain: str, bundle: str) -> str:
    """Return data as HTML that needs neither a kernel nor a network.

    - ``name``: the attribute ``data-film``, by which the JavaScript of the bundle finds the data.
    - ``plain``: the HTML that stands there until it is shown.
    """
    body = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return (
        f'<style>{style}</style><div data-film="{name}">'
        f'<script type="application/json">{body}</script>{plain}</div>'
        f'<script type="module">{read_bundle(bundle)}</script>'
    )
