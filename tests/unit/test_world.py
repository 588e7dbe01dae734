"""The simulated world: the engine on a disk, a bucket, a source and a sink that fail."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from braid.kernels.probe import BlockJoiner
from mutations.world import WORLD_FAULTS
from world import invariants
from world.playing import play, played
from world.scenario import FAULTS

WORLDS = 90
"""Number of worlds; they take about half a minute."""
TESTS = Path(__file__).parents[1]


def test_whatever_happens_each_result_is_there_once_or_a_sentence_says_why() -> None:
    happened, wrong = set[str](), list[str]()
    for verdict in played(range(WORLDS), 1):
        happened |= {fault.removesuffix(" done") for fault in verdict.faults}
        wrong += [str(verdict)] if verdict.wrong else []
    assert not wrong, "\n\n".join(wrong)
    assert happened == {*FAULTS}


def test_a_result_that_a_kernel_loses_is_found_by_the_recomputation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model of the world itself is made to lose the same results."""
    real = BlockJoiner.probe_blocks
    monkeypatch.setattr(
        BlockJoiner,
        "probe_blocks",
        lambda self, *given, **more: islice(real(self, *given, **more), 1, None),
    )
    monkeypatch.setattr(invariants, "check_all", lambda world, run: None)
    wrong = [verdict.wrong for verdict in map(play, range(1, 8)) if verdict.wrong]
    assert any(" missing, 0 wrong" in reported for reported in wrong)


@pytest.mark.parametrize("seed", [18, 15])
def test_the_same_seed_gives_the_same_trace_in_another_process_too(seed: int) -> None:
    """Also if sets of text are in another order; seed 15 is a hub's."""
    code = f"from world.playing import play; print('\\n'.join(play({seed}).trace))"
    more = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "5"}
    said = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        check=True,
        cwd=TESTS,
    )
    trace = play(seed).trace
    assert len(trace) > 500
    assert said.stdout.splitlines() == trace == play(seed).trace


def test_a_world_that_goes_wrong_prints_its_seed_its_scenario_and_its_last_steps() -> None:
    delivered_too_early = WORLD_FAULTS[5]
    with delivered_too_early.put():
        # World 74 is the first that finds it; those before it would take half a minute.
        wrong = next(v for v in map(play, range(74, delivered_too_early.worlds)) if v.wrong)
    said = str(wrong)
    assert said.startswith(f"world {wrong.seed}: ") and f"Scenario(seed={wrong.seed}, " in said
    assert said.endswith(wrong.trace[-1]) and said.count("\n") > 50
