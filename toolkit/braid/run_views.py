"""The way from a run to the widgets that show it: they know of runs by their events alone, and no
module here needs them.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from braid.util.optional_imports import missing_dependency_message

_NEEDS = ("anywidget", "ipywidgets", "plotly", "IPython")


def can_view() -> bool:
    """Whether what views need is installed: the extra for notebooks."""
    return all(find_spec(package) is not None for package in _NEEDS)


def watch(run: Any) -> Any:
    """The view of a run: what is going on, what lives where, and why each decision was taken.

    Parameters
    ----------
    run
        A run that goes on or has ended, its events, or the path of a run folder or of a recording
        (.jsonl).

    Returns a widget, ``braid_widgets.cockpit.view.Cockpit``; its ``to_html`` is a page that needs
    no kernel and no network. Raises ModuleNotFoundError when the extra for notebooks is not
    installed, and ValueError for a path that is neither a run folder nor a recording.
    """
    from braid.simulation.what_if import comparable_placements, simulate_alternative

    return load_view_module("watch").watch(run, simulate_alternative, comparable_placements)


def load_view_module(module: str) -> Any:
    """A module of the cockpit. Raises ModuleNotFoundError, with one sentence that names the extra,
    where its packages are not installed.
    """
    for package in _NEEDS:
        if find_spec(package) is None:
            raise ModuleNotFoundError(
                missing_dependency_message(package, "notebooks"), name=package
            )
    return import_module(f"braid_widgets.cockpit.{module}")
