"""The check of answers recomputes joins of every kind."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from braid.answer_check import check_answers
from braid.core.placement import Placement
from braid.execution.tuple_answers import AnswerWriter
from braid.papers.hotkeys.hot_keys import HotKeys
from braid.papers.theta.grid import AdaptiveGrid
from braid.stream_join import StreamJoin
from kind_runs import draw_case, run_case

KINDS = ("left", "right", "full", "anti", "semi")


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("how", KINDS)
def test_answers_of_a_run_that_keeps_few_results_are_recomputed(tmp_path: Path, how: str) -> None:
    cases = (draw_case(seed, (how,)) for seed in range(99))
    case = next(each for each in cases if max(t.batch for t in each.tuples) > 8)
    for _ in range(2):  # results go at a checkpoint, and when the run is resumed
        run = case.make_join().start(
            tmp_path / "run", batches="batch", durability="process", keep="1 B"
        )
        run.awaitTermination()
    assert run.first_retained_batch > 0
    report = check_answers(tmp_path / "run")
    assert (report.missing, report.wrong) == (0, 0), str(report)


def test_a_lost_answer_and_one_too_many_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = draw_case(1, ("full",))
    with monkeypatch.context() as patched:
        patched.setattr(AnswerWriter, "answer_rejected_tuples", lambda *given: None)
        run_case(case, tmp_path / "lost")
    assert check_answers(tmp_path / "lost").missing
    write = AnswerWriter._write_unmatched
    with monkeypatch.context() as patched:
        patched.setattr(
            AnswerWriter, "_write_unmatched", lambda *given: [write(*given) for _ in "12"]
        )
        run_case(case, tmp_path / "twice")
    assert check_answers(tmp_path / "twice").wrong


def test_a_sample_is_refused_if_the_first_stream_may_be_absent(tmp_path: Path) -> None:
    run_case(draw_case(0, ("right",)), tmp_path / "run")
    with pytest.raises(ValueError, match="sample is 0.5, but the run answers tuples without"):
        check_answers(tmp_path / "run", sample=0.5)


@pytest.mark.parametrize(
    "placement", [None, AdaptiveGrid(4), HotKeys(4, values=8, target=1.01)], ids=repr
)
@pytest.mark.parametrize("batches", [5, 10])
def test_a_lost_answer_is_found_on_placements_that_move_tuples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, placement: Placement | None, batches: int
) -> None:
    """Without the check of plans, which keeps the pairs that are pending."""
    monkeypatch.setattr(AnswerWriter, "_write_unmatched", lambda *given: None)
    rows = [pa.table({"k": range(n)}) for n in (40, 30)]
    streams = dict(zip("ab", rows, strict=True))
    more = {} if placement is None else {"placement": placement}
    run = StreamJoin(streams, "a.k = b.k", how="left", **more).start(tmp_path, batches=batches)
    assert run.awaitTermination()
    report = check_answers(tmp_path)
    assert not report.is_right and "10 missing" in str(report)


def test_early_answers_are_checked_on_a_placement_that_moves_tuples(tmp_path: Path) -> None:
    rows = pa.table({"k": range(40)})
    join = StreamJoin(
        {"a": rows, "b": rows}, "a.k = b.k", AdaptiveGrid(4), how="left", emit="early"
    )
    assert join.start(tmp_path, batches=10).awaitTermination()
    assert check_answers(tmp_path).is_right
