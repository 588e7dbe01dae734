"""Words that several views use."""

from __future__ import annotations

from braid.core.events import RunStarted

MODELLED = "modelled run"


def origin(start: RunStarted) -> str:
    """Where the numbers of a run come from: "modelled run" or "measured on Spark"."""
    return MODELLED if start.clock == "modelled" else "measured on Spark"
