"""Random hubs and shared joins with queries of every kind, compared with the tuple-level model.

Queries come and go, tuples come late, and drivers are replaced. A seed is a run.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from braid.hub.operator_instance import OperatorInstance
from hub_kind_runs import KindScenario
from shared_kind_runs import run_random_queries


def find_wrong_answers(
    seed: int, minutes: float | None = None, count: int | None = None
) -> Iterator[tuple[int, str]]:
    """Yield each seed with its wrong answers, empty if all are right."""
    OperatorInstance.checks_plans = True
    began, number = time.monotonic(), 0
    while (count is None or number < count) and (
        minutes is None or time.monotonic() - began < 60 * minutes
    ):
        run = 100_000 * seed + number
        yield run, "; ".join(check_seed(run))
        number += 1


def check_seed(seed: int) -> Iterator[str]:
    """Yield a sentence for each wrong answer of a run, a hub if the seed is even."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if seed % 2 == 0:
            yield from KindScenario(seed).run(Path(folder))
        else:
            yield from run_random_queries(seed, Path(folder) / "run")
