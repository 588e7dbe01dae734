"""The static twins: right numbers, squares, orientation, pages that need no network."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from braid_widgets.base import charts, colours, compare, progress, totals
from braid_widgets.base.fold import fold
from braid_widgets.base.recording import Recording
from braid_widgets.theta import grid, matrix, stage, timeline
from unit.scripted import MIGRATION, committed, started


def test_the_matrix_has_row_0_on_top_and_square_unit_cells():
    layout = matrix.figure(MIGRATION).figure.layout
    assert tuple(layout.yaxis.range) == (1, 0) and tuple(layout.xaxis.range) == (0, 1)
    assert layout.yaxis.scaleanchor == "x" and layout.yaxis.scaleratio in (None, 1)


def test_the_matrix_names_the_host_of_each_cell():
    heat, _, numbers, *_ = matrix.figure(MIGRATION, batch=0).figure.data
    assert [list(row) for row in heat.z] == [[0], [1]] and list(heat.y) == [0, 0.5, 1]
    assert list(zip(numbers.text, numbers.y, strict=True)) == [("0", 0.25), ("1", 0.75)]


def test_the_matrix_chart_has_a_frame_for_each_batch_and_its_data():
    chart = matrix.figure(MIGRATION)
    assert [f.name for f in chart.figure.frames] == ["0", "1", "2"]
    assert len(chart.figure.layout.sliders[0].steps) == 3
    assert set(chart.data["host"]) == {0, 1} and (chart.data["percent"] <= 100).all()


def test_blocks_in_transit_are_drawn_between_their_hosts():
    *_, transit = matrix.figure(MIGRATION, batch=1).figure.data
    assert transit.text[1] == "2 tuples of r: host 0 → host 1"


def test_what_is_owed_is_veiled():
    veil = matrix.figure(MIGRATION, batch=1).figure.data[1]
    assert min(min(row) for row in veil.z) == 60


def test_each_host_has_a_bar_in_its_box():
    bars = grid.figure(MIGRATION, batch=1).figure.data[0]
    assert list(bars.hovertext) == ["host 0: 7 tuples stored", "host 1: 9 tuples stored"]
    assert list(bars.x) == [0.25, 0.75] and list(bars.y) == pytest.approx([-7 / 9, -1])
    assert grid.figure(MIGRATION).data["stored"].tolist() == [8, 8, 7, 9, 9, 9]


def test_the_time_line_has_the_bound_the_migration_and_measured_rates():
    chart = timeline.figure(MIGRATION)
    curves = {c.name: list(c.y) for c in chart.figure.data}
    assert curves["tuples in per second"] == [20, 8, 0]
    assert curves["|r| / |s|"] == pytest.approx([4 / 6, 0.4, 0.4], abs=1e-3)
    assert curves["ILF / ILF*"][0] == pytest.approx((4 / 2 + 6) / (4 + 6 / 2), abs=1e-3)
    shapes = chart.figure.layout.shapes
    assert any(s.y0 == s.y1 == 1.25 for s in shapes) and any(
        (s.x0, s.x1) == (0.5, 2.5) for s in shapes
    )
    assert timeline.spans(timeline.history(MIGRATION)) == [(1, 2)]


def test_a_modelled_run_shows_no_rates_and_every_title_says_so():
    events = [started(clock="modelled"), *MIGRATION[1:]]
    chart = timeline.figure(events)
    assert {c.name for c in chart.figure.data} == {"|r| / |s|", "ILF / ILF*"}
    titles = [chart.figure, matrix.figure(events).figure, grid.figure(events).figure]
    assert all("modelled" in t.layout.title.text for t in titles)
    frame = stage.frame(Recording(events).at(1))
    assert len(frame["line"]["panels"]) == 1
    assert (
        "modelled" in frame["line"]["title"]
        and "modelled" in frame["grid"]["title"]
        and "modelled" in frame["note"]
    )
    assert "modelled" in totals.html(Recording(events).at(1)) and "modelled" in progress.line(
        fold(events)
    )
    assert not totals.table(events)["unit"].eq("seconds").any()


def test_sizes_of_tuples_weigh_in_the_ratio():
    # R tuples are three times as long as those of S: |R|/n + |S|/m = 12 / 2 + 6 under (2, 1), 12 +
    # 6 / 2 under (1, 2).
    events = [e for e in MIGRATION[:4]]
    first = events[3]
    heavy = [[*b[:6], b[6] * (3 if b[1] == 0 else 1)] for b in first.blocks]
    events[3] = committed(0, first.received, first.total, heavy, stored=first.host_stored)
    (point,) = timeline.history(events)
    assert point.ratio == pytest.approx(1.0) and point.ilf_mapping == 8 and point.ilf_optimal == 7


def test_the_totals_add_up():
    table = totals.table(MIGRATION).set_index(["figure", "unit"])["value"]
    assert (
        table["in, r", "tuples"] == 4
        and table["in, s", "tuples"] == 10
        and table["results", "rows"] == 21
    )
    assert (
        table["moved between hosts", "tuples"] == 4 and table["moved between hosts", "bytes"] == 36
    )
    assert (
        table["stored now, with replicas", "tuples"] == 18
        and table["median batch", "seconds"] == 0.5
    )


def test_runs_are_compared_side_by_side():
    plain = [started(placement="HashPartition"), committed(0, [3, 3], [3, 3], stored=[6, 0])]
    table = compare.table({"dynamic": MIGRATION, "SHJ": plain})
    assert table.loc["dynamic", "results"] == 21 and table.loc["SHJ", "most stored on a host"] == 6
    assert table.loc["SHJ", "mean stored per host"] == 3 and pd.isna(
        table.loc["SHJ", "max ILF/ILF*"]
    )
    chart = compare.figure({"dynamic": MIGRATION, "SHJ": plain})
    assert all(list(bar.x) == ["dynamic", "SHJ"] for bar in chart.figure.data)
    assert "SHJ" in compare.html({"dynamic": MIGRATION, "SHJ": plain})
    with pytest.raises(ValueError, match="nothing to compare"):
        compare.table({})


def test_progress_tells_batches_rate_and_time_left():
    assert progress.line(fold(MIGRATION[:4])) == "batch 1 of 3 (33%) · 20 tuples/s · 1 s left"
    assert progress.line(fold(MIGRATION)) == "batch 3 of 3 (100%) · 9 tuples/s · completed"
    assert progress.line(fold([])) == "nothing has started"
    assert progress.line(fold([started(batches=None), *MIGRATION[1:4]])) == "batch 1 · 20 tuples/s"


def test_batches_without_input_only_finish_a_migration():
    fed = [started(batches=2), *MIGRATION[1:]]
    assert (
        progress.line(fold(fed[:9]))
        == "batch 2 of 2 (100%) · input done, finishing a migration · 14 tuples/s"
    )
    assert stage.frame(fold(fed[:9]))["title"].startswith("batch 2 of 2 · ")
    assert stage.frame(fold(fed[:9]))["title"].endswith(" · input done, finishing a migration")
    assert progress.line(fold(fed)) == "batch 2 of 2 (100%) · 14 tuples/s · completed"


def test_a_chart_saves_an_offline_page_once(tmp_path):
    chart = timeline.figure(MIGRATION)
    path = chart.save(tmp_path / "line.html")
    text = path.read_text(encoding="utf-8")
    assert len(text) > 4_000_000 and "src=" not in text.split("<script", 1)[0]
    with pytest.raises(FileExistsError, match="pass overwrite=True"):
        chart.save(path)
    chart.save(path, overwrite=True)
    assert len(chart.to_html(first=False)) < 100_000


def test_a_chart_shows_itself_in_a_notebook_without_carrying_plotly():
    bundle = compare.figure({"a": MIGRATION})._repr_mimebundle_()
    assert len(json.dumps(bundle)) < 100_000 and "application/vnd.plotly.v1+json" in bundle


def test_a_replay_is_one_page_with_all_frames(tmp_path):
    text = stage.replay(MIGRATION)
    assert "http" not in text and text.count('"matrix":') == 3
    path = stage.save(MIGRATION, tmp_path / "replay.html")
    with pytest.raises(FileExistsError):
        stage.save(MIGRATION, path)


def test_a_page_cannot_be_broken_by_a_predicate():
    odd = started()
    odd = type(odd)(odd.streams, "r.x = '</script><b>'", {}, "AdaptiveGrid", {}, 2, 2, 3)
    assert "</script><b>" not in stage.replay([odd, *MIGRATION[1:]])


def test_neighbouring_hosts_never_look_alike():
    def distance(a: int, b: int) -> int:
        x, y = (int(colours.host(h)[1:], 16) for h in (a, b))
        return sum(abs((x >> k & 255) - (y >> k & 255)) for k in (0, 8, 16))

    assert min(distance(h, h + step) for step in (1, 2, 4, 8, 16, 32) for h in range(64)) > 50
    assert colours.ink("#000000") == "#ffffff" and colours.ink("#ffff00") == "#111111"


def test_titles_of_charts_hold_the_batch():
    chart = charts.frames_chart("x", [("7", "Title", "note", [])], {}, [], ["a"])
    assert chart.figure.layout.title.text == "Title<br><sub>batch 7 · note</sub>"
