"""`braid report` and `braid list`, on small notebooks made here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from braid.reports.cli import main
from braid.reports.notebook import NotebookError, Parameter, parameters, run
from braid.reports.page import external_loads
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

PARAMETERS = """\
skew: float = 0.5  # Zipf z of the keys
hosts: int = 4  # number of joiners
workload: str = "EQ5"
live: bool = False  # wait for buttons
"""
IMPORT_HTML = "from IPython.display import HTML\n"
BODY = [
    "# where am I\nimport os, pathlib, sys\nprint('headless', os.environ['BRAID_HEADLESS'], "
    "pathlib.Path.cwd())",
    "from IPython.display import HTML, display\nimport plotly.graph_objects as go\nfrom ipywidgets "
    "import IntSlider",
    "display(HTML(go.Figure(go.Scatter(y=[1, hosts])).to_html(include_plotlyjs=True, "
    "include_mathjax=False)))",
    "display(IntSlider())\nprint('noise', file=sys.stderr)",
    "print(f'{skew=} {hosts=} {workload=} {live=}')",
    "def check():\n    assert skew <= 1, 'skew is too high'\ncheck()",
]


def write(path: Path, *sources: str) -> Path:
    cells = [
        new_markdown_cell("# A small report"),
        new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=cells + [new_code_cell(s) for s in sources]), path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notebooks")
    write(folder / "small.ipynb", *BODY)
    write(
        folder / "reports" / "online.ipynb",
        IMPORT_HTML + "HTML('<script src=\"//cdn.org/x.js\"></script>')",
    )
    write(folder / "reports" / "dies.ipynb", "import os\nos._exit(3)")
    write(folder / ".ipynb_checkpoints" / "small.ipynb")
    return folder


def braid(folder: Path, *arguments: str) -> int:
    return main([arguments[0], "--notebooks", str(folder), *arguments[1:]])


def test_a_report_is_one_page_that_loads_nothing(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "out" / "small.html"
    settings = ["-p", "skew=1", "-p", "hosts=9", "-p", "workload=a=b", "-p", "live=true"]
    assert braid(folder, "report", "small", *settings, "-o", str(page)) == 0
    html = page.read_text()
    assert external_loads(html) == []
    assert 'src="http' not in html and not any(host in html for host in ("cdnjs.", "unpkg.com")), (
        "nbconvert's own loads"
    )
    assert "skew=1.0 hosts=9 workload='a=b' live=True" in html.replace("&#39;", "'")
    assert "Plotly.newPlot" in html and "A small report" in html
    assert "def check" not in html, "no code"
    assert "noise" not in html and "In&nbsp;" not in html and "widget-view+json" not in html
    assert list(page.parent.iterdir()) == [page], "and nothing else is left"
    told = capfd.readouterr()
    assert told.out == f"wrote {page} ({len(page.read_bytes()) / 1e6:.1f} MB)\n"
    assert "[8/8, " in told.err and "] where am I\n" in told.err
    assert f"headless 1 {folder}\n" in told.err and "noise\n" in told.err


def test_a_check_that_fails_is_shown_and_no_page_is_written(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert braid(folder, "report", "small", "-p", "skew=2", "-o", str(tmp_path / "x.html")) == 1
    told = capfd.readouterr().err
    assert (
        "braid: small: cell 8 of 8 failed.\n----> 3 check()\n----> 2     assert skew <= 1" in told
    )
    assert told.endswith("AssertionError: skew is too high\n")
    assert not list(tmp_path.iterdir())


def test_a_page_that_would_load_something_is_not_written(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert braid(folder, "report", "reports/online", "-o", str(tmp_path / "x.html")) == 1
    assert "would not work offline, it loads //cdn.org/x.js" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_kernel_that_dies_is_told(folder: Path) -> None:
    with pytest.raises(NotebookError, match="the kernel died in cell 2 of 2"):
        run(folder / "reports" / "dies.ipynb", {}, lambda text: None)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["big"], "no notebook is named 'big'; there are: reports/dies, reports/online, small"),
        (
            ["small", "-p", "zipf=1"],
            "no parameter is named 'zipf'; accepted are:\n  skew = 0.5  Zipf z of the keys\n  "
            "hosts = 4",
        ),
        (["small", "-p", "hosts=4.5"], "hosts is '4.5'; it takes a value of type int, such as 4"),
        (
            ["small", "-p", "live=perhaps"],
            "live is 'perhaps'; it takes true or false, such as False",
        ),
        (["small", "-p", "hosts"], "-p takes KEY=VALUE, such as skew=1.0; found 'hosts'"),
    ],
)
def test_wrong_usage_is_refused_before_anything_runs(
    folder: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert braid(folder, "report", *arguments) == 2
    told = capfd.readouterr().err
    assert told.startswith(f"braid: {sentence}") and "[1/" not in told


def test_a_page_is_replaced_only_by_force(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "mine.html"
    page.write_text("mine")
    assert braid(folder, "report", "reports/dies", "-o", str(page)) == 2
    assert capfd.readouterr().err == f"braid: {page} exists; -f replaces it\n"
    assert braid(folder, "report", "small", "-f", "-o", str(page)) == 0
    assert page.read_text() != "mine"


def test_list_shows_notebooks_and_parameters(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert braid(folder, "list") == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [
        "reports/dies",
        "reports/online",
        "small",
    ]
    assert lines[-4:] == [
        "  skew = 0.5  Zipf z of the keys",
        "  hosts = 4  number of joiners",
        "  workload = 'EQ5'",
        "  live = False  wait for buttons",
    ]


def test_parameters_are_literals(tmp_path: Path) -> None:
    computed = new_code_cell("a = 1 + len('x')", metadata={"tags": ["parameters"]})
    nbformat.write(new_notebook(cells=[computed]), tmp_path / "computed.ipynb")
    with pytest.raises(NotebookError, match="the parameters cell sets a = 1 .* literals only"):
        parameters(tmp_path / "computed.ipynb")
    assert Parameter("sizes", [1, 2], "").parse("[3]") == [3]


@pytest.mark.parametrize(
    ("html", "loads"),
    [
        ('<script src="https://a.org/b.js"></script>', ["https://a.org/b.js"]),
        ('<link rel="stylesheet" href="//a.org/b.css">', ["//a.org/b.css"]),
        ('<img src="plot.png">', ["plot.png"]),
        (
            "<style>@import 'https://a.org/b.css'; p { background: url(http://a.org/c.png) "
            "}</style>",
            None,
        ),
        ('<a href="https://a.org">a link is no load</a><img src="data:image/png;base64,AAAA">', []),
    ],
)
def test_external_loads(html: str, loads: list[str] | None) -> None:
    assert external_loads(html) == (
        ["https://a.org/b.css", "http://a.org/c.png"] if loads is None else loads
    )


def test_the_command_starts_without_loading_spark() -> None:
    code = (
        "import sys, braid.reports.cli; sys.exit(any(m in sys.modules for m in ('pyspark', "
        "'papermill', 'nbconvert', 'plotly')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
