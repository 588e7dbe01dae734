"""Every case found by the fuzzer or a user is answered correctly, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz.cases import CORPUS, load
from fuzz.replay import list_outcomes

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.json")), ids=lambda path: path.stem)
def test_a_case_that_was_found_is_answered_rightly(path: Path) -> None:
    wrong = {route: reported for route, reported in list_outcomes(load(path)).items() if reported}
    assert not wrong
