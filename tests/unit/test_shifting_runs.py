"""Random runs of HotKeys and HyperCube are right while values and rates shift."""

from __future__ import annotations

from pathlib import Path

import pytest
from shifting_runs import check_case, draw_case

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("seed", [9, 14, 16, 2, 23, 26])
def test_results_are_right_while_a_placement_changes(seed: int, tmp_path: Path) -> None:
    """Two to four streams, a chain, a star and a cycle; ``make fuzz ARGS=--queries`` draws others."""
    assert check_case(draw_case(seed), tmp_path / "run"), "nothing changes"
