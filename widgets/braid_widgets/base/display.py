"""Show a view: the widget where somebody can press its buttons, else a twin that needs no kernel
and no network.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import ipywidgets as W
from braid.core.event_logging import LOGGER
from IPython.display import HTML, display

from braid_widgets.base.charts import Chart
from braid_widgets.base.interactivity import execute_request, is_headless, resize_script
from braid_widgets.base.static_fallback import LATER, StaticFallback


class _Page:
    """Whether this process has put on its page plotly.js, and what fits charts to their width; and
    how many charts.
    """

    has_plotly = False
    fits = False
    charts = 0


def static_html(view: Any) -> str:
    """The static twin of a chart, a film or a cockpit; only the first chart of the process holds
    plotly.js.
    """
    if not isinstance(view, Chart):
        return str(view.to_html())
    first, _Page.has_plotly = not _Page.has_plotly, True
    _Page.charts += 1
    return view.to_html(first, f"chart-{_Page.charts}")


def display_view(view: Any) -> None:
    """Display a chart, a film, a cockpit or a pandas DataFrame in a notebook. In a report the
    numbers of a view that has some go with it, for its JSON.
    """
    if not is_headless():
        display(view)  # type: ignore[no-untyped-call]
        if isinstance(view, Chart) and not _Page.fits:
            _Page.fits = True
            display(HTML(resize_script()))  # type: ignore[no-untyped-call]
        return
    data = {"braid": view.numbers()} if hasattr(view, "numbers") else None
    display(HTML(static_html(view)), metadata=data)  # type: ignore[no-untyped-call]


def display_panel(panel: Any, *views: Any, warm: Callable[[], Any] | None = None) -> None:
    """Display a panel, and what it drives, where somebody can press its buttons, and without a
    kernel what was seen last; in a report do what its Launch does, and show its ``twins``.

    ``warm`` makes ready what every launch needs. It is called in a thread of its own, once the
    panel has had time to be drawn, and only where somebody can press a button; what goes wrong in
    it the first launch tells too.
    """
    if is_headless():
        for twin in panel.static_views():
            display_view(twin)
        return
    box = W.VBox([panel, *views])
    box.add_class("braid-live")
    page = import_module("braid_widgets.cockpit.page")  # it stands above, and shows any run
    twin = StaticFallback(box, lambda: str(page.static_html(panel.visible_events())))
    panel.settled.append(twin.refresh)
    if warm is not None and execute_request() is not None:
        later = threading.Timer(LATER, _run_warm_up, [warm])
        later.daemon = True
        later.start()


def _run_warm_up(warm: Callable[[], Any]) -> None:
    try:
        warm()
    except Exception:
        LOGGER.warning("what launches need is not ready", exc_info=True)
