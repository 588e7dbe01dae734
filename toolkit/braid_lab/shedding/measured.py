"""Measured shedding: New York's flights by several methods at one budget, and a burst on Spark.

The burst runs with and without a limit on seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from braid.core.run_events import BatchCommitted
from braid.papers.baselines.centralized import Centralized
from braid.papers.shedding.shed import Shed

from braid_lab.common.claims import ClaimRegistry, Finding, judge, judge_reading, leave_untested
from braid_lab.common.recorded_settings import RECORDED, record_values
from braid_lab.common.run_folders import new_run_folder
from braid_lab.shedding import runs as shedding_runs

if TYPE_CHECKING:
    from braid.join_run import JoinRun

RANDOM = "the policy's drop, uniform and selective"
FLIGHTS = (
    "in this process on Arrow tables; New York's flights of the first {days} days of {month}, "
    "windows of {windows}, r = {fraction}, γ = {gamma}, basic windows of {basic} h, {batches} "
    "batches"
)
BURST = (
    "selective and no shedding on Spark; {rates} tuples/s, a burst in the middle third; {batches} "
    "batches of {step} s"
)
CLAIMS = ClaimRegistry(
    "Gedik 2007",
    {
        "section 7": f"{RANDOM}, joined on {{tags}}, {FLIGHTS}",
        "section 6.4.1": f"{RANDOM}, and keys, joined on {{equality}}, {FLIGHTS}",
        "section 4": BURST,
        "beyond the paper": f"{RANDOM}, joined on {{tags}}, and these and keys, joined on "
        f"{{equality}}, {FLIGHTS}",
    },
)
LIMIT = 2.0
"""Allowed duration of a batch in the burst, in median batches before it."""
SIGNIFICANT = 1.5
"""Ratio of results from which more of them are significantly more."""
KEPT_UP, MOST = 1.3, 0.9
"""Part of its limit up to which a batch has kept up, and of the batches that are to."""
TIMES = 2.5
"""Number of error bounds within which an estimate is right while r changes."""
METHODS = {
    "tags": ("selective", "uniform", "drop"),
    "tail number": ("selective", "uniform", "drop", "keys"),
}
"""By condition, the compared methods; "keys" needs an equality."""
Wait = Callable[["JoinRun"], Any]


def _await_run_end(run: JoinRun) -> None:
    run.awaitTermination()


class FlightComparison(NamedTuple):
    """Results of the comparison on flights.

    ``results``: by condition and method, results found and estimated. ``carriers``: by carrier, the
    estimate of the selective run, and the truth. ``events``: of that run.
    """

    results: pd.DataFrame
    carriers: pd.DataFrame
    events: list[Any]


def compare_methods(
    days: int = 2, fraction: float = 0.25, batches: int = 48, wait: Wait = _await_run_end
) -> FlightComparison:
    """Return legs of New York's flights, joined in full and at ``fraction`` of the pairs.

    The join runs in this process. All figures are measured; ``wait`` waits for the end of a run.
    """
    from braid_lab.workloads.flight_legs import EQUAL, LEG_CONDITION, LEG_WINDOWS, flight_legs

    streams = flight_legs(days, batches=batches)
    rows, finished = [], {}
    for name, on in (("tags", LEG_CONDITION), ("tail number", EQUAL)):
        finished[name, "full"] = full = _run_flight_join(streams, on, None, wait)
        truth = full.results().num_rows
        for method in METHODS[name]:
            shed = Shed(fraction=fraction, method=method, basic_window="1 hour")  # type: ignore[arg-type]
            run = finished[name, method] = _run_flight_join(streams, on, shed, wait)
            estimate = run.estimate_results().iloc[-1]
            rows.append(
                {
                    "condition": name,
                    "method": method,
                    "found": estimate["results"],
                    "found of all": estimate["results"] / truth,
                    "estimated": estimate["estimated_results"],
                    "error": estimate["error_95"],
                    "in truth": truth,
                }
            )
    chosen = finished["tags", "selective"]
    carriers = _compare_by_carrier(chosen, finished["tags", "full"])
    ran = {"days": days, "fraction": fraction, "batches": batches, "gamma": shed.sample}
    basic = (shed.basic_window_length or 0) / 3.6e9
    results = record_values(pd.DataFrame(rows), **ran, basic=basic, windows=[*LEG_WINDOWS.values()])
    month = streams["d"]["ts"][0].as_py().strftime("%B %Y")
    record_values(results, tags=LEG_CONDITION, equality=EQUAL, month=month)
    return FlightComparison(results, carriers, chosen.events())


def _run_flight_join(streams: Mapping[str, Any], on: str, shed: Shed | None, wait: Wait) -> JoinRun:
    from braid.stream_join import StreamJoin

    from braid_lab.workloads.flight_legs import LEG_WINDOWS

    join = StreamJoin(dict(streams), on, Centralized(), LEG_WINDOWS, "ts", shed=shed)
    run = join.start(new_run_folder("legs"), batches="batch")
    wait(run)
    return run


def _compare_by_carrier(chosen: JoinRun, full: JoinRun) -> pd.DataFrame:
    def counted(run: JoinRun, weighed: bool) -> pd.Series:
        table: Any = run.results()
        carrier = table["a"].combine_chunks().field("carrier").to_pandas()
        weight = table["weight"].to_pandas() if weighed else np.ones(len(carrier))
        return pd.Series(np.asarray(weight)).groupby(np.asarray(carrier)).sum()

    both = {"estimated": counted(chosen, True), "in truth": counted(full, False)}
    frame = pd.DataFrame(both).fillna(0.0).sort_values("in truth", ascending=False)
    return frame.rename_axis("carrier").reset_index()


@CLAIMS.claim(
    "section 7",
    "selective processing gives significantly more results than random dropping",
    is_required=True,
)
def selective_shedding_claim(flights: FlightComparison) -> Finding:
    """Section 7 on real data, whose streams are not the paper's; also beside random pairs."""
    share = flights.results.set_index(["condition", "method"])["found of all"]["tags"]
    return judge_reading(
        f"of all results {', '.join(f'{m} {v:.0%}' for m, v in share.items())}",
        share["selective"] > SIGNIFICANT * max(share["drop"], share["uniform"]),
        f"on flights, {share['selective']:.0%} of all results, {share['drop']:.0%} by dropping "
        f"tuples and {share['uniform']:.0%} by pairs at random, in one run each; more than "
        f"{SIGNIFICANT} times as many are significantly more",
    )


