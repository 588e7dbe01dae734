"""Show a view: the widget where somebody can press its buttons, else a twin that needs no kernel
and no network.
"""

from __future__ import annotations

import os
from typing import Any

from IPython.display import HTML, display

from braid_widgets.base.charts import Chart


class _Page:
    """Whether this process has put plotly.js on its page."""

    has_plotly = False


def headless() -> bool:
    """Whether the notebook drives itself, as in a report: BRAID_HEADLESS=1."""
    return os.environ.get("BRAID_HEADLESS", "") not in ("", "0")


def html(view: Any) -> str:
    """The static twin of a chart, a stage or a player; only the first chart of the process holds
    plotly.js.
    """
    if not isinstance(view, Chart):
        return str(view.to_html())
    first, _Page.has_plotly = not _Page.has_plotly, True
    return view.to_html(first)


def show(view: Any) -> None:
    """Display a chart, a stage, a player or a pandas DataFrame in a notebook."""
    display(HTML(html(view)) if headless() else view)  # type: ignore[no-untyped-call]
