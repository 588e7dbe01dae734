"""``braid.watch``: whatever has events, shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from braid.core.event_tail import EventTail
from braid.core.events import RunStarted

from braid_widgets.base.live_updates import ObservableRun
from braid_widgets.cockpit.view import Cockpit, Imagine


def watch(
    run: ObservableRun | Iterable[Any] | str | Path,
    imagine: Imagine | None = None,
    offers: Callable[[RunStarted], Iterable[str]] = lambda start: (),
) -> Cockpit:
    """The view of a run: strip, map, hosts over time, time line, and why each decision was taken.

    Parameters
    ----------
    run
        A run that goes on (the view follows it) or has ended, its events, or the path of a run
        folder or of a recording (.jsonl).
    imagine, offers
        What another placement would do, and which there are; ``braid.watch`` gives both.

    Returns a widget; as the last line of a cell it is shown, and stays in the saved notebook. Its
    ``to_html`` is a page that needs no kernel and no network. Raises ValueError for a path that is
    neither a run folder nor a recording.
    """
    if isinstance(run, (str, Path)):
        return Cockpit(EventTail(run).read_new(), imagine=imagine, offers=offers)
    if not isinstance(run, ObservableRun):
        return Cockpit(run, imagine=imagine, offers=offers)
    if not run.isActive:
        return Cockpit(run.events(), imagine=imagine, offers=offers)
    cockpit = Cockpit(imagine=imagine, offers=offers)
    cockpit.follow(run)
    return cockpit
