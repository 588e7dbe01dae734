"""The record of a claim, and the claims of Elseidy 2014 against generated runs that break them."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from braid.papers.theta.mapping import ratio_bound
from braid_lab.common.claims import Claim, check_claims, claims_table, format_values, make_verdict
from braid_lab.theta import dynamics as dynamics
from braid_lab.theta import experiments as theta_experiments

HELD = Claim("Wang 2008", "Fig. 8.1", "the chain holds least", "12% less", "yes", is_required=True)


def test_a_table_has_a_line_for_each_claim() -> None:
    lost = replace(HELD, holds="no", reason="too short a run", is_required=False)
    shown = claims_table([HELD, lost])
    assert shown["holds"].tolist() == ["yes", "no"]
    assert shown.iloc[1]["reason"] == "too short a run"
    assert check_claims([HELD, lost]) == "2 claims, 1 hold here; all checks passed (1 must hold)."


def test_a_claim_that_must_hold_and_does_not_is_refused() -> None:
    broken = replace(HELD, holds=make_verdict(False))
    expected = "Wang 2008, Fig. 8.1: the chain holds least: 12% less"
    with pytest.raises(AssertionError, match=expected):
        check_claims([HELD, broken])


@pytest.mark.parametrize("holds", ["under reading", "not tried"])
def test_what_was_not_tried_is_not_refused(holds: str) -> None:
    assert "0 hold here" in check_claims([replace(HELD, holds=holds)])  # type: ignore[arg-type]


def test_figures_are_short() -> None:
    assert format_values({10: 0.98765, 20: 1.25}) == "10: 0.988, 20: 1.25"


def points(ratios: list[float], moved: int = 0) -> pd.DataFrame:
    """Return a timeline whose batches are a hundredth of either stream."""
    rows = [(k, x, (10_000, 10_000), 100, 100, moved) for k, x in enumerate(ratios)]
    return pd.DataFrame(rows, columns=["batch", "ratio", "live", "received", "sent", "moved"])


def test_the_bound_is_1_25_for_small_batches_and_grows_with_them() -> None:
    """Theorem 4.1, and its proof for an epsilon below 1 and for larger batches."""
    assert ratio_bound(0, 1000) == 1.25
    assert ratio_bound(0, 1000, epsilon=0.5) == pytest.approx(4 / 3.5)
    assert ratio_bound(10, 1000) == pytest.approx((5 + 2 * 2 / 49) / (4 + 2 / 49))
    assert ratio_bound(100, 1000) > ratio_bound(10, 1000) > 1.25


@pytest.mark.parametrize(("worst", "holds"), [(1.25, "yes"), (1.3, "no")])
def test_a_ratio_above_its_bound_breaks_the_claim(worst: float, holds: str) -> None:
    found = theta_experiments.ratio_claim(points([1.0, worst, 1.1]))
    assert found.holds == holds
    assert holds == "yes" or "exceeds its bound in batches [1]" in found.result


def test_batches_that_are_too_large_are_not_judged() -> None:
    large = points([1.9]).assign(received=6000)
    assert theta_experiments.ratio_claim(large).holds == "not tried"


def moves(copied: float, came: float = 100.0) -> pd.DataFrame:
    """Return one migration that sends each host 100 tuples, or as many as given."""
    rows = [(3, (4, 4), (8, 2), copied, 100.0, came)]
    return pd.DataFrame(rows, columns=["batch", "before", "after", "copied", "lemma", "came"])


@pytest.mark.parametrize(("copied", "holds"), [(300.0, "yes"), (301.0, "no")])
def test_a_migration_that_is_not_paid_for_breaks_lemma_4_5(copied: float, holds: str) -> None:
    assert dynamics.migration_cost_claim(moves(copied)).holds == holds
    assert dynamics.migration_cost_claim(moves(copied), epsilon=0.5).holds == "not tried"
    assert dynamics.migration_cost_claim(moves(copied)[:0]).holds == "not tried"


@pytest.mark.parametrize(("copied", "holds"), [(100.0, "yes"), (106.0, "no")])
def test_more_than_the_partner_has_breaks_lemma_4_4(copied: float, holds: str) -> None:
    assert dynamics.exchange_claim(moves(copied)).holds == holds


def test_streams_grow_by_turns_and_no_batch_is_large() -> None:
    """Section 5.4: each stream grows to k times the other."""
    batches = dynamics.alternating_batches(4, 2, start=(100, 100))
    live = [tuple(map(sum, zip(*batches[: k + 1], strict=True))) for k in range(len(batches))]
    assert max(r / s for r, s in live) >= 4 and min(r / s for r, s in live) <= 0.25
    pairs = zip(live, batches[1:], strict=False)
    assert all(sum(new) <= max(1, dynamics.FINE * min(now) + 1) for now, new in pairs)


def test_nothing_is_claimed_of_a_placement_that_does_not_adapt() -> None:
    assert theta_experiments.ratio_claims(points([9.0]), "StaticGrid") == []


CONTEST = pd.DataFrame(
    [
        ("SHJ, z=1", 900, 100.0, 800),
        ("StaticMid, z=1", 900, 400.0, 410),
        ("StaticOpt, z=1", 900, 200.0, 205),
        ("Dynamic, z=1", 900, 220.0, 230),
    ],
    columns=["run", "results", theta_experiments.MEAN, theta_experiments.MOST],
).set_index("run")


def test_the_rivals_compare_as_in_the_paper() -> None:
    assert {c.holds for c in theta_experiments.comparison_claims(CONTEST, [1.0], 6)} == {"yes"}


@pytest.mark.parametrize(
    ("run", "column", "value", "broken"),
    [
        ("SHJ", "results", 899, "all find the same results"),
        ("StaticOpt", theta_experiments.MEAN, 221.0, "Dynamic stores no less than the oracle"),
        ("Dynamic", theta_experiments.MEAN, 251.0, "Dynamic ends within 1.25 of the oracle"),
        ("StaticMid", theta_experiments.MEAN, 219.0, "Dynamic stores less than the square grid"),
        ("SHJ", theta_experiments.MOST, 200, "skew hits SHJ and leaves the grid alone"),
    ],
)
def test_each_claim_about_the_rivals_can_fail(
    run: str, column: str, value: float, broken: str
) -> None:
    contest = CONTEST.copy()
    contest.loc[f"{run}, z=1", column] = value
    failed = [
        c.statement
        for c in theta_experiments.comparison_claims(contest, [1.0], 6)
        if c.holds == "no"
    ]
    assert failed == [f"{broken}, z=1"] or failed == [f"{broken}'s grid, z=1"]


def test_what_skew_does_is_claimed_where_there_is_some() -> None:
    even = pd.concat([CONTEST, CONTEST.rename(lambda run: run.replace("z=1", "z=0"))])
    said = [c.statement for c in theta_experiments.comparison_claims(even, [0.0, 1.0], 6)]
    assert [s for s in said if s.startswith("skew")] == [
        "skew hits SHJ and leaves the grid alone, z=1"
    ]


def test_a_run_of_one_batch_cannot_adapt() -> None:
    told = {c.statement: c.holds for c in theta_experiments.comparison_claims(CONTEST, [1.0], 1)}
    assert told["Dynamic stores less than the square grid, z=1"] == "not tried"
