"""The verdict on a run: a pure function of its events."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from braid_widgets.cockpit.page import recorded_page
from unit.scripted import judge_pace, make_commit, make_start


def timed(*seconds: float, commit: float = 0.0, interval: float | None = 1.0) -> list[Any]:
    """Return a run whose batches take these seconds, and their commits ``commit``."""
    start = replace(make_start(batches=None), interval_seconds=interval)
    return [
        start,
        *(
            replace(
                make_commit(k, [1, 1], [k + 1, k + 1]),
                seconds_by_phase={"total": each},
                previous_commit_seconds=commit if k else 0.0,
            )
            for k, each in enumerate(seconds)
        ),
    ]


@pytest.mark.parametrize(
    ("seconds", "word"),
    [(0.79, "keeps up"), (0.8, "close to its limit"), (1.0, "close to its limit"), (1.01, "falls")],
)
def test_the_share_of_the_interval_decides(seconds: float, word: str) -> None:
    assert judge_pace(timed(*[seconds] * 4))["word"].startswith(word)


def test_the_commit_counts() -> None:
    without, with_commit = timed(*[0.7] * 5), timed(*[0.7] * 5, commit=0.4)
    assert judge_pace(without)["word"] == "keeps up"
    assert judge_pace(with_commit) == {
        "word": "falls behind",
        "figure": "110% of 1 s a batch",
        "tone": "bad",
    }


def test_it_changes_only_after_three_batches_that_ask_for_it() -> None:
    slow = timed(*[0.2] * 3, *[2.0] * 6)
    words = [judge_pace(slow[: k + 2])["word"] for k in range(9)]
    # The median is over the interval from batch 6 on, half of 0.2 + 2.0.
    assert words == ["keeps up"] * 7 + ["falls behind"] * 2
    assert judge_pace(timed(0.2, 0.2, 0.2, 3.0))["word"] == "keeps up", "one slow batch is nothing"


def limited(*passed: float, batches: int | None = None) -> list[Any]:
    """Return a run of quick batches, each with the seconds of event time that pass in it."""
    start, *commits = timed(*[0.3] * len(passed))
    clocks = [round(1e6 * sum(passed[: k + 1])) for k in range(len(passed))]
    return [
        replace(start, planned_batches=batches),
        *(replace(each, clocks=(clock, 5)) for each, clock in zip(commits, clocks, strict=True)),
    ]


def test_a_limited_source_whose_lag_grows_falls_behind() -> None:
    events = limited(*[0.7] * 9)
    verdicts = [judge_pace(events[: k + 2]) for k in range(9)]
    # Five batches after the first one have a lag; then three in a row ask for another verdict.
    assert [v["word"] for v in verdicts] == ["keeps up"] * 7 + ["falls behind"] * 2
    assert verdicts[-1]["figure"] == "lag up 1.5 s in 5 batches"
    assert judge_pace(limited(*[0.999] * 9))["figure"] == "lag up 5 ms in 5 batches"
    assert judge_pace(timed(*[0.3] * 9))["figure"] == "30% of 1 s a batch"


@pytest.mark.parametrize(
    ("passed", "word"),
    [(0.79, "falls behind"), (0.81, "close to its limit"), (1.0, "keeps up"), (60, "keeps up")],
)
def test_the_lag_counts_whole_if_it_grows_by_more_than_a_batch(passed: float, word: str) -> None:
    assert judge_pace(limited(*[passed] * 9))["word"] == word


def test_the_lag_counts_only_where_rows_wait() -> None:
    assert judge_pace(limited(*[0.7, 0.7, 0.7, 1.0] * 3))["word"] == "keeps up", "it must grow on"
    assert judge_pace(limited(*[0.7] * 9, batches=9))["word"] == "keeps up", "static streams"
    start, *commits = limited(*[0.0] * 9)
    idle = [replace(each, received_tuples=(0, 0)) for each in commits]
    assert judge_pace([start, *idle])["word"] == "keeps up", "a source without rows"


def test_without_an_interval_there_is_no_verdict() -> None:
    assert judge_pace(timed(0.5, interval=None))["word"] == ""
    assert judge_pace([])["word"] == "" == judge_pace(timed())["word"]


def test_each_frame_has_the_verdict_after_its_batch() -> None:
    events = timed(*[0.3] * 5, *[1.5] * 12)
    frames = recorded_page(events)["frames"]
    assert [f["verdict"] for f in frames] == [
        judge_pace(events[: k + 2]) for k in range(len(frames))
    ]
    assert {f["verdict"]["tone"] for f in frames} >= {"good", "bad"}
