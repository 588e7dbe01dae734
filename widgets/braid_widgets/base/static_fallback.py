"""Widgets with a static picture that remains visible without a kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from IPython.display import HTML, display

_HIDDEN = (
    "<style>"
    ".jp-OutputArea-child:has(.braid-fallback):has(+ .jp-OutputArea-child .braid-live),"
    ".jp-OutputArea-child:has(.braid-fallback) + .jp-OutputArea-child:not(:has(.braid-live))"
    "{display:none}</style>"
)
"""The style that hides the picture while the widget after it is alive, else the widget's error
message.
"""


LATER = 3.0
"""Seconds until the first picture is taken, so that the widget does not wait for it."""


class StaticFallback:
    """A widget with the CSS class "braid-live", preceded by the static picture ``html()``.

    JupyterLab shows the widget while there is a kernel, and the picture in a saved notebook that is
    opened without one.
    """

    def __init__(self, widget: Any, html: Callable[[], str]) -> None:
        self._html = html
        self._place: Any = display(_wrap_html(""), display_id=True)  # type: ignore[no-untyped-call]
        display(widget)  # type: ignore[no-untyped-call]
        later = threading.Timer(LATER, self.refresh)
        later.daemon = True
        later.start()

    def refresh(self) -> None:
        """Replace the picture by the current one."""
        if self._place is not None:
            self._place.update(_wrap_html(self._html()))


def _wrap_html(html: str) -> HTML:
    return HTML(f'{_HIDDEN}<div class="braid-fallback">{html}</div>')  # type: ignore[no-untyped-call]