@CLAIMS.claim(
    "section 6.4.1",
    "no gain is to be expected from selective processing for equi-joins with hash tables",
)
def equality_claim(flights: FlightComparison) -> Finding:
    """Section 6.4.1: "no gain is to be expected from using selective processing"."""
    share = flights.results.set_index(["condition", "method"])["found of all"]["tail number"]
    shares = ", ".join(f"{m} {v:.0%}" for m, v in share.items())
    return leave_untested(
        f"of all results {shares}",
        "the paper expects none where probing a hash table takes constant time; a budget of Braid "
        f"is of pairs, not of probes. With {flights.results.attrs[RECORDED]['fraction']:.0%} of "
        f"the pairs, of all results are found: {shares}",
    )


@CLAIMS.claim(
    "beyond the paper",
    "weights estimate what the full join has, within their 95 % bounds, by each of these methods",
)
def estimate_claim(flights: FlightComparison) -> Finding:
    """Braid's own: the weights of results estimate the size of the full join."""
    of = flights.results.set_index(["condition", "method"])
    off = (of["estimated"] - of["in truth"]).abs() / of["error"]
    reason = (
        f"in {len(off)} runs, one for each method on tags and on tail numbers, estimates are off "
        f"by {off.min():.2f} to {off.max():.2f} of these bounds"
    )
    each = ", ".join(f"{m} {v:.1f}" for (_, m), v in off.items())
    return judge(f"{each} errors off", off.max() <= 1, reason)


class BurstComparison(NamedTuple):
    """Results of the comparison on a burst.

    ``batches``: the seconds of each, with and without shedding, and the limit. ``events``: of the
    run that sheds load; ``estimate``: its estimate at the end. ``truth``: results of the full join.
    ``full_share``, ``shed_share``: the seconds that 90 of 100 batches from the burst on do not
    exceed, as a share of the limit, without shedding and with it.
    """

    batches: pd.DataFrame
    events: list[Any]
    estimate: pd.Series
    truth: int
    full_share: float
    shed_share: float


def compare_burst(
    rate: float = 1500.0,
    theta: int = 5,
    batches: int = 12,
    wait: Wait = _await_run_end,
) -> BurstComparison:
    """Return a run on Spark at three times the rate in the middle third, measured.

    All tuples are joined, then again with a limit on the seconds of a batch. ``rate`` is in tuples
    a second of either stream; ``wait`` waits for the end of a run.
    """
    sets = shedding_runs.sets_from_controls(rate=rate, theta=theta, seconds=float(batches))
    wait(free := shedding_runs.start_run(sets, None))
    took = _list_batch_seconds(free)
    begins = batches // 3
    limit = LIMIT * float(np.median(took[1:begins]))
    wait(run := shedding_runs.start_run(sets, Shed(seconds=limit)))
    limited, estimate = _list_batch_seconds(run), run.estimate_results().iloc[-1]
    frame = pd.DataFrame(
        {
            "batch": [*range(len(took))] * 2,
            "seconds_measured": [*took, *limited],
            "join": ["all pairs"] * len(took) + [f"at most {limit:.2f} s"] * len(limited),
        }
    )
    record_values(frame, rates=sets.every_rate, batches=batches, step=sets.step)
    p90 = [float(np.quantile(each[begins:], MOST)) / limit for each in (took, limited)]
    truth = sum(e.results for e in free.events() if isinstance(e, BatchCommitted))
    return BurstComparison(frame, run.events(), estimate, truth, *p90)


@CLAIMS.claim("section 4", "r is set so that the join keeps up with a burst")
def keeping_up_claim(measured_burst: BurstComparison) -> Finding:
    """Section 4: batches of a burst stay within their limit."""
    full, shed = measured_burst.full_share, measured_burst.shed_share
    result = (
        f"batches of the burst and after take {full:.2f} of what they may without shedding, "
        f"{shed:.2f} with it ({MOST:.0%} of them less)"
    )
    reason = f"{result}; up to {KEPT_UP:g} with it, and more without it, counts"
    return judge(result, shed <= KEPT_UP < full, reason)


@CLAIMS.claim(
    "beyond the paper",
    f"weights estimate what the full join has, within {TIMES} times their 95 % bounds, also while "
    "r changes",
    setting=BURST,
)
def burst_estimate_claim(measured_burst: BurstComparison) -> Finding:
    """Braid's own: weights estimate the full join while r changes."""
    estimate, truth = measured_burst.estimate, measured_burst.truth
    result = (
        f"{estimate['estimated_results']:,.0f} +- {estimate['error_95']:,.0f} estimated from "
        f"{estimate['results']:,} found, {truth:,} in truth"
    )
    off = abs(estimate["estimated_results"] - truth)
    return judge(result, off <= TIMES * estimate["error_95"])


def _list_batch_seconds(run: JoinRun) -> list[float]:
    return [e.seconds_by_phase["total"] for e in run.events() if isinstance(e, BatchCommitted)]
