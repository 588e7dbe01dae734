"""Open the views of a run.

Views know a run by its events alone, and no other module imports them.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from braid.core.plugin_provider import current_provider
from braid.util.optional_imports import missing_dependency_message

_NEEDS = ("anywidget", "ipywidgets", "plotly", "IPython")


def can_view() -> bool:
    """Return whether the packages for views are installed (the extra for notebooks)."""
    return all(find_spec(package) is not None for package in _NEEDS)


def watch(run: Any) -> Any:
    """Return the cockpit of a run.

    It shows progress, state by host, and the reason for each decision.

    Parameters
    ----------
    run
        An active or ended run, its events, or the path of a run folder or a recording (.jsonl).

    Returns a widget, ``braid_widgets.cockpit.view.Cockpit``. Its ``to_html`` returns a page that
    needs no kernel and no network. Raises ModuleNotFoundError if the extra for notebooks is not
    installed, and ValueError for a path that is neither a run folder nor a recording.
    """
    return load_view_module("watch").watch(run)


def load_view_module(module: str) -> Any:
    """Return a module of the cockpit.

    Raises ModuleNotFoundError, which names the extra, if its packages are not installed.
    """
    for package in _NEEDS:
        if find_spec(package) is None:
            raise ModuleNotFoundError(
                missing_dependency_message(package, "notebooks"), name=package
            )
    return current_provider().load_view(module)
