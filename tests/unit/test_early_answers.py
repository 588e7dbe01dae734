"""Early answers: tuples without a partner are results at once, and are taken back when they match."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.answer_check import check_answers
from braid.papers.baselines.centralized import Centralized
from braid.stream_join import StreamJoin
from kind_runs import check_early_case, draw_case, make_stream_table
from models.kinds import Tuple
from oracle import killed_before

pytestmark = pytest.mark.unit
KINDS = ("left", "right", "full", "anti")


@pytest.mark.parametrize("first", [3000, 3005])
def test_changes_are_those_of_the_model_batch_by_batch(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + 3):
        check_early_case(draw_case(seed, KINDS), tmp_path / str(seed))


@pytest.mark.parametrize("seed", [1002, 1018])
def test_chosen_runs_have_the_changes_of_the_model(tmp_path: Path, seed: int) -> None:
    """Runs with migrations and cuts; ``mutations.kinds`` has the faults that they find."""
    check_early_case(draw_case(seed, KINDS), tmp_path / "run")
    assert check_answers(tmp_path / "run").is_right


def make_tables() -> dict[str, pa.Table]:
    """Return tuples of a that match at once, later, and never."""
    rows = [(0, 0, 0, 1), (0, 1, 0, 2), (0, 2, 0, 3), (1, 0, 0, 1), (1, 1, 2, 2), (1, 2, 3, 2)]
    tuples = [Tuple(s, id, batch, 1_000_000 * batch, {"k": k, "n": 0}) for s, id, batch, k in rows]
    return {alias: make_stream_table(tuples, stream) for stream, alias in enumerate("ab")}


def make_join(**given: Any) -> StreamJoin:
    settings = {"how": "left", "emit": "early", "time": "ts", "check": True} | given
    return StreamJoin(make_tables(), "a.k = b.k", Centralized(), **settings)


def list_changes(run: Any) -> list[tuple[Any, ...]]:
    return [
        (batch, row["_change_type"], row["a"]["id"], row["b"] and row["b"]["id"])
        for batch in range(run.status["batch"] + 1)
        for row in run._read_batch_results(batch).to_pylist()
    ]


CHANGES = [
    (0, "insert", 0, 0),
    (0, "insert", 1, None),
    (0, "insert", 2, None),
    (2, "delete", 1, None),
    (2, "insert", 1, 1),
    (3, "insert", 1, 2),
]


def test_a_tuple_is_inserted_alone_and_deleted_with_its_first_partner(tmp_path: Path) -> None:
    run = make_join().start(tmp_path / "run", batches="batch")
    run.awaitTermination()
    assert sorted(list_changes(run), key=repr) == sorted(CHANGES, key=repr)
    net = run.results(net=True).to_pylist()
    found = [(row["a"]["id"], row["b"] and row["b"]["id"]) for row in net]
    assert sorted(found) == [(0, 0), (1, 1), (1, 2), (2, None)]
    assert check_answers(tmp_path / "run").is_right


@pytest.mark.parametrize("batch", [0, 2])
def test_a_run_killed_before_a_commit_gives_each_change_once(tmp_path: Path, batch: int) -> None:
    with killed_before(batch), pytest.raises(OSError, match="killed"):
        make_join().start(tmp_path / "run", batches="batch").awaitTermination()
    run = StreamJoin.resume(tmp_path / "run", make_tables())
    run.awaitTermination()
    assert sorted(list_changes(run), key=repr) == sorted(CHANGES, key=repr)


def test_the_check_of_answers_sees_a_row_that_is_not_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("braid.execution.early_answers.find_retractions", lambda *given: ())
    make_join().start(tmp_path / "run", batches="batch").awaitTermination()
    assert (check_answers(tmp_path / "run").wrong, check_answers(tmp_path / "run").missing) == (
        1,
        0,
    )


REFUSED = [
    ({"emit": "soon"}, "emit"),
    ({"how": "inner"}, "no row may have to be taken back"),
    ({"how": "semi"}, "no row may have to be taken back"),
    ({"match": "latest"}, "match is given with emit='early'"),
]


@pytest.mark.parametrize(("given", "said"), REFUSED)
def test_what_early_answers_do_not_go_with_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_join(**given)


def test_an_explanation_says_that_answers_are_early() -> None:
    assert "each unmatched tuple at once, until it matches" in str(make_join().explain())


def test_a_case_without_early_answers_has_no_changes(tmp_path: Path) -> None:
    case = draw_case(3000, ("left",))
    run = (
        replace(case, placement=Centralized()).make_join().start(tmp_path / "run", batches="batch")
    )
    run.awaitTermination()
    assert run.results().column_names == ["a", "b"]
    with pytest.raises(ValueError, match="net is for joins of changes, or with early answers"):
        run.results(net=True)
