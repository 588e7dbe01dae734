"""`braid report` and `braid list` on small generated notebooks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from braid.cli import main
from braid_lab.reports.notebook_parameters import NotebookError, Parameter, read_parameters
from braid_lab.reports.notebook_runner import (
    NOTEBOOKS,
    CellProgress,
    find_notebook,
    list_notebooks,
    run_notebook,
)
from braid_lab.reports.report_history import ReportRun, append_run_to_history
from braid_lab.reports.report_index import write_report_index
from braid_lab.reports.report_page import find_external_urls
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from oracle import wait_until

pytestmark = pytest.mark.usefixtures("kernels")
PARAMETERS = """\
skew: float = 0.5  # 0 or more; Zipf z of the keys
hosts: int = 4  # 1 to 64; number of joiners
workload: str = "EQ5"
rates: str = "20,80"  # above 0; tuples per second
form: str = "fast"  # one of fast, slow; the way
live: bool = False  # wait for buttons
"""
IMPORT_HTML = "from IPython.display import HTML\n"
BODY = [
    "# where am I\nimport os, pathlib, sys\nprint('headless', os.environ['BRAID_HEADLESS'], "
    "pathlib.Path.cwd())",
    "from IPython.display import HTML, display\nimport plotly.graph_objects as go\nfrom ipywidgets "
    "import IntSlider",
    "import pandas as pd\nfrom braid_widgets.base.charts import Chart\nfrom braid_widgets.base.display "
    "import display_view\n"
    "display_view(Chart('line', {'': go.Figure(go.Scatter(y=[1, hosts]))}, pd.DataFrame({'y': [1, hosts]})))",
    "display(IntSlider())\nprint('noise', file=sys.stderr)",
    "print(f'{skew=} {hosts=} {workload=} {live=}')",
    "def check():\n    assert skew <= 1, 'skew is too high'\ncheck()",
]


def write(path: Path, *sources: str) -> Path:
    cells = [
        new_markdown_cell(
            "# A small report\n\nAll of it.<!-- lab --> Press\nLaunch.<!-- /lab --> So."
        ),
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
    write(folder / "reports" / "dies.ipynb", "import os\nos.write(2, b'out of luck')\nos._exit(3)")
    write(folder / ".ipynb_checkpoints" / "small.ipynb")
    return folder


def braid(folder: Path, *arguments: str) -> int:
    return main([arguments[0], "--notebooks", str(folder), *arguments[1:]])


def test_a_report_is_one_page_that_loads_nothing(
    folder: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page, shown = tmp_path / "out" / "small.html", list[str]()
    monkeypatch.setattr("webbrowser.open", shown.append)
    settings = ["-v", "-p", "skew=1", "-p", "hosts=9", "-p", "workload=a=b", "-p", "live=true"]
    assert braid(folder, "report", "small", *settings, "--open", "-o", str(page)) == 0
    html = page.read_text()
    assert find_external_urls(html) == [] and shown == [page.as_uri()]
    assert 'src="http' not in html and not any(host in html for host in ("cdnjs.", "unpkg.com")), (
        "nbconvert's own loads"
    )
    assert "skew=1.0 hosts=9 workload='a=b' live=True" in html.replace("&#39;", "'")
    assert 'class="braid-plot"' in html and "A small report" in html and "All of it. So." in html
    assert "skew is too high" not in html, "no code"
    assert "noise" not in html and "In&nbsp;" not in html and "widget-view+json" not in html
    history = page.with_name("small.history.jsonl")
    assert {*page.parent.iterdir()} == {page, history}, "and nothing else is left"
    output = capfd.readouterr()
    size = f"({len(page.read_bytes()) / 1e6:.1f} MB)"
    assert output.out == f"wrote {page} {size}; 1 of 1 checks passed\n"
    assert "[8/8, " in output.err and "] where am I\n" in output.err
    assert f"headless 1 {folder}\n" in output.err and "noise\n" in output.err


def test_a_check_that_fails_is_shown_and_the_page_is_written_so_far(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "x.html"
    assert braid(folder, "report", "small", "-p", "skew=2", "--json", "-o", str(page)) == 1
    output = capfd.readouterr()
    assert output.err == (
        "braid: small: cell 8 of 8 failed.\n----> 3 check()\n----> 2     assert skew <= 1, 'skew is "
        "too high'\nAssertionError: skew is too high\n"
    ), "and nothing else: cron sends a mail of it"
    html = page.read_text()
    assert "<h1>1 of 1 checks failed.</h1>" in html and 'class="braid-report-alarm"' in html
    assert "AssertionError: skew is too high" in html and 'class="braid-plot"' in html
    assert output.out.endswith("; 0 of 1 checks passed, and it was broken off\n")
    verdict = json.loads(page.with_suffix(".json").read_text())["verdict"]
    assert (verdict["passed"], verdict["total"]) == (0, 1) and "too high" in verdict["error"]


PAGE = """# The first page
from braid_lab.reports import page
from braid_lab.reports.line_picture import Band, Curve, LinePicture
page.set_answer(f'The fullest host holds {100 * hosts} rows.')
page.add_figure('rows on the fullest host', 100 * hosts, unit='rows', better='less')
page.add_figure('seconds of a batch', 0.25, unit='s', better='less')
page.set_picture(LinePicture('Rows.', (1, 2), (Curve('measured', (1, 2)),), (Band(1, 2, '2x2'),)))
page.add_finding('Adapting pays.', 'The last change came early.')"""


def test_the_top_of_a_page_has_the_answer_and_its_changes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, page = tmp_path / "notebooks", tmp_path / "small.html"
    write(folder / "small.ipynb", BODY[1], BODY[2], PAGE, BODY[5])
    given = ("report", str(folder / "small.ipynb"), "-o", str(page), "-f", "--json")
    assert braid(tmp_path / "none", *given) == 0, "by its path, from any folder"
    given = ("report", "smal", *given[2:])
    first, data = page.read_text(), json.loads(page.with_suffix(".json").read_text())
    assert "<title>A small report</title>" in first and "first run of these settings" in first
    assert "<h1>The fullest host holds 400 rows.</h1>" in first and "Adapting pays." in first
    assert (data["report"], data["title"]) == ("small", "A small report")
    verdict = {"passed": 1, "total": 1, "failed": [], "error": "", "expectations": []}
    assert data["verdict"] == verdict
    assert data["figures"] == [{"name": "line", "columns": ["y"], "rows": [[1], [4]]}]
    assert [f["value"] for f in data["headlines"]] == [400, 0.25]
    assert {"braid", "python", "pyspark", "duckdb"} <= set(data["versions"])
    history = page.with_name("small.history.jsonl")
    run = json.loads(history.read_text())
    assert run["settings"]["hosts"] == 4 and len(run["cells"]) == 5 and run["seconds"] > 0
    figures = [{**run["figures"][0], "value": v} for v in (300, 300, 301, 299)]
    history.write_text(
        "".join(f"{json.dumps({**run, 'figures': [f]})}\n" for f in figures) + '{"to'
    )
    mark, changed = tmp_path / "changed", 'echo "$BRAID_CHANGES" > '
    more = ("--on-change", f"{changed}{mark}", "--expect", "fullest < 400", "--expect", "x = 1")
    assert braid(folder, *given, *more, "--keep", "1") == 1, "by how its name begins"
    second = page.read_text()
    assert "▲ 33 % more than usual" in second and "last run 299" in second
    unmet = [
        ["fullest < 400", "expected rows on the fullest host < 400; it is 400"],
        [
            "x = 1",
            "no figure is named 'x'; there are: rows on the fullest host, seconds of a batch",
        ],
    ]
    reasons = [reason for _, reason in unmet]
    assert mark.read_text().splitlines() == [
        *(f"Fails since this run: {reason}" for reason in reasons),
        "Rows on the fullest host: 400, 33 % more than usual.",
    ]
    output = capfd.readouterr()
    assert output.err.splitlines() == [f"braid: small: {reason}" for reason in reasons]
    assert "; 1 of 1 checks passed, 0 of 2 expectations met\n" in output.out
    top = BeautifulSoup(second, "html.parser").select_one(".braid-report")
    assert top and top.h1 and top.h1.text == "2 of 2 expectations failed, the check holds."
    alarm = top.select_one(".braid-report-alarm")
    assert alarm and alarm.text.splitlines() == reasons
    assert json.loads(page.with_suffix(".json").read_text())["verdict"]["expectations"] == unmet
    runs = [json.loads(line) for line in history.read_text().splitlines()]
    assert runs[-1]["expectations"] == unmet
    index = write_report_index(tmp_path).read_text()
    assert "<h1>1 of 1 report failed: A small report.</h1>" in index
    assert "2 of 2 expectations failed, the check holds" in index
    assert [len(r["cells"]) for r in runs] == [0, 0, 0, 0, 5], "a torn line is gone"
    assert (tmp_path / runs[-1]["page"]).read_text() == second
    assert (
        second.partition('<details class="braid-report-fold"><summary>The run')[2]
        == (first.partition('<details class="braid-report-fold"><summary>The run')[2])
    ), "the same ids"


def test_a_sweep_has_a_page_for_each_setting_and_an_index_lists_them(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "notebooks" / "small.ipynb", PAGE)
    page = tmp_path / "out" / "small.html"
    given = ("report", "small", "-o", str(page), "-p", "hosts=2,3", "-p", "workload=a,b")
    assert braid(tmp_path / "notebooks", *given, "--index", str(page.parent)) == 0
    names = {"small.html", "small.history.jsonl", "index.html"}
    runs = [f"small-hosts-{hosts}.html" for hosts in (2, 3)]
    assert {file.name for file in page.parent.iterdir()} == {*names, *runs}
    html = page.read_text()
    assert "Rows on the fullest host: least with hosts = 2, 200; at worst 300." in html
    assert all(f'<a href="{name}">' in html for name in runs) and "Rows on the fullest" in html
    index = (page.parent / "index.html").read_text()
    assert "<h1>The report holds.</h1>" in index and all(f'href="{name}"' in index for name in runs)
    assert find_external_urls(html) == find_external_urls(index) == []
    assert "; 2 of 2 runs\n" in capfd.readouterr().out


def test_a_page_that_would_load_something_is_not_written(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert braid(folder, "report", "reports/online", "-o", str(tmp_path / "x.html")) == 1
    assert "would not work offline, it loads //cdn.org/x.js" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_kernel_that_dies_is_told(folder: Path) -> None:
    said: list[str] = []
    before = {"skew: float = 0.5  # 0 or more; Zipf z of the keys": 1.0, "import os": 30.0}
    ran = run_notebook(folder / "reports" / "dies.ipynb", {}, said.append, before=before)
    assert ran.error.splitlines() == ["the kernel died in cell 2 of 2", "out of luck"]
    assert "s left] skew" in said[0] and len(said) == 2 and len(ran.cells) == 2


@pytest.mark.parametrize("ends", [signal.SIGTERM, signal.SIGINT])
def test_a_report_that_is_told_to_end_leaves_its_page(tmp_path: Path, ends: signal.Signals) -> None:
    """As by a scheduler's limit, and by Ctrl-C."""
    begun, page = tmp_path / "begun", tmp_path / "page.html"
    wait = f"import pathlib, time\npathlib.Path({str(begun)!r}).touch()\ntime.sleep(600)"
    write(tmp_path / "slow.ipynb", "print('what came before')", wait)
    given = ("report", "slow", "-o", str(page), "--notebooks", str(tmp_path))
    command = [sys.executable, "-c", "import sys, braid.cli as c; sys.exit(c.main())"]
    process = subprocess.Popen([*command, *given], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: begun.exists() or process.poll() is not None, "the cell to begin", 60)
    process.send_signal(ends)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1 and said == "braid: slow: a signal ended it in cell 3 of 3\n"
    assert "what came before" in page.read_text()


