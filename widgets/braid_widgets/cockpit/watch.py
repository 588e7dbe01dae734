"""``braid.watch``: show anything that has events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from braid.core.event_jsonl import EventTail
from braid.core.run_events import RunStarted

from braid_widgets.base.live_updates import ObservableRun
from braid_widgets.cockpit.view import Cockpit, Imagine


def watch(
    run: ObservableRun | Iterable[Any] | str | Path,
    imagine: Imagine | None = None,
    offers: Callable[[RunStarted], Iterable[str]] = lambda start: (),
) -> Cockpit:
    """Return the view of a run: verdict, key figures, map, inspector, time line and
    decisions.

    Parameters
    ----------
    run
        A live run (the view follows it), a finished run, its events, or the path of a run folder or
        of a recording (.jsonl).
    imagine, offers
        The what-if function and the placements it can simulate; ``braid.watch`` sets both.

    The last line of a notebook cell displays the returned widget, and a saved notebook keeps its
    last picture. ``to_html`` returns a page that needs neither a kernel nor a network. Raises
    ValueError for a path that is neither a run folder nor a recording.
    """
    if isinstance(run, (str, Path)):
        return Cockpit(EventTail(run).read_new(), imagine=imagine, offers=offers)
    if not isinstance(run, ObservableRun):
        return Cockpit(run, imagine=imagine, offers=offers)
    if not run.isActive:
        return Cockpit(run.events(), imagine=imagine, offers=offers, own=True)
    cockpit = Cockpit(imagine=imagine, offers=offers)
    cockpit.follow(run)
    return cockpit
