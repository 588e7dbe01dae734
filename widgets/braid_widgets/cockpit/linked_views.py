"""Several runs side by side, with one timeline that selects the same batch in all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import anywidget
import traitlets
from braid.core.run_events import BatchCommitted

from braid_widgets.base.player import embed_data, read_bundle
from braid_widgets.base.track_records import Series, Track, make_track
from braid_widgets.cockpit.frames import CockpitPage, LinkedViewsPage
from braid_widgets.cockpit.page import CSS, page_text, recorded_page

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
    events = {name: list(happened) for name, happened in runs.items()}
    pages = [recorded_page(happened, FRAMES) for happened in events.values()]
    return {
        "names": list(events),
        "pages": pages,
        "timeline_page": _make_shared_timeline(events, pages),
    }


def _make_shared_timeline(events: Mapping[str, list[Any]], pages: list[CockpitPage]) -> CockpitPage:
    """Return one timeline: a track per run on a common scale, and the decisions of all runs."""
    fullest = {name: _find_max_stored_tuples(happened) for name, happened in events.items()}
    most = max((max(held.values(), default=0.0) for held in fullest.values()), default=0.0)
    longest = max((page["timeline"] for page in pages), key=lambda line: line["last"])
    batches = sorted({number for page in pages for number in page["timeline"]["batch"]})
    tracks = [_make_track(name, batches, held, most) for name, held in fullest.items()]
    flags = [
        {**flag, "text": f"{name}: {flag['text']}"}
        for name, page in zip(events, pages, strict=True)
        for flag in page["annotations"]
    ]
    return {
        **pages[0],
        "frames": [],
        "timeline": {**longest, "batch": batches, "tracks": tracks},
        "hosts": {"batch": [], "names": [], "values": []},
        "annotations": flags,  # type: ignore[typeddict-item]
    }


def _make_track(name: str, batches: list[int], held: Mapping[int, float], top: float) -> Track:
    rows = [held.get(number) for number in batches]
    series: Series = {"name": name, "role": "main", "batch": batches, "values": rows}
    track = make_track(f"{name}: rows, fullest host", "lines", "rows", [series], None)
    return {**track, "top": top}


def _find_max_stored_tuples(events: list[Any]) -> dict[int, float]:
    """Return the tuples on the fullest host, by batch number from 1."""
    commits = [e for e in events if isinstance(e, BatchCommitted)]
    return {
        e.batch + 1: float(max((h.stored_tuples for h in e.host_metrics), default=0))
        for e in commits
    }
