"""``braid.watch``: show anything that has events."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from braid_widgets.base.live_updates import ObservableRun
from braid_widgets.cockpit.alternative_placement import comparable_placements, simulate_alternative
from braid_widgets.cockpit.view import Cockpit


def watch(run: ObservableRun | Iterable[Any] | str | Path) -> Cockpit:
    """Return the view of a run: verdict, key figures, map, inspector, time line and
    decisions.

    Parameters
    ----------
    run
        A live run (the view follows it), a finished run, its events, or the path of a run folder or
        of a recording (.jsonl).

    The last line of a notebook cell displays the returned widget, and a saved notebook keeps its
    last picture. ``to_html`` returns a page that needs neither a kernel nor a network. Raises
    ValueError for a path that is neither a run folder nor a recording.
    """
    make_cockpit = partial(Cockpit, imagine=simulate_alternative, offers=comparable_placements)
    if not isinstance(run, ObservableRun):
        return make_cockpit(run)
    if not run.isActive:
        return make_cockpit(run.events(), is_followed=True)
    cockpit = make_cockpit()
    cockpit.follow(run)
    return cockpit
