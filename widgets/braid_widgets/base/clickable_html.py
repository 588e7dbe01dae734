"""A picture whose names can be clicked."""

from __future__ import annotations

import anywidget
import traitlets

from braid_widgets.base.player import read_bundle, read_styles


class ClickableHTML(anywidget.AnyWidget):
    """Shows HTML (``value``). When a text of it that is one of ``names`` is clicked, or Enter is
    pressed on it, the message {"clicked": name} comes.
    """

    _esm = read_bundle("picture")
    _css = read_styles("film.css")
    value = traitlets.Unicode().tag(sync=True)
    names = traitlets.List(traitlets.Unicode()).tag(sync=True)
