"""Runs side by side, in step: one time line, a batch of which is shown of all of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import anywidget
import traitlets
from braid.core.events import BatchCommitted

from braid_widgets.base import colors
from braid_widgets.base.player import read_bundle, read_styles
from braid_widgets.cockpit.frames import CockpitPage, LinkedViewsPage
from braid_widgets.cockpit.page import page_text, recorded_page
from braid_widgets.theta.timeline import TimelineCurve

MOST_RUNS = 4
"""That find room side by side."""
FRAMES = 100
"""Batches of a run that have a picture."""
_CSS = read_styles("stage.css", "film.css", "cockpit.css")


class LinkedViews(anywidget.AnyWidget):
    """Shows up to four runs (their events, by name), each with its figures and its map, and below
    them what is on the fullest host of each, on one scale.

    Raises ValueError for more runs, and for none.
    """

    _esm = read_bundle("abreast")
    _css = _CSS
    page: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    palette = traitlets.Dict().tag(sync=True)

    def __init__(self, runs: Mapping[str, Iterable[Any]]) -> None:
        super().__init__(page=dict(_make_page(runs)), palette=colors.make_palette(256))

    def load_runs(self, runs: Mapping[str, Iterable[Any]]) -> None:
        """Show others from now on. Raises ValueError as the constructor does."""
        self.page = dict(_make_page(runs))

    def to_html(self) -> str:
        """The runs as HTML that needs no kernel and no network."""
        data = {"page": self.page, "palette": self.palette}
        body = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
        told = "".join(page_text(page) for page in self.page["pages"])
        return (
            f'<style>{_CSS}</style><div data-film="abreast">'
            f'<script type="application/json">{body}</script>{told}</div>'
            f'<script type="module">{read_bundle("abreast")}</script>'
        )

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """HTML, which a saved notebook shows without its kernel; panels hold the widget."""
        told = f"Abreast({', '.join(self.page['names'])})"
        return {"text/html": self.to_html(), "text/plain": told}, {}


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
    """One time line: a panel for each run, all on one scale, and the decisions of all."""
    fullest = {name: _find_max_stored_tuples(happened) for name, happened in events.items()}
    most = max((max(held.values(), default=0.0) for held in fullest.values()), default=0.0)
    longest = max((page["timeline"] for page in pages), key=lambda line: line["last"])
    batches = sorted({number for page in pages for number in page["timeline"]["batch"]})
    panels: list[list[TimelineCurve]] = [
        [
            {
                "name": f"{name}: tuples on the fullest host",
                "color": colour,
                "values": [held.get(number) for number in batches],
                "ceiling": most,
            }
        ]
        for (name, held), colour in zip(fullest.items(), _COLOURS, strict=False)
    ]
    flags = [
        {**flag, "text": f"{name}: {flag['text']}"}
        for name, page in zip(events, pages, strict=True)
        for flag in page["annotations"]
    ]
    return {
        **pages[0],
        "frames": [],
        "timeline": {**longest, "batch": batches, "panels": panels, "migrations": []},
        "hosts": {"batch": [], "names": [], "values": []},
        "annotations": flags,  # type: ignore[typeddict-item]
    }


_COLOURS = ("ratio", "migration", "throughput", "results")


def _find_max_stored_tuples(events: list[Any]) -> dict[int, float]:
    """By the number of the batch, from 1."""
    commits = [e for e in events if isinstance(e, BatchCommitted)]
    return {
        e.batch + 1: float(max((h.stored_tuples for h in e.host_metrics), default=0))
        for e in commits
    }
