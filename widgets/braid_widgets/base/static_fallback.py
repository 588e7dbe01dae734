"""Widgets that leave something to see when their kernel is gone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from IPython.display import HTML, display

_HIDDEN = (
    "<style>"
    ".jp-OutputArea-child:has(.braid-twin):has(+ .jp-OutputArea-child .braid-live),"
    ".jp-OutputArea-child:has(.braid-twin) + .jp-OutputArea-child:not(:has(.braid-live))"
    "{display:none}</style>"
)
"""The twin is hidden where the widget after it lives; where it does not, its error message is."""


LATER = 3.0
"""Seconds until the first picture is taken, so that the widget does not wait for it."""


class StaticFallback:
    """Shows a widget, which has the CSS class "braid-live", and before it ``html()``, a picture
    that needs no kernel. JupyterLab shows the widget while there is a kernel, and the picture in
    a saved notebook that is opened without.
    """

    def __init__(self, widget: Any, html: Callable[[], str]) -> None:
        self._html = html
        self._place: Any = display(_wrap_html(""), display_id=True)  # type: ignore[no-untyped-call]
        display(widget)  # type: ignore[no-untyped-call]
        later = threading.Timer(LATER, self.refresh)
        later.daemon = True
        later.start()

    def refresh(self) -> None:
        """Take the picture anew."""
        if self._place is not None:
            self._place.update(_wrap_html(self._html()))


def _wrap_html(html: str) -> HTML:
    return HTML(f'{_HIDDEN}<div class="braid-twin">{html}</div>')  # type: ignore[no-untyped-call]
