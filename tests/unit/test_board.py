"""The workbench: a line of text is a join, simulated at once or run in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import pandas as pd
import pytest
from braid.core.run_events import BatchCommitted, RunEnded
from braid.papers.baselines.centralized import Centralized
from braid.papers.theta.grid import AdaptiveGrid
from braid.simulation.simulator import iter_simulation, simulate
from braid_lab.common.recordings import write_events
from braid_lab.launches.workbench import (
    DATA,
    WorkbenchSettings,
    compare_with_model,
    load_streams,
    parse_alternatives,
    simulate_alternatives,
    simulate_run,
    start_run,
    warm_up,
)
from braid_lab.reports.report_page import find_external_urls
from braid_widgets.base import static_fallback
from braid_widgets.cockpit.linked_views import LinkedViews
from braid_widgets.cockpit.view import Cockpit
from braid_widgets.cockpit.workbench_panel import WorkbenchPanel
from hypothesis import given
from hypothesis import strategies as st

SMALL = WorkbenchSettings.parse("data:swing hosts:4 rate:12 batches:6")

boards = st.builds(
    WorkbenchSettings,
    data=st.sampled_from(list(DATA)),
    on=st.sampled_from(["a.k = b.k", "a.k < b.k AND a.x = b.x"]),
    window=st.sampled_from([0.0, 2.5, 60.0]),
    placement=st.sampled_from(["AdaptiveGrid", "Ring", "JoinBiclique"]),
    hosts=st.integers(2, 64),
    batches=st.integers(2, 40),
    rate=st.integers(1, 200),
    shed=st.sampled_from([0.25, 1.0]),
)


@given(boards)
def test_a_board_is_its_line_of_text(board):
    assert WorkbenchSettings.parse(str(board)) == board
    assert str(board).startswith("data:"), "a line that says nothing looks as if there were none"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("foo:1", "the board has no 'foo'; it has: data, on, window, placement"),
        ("hosts", "the board has no 'hosts'"),
        ("hosts:many", "hosts is 'many'; it is a whole number"),
        ("hosts:999", "hosts is 999; it is from 1 to 256"),
        ("data:zzz", "data is 'zzz'; it is one of grow, swing, steady, bursts, two files"),
        ("rate:99999", "rate is 99,999; with 24 batches it is from 1 to"),
        ("placement:Chain", "Chain does not join two streams for one query"),
        ("placement:No", "no placement is named 'No'"),
    ],
)
def test_what_is_no_board_is_refused_in_a_sentence(text, words):
    with pytest.raises(ValueError, match=words):
        WorkbenchSettings.parse(text)


@pytest.mark.parametrize("data", DATA)
def test_made_up_streams_come_as_the_model_has_them(data):
    board = WorkbenchSettings(data=data, rate=20, batches=8)
    rows = load_streams(board)
    commits = [e for e in simulate_run(board) if isinstance(e, BatchCommitted)]
    for k in range(board.batches):
        assert commits[k].received_tuples == tuple((t["batch"] == k).sum() for t in rows.values())
    assert all(
        t["ts"].is_monotonic_increasing and (t["batch"].diff() >= 0)[1:].all()
        for t in rows.values()
    )


def test_a_real_run_finds_what_pandas_finds_and_counts_what_was_modelled():
    run = start_run(SMALL)
    run.awaitTermination()
    rows = load_streams(SMALL)
    found = run.results()
    wanted = rows["a"].merge(rows["b"], on="k")
    ids = {(r["a"]["id"], r["b"]["id"]) for r in found.to_pylist()}
    assert len(found) == len(wanted) and ids == set(
        zip(wanted["id_x"], wanted["id_y"], strict=True)
    )
    shown, _ = run._repr_mimebundle_()
    assert "batch 6 of 6" in shown["text/html"] and not run.isPaused
    both = compare_with_model(run.events(), simulate_run(SMALL)).set_index("what")
    assert (both.loc["tuples in"] == sum(map(len, rows.values()))).all()
    assert both.loc["copies sent to hosts", "counted"] == pytest.approx(
        both.loc["copies sent to hosts", "modelled"], rel=0.3
    )


@pytest.mark.parametrize("window", [0.0, 2.0])
@pytest.mark.parametrize("on", ["a.k = b.k", "abs(a.k - b.k) <= 1", "a.k < b.k AND a.x < b.x"])
def test_the_model_finds_as_many_results_as_the_real_run(on, window):
    board = WorkbenchSettings("steady", on, window, hosts=4, batches=10, rate=100)
    for shed in (1.0, 0.25):
        run = start_run(board := replace(board, shed=shed))
        run.awaitTermination()
        assert results(board) == pytest.approx(len(run.results()), rel=0.1)


def results(board: WorkbenchSettings) -> int:
    return sum(e.results for e in simulate_run(board) if isinstance(e, BatchCommitted))


def test_the_model_of_own_files_finds_what_is_in_them(tmp_path):
    when = pd.date_range("2026-01-01", periods=400, freq="1s")
    pd.DataFrame({"ts": when, "id": range(400)}).to_csv(tmp_path / "a.csv", index=False)
    pd.DataFrame({"ts": when, "ref": range(400)}).to_parquet(tmp_path / "b.parquet")
    files = f"{tmp_path / 'a.csv'},{tmp_path / 'b.parquet'}"
    board = WorkbenchSettings(files, "a.id = b.ref", hosts=4, batches=8)
    run = start_run(board)
    run.awaitTermination()
    assert len(run.results()) == 400 and results(board) == pytest.approx(400, abs=8)
    near = replace(board, on="a.id % 10 = b.ref % 10", window=80.0)
    run = start_run(near)
    run.awaitTermination()
    assert results(near) == pytest.approx(len(run.results()), rel=0.1)
    with pytest.raises(ValueError, match=r"column 'a.nothing' in the join condition is unknown"):
        simulate_run(replace(board, on="a.nothing = b.ref"))
    gone = tmp_path / "c.csv"
    with pytest.raises(ValueError, match=f"{gone} is not a CSV or Parquet file that is there"):
        simulate_run(replace(board, data=f"{files.split(',')[0]},{gone}"))


def test_on_the_time_line_of_several_runs_each_value_stands_at_its_batch():
    """Also for more batches than points, and for a run with trimmed first events."""
    runs = {name: simulate(Centralized(), [(1, 1)] * long) for name, long in (("a", 405), ("b", 9))}
    runs["b"] = [e for e in runs["b"] if getattr(e, "batch", 9) > 3]
    line = LinkedViews(runs).page["timeline_page"]["timeline"]
    assert line["batch"] == [*range(5, 406)] and line["last"] == 405
    long, short = (track["series"][0]["values"] for track in line["tracks"])
    assert long == [None, *(2.0 * number for number in line["batch"][1:])]
    assert short == [2.0 * number for number in range(5, 10)] + [None] * 396


def test_a_run_that_is_the_last_line_of_a_cell_shows_itself(monkeypatch):
    shown = []
    monkeypatch.setattr(static_fallback, "display", lambda each, **options: shown.append(each))
    monkeypatch.delenv("BRAID_HEADLESS", raising=False)
    run = start_run(SMALL)
    run.pause()
    run._ipython_display_()
    place, widget = shown
    assert "braid-fallback" in place.data
    data, _ = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert run.isPaused
    run.stop()
    assert not run.isPaused


def test_own_files_are_cut_by_event_time(tmp_path):
    day = pd.Timestamp("2026-03-01")
    orders = pd.DataFrame({"id": range(10), "ts": [day + pd.Timedelta(k, "h") for k in range(10)]})
    orders.to_csv(tmp_path / "a.csv", index=False)
    orders.iloc[::2].to_parquet(tmp_path / "b.parquet")
    board = WorkbenchSettings(
        data=f"{tmp_path / 'a.csv'},{tmp_path / 'b.parquet'}", on="a.id = b.id", batches=3
    )
    rows = load_streams(board)
    assert rows["a"]["batch"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    run = start_run(board)
    run.awaitTermination()
    assert len(run.results()) == 5
    orders.drop(columns="ts").to_csv(tmp_path / "c.csv", index=False)
    with pytest.raises(ValueError, match="c.csv has no column ts; it has: id"):
        load_streams(WorkbenchSettings(data=f"{tmp_path / 'c.csv'},{tmp_path / 'b.parquet'}"))
    with pytest.raises(ValueError, match="a run needs two files"):
        load_streams(WorkbenchSettings(data=str(tmp_path / "a.csv")))


def test_a_recording_is_shown_and_not_run(tmp_path):
    happened = simulate(AdaptiveGrid(4), [(3, 4)] * 3)
    write_events(tmp_path / "run.jsonl", happened)
    board = WorkbenchSettings(data=str(tmp_path / "run.jsonl"))
    assert simulate_run(board) == happened
    with pytest.raises(ValueError, match="a recording is shown as it was"):
        start_run(board)
    with pytest.raises(ValueError, match="cannot be read"):
        simulate_run(WorkbenchSettings(data=str(tmp_path / "none.jsonl")))


def panel(beside: Any = lambda settings: ()) -> WorkbenchPanel:
    return WorkbenchPanel(
        lambda settings: start_run(WorkbenchSettings(**settings)),
        Cockpit(),
        lambda settings: simulate_run(WorkbenchSettings(**settings)),
        lambda settings: str(WorkbenchSettings(**settings)),
        tuple(DATA),
        beside,
        **asdict(SMALL),
    )


def test_the_panel_models_each_change_and_writes_its_line():
    board = panel()
    assert board.screen.page["state"] == "modelled" and "hosts:4" in board.text.value
    board.inputs["placement"].value = "JoinBiclique"
    board.wait_for_work(60)
    assert "JoinBiclique, 4 hosts" in board.screen.page["note"]
    assert "placement:JoinBiclique" in board.text.value
    board.inputs["on"].value = "a.k < b.k AND 'x' < '<b>'"
    board.wait_for_work(60)
    assert "&lt;b&gt;" in board.text.value and "<b>" not in board.text.value
    board.inputs["hosts"].value = 0
    board.wait_for_work(60)
    assert "hosts (J) is 0; it must be from 1 to 256" in board.message.value


def test_launch_runs_for_real():
    warm_up()
    board = panel()
    board.set_state("starting")
    assert board.status.value == "preparing the streams…", "no Spark is started"
    board.set_state("idle")
    board.start.click()
    board.wait_for_work(60)
    assert board.follower is not None
    board.follower.wait_for_end(60)
    assert board.error is None and isinstance(board.measured_events()[-1], RunEnded)
    assert board.screen.page["state"] == "ended"
    assert "completed" in board.screen.page["note"]


def test_up_to_four_placements_stand_side_by_side_and_follow_each_change():
    board = panel(
        lambda settings: simulate_alternatives(
            WorkbenchSettings(**settings), ["StaticGrid", "Centralized"]
        )
    )
    (side,) = board.side.children
    assert side.page["names"] == ["AdaptiveGrid", "StaticGrid", "Centralized"]
    batches = [[f["batch"] for f in page["frames"]] for page in side.page["pages"]]
    assert batches[0] == batches[1] == batches[2] == list(range(1, 1 + SMALL.batches))
    line = side.page["timeline_page"]["timeline"]
    lasts = [track["series"][0]["values"][-1] for track in line["tracks"]]
    assert lasts[0] <= lasts[1] < lasts[2] == sum(map(len, load_streams(SMALL).values()))
    assert {track["top"] for track in line["tracks"]} == {lasts[2]}, "one scale"
    assert line["batch"] == batches[0] and side.page["timeline_page"]["frames"] == []
    board.inputs["placement"].value = "StaticGrid"
    board.wait_for_work(60)
    assert board.side.children == (side,) and side.page["names"] == ["StaticGrid", "Centralized"]
    html = side.to_html()
    assert html.count('data-film="linked_views"') == 1 and find_external_urls(html) == []
    assert not panel().side.children
    with pytest.raises(ValueError, match="5 runs are given; from 1 to 4 stand side by side"):
        LinkedViews(dict.fromkeys("abcde", board.events))
    assert [*simulate_alternatives(WorkbenchSettings(data="run.jsonl"), ["StaticGrid"])] == []


def test_what_stands_beside_is_given_up_when_a_control_changes():
    free, at, came, asked = threading.Event(), threading.Event(), [], []

    def slow(settings: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
        for name in ("StaticGrid", "JoinBiclique"):
            asked.append((settings["hosts"], name))
            if settings["hosts"] == 2:
                at.set()
                came.append(free.wait(60))
            yield name, simulate_run(WorkbenchSettings(**{**settings, "placement": name}))

    board = panel(slow)
    asked.clear()
    board.inputs["hosts"].value = 2
    assert at.wait(60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(board.screen, "load_run", lambda events: came.append(events))
        board.inputs["hosts"].value = 9
        free.set()
        board.wait_for_work(60)
    assert came[0], "the change need not wait for what is modelled"
    assert asked == [(2, "StaticGrid"), (9, "StaticGrid"), (9, "JoinBiclique")]
    assert came[1:] == [board.events] and "hosts:9" in board.text.value
    assert [*board.side.children[0].page["names"]] == ["AdaptiveGrid", "StaticGrid", "JoinBiclique"]


def test_a_model_is_given_up_in_the_middle_when_a_control_changes():
    begun, came = threading.Event(), []

    def slow(settings: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
        if settings["hosts"] == 2:
            for event in iter_simulation(Centralized(), [(1, 1)] * 10**6):
                begun.set()
                came.append(event)
        yield from ()

    board = panel(slow)
    board.inputs["hosts"].value = 2
    assert begun.wait(60)
    board.inputs["hosts"].value = 9
    board.wait_for_work(60)
    assert 0 < len(came) < 10**6 and "hosts:9" in board.text.value


def test_a_modelled_run_keeps_its_own_name_when_a_control_changes_meanwhile(monkeypatch):
    board = panel(
        lambda settings: simulate_alternatives(WorkbenchSettings(**settings), ["Centralized"])
    )
    show, shown = board.show_events, []

    def changed(events: list[Any]) -> None:
        if not shown:
            board.inputs["placement"].value = "JoinBiclique"
        show(events)
        shown.append((board.text.value, board.side.children[0].page["names"][0]))

    monkeypatch.setattr(board, "show_events", changed)
    board.inputs["placement"].value = "StaticGrid"
    board.wait_for_work(60)
    assert [name for _, name in shown] == ["StaticGrid", "JoinBiclique"]
    assert all(f"placement:{name}" in line for line, name in shown)


def test_a_report_models_what_stands_beside_once(monkeypatch):
    monkeypatch.setenv("BRAID_HEADLESS", "1")
    asked: list[str] = []
    board = panel(
        lambda settings: (
            asked.append("") or simulate_alternatives(WorkbenchSettings(**settings), ["StaticGrid"])
        )
    )
    assert not board.side.children and not asked
    _, side = board.static_views()
    assert side.page["names"] == ["AdaptiveGrid", "StaticGrid"] and len(asked) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ring, StaticGrid, JoinBiclique, Centralized", "beside names 4 placements; it takes at"),
        ("Chain", "Chain does not join two streams for one query"),
        ("No", "no placement is named 'No'"),
    ],
)
def test_what_cannot_stand_beside_is_refused_in_a_sentence(text, words):
    with pytest.raises(ValueError, match=words):
        parse_alternatives(text)
    assert (
        parse_alternatives(" Ring,,StaticGrid , Ring") == ("Ring", "StaticGrid")
        and parse_alternatives("") == ()
    )
