"""All notebooks as reports: they run, their claims hold, and each gives one offline page.

The tour runs from the wheel, in test_wheel.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from braid.cli import main
from braid_lab.reports.notebook_runner import NOTEBOOKS
from braid_lab.reports.report_page import find_external_urls
from papermill import execute_notebook

pytestmark = pytest.mark.usefixtures("kernels")
ROOT = Path(__file__).parents[2]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
JOIN = [
    "scale=0.01",
    "batches=6",
    "hosts=4",
    "compare_skews=1",
    "compare_scale=0.001",
    "compare_batches=2",
    "counted_scale=0.002",
]


@pytest.fixture(autouse=True)
def claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check that every claim that a notebook tests is in docs/verdicts.json."""
    monkeypatch.setenv("BRAID_CLAIMS", str(file := tmp_path / "claims.jsonl"))
    yield
    if file.exists():
        tried = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        kept = json.loads((ROOT / "docs" / "verdicts.json").read_text(encoding="utf-8"))
        missing = {(c["paper"], c["source"]) for c in tried} - {
            (c["paper"], c["source"]) for c in kept
        }
        assert not missing, "docs/verdicts.json is stale; docs/verdicts.py writes it"


def report(name: str, page: Path, settings: list[str], folder: Path = NOTEBOOKS) -> int:
    given = [word for setting in settings for word in ("-p", setting)]
    return main(["report", name, "-v", "-o", str(page), "--notebooks", str(folder), *given])


def checked(page: Path) -> str:
    """Return the page's text after checking that a browser fetches nothing for it."""
    html = page.read_text(encoding="utf-8")
    assert find_external_urls(html) == []
    assert '<div data-film="cockpit">' in html and '"state_map":' in html, "the run plays"
    assert "widget-view" not in html and "Traceback" not in html
    return html


