"""The claims of Gu, Yu and Wang 2007 on results, against runs on Spark; runs beside their model.

The claims of the figures are in ``claims``. Their data are from ``experiments.compare_with_model``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd
from braid.papers.diffusion.run_events import MasterSwitched, SegmentLengthTuned

from braid_lab.common.claims import (
    Case,
    ClaimRegistry,
    Finding,
    format_values,
    judge,
    leave_untested,
)
from braid_lab.common.recorded_settings import RECORDED, format_setting
from braid_lab.diffusion.claim_frames import (
    ADAPTED,
    JOIN,
    PAPER,
    PLAIN,
    POLICIES,
    SEGMENTS,
    STARTED,
    UNAWARE,
    name_runs,
)

HANDED = "in batches of {batch} s, weights of {weights} in Eq. 1"
DRAWN = f"on Spark {HANDED}; {JOIN}, {SEGMENTS}"
LASTING = "one window and {seconds} s, seed {seed}"
MODEL = "hosts of its model take no time"
CLAIMS = ClaimRegistry(
    PAPER, {"section 1": f"{POLICIES} on Spark {HANDED}; {JOIN}, {STARTED}; {LASTING}"}
)


STORED = "replicas stored at the end"
SENT_BY_BOUND = " and of L + J/L - 1 for each tuple"
STORED_BY_BOUND = " and of L for each live tuple"


def count_adaptations(events: Iterable[Any]) -> dict[str, int]:
    """Return how often ATR has switched its master and changed T in a run, by these names."""
    kinds = Counter(map(type, events))
    return {"masters switched:": kinds[MasterSwitched], "T changed:": kinds[SegmentLengthTuned]}


def _list_compared_counts(window: float) -> Iterator[Case]:
    batch = 1 / window
    for name, sent, stored in (("ATR", "", ""), ("CTR", SENT_BY_BOUND, STORED_BY_BOUND)):
        yield {"name": name, "what": "tuples sent to hosts", "law": sent, "slack": 0.1}
        yield {"name": name, "what": STORED, "law": stored, "slack": 0.1 + batch}


@CLAIMS.claim(
    "beyond the paper",
    "{name}: {what} within {slack:.0%} of its model{law}",
    cases=_list_compared_counts,
    setting=f"{PLAIN} {DRAWN}{{adapted}}; {LASTING}; {MODEL}",
)
def same_count_claim(both: pd.DataFrame, name: str, what: str, law: str, slack: float) -> Finding:
    """Counts differ by at most 10 %, and stored tuples by at most a batch more.

    ``law`` is the count of CTR by its bound, from which it differs as little; "": none.
    """
    row = both.set_index(["placement", "count"]).loc[(name, what)]
    ratios = row[["ratio", "by L"] if law else ["ratio"]].astype(float)
    ran = both.attrs[RECORDED]
    is_coordinated = name == "CTR"
    policy = (
        f"{name} (bound L on copies: {' and '.join(map(str, ran['bounds']))})"
        if is_coordinated
        else name
    )
    adapted = "" if is_coordinated else f" at first; {format_setting(ADAPTED, [both], {})}"
    over = dict(zip(("counted / its model", "counted / that of L"), ratios, strict=False))
    finding = judge(format_values(over), (abs(ratios - 1) <= slack).all())
    return name_runs(finding, both, policies=policy, adapted=adapted)


def _select_measured_results(both: pd.DataFrame) -> pd.Series:
    return both.set_index(["placement", "count"])["measured"].xs("results", level="count")


@CLAIMS.claim(
    "section 1", "ATR and CTR miss no result and have none twice, by their number", is_required=True
)
def same_results_claim(
    both: pd.DataFrame, expected: int, adaptations: Mapping[str, int]
) -> Finding:
    """Section 1: ATR and CTR have as many results as combinations match (measured).

    ``adaptations`` are those of ATR, from ``count_adaptations``. Without any of a kind,
    ATR is not tested.
    """
    count = _select_measured_results(both)
    changes = ", ".join(f"{what} {n}" for what, n in adaptations.items())
    result = f"ATR ({changes}) {count['ATR']:,}, CTR {count['CTR']:,} of {expected:,} results"
    finding = judge(result, count["ATR"] == count["CTR"] == expected)
    if finding.holds == "yes" and not all(adaptations.values()):
        finding = leave_untested(result, "ATR has not adapted both its master and T")
    return name_runs(finding, both, policies=("ATR", "CTR"))


@CLAIMS.claim(
    "section 1",
    "semantics-unaware routing can lose results",
    is_required=True,
    setting=f"{PLAIN} {DRAWN}; {LASTING}",
)
def lost_results_claim(both: pd.DataFrame, expected: int) -> Finding:
    """Section 1: semantics-unaware routing loses results (measured)."""
    count = _select_measured_results(both)[UNAWARE]
    finding = judge(f"it finds {count:,} of {expected:,} results", count < expected)
    return name_runs(finding, both, policies=UNAWARE)
