"""Claims can fail: a fault in a policy breaks the claims that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from inspect import signature
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import mutations as faults
import pytest
from braid_lab.common.claims import Claim
from braid_lab.slices import counted_chains
from braid_lab.theta import cluster_model
from hypothesis import Phase, settings
from mutations import (
    KNOWN,
    Broken,
    Faulty,
    Mutation,
    Tries,
    broken,
    cached_run,
    changed_placements,
    mutations,
)


def verdicts(reported: Iterable[Claim], starts: Iterable[str]) -> dict[str, set[str]]:
    """Return the verdicts on claims by the prefix of their sentence."""
    claims = list(reported)
    return {start: {c.holds for c in claims if c.statement.startswith(start)} for start in starts}


def tried(one: Callable[[], Claim | Iterable[Claim]]) -> tuple[Claim, ...]:
    return (found,) if isinstance(found := one(), Claim) else tuple(found)


@cache
def sound(claims: Callable[[], Tries]) -> tuple[tuple[Claim, ...], ...]:
    """The claims without any fault, tested once."""
    return tuple(map(tried, claims()))


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return counts that studies share between their figures, cached like other runs."""
    grids, chains = (
        cluster_model._simulate_batches.__wrapped__,
        counted_chains._simulate_slice_counts.__wrapped__,
    )

    def of_grids(name: str, hosts: int, sizes: Any, *rest: Any) -> Any:
        run = (cluster_model.make_operator(name, hosts, sizes), *rest)
        return cached_run(run, lambda: grids(name, hosts, sizes, *rest))

    monkeypatch.setattr(cluster_model, "_simulate_batches", of_grids)
    monkeypatch.setattr(
        counted_chains, "_simulate_slice_counts", lambda *run: cached_run(run, lambda: chains(*run))
    )


@pytest.mark.parametrize("m", mutations(), ids=lambda m: m.name)
def test_a_fault_breaks_the_claims_that_it_names(
    m: Mutation, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sound(m.claims)
    before = verdicts((c for some in whole for c in some), m.breaks)
    assert all(found and found <= {"yes", "under reading"} for found in before.values()), before
    fault = Faulty(m.runs)
    monkeypatch.setattr(faults, "faulty", fault)
    monkeypatch.setattr(m.at, m.fault(resolve_name(m.at)))
    named = [any(c.statement.startswith(m.breaks) for c in some) for some in whole]
    both = zip(named, m.claims(), strict=True)
    after = verdicts((c for is_named, one in both if is_named for c in tried(one)), m.breaks)
    others = changed_placements(fault)
    assert not others, f"it changes runs of {others} too, which its `runs` lacks"
    assert all(found == {"no"} for found in after.values()), after


@pytest.mark.parametrize(("now", "reported"), [((0.5, [1]), []), ((0.5, [2]), ["str"])])
def test_a_fault_that_changes_more_runs_than_it_says_is_told(
    monkeypatch: pytest.MonkeyPatch, now: Any, reported: list[str]
) -> None:
    fault, run = Faulty(()), ("a run of the kind str", 1)
    monkeypatch.setattr(faults, "faulty", fault)
    monkeypatch.setitem(KNOWN, run, (0.5, [1]))
    monkeypatch.setitem(faults.SECONDS, run, 0.0)
    assert cached_run(run, lambda: now) == (0.5, [1])
    assert changed_placements(fault) == reported


@pytest.mark.parametrize("b", broken(), ids=lambda b: b.name)
def test_a_fault_breaks_the_test_that_it_names(
    b: Broken, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    test = resolve_name(b.test)
    given = dict(b.given)
    if not hasattr(test, "hypothesis") and "tmp_path" in signature(test).parameters:
        given["tmp_path"] = tmp_path
    if hasattr(test, "hypothesis"):
        once = settings(
            phases=[Phase.generate],
            database=None,
            deadline=None,
            max_examples=200,
            derandomize=True,
        )
        monkeypatch.setattr(test, "_hypothesis_internal_use_settings", once)
    monkeypatch.setattr(b.at, b.fault(resolve_name(b.at)))
    with pytest.raises(AssertionError):
        test(**given)
