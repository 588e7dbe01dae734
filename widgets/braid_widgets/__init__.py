"""Views of live, recorded and simulated joins. Each view is a function of a run's events."""

from importlib.util import find_spec

from braid.util.optional_imports import missing_dependency_message

for _package in ("anywidget", "ipywidgets", "plotly"):
    if find_spec(_package) is None:
        raise ModuleNotFoundError(missing_dependency_message(_package, "notebooks"), name=_package)
