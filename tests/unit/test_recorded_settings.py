"""The setting of a claim has the values of the run that it was tested with, and no others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd
import pytest
from braid_lab.common.claims import ClaimRegistry, Finding, judge
from braid_lab.common.recorded_settings import (
    RunValues,
    concat_runs,
    record_values,
    records_arguments,
)
from braid_lab.psp.claims import CLAIMS as RING
from braid_lab.psp.experiments import RingSetting, cost_breakdown, response_times
from braid_lab.reuse.claims import CLAIMS as REUSE
from braid_lab.reuse.experiments import lifetime_table, usage_table

pytestmark = pytest.mark.unit
CLAIMS = ClaimRegistry("Wang 2008", {"8": "{queries} queries on {nodes} nodes, rates {rate:range}"})


@dataclass(frozen=True)
class Figures:
    """A table of runs."""

    usage: pd.DataFrame


@records_arguments
def run_queries(queries: int, rates: tuple[float, ...] = (20.0, 80.0)) -> pd.DataFrame:
    table = pd.DataFrame({"rate": rates, "used": [queries] * len(rates)})
    return record_values(table, nodes=5)


@CLAIMS.claim("8.1", "usage is positive")
def positive_claim(usage: pd.DataFrame) -> Finding:
    """Take what is given."""
    return judge("some", (usage["used"] > 0).all())


@CLAIMS.claim("8.2", "a claim that runs itself", setting="{nodes:most} nodes of {nodes:count}")
def own_claim() -> Finding:
    """Run on some nodes."""
    return replace(judge("some", True), ran={"nodes": (3, 9, 5)})


def test_a_setting_has_the_values_of_arguments_of_columns_and_of_the_claim_itself() -> None:
    assert positive_claim(run_queries(7)).setting == "7 queries on 5 nodes, rates 20 to 80"
    (found,) = CLAIMS.test_claims(Figures(run_queries(8, (1.5,))))
    assert found.setting == "8 queries on 5 nodes, rates 1.5"
    assert own_claim().setting == "9 nodes of 3"


def test_runs_together_have_the_values_of_all() -> None:
    both = concat_runs([run_queries(9), run_queries(8, (40.0,)), run_queries(7)])
    assert positive_claim(both).setting == "7, 8 and 9 queries on 5 nodes, rates 20 to 80"


def test_readings_are_told_apart_from_runs_and_a_claim_without_a_reason_has_its_result() -> None:
    one, both = RunValues((10.0,)), RunValues((10.0, 2e5))
    assert f"{one:readings}; {both:readings}" == "10; 10 (in another reading 200,000)"
    assert f"{both:apart}" == "10; and 200,000"
    assert own_claim().reason == own_claim().result == "some"


def test_a_setting_that_no_run_has_recorded_is_refused() -> None:
    bare = pd.DataFrame({"used": [1], "rate": [2.0]})
    with pytest.raises(ValueError, match="no run has recorded nodes, queries: {queries} queries"):
        positive_claim(bare)


def test_settings_of_the_ring_are_those_of_small_runs() -> None:
    times = response_times((2, 3), sigmas=(0.2,), hops=(0.001,), setting=RingSetting(rate=8.0))
    (computed,) = RING.test_claims(times=times)
    assert computed.setting == (
        "computed by Eq. 13.5 for 2 to 3 nodes; 3 streams of 8 tuples/s, W = 10 s, S⋈ = 0.2 in "
        "each probing step, T_j of 5, 10 and 20 µs, T_s of 100 µs, T_n of 1 ms"
    )
    few = RingSetting(rate=8.0, window=4.0, seconds=6.0)
    parts = concat_runs(cost_breakdown(2, replace(few, streams=m), (4,)) for m in (3, 5))
    (counted,) = RING.test_claims(parts=parts.assign(streams=3))
    assert "on 2 nodes, counted; 3 and 5 Poisson streams of 8 tuples/s" in counted.setting
    assert counted.setting.endswith("6 s of the 600 printed, the first 4 s not counted, seeds 4")


def test_settings_of_stream_reuse_are_those_of_small_runs() -> None:
    usage = {"rfid": usage_table("rfid", (2, 3), ("separate", "exact", "contained", "relaxed"), 4)}
    (partial,) = REUSE.test_claims(usage=usage)
    assert (
        "; 2 and 3 queries of ours by workload (rfid), sinks everywhere; seed 4" in partial.setting
    )
    (lived,) = REUSE.test_claims(lifetimes=lifetime_table("enterprise", 2, (5,), (7,)))
    assert "2 queries of the enterprise workload" in lived.setting
    assert "live 7 minutes in the mean, both exponential, known" in lived.setting
    assert lived.setting.endswith("unknown to the planner; seeds 5")
