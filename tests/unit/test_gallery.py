"""The notebooks by task: each joins its data as DuckDB does, without a kernel and without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from braid.join_run import JoinRun
from braid_lab.reports.report_page import draw_plotly_figures, find_external_urls
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image
from plotly.graph_objects import Bar, Figure

from docs import gallery

MOST_CELLS, MOST_ROWS = 12, 20_000
MOST_BATCHES, MOST_PAIRS = 12, 20_000
"""With few rows, what keeps a notebook well below 10 seconds: a test of times would depend on the
machine. Of their reports, the kernel and the page take the most."""


@pytest.mark.parametrize("name", gallery.list_tasks())
def test_a_task_is_answered_as_duckdb_does(name: str, tmp_path: Path) -> None:
    *_, run, figure, sentence = gallery.run_cells(name, folder=str(tmp_path))
    assert isinstance(run, JoinRun) and run.health().state == "completed"
    assert run.health().received_tuples < MOST_ROWS
    spent = run.metrics(by="batch")
    assert len(spent) <= MOST_BATCHES and spent["compared_pairs"].sum() < MOST_PAIRS
    assert run.results().num_rows < MOST_ROWS
    assert isinstance(figure, Figure) and any(len(trace.x) for trace in figure.data)
    assert "DuckDB finds" in sentence and not sentence.startswith("0 ")


def test_each_notebook_has_a_question_parameters_and_few_cells() -> None:
    assert len(gallery.list_tasks()) == 12
    for name in gallery.list_tasks():
        cells = gallery.read_cells(name)
        assert len(cells) <= MOST_CELLS and cells[0]["source"].startswith("# "), name
        assert (
            cells[1]["metadata"]["tags"] == ["parameters"] and "folder: str" in cells[1]["source"]
        )
        [check] = [c["source"] for c in cells if c["source"].startswith("# The same from DuckDB")]
        assert not [c for c in cells if "mkdtemp" in c["source"]], "a temporary run is removed"
        assert "assert found == expected" in check or "assert set(found) <= set(expected)" in check


def test_the_page_has_each_task_with_the_picture_of_its_present_code() -> None:
    page = gallery.render_page()
    for name in gallery.list_tasks():
        picture = gallery.PICTURES / f"{name}.webp"
        assert f"(gallery/{name}.webp)" in page and picture.stat().st_size < 20_000
        stored = Image.open(picture).info["xmp"].decode()
        assert stored == gallery.digest_code(name), f"draw it again: docs/gallery.py {name}"


def test_a_report_draws_figures_of_plotly_with_one_copy_of_its_library() -> None:
    figure = Figure(Bar(x=[1], y=[2])).to_plotly_json()
    data = [{"application/vnd.plotly.v1+json": figure} for _ in range(2)]
    outputs = [new_output("execute_result", each) for each in data]
    notebook = new_notebook(cells=[new_code_cell("f", outputs=outputs)])
    draw_plotly_figures(notebook)
    first, second = (output.data["text/html"] for output in notebook.cells[0].outputs)
    assert "plotly.js v" in first and "plotly.js v" not in second
    assert 'id="plotly-1"' in second and find_external_urls(first + second) == []
