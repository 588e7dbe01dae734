"""Joins that shed load: what they need of their streams, and what their runs tell of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, nan, prod, sqrt
from typing import Any

import pandas as pd

from braid.condition.predicate import Predicate
from braid.core.columns import DRAW, WEIGHT, WORTH
from braid.core.events import BatchCommitted, BatchHarvested
from braid.core.harvest import Worth, added, squared
from braid.core.spans import text
from braid.papers.shedding.events import HarvestPlanned
from braid.papers.shedding.shed import Shed

_CONFIDENT = 1.96
"""Standard deviations on either side that hold 95 of 100 estimates."""


def check(
    shed: Any,
    streams: Mapping[str, Any],
    on: str,
    limits: Sequence[int | None],
    time: str | Mapping[str, str] | None,
    endless: bool,
    predicate: Predicate,
) -> None:
    """Raises ValueError, with one sentence, for a way to shed load that this join cannot have.
    ``endless`` says that some stream does not end.
    """
    if not isinstance(shed, Shed):
        raise ValueError(f"shed is {shed!r}; it must be a Shed, as in Shed(seconds=1)")
    if WEIGHT in (a.lower() for a in streams):
        raise ValueError(f"the alias {WEIGHT!r} is taken in a join that sheds load; use another")
    if shed.budget.kind == "speed" and time is None:
        raise ValueError(
            "shed is by speed, which needs event time; name its column with time=, or give "
            "fraction, pairs or seconds"
        )
    if shed.budget.kind == "speed" and shed.speed is None and not endless:
        raise ValueError(
            "static streams are replayed as fast as they go; give fraction, pairs, seconds or speed"
        )
    if shed.method == "keys" and predicate.equality is None:
        raise ValueError(
            f"method 'keys' leaves out values that an equality joins on, but {on!r} has no "
            "equality that links all streams"
        )
    for alias, limit in zip(streams, limits, strict=True):
        if shed.length is not None and limit is not None and shed.length > limit:
            raise ValueError(
                f"the basic window is {text(shed.length)}, but the window of {alias} is "
                f"{text(limit)}; it must not be longer"
            )


def worth(shed: Shed | None) -> Worth | None:
    """What results are worth, for tasks; None where no load is shed."""
    if shed is None:
        return None
    return Worth(bool(shed.utility), shed.method == "keys", shed.combine)


def drawn(
    shed: Shed,
    seed: int,
    stream: int,
    hashed: Sequence[str],
    utilities: Sequence[str | None],
    predicate: Predicate,
) -> dict[str, str]:
    """Spark SQL, by name, of the columns that a join which sheds load adds to a stream: the hash
    that tuples are drawn by, and what they are worth. ``hashed`` is what tells tuples apart.
    """
    by = [str(stream), *hashed]
    if shed.method == "keys" and predicate.equality is not None:
        by = [predicate.keys[stream][predicate.equality[stream]]]
    found = {DRAW: f"xxhash64({seed}, 'shed', {', '.join(by)})"}
    if shed.utility:
        found[WORTH] = utilities[stream] or "cast(1 as double)"
    return found


def estimates(happened: Sequence[Any]) -> pd.DataFrame:
    """By batch, and for all: the fraction r, the results ``found``, those ``estimated`` of the full
    join with the ``error`` to either side that holds it in 95 of 100 runs (NaN: unknown), the share
    of pairs that was ``considered``, and the pairs that were left out (NaN where tuples were).
    """
    planned = {e.batch: e for e in happened if isinstance(e, HarvestPlanned)}
    came = {e.batch: e for e in happened if isinstance(e, BatchHarvested)}
    found = {e.batch: e.results for e in happened if isinstance(e, BatchCommitted)}
    rows = [
        _row(str(b), planned[b].fraction, found[b], [e], bool(planned[b].keep))
        for b, e in came.items()
        if b in found and b in planned
    ]
    whole = [e for b, e in came.items() if b in found]
    dropped = any(e.keep for e in planned.values())
    rows.append(_row("all", nan, sum(found[e.batch] for e in whole), whole, dropped))
    return pd.DataFrame(rows)


def _row(
    batch: str, fraction: float, found: int, came: Sequence[BatchHarvested], dropped: bool
) -> dict[str, Any]:
    """``dropped``: tuples were left out as they came, so that nobody knows the pairs."""
    considered = sum(e.considered for e in came)
    left = nan if dropped else sum(e.left_out for e in came)
    return {
        "batch": batch,
        "fraction": fraction,
        "found": found,
        "estimated": sum(e.estimated for e in came),
        "error": _error(came),
        "considered": considered / (considered + left) if considered + left else 1.0,
        "left_out": left,
        "utility": sum(e.utility for e in came),
        "estimated_utility": sum(e.estimated_utility for e in came),
    }


def _error(came: Sequence[BatchHarvested]) -> float:
    """Of the sum of some batches' estimates; NaN where it is unknown. Where tuples were left out as
    they came, one goes on to be missed, or weighed, in later batches: sketches are added first.
    """
    if any(e.variance is None for e in came):
        return nan
    alone = fsum((e.variance or 0.0) - squared(e.sketches) for e in came)
    whole = alone + squared(added(e.sketches for e in came))
    return _CONFIDENT * sqrt(max(0.0, whole))


def status(happened: Sequence[Any]) -> dict[str, Any]:
    """How much is shed now: r, the share of pairs that the last batch left out, and whether that is
    enough to keep to the budget.
    """
    planned = next((e for e in reversed(happened) if isinstance(e, HarvestPlanned)), None)
    came = next((e for e in reversed(happened) if isinstance(e, BatchHarvested)), None)
    if planned is None or came is None:
        return {"fraction": 1.0, "left_out": 0.0, "enough": True}
    pairs = came.considered + came.left_out
    left = came.left_out / pairs if pairs else 0.0
    return {
        "fraction": planned.fraction,
        "left_out": 1 - prod(planned.keep) if planned.keep else left,
        "enough": planned.enough,
    }
