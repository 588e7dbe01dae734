"""The page of a run: HTML made from its events that needs no kernel."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from braid.core.event_jsonl import read_known_events
from braid.util.validation import check_page_file

from braid_widgets.base.charts import save_page
from braid_widgets.base.player import embed_data, read_bundle, read_styles, thin
from braid_widgets.cockpit.frames import CockpitPage, FrameCollector
from braid_widgets.reuse.hub_run import get_batch_number

FRAMES = 200
"""Maximum number of frames of a page; batches of longer runs are thinned out."""

HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" '
    'content="light dark"><meta name="viewport" content="width=device-width, initial-scale=1">'
    "<style>body{margin:0}body>.braid.braid-cockpit{height:100vh;min-height:560px;max-width:none}</style>"
)
CSS = read_styles("stage.css", "film.css", "palette.css", "cockpit.css")


def fold_recording(
    events: Iterable[Any], most: int = FRAMES, is_own: bool = False, omissions: str = ""
) -> FrameCollector:
    """Return the fold of a run's events, with at most ``most`` frames.

    - ``is_own``: whether the run was started here; else it is a recording.
    - ``omissions``: what was left out of the events, in words.
    """
    happened, track = list(events), FrameCollector(is_own, omissions)
    numbers = [n for event in happened if (n := get_batch_number(event)) is not None]
    drawn = set(thin(numbers, most))
    for event in happened:
        track.apply_events([event], get_batch_number(event) in drawn)
    return track


def recorded_page(events: Iterable[Any], most: int = FRAMES, omissions: str = "") -> CockpitPage:
    """Return the page of a run from its events, with at most ``most`` frames."""
    return fold_recording(events, most, omissions=omissions).make_page()


def page_html(shown: CockpitPage, more: str = "", plays: bool = False) -> str:
    """Return a page as HTML that needs neither a kernel nor a network.

    ``more`` is the URL from which a served page fetches updates. ``plays``: whether it opens before
    the largest decision and plays to the end; else it opens at the end.
    """
    data = {"page": shown, "more": more, "plays": plays}
    return embed_data("cockpit", CSS, data, page_text(shown), "cockpit")


def hash_script() -> str:
    """Return the hash of the script of ``page_html``, in the form of a Content-Security-Policy."""
    digest = sha256(read_bundle("cockpit").encode()).digest()
    return f"'sha256-{b64encode(digest).decode()}'"


def static_html(events: Iterable[Any], most: int = 40) -> str:
    """Return the HTML of a run that a saved notebook shows instead of a panel.

    It has at most ``most`` frames. Without a run, it says so.
    """
    shown = recorded_page(events, most)
    if not shown["frames"]:
        return "<p><i>Nothing was run here. Run the cell again to have its controls.</i></p>"
    return "<p><i>What was seen last; run the cell again to have its controls.</i></p>" + page_html(
        shown
    )


def page_text(shown: CockpitPage) -> str:
    """Return the text of a page for readers without JavaScript."""
    last = shown["frames"][-1] if shown["frames"] else None
    head = escape(last["title"] if last else "no batch yet")
    facts = last["key_figures"] if last else {"name": [], "value": []}
    items = "".join(
        f"<li>{escape(n)}: {escape(v)}</li>"
        for n, v in zip(facts["name"], facts["value"], strict=True)
    )
    notes = "".join(f"<li>{escape(flag['text'])}</li>" for flag in shown["annotations"])
    return (
        f'<div class="braid"><div class="braid-title">{head}</div><div class="braid-note">'
        f"{escape(shown['note'])}</div><ul>{items}</ul>{_render_stored_rows(shown)}<ul>{notes}</ul></div>"
    )


def _render_stored_rows(shown: CockpitPage) -> str:
    """Return the rows that each host stores after the last batch."""
    hosts = shown["hosts"]
    if "rows held" not in hosts["names"]:
        return ""
    rows = hosts["values"][-1][hosts["names"].index("rows held")]
    how = "modelled" if shown["state"] == "modelled" else "counted"
    hosts_text = "; ".join(f"host {host}: {n:,.0f}" for host, n in enumerate(rows))
    return f"<p>Rows stored by each host ({how}): {hosts_text}</p>"


def save_run_page(
    events: Iterable[Any] | str | Path, path: str | Path, overwrite: bool = False
) -> Path:
    """Write a run as an offline page and return its path.

    Raises FileExistsError if the file exists, unless ``overwrite``, and ValueError unless it ends
    in .html or .htm.
    """
    check_page_file(path, overwrite)
    run_events, omissions = load_events(events)
    html = page_html(recorded_page(run_events, omissions=omissions), plays=True)
    head = f"{HEAD}<title>Braid: a recorded run</title></head><body>"
    return save_page(path, f"{head}{html}</body></html>", overwrite)


def load_events(source: Iterable[Any] | str | Path) -> tuple[list[Any], str]:
    """Return the given events, or those of a run folder or a recording, and what is left out."""
    return read_known_events(source) if isinstance(source, (str, Path)) else (list(source), "")
