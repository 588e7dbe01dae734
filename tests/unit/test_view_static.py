"""The static pages: right numbers, squares, orientation, and no network."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import replace
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
from braid.core.batch_history import PHASES
from braid_widgets.base import charts, progress_line, run_comparison
from braid_widgets.base.run_view import fold_events
from braid_widgets.base.text_table import TextTable
from braid_widgets.cockpit.page import page_html, recorded_page, save_run_page
from braid_widgets.theta import grid_map, matrix, ratio_chart
from msgspec import structs
from unit.scripted import MIGRATION, list_rows, list_scenes, make_commit, make_start


def test_the_grid_names_the_place_of_each_host():
    view = grid_map.GridMap(list_scenes(MIGRATION)[0]).make_frame()
    assert list_rows(view["places"]) == [(0, 0, 0), (1, 1, 0)] and (view["n"], view["m"]) == (2, 1)
    assert [
        (cell[0], cell[1], cell[4]) for cell in matrix.matrix_cells(list_scenes(MIGRATION)[0])
    ] == [
        (0, 0.5, 0),
        (0.5, 1, 1),
    ]


def test_each_host_has_what_it_stores():
    stored = [grid_map.GridMap(scene).make_frame()["stored"] for scene in list_scenes(MIGRATION)]
    assert stored == [[8, 8], [7, 9], [9, 9]]
    view = grid_map.GridMap(list_scenes(MIGRATION)[1]).make_frame()
    assert view["scale_max"] == 12, "as much as the old grid would hold"


def test_the_chart_of_ratios_has_the_bound_and_measured_rates():
    chart = ratio_chart.ratio_chart(MIGRATION)
    curves = {c.name: list(c.y) for figure in chart.panels.values() for c in figure.data}
    assert curves["tuples in"] == [20, 8, 0]
    assert curves["|r| / |s|"] == pytest.approx([4 / 6, 0.4, 0.4], abs=1e-3)
    assert curves["ILF / ILF*"][0] == pytest.approx((4 / 2 + 6) / (4 + 6 / 2), abs=1e-3)
    assert list(chart.data["migrating"]) == [False, True, True] and "bound" not in curves


def test_a_modelled_run_shows_no_rates_and_every_title_says_so():
    events = [make_start(clock="modelled"), *MIGRATION[1:]]
    chart = ratio_chart.ratio_chart(events)
    assert list(chart.panels) == ["ILF / ILF*", "|r| / |s|"] and "modelled" in chart.name
    page = recorded_page(events)
    assert [track["unit"] for track in page["timeline"]["tracks"]] == ["rows", "rows"]
    assert "modelled" in page["note"] and page["state"] == "modelled"
    assert page["frames"][1]["verdict"]["word"] == ""
    assert "modelled" in progress_line.progress_line(fold_events(events))


def test_sizes_of_tuples_weigh_in_the_ratio():
    # R tuples are three times as long as those of S: |R|/n + |S|/m = 12 / 2 + 6 under (2, 1), 12 +
    # 6 / 2 under (1, 2).
    events = [e for e in MIGRATION[:4]]
    first = events[3]
    heavy = [
        structs.replace(b, size_bytes=b.size_bytes * (3 if b.stream == 0 else 1))
        for b in first.changed_blocks
    ]
    events[3] = make_commit(
        0,
        first.received_tuples,
        first.total_received_tuples,
        heavy,
        stored=[h.stored_tuples for h in first.host_metrics],
    )
    (point,) = ratio_chart.ratio_table(events).itertuples()
    assert point.ratio == pytest.approx(1.0) and point.ilf_mapping == 8 and point.ilf_optimal == 7


def test_the_totals_add_up():
    scene = fold_events(MIGRATION)
    totals = scene.totals
    assert totals.received == (4, 10) and totals.results == 21
    assert totals.moved == 4 and totals.moved_bytes == 36 and totals.stored == 18
    parts = {p: sum(point.seconds_by_phase[p] for point in scene.points) for p in PHASES}
    assert parts["kernels"] == pytest.approx(0.6) and sum(parts.values()) == pytest.approx(1.5)


def test_the_table_of_batches_has_the_seconds_of_each_phase():
    data = ratio_chart.ratio_table(MIGRATION)
    assert list(data[[*PHASES]].sum(axis=1)) == pytest.approx([0.5] * 3)
    assert list(data["transfer"]) == pytest.approx([0.2 - 0.1] * 3)


def uneven() -> list[Any]:
    """Return MIGRATION with batches of 0.5, 0.6 and 0.7 seconds."""
    events, took = [], iter((0.5, 0.6, 0.7))
    for e in MIGRATION:
        events.append(
            replace(e, seconds_by_phase={"total": next(took)})
            if hasattr(e, "seconds_by_phase")
            else e
        )
    return events


def test_runs_are_compared_side_by_side():
    plain = [make_start(placement="HashPartition"), make_commit(0, [3, 3], [3, 3], stored=[6, 0])]
    table = run_comparison.comparison_table({"dynamic": MIGRATION, "SHJ": plain})
    assert table.loc["dynamic", "results"] == 21 and table.loc["SHJ", "most stored on a host"] == 6
    assert table.loc["SHJ", "mean stored per host"] == 3 and pd.isna(
        table.loc["SHJ", "max ILF/ILF*"]
    )
    chart = run_comparison.comparison_chart({"dynamic": MIGRATION, "SHJ": plain})
    bars = [bar for figure in chart.panels.values() for bar in figure.data]
    assert all(list(bar.x) == ["dynamic", "SHJ"] for bar in bars) and len(bars) == 5
    measured = bars[-1]
    assert measured.name == "median batch (s)" and list(measured.error_y.array) == [0, 0]
    quartiles = run_comparison.comparison_table({"uneven": uneven()}).loc[
        "uneven", list(run_comparison.SPREAD)
    ]
    assert list(quartiles) == pytest.approx([0.6, 0.55, 0.65])
    with pytest.raises(ValueError, match="nothing to compare"):
        run_comparison.comparison_table({})


def test_progress_tells_batches_rate_and_time_left():
    assert (
        progress_line.progress_line(fold_events(MIGRATION[:4]))
        == "batch 1 of 3 (33%) · 20 tuples/s · 1 s left"
    )
    assert (
        progress_line.progress_line(fold_events(MIGRATION))
        == "batch 3 of 3 (100%) · 9 tuples/s · completed"
    )
    assert progress_line.progress_line(fold_events([])) == "nothing has started"
    paced = replace(make_start(), interval_seconds=30.0)
    left = progress_line.format_time_left(fold_events([paced, *MIGRATION[1:4]]))
    assert left == "1 min left", "a batch takes the interval at least"
    assert (
        progress_line.progress_line(fold_events([make_start(batches=None), *MIGRATION[1:4]]))
        == "batch 1 · 20 tuples/s"
    )


def test_batches_without_input_only_finish_a_migration():
    fed = [make_start(batches=2), *MIGRATION[1:]]
    assert (
        progress_line.progress_line(fold_events(fed[:9]))
        == "batch 2 of 2 (100%) · input done, finishing a migration · 14 tuples/s"
    )
    page = recorded_page(fed[:9])
    assert page["frames"][-1]["title"].startswith("batch 2 of 2 · ")
    assert page["note"].endswith(" · input done, finishing a migration")
    assert (
        progress_line.progress_line(fold_events(fed))
        == "batch 2 of 2 (100%) · 14 tuples/s · completed"
    )


def test_a_chart_carries_what_draws_it_once():
    chart = ratio_chart.ratio_chart(MIGRATION)
    text = chart.to_html()
    assert len(text) > 4_000_000 and "src=" not in text.split("<script", 1)[0]
    assert len(chart.to_html(first=False)) < 100_000


def test_a_chart_brings_plotly_where_the_page_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(**environ: str) -> list[bool]:
        monkeypatch.setattr(charts._Page, "has_library", False)
        for name in ("VSCODE_PID", "BRAID_HEADLESS"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        return [charts.needs_library() for _ in range(2)]

    monkeypatch.setattr(charts, "is_headless", lambda: "BRAID_HEADLESS" in os.environ)
    assert ask() == [False, False]
    assert ask(VSCODE_PID="7") == ask(BRAID_HEADLESS="1") == [True, False]
    monkeypatch.setitem(sys.modules, "google.colab", ModuleType("google.colab"))
    assert ask() == [True, True]


def test_a_chart_shows_itself_in_a_notebook_without_carrying_plotly():
    bundle = run_comparison.comparison_chart({"a": MIGRATION})._repr_mimebundle_()
    assert len(json.dumps(bundle)) < 100_000 and "braid-chart" in bundle["text/html"]


def test_a_replay_is_one_page_with_all_frames(tmp_path):
    text = page_html(recorded_page(MIGRATION))
    assert (
        "http" not in text.replace("http://www.w3.org/2000/svg", "")
        and text.count('"places":') == 3
    )
    path = save_run_page(MIGRATION, tmp_path / "replay.html")
    with pytest.raises(FileExistsError):
        save_run_page(MIGRATION, path)


def test_a_page_cannot_be_broken_by_a_predicate():
    odd = make_start()
    odd = type(odd)(odd.streams, "r.x = '</script><b>'", {}, "AdaptiveGrid", {}, 2, 2, 3)
    assert "</script><b>" not in page_html(recorded_page([odd, *MIGRATION[1:]]))


def test_a_listing_tells_three_digits_of_fractions_and_heads_columns_in_words():
    data = pd.DataFrame({"n_counted": [1200], "seconds_measured": [0.00123], "bytes": [12345.6]})
    data.columns.name = "scheme"
    html = TextTable(data).to_html()
    heads = ["n (counted)", "seconds (measured)", "bytes"]
    assert re.findall("<th>(.*?)</th>", html) == heads, "and above no column without rows"
    assert re.findall("<td>(.*?)</td>", html) == ["1,200", "0.00123", "12,346"]
    assert "<td>0.0</td>" in TextTable(data[["seconds_measured"]], 1).to_html()
