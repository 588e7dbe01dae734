"""Load shedding of joins: validation and estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, nan, prod, sqrt
from typing import TYPE_CHECKING, Any

from braid.condition.predicate import Predicate
from braid.core.reserved_columns import WEIGHT
from braid.core.run_events import BatchCommitted, BatchShed
from braid.core.shedding_plan import estimate_variances, sum_sketches
from braid.papers.shedding.run_events import SheddingPlanned
from braid.papers.shedding.shed import Shed
from braid.util.durations import format_duration
from braid.util.row_tables import make_row_table

if TYPE_CHECKING:
    from braid.util.row_tables import RowTable

_CONFIDENT = 1.96
"""Standard deviations on either side of a 95 % confidence interval."""


def check_shedding(
    shed: Any,
    streams: Mapping[str, Any],
    on: str,
    limits: Sequence[int | None],
    time: str | Mapping[str, str] | None,
    endless: bool,
    predicate: Predicate,
) -> None:
    """Raise ValueError if the load shedder does not support this join.

    ``endless`` says whether some stream is unbounded.
    """
    if not isinstance(shed, Shed):
        raise ValueError(f"shed is {shed!r}; it must be a Shed, as in Shed(seconds=1)")
    if WEIGHT in (a.lower() for a in streams):
        raise ValueError(f"the alias {WEIGHT!r} is taken in a join that sheds load; use another")
    if shed.processing_budget.kind == "speed" and time is None:
        raise ValueError(
            "shed is by speed, which needs event time; name its column with time=, or give "
            "fraction, pairs or seconds"
        )
    if shed.processing_budget.kind == "speed" and shed.event_time_speed is None and not endless:
        raise ValueError(
            "static streams are replayed as fast as they go; give fraction, pairs, seconds or speed"
        )
    if shed.method == "keys" and predicate.equality is None:
        raise ValueError(
            f"method 'keys' leaves out values that an equality joins on, but {on!r} has no "
            "equality that links all streams"
        )
    for alias, limit in zip(streams, limits, strict=True):
        if (
            shed.basic_window_length is not None
            and limit is not None
            and shed.basic_window_length > limit
        ):
            raise ValueError(
                f"the basic window is {format_duration(shed.basic_window_length)}, but the "
                f"window of {alias} is "
                f"{format_duration(limit)}; it must not be longer"
            )


def estimates_table(happened: Sequence[Any]) -> RowTable:
    """Return the estimates of the full join's results, by batch and in total.

    See ``EngineRun.estimate_results`` for the columns. ``skipped_pairs`` is NaN if tuples were
    skipped at arrival.
    """
    planned = {e.batch: e for e in happened if isinstance(e, SheddingPlanned)}
    sheddings = {e.batch: e for e in happened if isinstance(e, BatchShed)}
    results = {e.batch: e.results for e in happened if isinstance(e, BatchCommitted)}
    rows = [
        _make_estimate_row(
            str(b), planned[b].fraction, results[b], [e], bool(planned[b].keep_shares)
        )
        for b, e in sheddings.items()
        if b in results and b in planned
    ]
    complete = [e for b, e in sheddings.items() if b in results]
    dropped = any(e.keep_shares for e in planned.values())
    rows.append(
        _make_estimate_row("all", nan, sum(results[e.batch] for e in complete), complete, dropped)
    )
    return make_row_table(rows)


def _make_estimate_row(
    batch: str, fraction: float, results: int, sheddings: Sequence[BatchShed], dropped: bool
) -> dict[str, Any]:
    """Return a row of estimates.

    ``dropped``: tuples were skipped at arrival, so pairs are unknown.
    """
    considered = sum(e.considered_pairs for e in sheddings)
    left = nan if dropped else sum(e.skipped_pairs for e in sheddings)
    return {
        "batch": batch,
        "fraction": fraction,
        "results": results,
        "estimated_results": sum(e.estimated_results for e in sheddings),
        "error_95": _estimate_error_bound(sheddings),
        "considered_pair_share": considered / (considered + left) if considered + left else 1.0,
        "skipped_pairs": left,
        "utility": sum(e.utility for e in sheddings),
        "estimated_utility": sum(e.estimated_utility for e in sheddings),
    }


def _estimate_error_bound(sheddings: Sequence[BatchShed]) -> float:
    """Return the error bound of the sum of some batches' estimates; NaN: unknown.

    A tuple skipped at arrival is also missed, or weighted, in later batches. Sketches are therefore
    added before the variance is computed.
    """
    if any(e.variance is None for e in sheddings):
        return nan
    alone = fsum((e.variance or 0.0) - estimate_variances(e.sketches) for e in sheddings)
    variance = alone + estimate_variances(sum_sketches(e.sketches for e in sheddings))
    return _CONFIDENT * sqrt(max(0.0, variance))


def shedding_status(happened: Sequence[Any]) -> dict[str, Any]:
    """Return the current load shedding.

    - "fraction": r, the share of pairs to process.
    - "left_out": share of pairs, or of tuples at arrival, that the last batch skipped.
    - "is_enough": whether shedding suffices to keep the budget.
    """
    planned = next((e for e in reversed(happened) if isinstance(e, SheddingPlanned)), None)
    shedding = next((e for e in reversed(happened) if isinstance(e, BatchShed)), None)
    if planned is None or shedding is None:
        return {"fraction": 1.0, "left_out": 0.0, "is_enough": True}
    pairs = shedding.considered_pairs + shedding.skipped_pairs
    left = shedding.skipped_pairs / pairs if pairs else 0.0
    return {
        "fraction": planned.fraction,
        "left_out": 1 - prod(planned.keep_shares) if planned.keep_shares else left,
        "is_enough": planned.is_enough,
    }
