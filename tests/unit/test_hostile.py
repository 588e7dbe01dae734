"""Names, texts and recordings with HTML are shown as text in every view and page.

None of it becomes an element, an attribute or a script. The views are found by the type of their
parameters.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import braid
import braid_widgets
import hub_cases
import ipywidgets
import pandas as pd
import plotly.graph_objects as go
import pyarrow as pa
import pytest
from braid import QueryHub, Shed, StreamJoin
from braid.core.placement import registered_placements
from braid.core.query import Query
from braid.core.run_events import QueryAdded, QueryRemoved, RunEnded
from braid.papers.slices.chain import Chain
from braid.simulation.simulator import simulate
from braid_lab.common.tuple_models import Line, Listing, StepExample, Trace
from braid_lab.diffusion import reference_atr
from braid_lab.shedding import runs as shedding_runs
from braid_widgets.base import display
from braid_widgets.base.charts import Chart
from braid_widgets.base.live_updates import error_html
from braid_widgets.base.run_view import fold_events
from braid_widgets.base.stepper import Stepper
from braid_widgets.base.text_table import TextTable
from bs4 import BeautifulSoup

HURT = "\"'><img src=x onerror=hurt()><script>hurt()</script><!--<script>hurt() onclick=hurt() "
"""Text that closes an attribute, a tag and a comment."""
SWING = [(0, 9), (9, 0), (9, 3), (0, 9)]
OF_THREE = [(*counts, 2) for counts in SWING]
SPAN = 4_000_000


@cache
def recordings() -> list[list[Any]]:
    """Hostile recordings: simulated runs of every placement, of a shared join, and with load
    shedding.
    """
    found = {
        name: simulate(
            p,
            SWING if p.supports_streams(2) else OF_THREE,
            windows=(5.0,) * (2 if p.supports_streams(2) else 3),
        )
        for name, kind in registered_placements().items()
        if kind.__module__.startswith("braid.")
        for p in list(kind.example_instances())[:1]
        if not p.shares_queries
    }
    served = Query("near", (SPAN, SPAN), (None, "x < 3"))
    for hosts in (1, 3):
        start, *rest = simulate(Chain(hosts=hosts), SWING, queries=(served,))
        spans, where = dict.fromkeys("rs", SPAN), dict(r=None, s="x < 3")
        gone = QueryRemoved(len(SWING), "near")
        query = QueryAdded(-1, "near", 0, spans, where, {})
        found[f"Chain of {hosts}"] = [start, query, *rest[:-1], gone, rest[-1]]
    sets = shedding_runs.sets_from_controls(rate=20.0, window=6.0, seconds=3.0, kappa=1.0)
    found["Shed"] = shedding_runs.simulate_shedding(
        sets, Shed(fraction=0.2, basic_window="1 second")
    )
    reported = [
        reported for events in found.values() for reported in (names(events), texts(events))
    ]
    places = ("keys", "node", "streams", "sink", "source_node", "target_node", "inputs", "item")
    return [*reported, [hostile(e, type(e), places) for e in hub()]]


def hub() -> list[Any]:
    """The events of a hub that answers a query."""
    with TemporaryDirectory() as folder:
        driven = hub_cases.SteppedHub(
            Path(folder) / "hub", hub_cases.make_hub_tables(1), hub_cases.NETWORK, hub_cases.AT
        )
        driven.submit(hub_cases.WIDE, "wide", "S1")
        driven.step()
        return list(driven.registry.log.store.events.read_since(0))


def hostile(value: Any, kind: Any, but: tuple[str, ...]) -> Any:
    """Return the value with HTML in every free text, except in fields named in ``but``."""
    inside, origin = get_args(kind), get_origin(kind)
    if kind is str:
        return HURT + value
    if origin is Literal or value is None:
        return value
    if origin in (Union, UnionType):
        return hostile(value, next(k for k in inside if k is not type(None)), but)
    if isinstance(value, Mapping) and len(inside) == 2:
        keys = value if "keys" in but else [hostile(k, inside[0], but) for k in value]
        return dict(zip(keys, (hostile(v, inside[1], but) for v in value.values()), strict=True))
    if isinstance(value, tuple) and inside:
        each = [inside[0]] * len(value) if inside[-1] is Ellipsis else inside
        return tuple(hostile(v, k, but) for v, k in zip(value, each, strict=True))
    if is_dataclass(value) and not isinstance(value, type):
        hints = get_type_hints(type(value))
        wanted = [f.name for f in fields(value) if f.init and f.name not in but]
        changed = {n: hostile(getattr(value, n), hints[n], but) for n in wanted}
        return replace(value, **changed)
    return value


MEANT = (
    "placement",
    "time_source",
    "windows",
    "placement_settings",
    "seconds_by_phase",
    "streams",
    "complete_since",
    "selections",
)
"""Texts that views interpret."""


def names(events: list[Any]) -> list[Any]:
    """Return every name and text except those that views interpret."""
    start = replace(events[0], streams=tuple(HURT + s for s in events[0].streams))
    ended = RunEnded(events[-1].batch, "failed", f"OSError: {HURT}")
    changed = [hostile(_renamed(e), type(e), MEANT) for e in events[1:-1]]
    return [replace(start, condition=HURT, windows={HURT: "5 seconds"}), *changed, ended]


def _renamed(event: Any) -> Any:
    """Return the event with the streams renamed."""
    if not isinstance(event, QueryAdded):
        return event
    named = {n: getattr(event, n) for n in ("windows", "selections", "complete_since")}
    return replace(event, **{n: {HURT + s: x for s, x in by.items()} for n, by in named.items()})


def texts(events: list[Any]) -> list[Any]:
    """Return every text; views may refuse some."""
    return [hostile(e, type(e), ()) for e in events]


def modules(package: Any) -> Iterator[Any]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


def is_typed(made: Any) -> bool:
    """Return whether it is the type of a frame."""
    return inspect.isclass(made) and issubclass(made, dict)


def views() -> dict[str, tuple[str, Callable[..., Any]]]:
    """Return the functions of events by name, with the name of their first parameter."""
    found = {}
    for module in modules(braid_widgets):
        for name, made in vars(module).items():
            if name.startswith("_") or getattr(made, "__module__", "") != module.__name__:
                continue
            if callable(made) and not inspect.isabstract(made) and not is_typed(made):
                first, *more = [*inspect.signature(made).parameters.values(), None]
                needed = [p for p in more if p and p.default is p.empty and p.name != "path"]
                framed = "Frame" in str(inspect.signature(made).return_annotation)
                if first is not None and first.name in TAKEN and not needed and not framed:
                    found[f"{module.__name__}.{name}"] = (first.name, made)
    return found


TAKEN: dict[str, Callable[[list[Any]], Any]] = {
    "events": lambda events: events,
    "source": lambda events: events,
    "scene": fold_events,
    "runs": lambda events: {HURT + "1": events, HURT + "2": events},
}
"""First parameters of views, and how they are made from a recording."""


def list_html(made: Any) -> Iterator[str]:
    """Return all HTML representations of an object."""
    if isinstance(made, Chart):
        yield made.to_html(first=False)
    elif isinstance(made, Path):
        yield made.read_text(encoding="utf-8")
    elif isinstance(made, str) and re.search(r"</\w+>", made.replace(HURT, "")):
        yield made
    elif isinstance(made, pd.DataFrame):
        yield display.static_html(TextTable(made))
        yield made.to_html()
    elif hasattr(made, "to_html"):
        yield made.to_html()
    if isinstance(made, ipywidgets.Widget):
        for widget in within(made):
            if isinstance(widget, (ipywidgets.HTML, ipywidgets.HTMLMath)):
                yield widget.value


def within(widget: Any) -> Iterator[Any]:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from within(child)


def hurts(html: str) -> list[str]:
    """Return what a browser would interpret as more than text."""
    page = BeautifulSoup(html, "html.parser")
    found = [str(tag)[:80] for tag in page.find_all("img")]
    found += [f"{tag.name} {a}" for tag in page.find_all() for a in tag.attrs if a[:2] == "on"]
    found += [str(tag)[:80] for tag in page.find_all("script") if "<!--" in tag.get_text()]
    raw = ("<script>hurt", "<!--<script>hurt", "<img src=x", "onclick=hurt()>")
    return found + [text for text in raw if text in html]


def test_what_is_looked_for_is_found() -> None:
    assert hurts(f"<p>{HURT}</p>") and hurts(f'<p title="{HURT}">') and hurts(f"<title>{HURT}")
    assert hurts(f'<script>{{"x": "{HURT}"}}</script>')


@pytest.mark.parametrize("view", views())
def test_every_view_shows_text_as_text(view: str, tmp_path: Path) -> None:
    takes, make = views()[view]
    shown = 0
    for n, reported in enumerate(recordings()):
        saved = (tmp_path / f"{n}.html",) if "path" in inspect.signature(make).parameters else ()
        try:
            made = make(TAKEN[takes](reported), *saved)
        except Exception:  # the view does not show this run, or refuses its text
            continue
        for html in list_html(made):
            assert hurts(html) == []
        if (shown := shown + 1) == 4:
            return
    assert shown, "it was shown a run"


def test_there_are_views() -> None:
    of = [name.removeprefix("braid_widgets.") for name in views()]
    assert len(of) > 15
    assert "cockpit.page.save_run_page" in of


def test_pages_and_errors_show_text_as_text() -> None:
    chart = Chart(
        HURT,
        {HURT: go.Figure(go.Bar(name=HURT, x=[HURT]), dict(xaxis_title=HURT, yaxis_title=HURT))},
        pd.DataFrame({HURT: [HURT]}),
        HURT,
    )
    page = chart.to_html(first=False)
    steps = Stepper(hurt_steps()).to_html()
    listing = TextTable(pd.DataFrame({HURT: [HURT]}), 0, HURT).to_html()
    reported = (page, steps, error_html(OSError(HURT)), listing)
    assert [hurts(html) for html in reported] == [[]] * 4


def hurt_steps() -> StepExample:
    """Return an example in which every text hurts."""
    example, listing = reference_atr.EXAMPLE, Listing(HURT, HURT, ((1, 1, HURT),), HURT)

    def run(*texts: str) -> Trace:
        trace = reference_atr.run_typed("a b")
        steps = [replace(s, text=HURT, line=Line(HURT, 1, 1), arrival=HURT) for s in trace.steps]
        return replace(trace, title=HURT, steps=steps, listings=(listing,), names=(HURT,) * 3)

    return replace(example, run=run, labels=(HURT,), texts=(HURT,), variants={HURT: (HURT,)})


def test_what_shows_itself_in_notebooks_shows_text_as_text(tmp_path: Path) -> None:
    """Every class of the toolkit with an HTML representation."""
    kinds = {
        kind
        for module in modules(braid)
        for kind in vars(module).values()
        if inspect.isclass(kind) and kind.__module__.startswith("braid.")
        if "_repr_html_" in vars(kind)
    }
    rows = pa.table({HURT: [1, 2], "x": [1, 2]})
    join = StreamJoin({"a": rows, "b": rows}, f"a.x = b.x AND a.x <> length({HURT!r})", Odd())
    run = join.start(tmp_path / HURT.replace("/", "|"), batches=1)
    run.awaitTermination()
    answering = QueryHub(hub_cases.make_hub_tables(1), "ts").start(
        tmp_path / "hub", "batch", {HURT: hub_cases.WIDE}
    )
    answering.awaitTermination()
    answers = [run.why({"a": {HURT: 1}}), run.doctor()]
    shown = [join, run, join.placement, join.explain(), answering, *answers]
    assert {next(k for k in type(s).__mro__ if k in kinds) for s in shown} == kinds
    for each in shown:
        assert hurts(each._repr_html_()) == []


class Odd(braid.Centralized):
    """A class with HTML as its name."""

    label = HURT
