"""Display a view: as a widget if a user can press its buttons, else as static HTML.

The static HTML needs neither a kernel nor a network.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import ipywidgets as W
from braid.core.event_jsonl import LOGGER
from IPython.display import HTML, display

from braid_widgets.base.charts import Chart, is_first_chart
from braid_widgets.base.interactivity import execute_request, is_headless
from braid_widgets.base.static_fallback import LATER, StaticFallback


def static_html(view: Any) -> str:
    """Return the static HTML of a chart, a player or a cockpit.

    Only the first chart of the process includes plotly.js.
    """
    return str(view.to_html(*[is_first_chart()] if isinstance(view, Chart) else []))


def display_view(view: Any) -> None:
    """Display a chart, a player, a cockpit or a pandas DataFrame in a notebook.

    In a report, the numbers of a view are attached to its output, for the report's JSON.
    """
    if not is_headless():
        display(view)  # type: ignore[no-untyped-call]
        return
    data = {"braid": view.to_dict()} if hasattr(view, "to_dict") else None
    display(HTML(static_html(view)), metadata=data)  # type: ignore[no-untyped-call]


def display_panel(panel: Any, warm: Callable[[], Any] | None = None) -> None:
    """Display a panel.

    If a user can press its buttons, it is a widget; a notebook opened without a kernel shows the
    last picture. In a report, the panel launches its run and shows its ``static_views``.

    ``warm`` prepares for every launch. It is called in a background thread after the panel is
    drawn, and only if a user can press a button. If it fails, the first launch reports the error
    too.
    """
    if is_headless():
        for static_view in panel.static_views():
            display_view(static_view)
        return
    box = W.VBox([panel])
    box.add_class("braid-live")
    page = import_module("braid_widgets.cockpit.page")  # imported late: it belongs to a layer above
    static_view = StaticFallback(box, lambda: str(page.static_html(panel.visible_events())))
    panel.settled.append(static_view.refresh)
    if warm is not None and execute_request() is not None:
        later = threading.Timer(LATER, _run_warm_up, [warm])
        later.daemon = True
        later.start()


def _run_warm_up(warm: Callable[[], Any]) -> None:
    try:
        warm()
    except Exception:
        LOGGER.warning("preparing launches failed", exc_info=True)
