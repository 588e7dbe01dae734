"""As-of joins of tables, against the tuple-level model: each answer, and its batch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from braid import StreamJoin
from braid.answer_check import check_answers
from braid.arrow_join import ArrowJoinRun
from braid.core.match_rules import MATCHES
from braid.core.placement import Placement
from braid.papers.baselines.centralized import Centralized
from braid.papers.theta.grid import StaticGrid
from hypothesis import example, given, settings
from hypothesis import strategies as st
from models.asof import AsOfAnswer, AsOfRules, run_asof
from models.kinds import Tuple
from placement_checks import list_examples
from stages import AlternatingExecutor

PLACEMENTS = [
    p
    for p in list_examples().values()
    if p.supports_streams(2) and p.delivery_guarantee == "exactly once" and not p.shares_queries
]
FIELDS = ("id", "k", "x", "v", "ts", "batch")
TYPES = (pa.int64(), pa.int64(), pa.float64(), pa.int64(), pa.timestamp("us"), pa.int64())


@dataclass(frozen=True)
class Case:
    """A join, its rows by stream as (id, k, x, v, ts, batch), and how it is run."""

    rows: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]
    rules: AsOfRules
    on: str = "a.k = b.k"
    arguments: dict[str, Any] = field(default_factory=dict)
    placement: Any = None
    fails: tuple[int, ...] = ()


def draw_rows(draw: Random, batches: int, spread: int, late: float) -> list[tuple[Any, ...]]:
    """Return rows in batches of rising event time."""
    rows: list[tuple[Any, ...]] = []
    behind = draw.randrange(2 * spread)
    for batch in range(batches):
        for _ in range(draw.choice((0, 1, 3, 8))):
            time = batch * spread + draw.randrange(spread) - behind
            time -= draw.randrange(4 * spread) if draw.random() < late else 0
            key = draw.choice((0, 1, 2, None) if draw.random() < 0.1 else (0, 1, 2))
            order = float(draw.randrange(12)) / 2
            when = None if draw.random() < 0.03 else time + 1_000_000
            rows.append((len(rows), key, order, draw.randrange(3), when, batch))
    return rows


def draw_case(seed: int) -> Case:
    draw = Random(seed)
    batches, spread = draw.choice((3, 8)), draw.choice((3, 20))
    late = draw.choice((0.0, 0.0, 0.3))
    rows = draw_rows(draw, batches, spread, late), draw_rows(draw, batches, spread, late)
    match, by_time = draw.choice(MATCHES), draw.random() < 0.7
    lateness = draw.randrange(spread), draw.randrange(spread)
    rules = AsOfRules(
        match, keeps_left=draw.random() < 0.5, is_strict=draw.random() < 0.3, lateness=lateness
    )
    arguments: dict[str, Any] = {"match": match, "strict": rules.is_strict}
    arguments |= {"how": "left"} if rules.keeps_left else {}
    if (tolerance := draw.choice((None, 0, 3, 3 * spread))) is not None:
        rules = replace(rules, tolerance=tolerance)
        arguments["tolerance"] = f"{tolerance} us" if by_time else tolerance
    if not by_time:
        rules = replace(
            rules, order=lambda t: t.values["x"], window=draw.choice((None, 2 * spread))
        )
        arguments["order"] = "x"
        arguments |= {} if rules.window is None else {"windows": f"{rules.window} us"}
    rules = replace(rules, ends=tuple(max([r[5] for r in each], default=-1) for each in rows))
    names = ("id",) if draw.random() < 0.5 else ("v", "id")
    rules = replace(rules, ties=lambda t: tuple(t.values[n] for n in names))
    arguments["ties"] = [*names]
    kind = draw.choice(("equality", "residual", "theta", "none"))
    rules, on = add_condition(rules, kind)
    placements = [
        p for p in PLACEMENTS if kind in ("equality", "residual") or p.routing_key_source == "tuple"
    ]
    fails = tuple(sorted(draw.sample(range(2 * batches), 2))) if draw.random() < 0.3 else ()
    return Case(rows, rules, on, arguments, draw.choice(placements), fails)


def add_condition(rules: AsOfRules, kind: str) -> tuple[AsOfRules, str]:
    """Return the rules with a condition, and its SQL."""
    if kind == "equality":
        rules = replace(rules, key=lambda t: t.values["k"])
        return replace(rules, condition=lambda a, b: a.values["k"] == b.values["k"]), "a.k = b.k"
    rules = replace(rules, forgets_dominated=False)
    if kind == "residual":
        return (
            replace(
                rules,
                condition=lambda a, b: (
                    a.values["k"] == b.values["k"] and a.values["v"] + b.values["v"] != 2
                ),
            ),
            "a.k = b.k AND a.v + b.v <> 2",
        )
    if kind == "theta":
        return replace(rules, condition=lambda a, b: a.values["v"] <= b.values["v"]), "a.v <= b.v"
    return replace(rules, forgets_dominated=rules.match == "latest"), "true"


def make_tables(case: Case) -> dict[str, pa.Table]:
    schema = pa.schema([*zip(FIELDS, TYPES, strict=True)])
    return {
        alias: pa.table([pa.array(c, t) for c, t in zip(columns, TYPES, strict=True)], schema)
        for alias, rows in zip("ab", case.rows, strict=True)
        for columns in [[[row[n] for row in rows] for n in range(len(FIELDS))]]
    }


def list_tuples(case: Case) -> list[Tuple]:
    reads_key = "a.k" in case.on
    return [
        Tuple(
            s,
            row[0],
            row[5],
            row[4],
            dict(zip(FIELDS, row, strict=True)),
            not reads_key or row[1] is not None,
        )
        for s, rows in enumerate(case.rows)
        for row in rows
    ]


class _Failing:
    """An executor that fails some of its batches, before or after it has run them."""

    def __init__(self, fails: set[int]) -> None:
        self.fails, self.way = fails, AlternatingExecutor()

    def execute_batch(self, frame: Any, batch: Any) -> Any:
        done = self.way.execute_batch(frame, batch) if 2 * batch.batch + 1 in self.fails else None
        for failure in {2 * batch.batch, 2 * batch.batch + 1} & self.fails:
            self.fails.remove(failure)
            raise RuntimeError("planned")
        return done or self.way.execute_batch(frame, batch)


def run_case(case: Case, folder: Path) -> list[AsOfAnswer]:
    """Return the answers of a run, and its last batch."""
    tables, fails = make_tables(case), set(case.fails)
    lateness = dict(zip("ab", (f"{late} us" for late in case.rules.lateness), strict=True))
    join = StreamJoin(
        tables,
        case.on,
        time="ts",
        placement=case.placement or Centralized(),
        partitions=2,
        lateness=lateness,
        check=True,
        **case.arguments,
    )
    with pytest.MonkeyPatch.context() as patched:
        executor = _Failing(fails)
        patched.setattr(ArrowJoinRun, "_make_executor", lambda self, way: executor)
        run = join.start(folder, batches="batch", durability="process")
        for _ in range(len(case.fails) + 1):
            try:
                run.awaitTermination()
                break
            except Exception as error:
                assert "planned" in str(error.__cause__ or error)
                run = StreamJoin.resume(folder, tables, durability="process")
        assert run.status["state"] == "completed" and run.status["waiting"] == {"a": 0}
        if len(case.rows[0]) % 4 == 0:
            check_again(folder)
        return read_answers(run)


def check_again(folder: Path) -> None:
    """Recompute the answers of a run. That takes as long, so only some cases are recomputed."""
    report = check_answers(folder)
    assert report.is_right, report


def read_answers(run: Any) -> list[AsOfAnswer]:
    answers = []
    for batch in range(run.status["batch"] + 1):
        for row in run._read_batch_results(batch).to_pylist():
            partner = None if row["b"] is None else row["b"]["id"]
            answers.append(AsOfAnswer(batch, row["a"]["id"], partner))
    return sort_answers(answers)


def sort_answers(answers: list[AsOfAnswer]) -> list[AsOfAnswer]:
    return sorted(answers, key=lambda each: each[:2])


def check_case(case: Case) -> None:
    with TemporaryDirectory() as folder:
        found = run_case(case, Path(folder) / "run")
    assert found == sort_answers(run_asof(list_tuples(case), case.rules))


@settings(max_examples=12)
@example(825)  # late tuples whose partners are on several hosts
@example(836)  # a partner that comes late
@example(843208)  # slices of a ring without length
@example(2099)  # rows of equal order that a better one replaces
@given(st.integers(0, 1 << 32))
def test_runs_give_the_answers_of_the_model_in_the_same_batches(seed: int) -> None:
    check_case(draw_case(seed))


@pytest.mark.parametrize("placement", [Centralized(), StaticGrid(4)])
def test_ties_are_broken_by_the_columns_that_tuples_keep(
    tmp_path: Path, placement: Placement
) -> None:
    """All columns of the stream are the default, and the one that numbers batches is not kept."""
    late, early = pa.scalar(6_000_000, pa.timestamp("us")), pa.scalar(5_000_000, pa.timestamp("us"))
    a = pa.table({"id": [1], "batch": [1], "k": [2], "ts": [late]})
    b = pa.table({"batch": [0, 0], "id": [1, 2], "k": [2, 2], "ts": [early, early]})
    arguments: dict[str, Any] = {"time": "ts", "match": "latest"}
    join = StreamJoin({"a": a, "b": b}, "a.k = b.k", placement, **arguments)
    run = join.start(tmp_path / "run", batches="batch", durability="process")
    run.awaitTermination()
    assert [row["b"]["id"] for row in run.results().to_pylist()] == [2]
    again = StreamJoin.resume(tmp_path / "run", {"a": a, "b": b})
    again.awaitTermination()
    for wrong, place in (({"ties": ["batch"]}, "ties"), ({"order": "batch"}, "order")):
        with pytest.raises(ValueError, match=f"the column .\\.batch, which {place} uses; number"):
            StreamJoin({"a": a, "b": b}, "a.k = b.k", **arguments | wrong).start(
                tmp_path / place, batches="batch"
            )
        assert not (tmp_path / place).exists()
    with pytest.raises(ValueError, match="the column a.batch, which the condition uses"):
        StreamJoin({"a": a, "b": b}, "a.batch = b.batch").start(tmp_path / "on", batches="batch")
