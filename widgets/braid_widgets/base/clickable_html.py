"""An HTML picture with clickable names."""

from __future__ import annotations

import anywidget
import traitlets

from braid_widgets.base.player import read_bundle, read_styles


class ClickableHTML(anywidget.AnyWidget):
    """A widget that shows HTML (``value``) with clickable ``names``.

    If a text equal to one of ``names`` is clicked, or Enter is pressed on it, the browser sends the
    message {"clicked": name}.
    """

    _esm = read_bundle("picture")
    _css = read_styles("film.css")
    value = traitlets.Unicode().tag(sync=True)
    names = traitlets.List(traitlets.Unicode()).tag(sync=True)
