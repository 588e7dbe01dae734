"""Claims can fail: a fault that is put into a policy breaks those that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from inspect import signature
from pathlib import Path
from pkgutil import resolve_name

import pytest
from braid.studies import chained, theta_model
from braid.studies.claim import Claim
from hypothesis import Phase, settings
from mutations import Broken, Mutation, broken, mutations


def verdicts(claims: Iterable[Claim], starts: Iterable[str]) -> dict[str, set[str]]:
    """By how a sentence begins, the verdicts on the claims that begin so."""
    told = list(claims)
    return {start: {c.holds for c in told if c.says.startswith(start)} for start in starts}


@cache
def sound(claims: Callable[[], Iterable[Claim]]) -> tuple[Claim, ...]:
    """The claims without any fault, tried once."""
    return tuple(claims())


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What was counted of a fault is not kept for later tests."""
    yield
    chained._counted.cache_clear()
    theta_model._counted.cache_clear()


@pytest.mark.parametrize("m", mutations(), ids=lambda m: m.name)
def test_a_fault_breaks_the_claims_that_it_names(
    m: Mutation, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = verdicts(sound(m.claims), m.breaks)
    assert all(found and found <= {"yes", "under reading"} for found in before.values()), before
    monkeypatch.setattr(m.at, m.fault(resolve_name(m.at)))
    after = verdicts(m.claims(), m.breaks)
    assert all(found == {"no"} for found in after.values()), after


@pytest.mark.parametrize("b", broken(), ids=lambda b: b.name)
def test_a_fault_breaks_the_test_that_it_names(
    b: Broken, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    test = resolve_name(b.test)
    given = dict(b.given)
    if not hasattr(test, "hypothesis") and "tmp_path" in signature(test).parameters:
        given["tmp_path"] = tmp_path
    if hasattr(test, "hypothesis"):
        once = settings(phases=[Phase.generate], database=None, deadline=None, max_examples=200)
        monkeypatch.setattr(test, "_hypothesis_internal_use_settings", once)
    monkeypatch.setattr(b.at, b.fault(resolve_name(b.at)))
    with pytest.raises(AssertionError):
        test(**given)