def test_the_time_left_of_a_first_run_is_that_expected_less_what_is_gone() -> None:
    said: list[str] = []
    progress = CellProgress(["load", "draw"], said.append, said.append, {}, 60.0)
    for gone in (10, 50):
        progress.began = time.monotonic() - gone
        progress.start_cell(new_code_cell(), 0)
    assert said == ["[1/2, 10 s, about 50 s left] load\n", "[2/2, 50 s, about 10 s left] draw\n"]
    progress.began -= 30
    assert progress.seconds_left() is None, "nobody knows"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["big"], "no notebook is named 'big'; there are: reports/dies, reports/online, small"),
        (
            ["small", "-p", "zipf=1"],
            "no parameter is named 'zipf'; accepted are:\n  skew = 0.5  0 or more; Zipf z of the "
            "keys\n  hosts = 4",
        ),
        (["small", "-p", "skew=-1"], "skew is -1.0; it takes 0 or more\n"),
        (["small", "-p", "skew=nan"], "skew is nan; it takes 0 or more\n"),
        (["small", "-p", "skew=inf"], "skew is inf; it takes 0 or more\n"),
        (["small", "-p", "hosts=0"], "hosts is 0; it takes 1 to 64\n"),
        (["small", "-p", "hosts=65"], "hosts is 65; it takes 1 to 64\n"),
        (["small", "-p", "rates=20,0"], "rates is '20,0'; it takes above 0\n"),
        (["small", "-p", "rates=20,"], "rates is '20,'; it takes above 0\n"),
        (["small", "-p", "form=odd"], "form is 'odd'; it takes one of fast, slow\n"),
        (["small", "-o", "/proc/x/y.html"], "/proc/x/y.html cannot be written (No such file"),
        (
            ["small", "-o", f"{os.devnull}.png"],
            "the file is 'null.png'; its name must end in .html or .htm\n",
        ),
        (["small", "-o", "/", "-f"], "/ is a folder; -o takes a file"),
        (
            ["reports/"],
            "several notebooks begin so; 'reports/' may be reports/dies or reports/onli",
        ),
        (["small", "-p", "hosts=4.5"], "hosts is '4.5'; it takes a value of type int, such as 4"),
        (
            ["small", "-p", "live=perhaps"],
            "live is 'perhaps'; it takes true or false, such as False",
        ),
        (["small", "-p", "hosts"], "-p takes KEY=VALUE, such as skew=1.0; found 'hosts'"),
        (["small", "-p", "hosts=1,99"], "hosts is 99; it takes 1 to 64\n"),
        (
            ["small", "-p", "hosts=" + ",".join(map(str, range(1, 61))), "-p", "skew=0,1"],
            "-p asks for 120 runs; a sweep has at most 100\n",
        ),
        (["small", "--expect", "fast"], "--expect takes a figure, one of <= >= != == < > = and a"),
        (["small", "--keep", "-1"], "--keep is -1; it takes 0 or more\n"),
        ([], "report takes the NAME of a notebook, or --index DIR\n"),
        (["--index", "/proc/none"], "/proc/none has no history of a report (NAME.history.jsonl)"),
    ],
)
def test_wrong_usage_is_refused_before_anything_runs(
    folder: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert braid(folder, "report", *arguments) == 2
    output = capfd.readouterr().err
    assert output.startswith(f"braid: {sentence}") and "[1/" not in output


def test_a_page_is_replaced_only_by_force(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "mine.html"
    page.write_text("mine")
    assert braid(folder, "report", "reports/dies", "-o", str(page)) == 2
    assert capfd.readouterr().err == f"braid: {page} exists; -f replaces it\n"
    write(tmp_path / "own" / "plain.ipynb", "print('theirs')")
    assert braid(tmp_path / "own", "report", "plain", "-f", "-o", str(page)) == 0
    assert "theirs" in page.read_text()


def test_list_shows_notebooks_and_parameters(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert braid(folder, "list") == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [
        "reports/dies: A small report",
        "reports/online: A small report",
        "small: A small report",
    ]
    assert lines[-6:] == [
        "  skew = 0.5  0 or more; Zipf z of the keys",
        "  hosts = 4  1 to 64; number of joiners",
        "  workload = 'EQ5'",
        "  rates = '20,80'  above 0; tuples per second",
        "  form = 'fast'  one of fast, slow; the way",
        "  live = False  wait for buttons",
    ]


def test_list_tells_what_a_notebook_is_about_and_how_long_it_takes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "sound.ipynb")
    content = json.loads((tmp_path / "sound.ipynb").read_text())
    content["metadata"]["braid"] = {"about": "what it shows", "minutes": 2}
    (tmp_path / "sound.ipynb").write_text(json.dumps(content))
    assert braid(tmp_path, "list") == 0
    output = capfd.readouterr().out
    assert output.startswith("sound: A small report · what it shows (about 2 min)\n")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    run = ReportRun("sound", "", "", {}, "", 0, 0, (), "", (), 75.0, "", "")
    append_run_to_history(tmp_path / "runs" / "sound.history.jsonl", [], run)
    assert braid(tmp_path, "list") == 0
    assert "(about 2 min) (the last took 1 min 15 s)\n" in capfd.readouterr().out


def test_list_tells_what_is_no_notebook(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert braid(tmp_path / "nope", "list") == 2
    assert "there is no notebook in" in capfd.readouterr().err
    write(tmp_path / "sound.ipynb")
    (tmp_path / "broken.ipynb").write_text("{")
    assert braid(tmp_path, "list") == 1
    output = capfd.readouterr()
    assert output.out.startswith("sound: A small report\n")
    assert output.err.startswith(f"braid: {tmp_path}/broken.ipynb is no notebook: ")
    assert len(output.err.splitlines()) == 1


def test_the_version_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capfd.readouterr().out.startswith("braid 0.")


def test_a_name_is_found_by_how_it_begins(folder: Path) -> None:
    assert [find_notebook(n, folder) for n in ("sm", "reports/d", "onl")] == [
        *("small", "reports/dies", "reports/online"),
    ]


@pytest.mark.parametrize("name", list_notebooks())
def test_every_parameter_of_a_notebook_says_what_it_is(name: str) -> None:
    """On its own line: the comment of a folded value is lost."""
    found = read_parameters(NOTEBOOKS / f"{name}.ipynb").values()
    assert not [p.name for p in found if not p.help]


def test_parameters_are_literals(tmp_path: Path) -> None:
    computed = new_code_cell("a = 1 + len('x')", metadata={"tags": ["parameters"]})
    nbformat.write(new_notebook(cells=[computed]), tmp_path / "computed.ipynb")
    with pytest.raises(NotebookError, match="the parameters cell sets a = 1 .* literals only"):
        read_parameters(tmp_path / "computed.ipynb")
    assert Parameter("sizes", [1, 2], "").parse_value("[3]") == [3]


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
    assert find_external_urls(html) == (
        ["https://a.org/b.css", "http://a.org/c.png"] if loads is None else loads
    )


def test_the_command_starts_without_loading_spark_and_never_loads_grammars() -> None:
    code = (
        "import sys, braid.cli as cli; loaded = {'pyspark', 'papermill', 'nbconvert', "
        "'plotly'} & sys.modules.keys(); cli.main(); sys.exit(loaded or 'lark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, "list"]).returncode == 0


@pytest.mark.parametrize("arguments", [["list"], ["--help"], ["health", "nowhere"]])
def test_a_reader_that_leaves_ends_the_command_quietly(arguments: list[str]) -> None:
    """As in `braid list | head -1`; a failure is still reported in a sentence."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "braid.cli", *arguments]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    said = "braid: nowhere holds no run that has begun\n" if arguments[0] == "health" else ""
    # From Python 3.12 on, argparse ignores that nobody reads its help.
    ended = 0 if arguments == ["--help"] and sys.version_info >= (3, 12) else 141
    assert (done.returncode, done.stderr) == ((2, said) if said else (ended, ""))


def test_a_reader_of_the_errors_may_leave_too() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "braid.cli", "health", "nowhere"]
    done = subprocess.run(command, stdout=write, stderr=write)
    os.close(write)
    assert done.returncode == 141


def test_a_broken_pipe_of_something_else_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """For example of a kernel that dies while its output is read."""

    def fail(_: object) -> int:
        raise BrokenPipeError("a kernel is gone")

    monkeypatch.setattr("braid.cli._has_no_reader", lambda _: False)
    monkeypatch.setattr("braid_lab.reports.commands.list_notebooks", fail)
    with pytest.raises(BrokenPipeError, match="a kernel is gone"):
        main(["list"])


def test_who_calls_the_command_keeps_its_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "rfc3987_syntax")
    assert main(["list", "--notebooks", str(tmp_path)]) == 2
    assert "rfc3987_syntax" not in sys.modules