@pytest.mark.usefixtures("on_spark")
def test_the_adaptive_theta_join(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert report("01_adaptive_theta_join", page := tmp_path / "join.html", JOIN) == 0
    html = checked(page)
    assert html.count("plotly.js v") == 1, (
        "the charts are drawn by one copy of the library, in the page"
    )
    assert (
        "batch 6 of 6" in html and "AdaptiveGrid, 4 hosts" in html and "batch 48 of 48" not in html
    )
    assert "How even the load is (measured on Spark)" in html, "the chart of ratios"
    assert "Runs compared (measured)" in html and all(
        f"{n}, z=1" in html for n in ("SHJ", "StaticMid", "StaticOpt", "Dynamic")
    )
    for checked_by in (
        "no batch is at most a quarter of the smaller stream",
        "6 max(|ΔR|/n, |ΔS|/m)",
        "MB a percent of the input",
        "the output is complete",
    ):
        assert checked_by in html
    output = capfd.readouterr()
    assert "batch 6 of 6 (100%)" in output.err and f"wrote {page}" in output.out


DIFFUSION = ["seconds=6", "points=2", "measured_seconds=2", "window=3", "hosts=4"]


@pytest.mark.usefixtures("on_spark")
def test_load_diffusion(tmp_path: Path) -> None:
    assert report("02_load_diffusion", page := tmp_path / "diffusion.html", DIFFUSION) == 0
    html = page.read_text(encoding="utf-8")
    assert find_external_urls(html) == [] and "widget-view" not in html and "Traceback" not in html
    assert (
        html.count("plotly.js v") == 1
        and html.count('<div data-film="cockpit">') == 2
        and '"segments":{' in html
        and '"latest":-1' in html
        and "tens of microseconds" in html
    )
    assert "measured / modelled" in html and "ATR and CTR miss no result" in html, (
        "a run on Spark beside its model"
    )
    assert all(
        f"Fig. {number}" in html
        for number in ("4", "7 and 8", "9 and 10", "11, 12", "13", "14", "15", "16")
    )
    assert "<th>reason" in html and "all checks passed" in html, "the claims"


RING = [
    "seconds=16",
    "measured_batches=3",
    "ring_lengths=4,8",
    "ways=3",
    "sigmas=0.05",
    "compare_seconds=14",
    "adapt_seconds=50",
]


@pytest.mark.usefixtures("on_spark")
def test_the_psp_ring(tmp_path: Path) -> None:
    assert report("03_psp_ring", page := tmp_path / "ring.html", RING) == 0
    html = page.read_text(encoding="utf-8")
    assert find_external_urls(html) == [] and "widget-view" not in html and "Traceback" not in html
    assert html.count("plotly.js v") == 1 and html.count('<div data-film="') == 6, (
        "the ring, two in other forms, one measured, two examples"
    )
    assert "batch 16 of 16" in html and "batch 3 of 3" in html, (
        "the modelled run and the measured one"
    )
    assert "step 1 of 38" in html and "state at the end" in html, (
        "Fig. 12.4, and the comparison with the model"
    )
    assert (
        "Adaptation makes the ring more stable" in html
        and "<td>no</td>" in html
        and "<td>yes</td>" in html
    ), "the claims"


SLICES = ["flight_days=1", "flight_batches=10", "study_seconds=40", "study_rates=20,40"]


@pytest.mark.usefixtures("on_spark")
def test_state_slices(tmp_path: Path) -> None:
    assert report("04_state_slices", page := tmp_path / "slices.html", SLICES) == 0
    html = page.read_text(encoding="utf-8")
    assert find_external_urls(html) == [] and "widget-view" not in html and "Traceback" not in html
    assert html.count("plotly.js v") == 1 and html.count('<div data-film="') == 2, (
        "Table 5.1, and the chain"
    )
    assert (
        "step 1 of 16" in html
        and "query united comes" in html
        and "query delayed goes" in html
        and "(split)" in html
    )
    assert "none lost and none doubled" in html, "every query has DuckDB's results"
    assert all(
        f"Fig. {number}" in html
        for number in ("5.8", "5.9", "5.10", "6.4, 6.5", "6.6, 6.7", "8.1", "8.2", "8.3")
    )
    assert (
        "Merge graph of r (modelled)" in html
        and "20 % to 30 % less memory" in html
        and "<td>no</td>" in html
        and "all checks passed" in html
    ), "the claims"


SHEDDING = [
    "seconds=9",
    "rate=30",
    "window=4",
    "measured_batches=4",
    "skews=0.8",
    "study_scale=0.05",
    "burst_rate=60",
    "burst_batches=6",
    "flight_days=1",
    "flight_batches=24",
]


@pytest.mark.usefixtures("on_spark")
def test_load_shedding(tmp_path: Path) -> None:
    assert report("06_load_shedding", page := tmp_path / "shedding.html", SHEDDING) == 0
    html = page.read_text(encoding="utf-8")
    assert find_external_urls(html) == [] and "widget-view" not in html and "Traceback" not in html
    assert html.count("plotly.js v") == 1 and html.count('<div data-film="') == 8, (
        "the model, the run and the flights, Fig. 4, Algorithms 1, 3, 4 and 5"
    )
    assert '"shedding":{' in html and "(measured)" in html
    assert all(f"Fig. {number}:" in html for number in (5, 6, 7, 8, *range(10, 18)))
    assert "in truth" in html and "all checks passed" in html, "the claims"
    assert "about half is dropped at 50 tuples" in html, "what the paper prints, under ours"
    assert "if it were free" in html, "what learning costs"
    assert "A burst on Spark (measured)" in html and "Results at 25% of the pairs" in html


SHARED_RING = ["hosts=3", "days=1", "batches=2", "compare=2", "deploy_batches=10"]


@pytest.mark.usefixtures("on_spark")
def test_the_shared_ring(tmp_path: Path) -> None:
    assert report("05_shared_ring", page := tmp_path / "ring.html", SHARED_RING) == 0
    html = page.read_text(encoding="utf-8")
    assert find_external_urls(html) == [] and "widget-view" not in html and "Traceback" not in html
    assert html.count("plotly.js v") == 1 and html.count('<div data-film="') == 3, (
        "two rings, an example"
    )
    assert '"batch 2' in html and '"batch 10' in html and "step 1 of 13" in html
    assert "12 of 12 dashboards as by DuckDB" in html and "the fullest host of a stream" in html, (
        "the claims"
    )


UNCHANGED = """# The recorded run, as if its grid had stayed square
from braid.core import event_jsonl

seen = event_jsonl.read_events(recorded_runs.recording_path("fluct"))
seen = [e for e in seen if type(e).__name__ != "MappingChanged" or not e.batch]"""


def test_a_check_that_fails_makes_the_report_fail(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The bound on the ratio is checked on a run that claims to be adaptive and is not."""
    notebook = nbformat.read(NOTEBOOKS / "01_adaptive_theta_join.ipynb", as_version=4)
    cells = {cell.id: cell for cell in notebook.cells}
    notebook.cells = [
        cells["01-01"],
        cells["01-02"],
        nbformat.v4.new_code_cell(UNCHANGED),
        cells["01-07"],
    ]
    (tmp_path / "notebooks").mkdir()
    nbformat.write(notebook, tmp_path / "notebooks" / "square.ipynb")
    assert report("square", tmp_path / "square.html", [], tmp_path / "notebooks") == 1
    said = capfd.readouterr().err
    assert "AssertionError: Elseidy 2014, Th. 4.1" in said
    assert "the ratio exceeds its bound in batches" in said
    assert "the ratio exceeds its bound in batches" in (tmp_path / "square.html").read_text()


STREAM_REUSE = [
    "queries=8",
    "surface_queries=8",
    "replanned=3",
    "operators=100",
    "trees=1",
    "flights=30",
]


def test_stream_reuse(tmp_path: Path) -> None:
    assert report("07_stream_reuse", page := tmp_path / "reuse.html", STREAM_REUSE) == 0
    html = page.read_text(encoding="utf-8")
    assert find_external_urls(html) == [] and "Traceback" not in html
    assert html.count("plotly.js v") == 1
    assert "operator 0 at N1" in html and "a new join at N2" in html, "Q2 at two sinks"
    assert "carrier_code IN (" in html, "the relaxation of section 3.2"
    assert "N1 fails" in html and "7 answers are those of operators of their own" in html, "the day"
    assert "all checks passed" in html, "the claims"


def test_the_cockpit(tmp_path: Path) -> None:
    board = "board=data:swing hosts:4 rate:20 batches:8"
    assert report("08_cockpit", page := tmp_path / "cockpit.html", [board, "since=4"]) == 0
    html = page.read_text(encoding="utf-8")
    assert find_external_urls(html) == [] and "widget-view" not in html and "Traceback" not in html
    assert html.count('<div data-film="cockpit">') == 2 and "copies sent to hosts" in html
    assert "AdaptiveGrid, 4 hosts · full history · modelled run · completed" in html


HOT_KEYS = ["rows=1200", "batches=6", "hosts=4", "compared=0,1.5"]


def test_hot_keys(tmp_path: Path) -> None:
    assert report("09_hot_keys", page := tmp_path / "hot.html", HOT_KEYS) == 0
    html = page.read_text(encoding="utf-8")
    assert find_external_urls(html) == [] and "widget-view" not in html and "Traceback" not in html
    assert "Work of the busiest host" in html and html.count('<div data-film="cockpit">') == 1
    assert "shared out, the first (" in html, "the reason of a change"
    assert "Other values are frequent from half-way on" in html
    assert "all checks passed" in html, "the claims"


HYPERCUBE = ["rates=16,2,2", "later=2,2,16", "hosts=4", "batches=28", "values=10"]


def test_the_hypercube(tmp_path: Path) -> None:
    assert report("10_hypercube", page := tmp_path / "cube.html", HYPERCUBE) == 0
    html = page.read_text(encoding="utf-8")
    assert find_external_urls(html) == [] and "widget-view" not in html and "Traceback" not in html
    assert "Hosts that receive a tuple" in html and html.count('<div data-film="cockpit">') == 1
    assert "shares by equality a = b: 4, b = c: 1, in place of 2 x 2" in html, "a reason"
    assert "all checks passed" in html, "the claims"


def test_papermill_by_itself_runs_a_notebook_as_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BRAID_HEADLESS", raising=False)
    given = dict(board="data:grow hosts:4 rate:20 batches:8", since=4)
    execute_notebook(NOTEBOOKS / "08_cockpit.ipynb", out := tmp_path / "out.ipynb", given)
    outputs = [
        o for cell in nbformat.read(out, as_version=4).cells for o in cell.get("outputs", ())
    ]
    shown = [o["data"] for o in outputs if "data" in o]
    assert not any("widget-view" in kind for data in shown for kind in data)
    text = "".join(data.get("text/html", "") for data in shown)
    assert text.count('<div data-film="cockpit">') == 2 and "copies sent to hosts" in text


LISTED = "  # noqa: E501"
"""The end of a parameter's line that lists all its values: papermill reads one line of each."""


@pytest.mark.parametrize("notebook", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda p: p.stem)
def test_cells_are_short_have_lasting_ids_and_say_what_they_do(notebook: Path) -> None:
    """Computations are functions of a study, which tests can call; cells only call them."""
    cells = json.loads(notebook.read_text())["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            raw = [line for line in source.splitlines() if line.startswith("<!--")]
            assert not raw, f"{raw[0]!r} would be raw HTML to its end, stars and all"
            continue
        lines, settings = source.splitlines(), "parameters" in cell["metadata"].get("tags", [])
        wide = [n for n in lines if len(n) > 100 and not (settings and n.endswith(LISTED))]
        assert len(lines) <= 25 and not wide, cell["id"]
        assert settings or source.startswith("# ")
        defined = [
            n for n in ast.walk(ast.parse(source)) if isinstance(n, (*FUNCTIONS, ast.ClassDef))
        ]
        assert not defined, f"{cell['id']} defines {defined[0].name}"
        assert not cell["outputs"], cell["id"]


PICTURE = re.compile(r"watch\((?!\[)|display_panel\(")
"""A cell that shows the first picture of a notebook."""


@pytest.mark.parametrize("notebook", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda p: p.stem)
def test_a_notebook_is_short_and_begins_with_its_picture(notebook: Path) -> None:
    """At most 400 words, 40 of them before the picture, and no code in front of it unfolded."""
    cells = [(c, "".join(c["source"])) for c in json.loads(notebook.read_text())["cells"]]
    words = [len(LAB.sub(" ", s).split()) * (c["cell_type"] == "markdown") for c, s in cells]
    assert sum(words) <= 400
    first = next(n for n, (_, source) in enumerate(cells) if PICTURE.search(source))
    assert "watch(" in cells[first][1], "a cockpit, which stays in the window"
    assert sum(words[:first]) <= 40
    code = [c for c, _ in cells[: first + 1] if c["cell_type"] == "code"]
    assert all(c["metadata"]["jupyter"]["source_hidden"] for c in code)


LAB = re.compile("<!-- /?lab -->")


def test_the_tour_leads_on_to_all_notebooks() -> None:
    tour = nbformat.read(NOTEBOOKS / "00_tour.ipynb", as_version=4)
    text = "".join(cell.source for cell in tour.cells if cell.cell_type == "markdown")
    others = [path.name for path in NOTEBOOKS.glob("*.ipynb") if path.name != "00_tour.ipynb"]
    assert others and all(f"({name})" in text for name in others)
