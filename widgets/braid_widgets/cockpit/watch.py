"""``braid.watch``: whatever has events, shown."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from braid.core.tail import Tail

from braid_widgets.base.live import Run
from braid_widgets.cockpit.view import Cockpit


def watch(run: Run | Iterable[Any] | str | Path) -> Cockpit:
    """The view of a run: strip, map, hosts over time, time line, and why each decision was taken.

    Parameters
    ----------
    run
        A run that goes on (the view follows it) or has ended, its events, or the path of a run
        folder or of a recording (.jsonl).

    Returns a widget; as the last line of a cell it is shown, and stays in the saved notebook. Its
    ``to_html`` is a page that needs no kernel and no network. Raises ValueError for a path that is
    neither a run folder nor a recording.
    """
    if isinstance(run, (str, Path)):
        return Cockpit(Tail(run).read())
    if not isinstance(run, Run):
        return Cockpit(run)
    if not run.isActive:
        return Cockpit(run.events())
    cockpit = Cockpit()
    cockpit.attach(run)
    return cockpit
