"""The history of reports: what counts as a change, pages and the index."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from braid.core.event_jsonl import read_events
from braid_lab.launches.recorded_runs import recording_path
from braid_lab.reports import page
from braid_lab.reports.expectations import Expectation
from braid_lab.reports.line_picture import Curve, LinePicture, choose_step
from braid_lab.reports.report_figures import Figure, compare_figure
from braid_lab.reports.report_history import (
    KEPT,
    ReportRun,
    append_run_to_history,
    describe_changes,
    read_history,
)
from braid_lab.reports.report_index import make_index_heading, render_index_page, write_report_index
from braid_lab.reports.report_summary import render_page_top
from braid_lab.reports.run_description import describe_run
from braid_lab.reports.sweep import render_sweep_page
from bs4 import BeautifulSoup

SECONDS = Figure("seconds of a batch", 0.25, "s", "less")
RUN = ReportRun(
    report="join",
    title="Adaptive join",
    time="2026-11-26T17:40:00+00:00",
    settings={"skew": 0},
    answer="It holds.",
    passed=2,
    total=2,
    failed=(),
    error="",
    figures=(SECONDS,),
    seconds=60.0,
    commit="abc",
    page="join.html",
)


@pytest.mark.parametrize(
    ("earlier", "value", "text", "tone"),
    [
        ([], 1.0, "first run", ""),
        ([1, 1, 1], 9.0, "too few runs to compare", ""),
        ([1, 1, 1, 1], 1.04, "as usual", ""),
        ([1, 1, 1, 1], 1.09, "9 % slower than usual", "bad"),
        ([1, 1, 1, 1], 0.5, "50 % faster than usual", "good"),
        ([1, 1.1, 0.9, 1, 1.1, 0.9], 1.25, "as usual", ""),
        ([9, 9, 9, 9, *[1] * 8], 1.0, "as usual", ""),
    ],
)
def test_a_change_is_beyond_the_spread_of_the_last_eight_runs_and_5_percent(
    earlier: list[float], value: float, text: str, tone: str
) -> None:
    change = compare_figure(replace(SECONDS, value=value), earlier)
    assert (change.text, change.tone) == (text, tone)


def test_runs_of_other_settings_and_runs_that_failed_are_no_measure() -> None:
    slow = replace(RUN, figures=(replace(SECONDS, value=0.5),))
    others = [replace(RUN, settings={"skew": 1})] * 8
    assert describe_changes(slow, [*others, *[replace(RUN, failed=("a",))] * 7, RUN]) == []
    assert describe_changes(slow, [RUN] * 4) == [
        "Seconds of a batch: 0.5 s, 100 % slower than usual."
    ]
    failed = replace(RUN, failed=("the bound",))
    for earlier in ([RUN], []):
        assert describe_changes(failed, earlier) == ["Fails since this run: the bound"]
    assert failed.verdict == "1 of 2 checks failed" and RUN.verdict == "all 2 checks hold"
    assert describe_changes(replace(RUN, error="it died"), [RUN]) == [
        "Fails since this run: it died"
    ]
    assert describe_changes(RUN, [RUN, failed]) == ["Holds again: the bound"]


def test_an_expectation_that_fails_or_is_met_again_is_a_change() -> None:
    reason = "expected seconds of a batch < 0.2; it is 0.25"
    met = replace(RUN, expectations=(("seconds < 0.2", ""), ("rows < 9", "")))
    unmet = replace(RUN, expectations=(("seconds < 0.2", reason), ("rows < 9", "")))
    assert describe_changes(unmet, [met]) == [f"Fails since this run: {reason}"]
    assert describe_changes(unmet, [RUN]) == [f"Fails since this run: {reason}"], "a new one"
    worse = replace(RUN, expectations=(("seconds < 0.2", reason.replace("0.25", "0.3")),))
    assert describe_changes(worse, [unmet]) == [], "it failed before"
    assert describe_changes(met, [unmet]) == ["Holds again: seconds < 0.2"]
    assert describe_changes(RUN, [unmet]) == [], "it is no longer expected"
    assert describe_changes(unmet, [unmet] * 4) == [], "its figures are a measure"
    assert ReportRun.from_dict(json.loads(json.dumps(asdict(unmet)))) == unmet
    assert unmet.verdict == "1 of 2 expectations failed, all 2 checks hold"
    assert met.verdict == "all 2 checks hold, all 2 expectations met"
    assert replace(worse, total=0).verdict == "the expectation failed"
    assert replace(worse, error="it died").verdict == "broke off, the expectation failed"
    assert make_index_heading([[RUN], [unmet]]) == "1 of 2 reports failed: Adaptive join."
    assert '<span class="braid-report-bad">1 of 2 exp' in render_index_page([[met, unmet]])
    assert "1 of 2 runs failed" in render_sweep_page([met, unmet], ["skew"])


def test_a_history_keeps_300_runs_and_forgets_a_torn_line(tmp_path: Path) -> None:
    file = tmp_path / "join.history.jsonl"
    append_run_to_history(file, [replace(RUN, cells=(("load", 1.0),))] * 400, RUN)
    with open(file, "a", encoding="utf-8") as torn:
        torn.write('{"report": "jo')
    runs = read_history(file)
    assert len(runs) == KEPT and runs[-1] == RUN and not runs[0].cells
    file.write_text("nonsense\n" + file.read_text())
    with pytest.raises(ValueError, match=r"line 1 of .* is no run of a report"):
        read_history(file)


def test_an_index_of_300_runs_has_the_last_30(tmp_path: Path) -> None:
    slow = replace(RUN, report="slow", title="Slow", figures=(replace(SECONDS, value=9.0),))
    for name, last in (("join", RUN), ("slow", slow)):
        append_run_to_history(tmp_path / f"{name}.history.jsonl", [RUN] * 299, last)
    html = write_report_index(tmp_path).read_text(encoding="utf-8")
    assert "<h1>All 2 reports hold. Worse than usual: Slow.</h1>" in html
    assert "last 30 of 300 runs" in html and "http" not in html.replace("http-equiv", "")
    failed = replace(RUN, failed=("a",))
    assert make_index_heading([[RUN], [failed]]) == "1 of 2 reports failed: Adaptive join."
    assert "<a href" not in render_index_page([[replace(RUN, page="")]]), "a page that is gone"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: page.set_answer("x" * 111), "has 111 characters; it takes 1 to 110"),
        (lambda: page.set_answer(""), "has 0 characters"),
        (lambda: page.add_figure("rows", float("nan")), "the figure 'rows' is nan"),
        (lambda: page.add_figure("rows", 1, better="fewer"), "better is 'fewer'"),  # type: ignore[arg-type]
        (lambda: page.add_finding("A finding.", "word " * 60), "has 62 words"),
        (lambda: page.show_run([]), "the run has no committed batch"),
        (lambda: LinePicture("Rows.", (1, 2), (Curve("a", (1,)),)), "2 places and curves of"),
        (lambda: Expectation.parse("rows"), "--expect takes a figure"),
    ],
)
def test_a_first_page_refuses_in_one_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match="^[^\n]*$") as refused:
        call()
    assert sentence in str(refused.value)


def test_expectations_find_a_figure_by_part_of_its_name() -> None:
    figures = [SECONDS, Figure("rows on the fullest host", 12_177), Figure("rows moved", 5)]
    assert Expectation.parse("seconds < 2").explain_failure(figures) == ""
    broken = Expectation.parse("fullest <= 12,000").explain_failure(figures)
    assert broken == "expected rows on the fullest host <= 12,000; it is 12,177"
    assert "several figures are named 'rows'" in Expectation.parse("rows = 1").explain_failure(
        figures
    )


def test_the_top_of_the_recorded_run_is_computed_and_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(page.VARIABLE, str(tmp_path / "page.jsonl"))
    page.show_run(read_events(recording_path("fluct")))
    for k in range(9):
        page.add_finding(f"The finding {k}.", "word " * 56)
    content = page.read_content(tmp_path / "page.jsonl")
    assert content.diagnosis.startswith("the run: sound in batches 29 to 48 (")
    assert content.answer == (
        "The grid adapted 5 times, and no host holds more than 12,177 rows. A fixed grid would "
        "need 17,311."
    )
    claim = {"paper": "Elseidy 2014", "source": "Th. 4.1", "statement": "word " * 40}
    outcome = {
        "verdict": {"failed": [], "error": ""},
        "claims": [{**claim, "result": "1.2", "holds": "no"}] * 20,
        "asserted": [],
        "parameters": {"skew": 0},
        "seconds": 1.0,
        "versions": {},
        "machine": "",
    }
    slow = replace(RUN, figures=tuple(replace(f, value=9 * f.value) for f in content.figures))
    top = render_page_top(
        outcome, slow, content, {"skew": 0}, [replace(RUN, figures=tuple(content.figures))] * 8
    )
    soup = BeautifulSoup(top, "html.parser")
    titles = [each.get_text() for each in soup.select("summary")]
    assert titles[0].startswith("Checks") and titles[1].startswith("Diagnosisthe run: sound in")
    for folded in soup.select("style, details > :not(summary)"):
        folded.decompose()
    assert page.count_words(soup.get_text(" ")) <= 600
    assert len(soup.select(".braid-report-card")) == 3 and soup.select_one("figure svg path")


def test_a_description_agrees_with_the_events() -> None:
    events = read_events(recording_path("eq5-SHJ-z1"))
    stored = [
        [h["stored_tuples"] for h in e["host_metrics"] if "stored_tuples" in h]
        for e in map(json.loads, recording_path("eq5-SHJ-z1").read_text().splitlines())
        if "host_metrics" in e
    ]
    described = describe_run(events)
    assert described.figures[0].value == max(map(max, stored))
    assert f"{max(map(max, stored)):,} rows" in described.answer


@pytest.mark.parametrize(
    ("span", "most", "step"), [(18_000, 4, 5000), (1, 4, 0.25), (0, 4, 1), (47, 6, 10)]
)
def test_marks_of_a_scale_are_round(span: float, most: int, step: float) -> None:
    assert choose_step(span, most) == pytest.approx(step)


def test_marks_between_whole_numbers_are_whole() -> None:
    picture = LinePicture("Rows.", (2, 4), (Curve("rows", (6, 4)),), along="hosts")
    assert re.findall(r"<s[^>]*>([\d.]+)</s>", picture.to_html()) == ["2", "3", "4"]
    picture = LinePicture("Rows.", (0, 0.5), (Curve("rows", (6, 4)),), along="skew")
    assert re.findall(r"<s[^>]*>([\d.]+)</s>", picture.to_html())[1] == "0.1"
