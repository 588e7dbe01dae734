"""Random runs of joins of every kind, compared with tuple-level models. A seed is a run.

- Hubs and shared joins with queries of every kind that come and go.
- Joins of one kind on every placement, with final and early answers; as-of joins; changes.
- Joins by HotKeys and HyperCube in which frequent values and rates shift.

Tuples come late, batches fail, and drivers are replaced.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

from braid.answer_check import check_answers
from braid.hub.operator_instance import OperatorInstance
from braid.stream_join import StreamJoin
from hub_kind_runs import KindScenario
from kept_runs import check_kept
from kind_runs import check_case, check_early_case, draw_case
from models.asof import AsOfRules
from oracle import killed_before
from planned_kinds import check_planned_case, draw_planned_case
from shared_kind_runs import run_random_queries
from shifting_runs import check_case as check_shifting_case
from shifting_runs import draw_case as draw_shifting_case
from unit import test_asof_runs as asof
from unit import test_changes as changes

_KINDS = ("left", "right", "full", "anti", "semi")


Check = Callable[[int, Path], Iterator[str] | None]


def find_wrong_answers(
    seed: int,
    minutes: float | None = None,
    most: int | None = None,
    checks: Sequence[Check] = (),
) -> Iterator[tuple[int, str]]:
    """Yield each seed with its wrong answers, empty if all are right.

    ``checks``: what a seed is tried by, in turns; empty: all.
    """
    OperatorInstance.checks_plans = True
    began, number = time.monotonic(), 0
    while (most is None or number < most) and (
        minutes is None or time.monotonic() - began < 60 * minutes
    ):
        run = 100_000 * seed + number
        yield run, "; ".join(check_seed(run, checks or CHECKS))
        number += 1


def check_seed(seed: int, checks: Sequence[Check]) -> Iterator[str]:
    """Yield a sentence for each wrong answer of a run, also for one that fails."""
    check = checks[seed % len(checks)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            yield from check(seed, Path(folder) / "run") or ()
        except Exception as wrong:
            yield f"{check.__name__}: {type(wrong).__name__} {wrong}"


def check_hub(seed: int, folder: Path) -> Iterator[str]:
    return KindScenario(seed).run(folder)


def check_shared_join(seed: int, folder: Path) -> Iterator[str]:
    return run_random_queries(seed, folder)


def check_join(seed: int, folder: Path) -> None:
    case = draw_case(seed, _KINDS)
    if seed % 2:
        draw = random.Random(seed)
        case = replace(case, idle=draw.choice((None, 5, 20)), ahead=draw.choice((12, 60)))
    check_case(case, folder)
    assert check_answers(folder).is_right


def check_plans(seed: int, folder: Path) -> None:
    check_planned_case(draw_planned_case(seed))


def check_early_join(seed: int, folder: Path) -> None:
    check_early_case(draw_case(seed, _KINDS[:4]), folder)


def check_kept_streams(seed: int, folder: Path) -> None:
    check_kept(seed, folder)


def check_asof_join(seed: int, folder: Path) -> None:
    """Check a join; one in three leaves out equal times and forgets dominated tuples."""
    drawn = (asof.draw_case(seed + 1_000_003 * n) for n in count())
    asof.check_case(next(c for c in drawn if seed % 3 or _forgets_strictly(c.rules)))


def _forgets_strictly(rules: AsOfRules) -> bool:
    return (
        (rules.match, rules.tolerance, rules.order) == ("latest", None, None)
        and rules.is_strict
        and rules.forgets_dominated
    )


def check_changes(seed: int, folder: Path) -> None:
    """Check the net of a join of changes whose driver dies before some commits."""
    draw = random.Random(seed)
    (_, aliases), placement = draw.choice([*changes.SERVING.items()])
    streams = changes.draw_streams(aliases, seed, draw.randint(2, 16))
    join = changes.make_join(streams, placement=placement)
    for batch in sorted(draw.sample(range(changes.BATCHES), draw.choice((0, 0, 1, 2)))):
        with killed_before(batch), suppress(OSError, RuntimeError):
            join.start(folder, batches="batch").awaitTermination()
    tables = changes.make_tables(streams)
    is_new = not (folder / "run.json").exists()
    run = join.start(folder, batches="batch") if is_new else StreamJoin.resume(folder, tables)
    run.awaitTermination()
    expected = changes.join_existing(streams, changes.BATCHES)
    assert changes.sum_results(run.results().to_pylist()) == expected
    assert changes.sum_results(run.results(net=True).to_pylist()) == expected
    assert check_answers(folder).is_right


def check_shifting_join(seed: int, folder: Path) -> None:
    check_shifting_case(draw_shifting_case(seed), folder)


CHECKS: tuple[Check, ...] = (
    check_plans,
    check_hub,
    check_shared_join,
    check_join,
    check_early_join,
    check_kept_streams,
    check_asof_join,
    check_changes,
    check_shifting_join,
)
