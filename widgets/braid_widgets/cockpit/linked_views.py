"""Several runs side by side, with one timeline that selects the same batch in all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import anywidget
import traitlets

from braid_widgets.base.player import embed_data, read_bundle
from braid_widgets.base.track_records import Series, Track, make_track
from braid_widgets.cockpit.decision_flags import Annotation
from braid_widgets.cockpit.frames import CockpitPage, FrameCollector, LinkedViewsPage
from braid_widgets.cockpit.page import CSS, fold_recording, page_text

MOST_RUNS = 4
"""Maximum number of runs side by side."""
FRAMES = 100
"""Maximum number of frames of a run."""


class LinkedViews(anywidget.AnyWidget):
    """A widget that shows up to four runs side by side (their events, by name).

    Each run has its key figures and its map. Below them, one chart compares the fullest host of
    each run on a common scale. Raises ValueError without runs and for too many.
    """

    _esm = read_bundle("cockpit")
    _css = CSS
    page: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)

    def __init__(self, runs: Mapping[str, Iterable[Any]]) -> None:
        super().__init__(page=dict(_make_page(runs)))

    def load_runs(self, runs: Mapping[str, Iterable[Any]]) -> None:
        """Show other runs. Raises ValueError as the constructor does."""
        self.page = dict(_make_page(runs))

    def to_html(self) -> str:
        """Return the runs as HTML that needs neither a kernel nor a network."""
        texts = "".join(page_text(page) for page in self.page["pages"])
        return embed_data("linked_views", CSS, {"page": self.page}, texts, "cockpit")

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Return HTML, which a saved notebook shows without its kernel; panels hold the widget."""
        text = f"LinkedViews({', '.join(self.page['names'])})"
        return {"text/html": self.to_html(), "text/plain": text}, {}


def _make_page(runs: Mapping[str, Iterable[Any]]) -> LinkedViewsPage:
    if not 1 <= len(runs) <= MOST_RUNS:
        raise ValueError(f"{len(runs)} runs are given; from 1 to {MOST_RUNS} stand side by side")
    folds = {name: fold_recording(happened, FRAMES) for name, happened in runs.items()}
    pages = [fold.make_page() for fold in folds.values()]
    shared = _make_shared_timeline(folds, pages)
    return {"names": list(runs), "pages": pages, "timeline_page": shared}


def _make_shared_timeline(
    folds: Mapping[str, FrameCollector], pages: list[CockpitPage]
) -> CockpitPage:
    """Return one timeline: a track per run on a common scale, and the decisions of all runs."""
    points = {
        name: {p.batch + 1: float(p.ilf_max) for p in fold.scene.points}
        for name, fold in folds.items()
    }
    most = max((rows for held in points.values() for rows in held.values()), default=0.0)
    longest = max((page["timeline"] for page in pages), key=lambda line: line["last"])
    batches = sorted({number for held in points.values() for number in held})
    tracks = [_make_track(name, batches, held, most) for name, held in points.items()]
    flags: list[Annotation] = [
        {**flag, "text": f"{name}: {flag['text']}"}
        for name, fold in folds.items()
        for flag in fold.deciding.flags
    ]
    return {
        **pages[0],
        "frames": [],
        "timeline": {**longest, "batch": batches, "tracks": tracks},
        "hosts": {"batch": [], "names": [], "values": []},
        "annotations": flags,
    }


def _make_track(name: str, batches: list[int], held: Mapping[int, float], top: float) -> Track:
    rows = [held.get(number) for number in batches]
    series: Series = {"name": name, "role": "main", "batch": batches, "values": rows}
    track = make_track(f"{name}: rows, fullest host", "lines", "rows", [series], None)
    return {**track, "top": top}
