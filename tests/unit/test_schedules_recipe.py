"""The page on schedules: its notebook and its command, as cron starts it."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from configparser import ConfigParser
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import dagster
import duckdb
import nbformat
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid.cli import main
from braid_lab.reports.report_history import history_file, read_history
from fenced_blocks import DOCS, FENCE
from nbformat.v4 import new_code_cell, new_notebook

PAGE = DOCS / "recipes/schedules.md"
CRON = (DOCS / "units/braid-report.cron").read_text().splitlines()[-1].split(maxsplit=5)
CLOCK, COMMAND = CRON[:5], CRON[5]
WORDS = COMMAND.removeprefix("cd /srv/braid && ").removesuffix(" >> orders.log 2>&1")
BOUND = "unpaid orders <= 5"
GATE = """
import os, pathlib
if os.path.exists("gate"):
    pathlib.Path("kernel").write_text(str(os.getpid()))
    open("gate").read()
"""
"""A cell that waits for the test, and says which process it is in."""
WRAPPER = """#!/bin/sh
export PYTHONPATH={modules} JUPYTER_PATH={kernels} TMPDIR={scratch}
exec {python} -c 'import sys, braid.cli as c; sys.exit(c.main())' "$@"
"""


@pytest.fixture
def served(tmp_path: Path, kernels: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the notebook of the page, its data, and a command ``braid``."""
    blocks = [text for kind, text in FENCE.findall(PAGE.read_text()) if kind == "python"]
    cells = [new_code_cell(text) for text in blocks]
    cells[0].metadata["tags"] = ["parameters"]
    cells.insert(2, new_code_cell(GATE))
    nbformat.write(new_notebook(cells=cells), tmp_path / "orders.ipynb")
    modules, jupyter = os.pathsep.join(sys.path), os.environ["JUPYTER_PATH"]
    (scratch := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    for name, text in {
        "braid": WRAPPER.format(
            modules=modules, kernels=jupyter, scratch=scratch, python=sys.executable
        ),
        "tell.sh": PAGE.read_text().split("```sh\n")[1].split("```")[0],
    }.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    write_data(tmp_path, unpaid=2)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_data(folder: Path, unpaid: int) -> None:
    """Write 40 orders, some of them unpaid."""
    for name, key, count in (("orders", "id", 40), ("payments", "order_id", 40 - unpaid)):
        (folder / "data" / name).mkdir(parents=True, exist_ok=True)
        columns = {key: [*range(count)], "total" if key == "id" else "amount": [5.0] * count}
        times = pa.array([n * 60_000_000 for n in range(count)], pa.timestamp("us"))
        pq.write_table(pa.table(columns | {"ts": times}), folder / "data" / name / "0.parquet")


def start_by_cron(folder: Path) -> subprocess.Popen[bytes]:
    """Run the command as cron does."""
    there = COMMAND.replace("/srv/braid", str(folder)).replace("/opt/braid/bin", str(folder))
    environment = {"PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", "HOME": "/", "LOGNAME": "braid"}
    shell = ["/bin/sh", "-c", there]
    return subprocess.Popen(shell, env=environment, cwd="/", start_new_session=True)


def test_reports_of_a_schedule_pass_fail_are_killed_and_recover(served: Path) -> None:
    page = served / "www/orders.html"
    changes = served / "changes.txt"

    def list_outcomes() -> list[tuple[float, list[str]]]:
        """Return the first figure and the expectations that are not met, of each run."""
        runs = read_history(history_file(page))
        return [(r.figures[0].value, [text for text, why in r.expectations if why]) for r in runs]

    assert start_by_cron(served).wait() == 0, (served / "orders.log").read_text()
    assert "2 of 40 orders are not paid." in page.read_text()
    assert not changes.exists()
    assert list_outcomes() == [(2, [])] and (served / "www/index.html").exists()

    os.mkfifo(gate := served / "gate")
    killed, before = start_by_cron(served), page.read_bytes()
    with gate.open("wb"):  # once the notebook has joined, and waits
        os.killpg(killed.pid, signal.SIGKILL)
        assert killed.wait() == -signal.SIGKILL
        os.kill(int((served / "kernel").read_text()), signal.SIGKILL)  # it is of another session
    gate.unlink()
    assert page.read_bytes() == before and list_outcomes() == [(2, [])]

    report = shlex.split(WORDS)[1:]
    write_data(served, unpaid=9)
    assert main(report) == 1
    assert list_outcomes() == [(2, []), (9, [BOUND])]
    assert "unpaid orders" in changes.read_text() and len(changes.read_text().splitlines()) == 1
    assert main([*report, "-p", "order=data/orders"]) == 2
    write_data(served, unpaid=1)
    assert main(report) == 0
    assert list_outcomes() == [(2, []), (9, [BOUND]), (1, [])]
    assert len(changes.read_text().splitlines()) == 2
    assert not [*(served / "temporary").rglob("run.json")], "no report leaves its run"


@pytest.mark.parametrize(("code", "times"), [(0, 1), (1, 2), (2, 1)])
def test_dagster_makes_the_report_and_tries_a_failed_one_again(
    code: int, times: int, tmp_path: Path
) -> None:
    asset = run_path(str(DOCS / "examples/report_asset.py"))
    [schedule] = asset["definitions"].schedules
    assert asset["COMMAND"] == COMMAND.removesuffix(" >> orders.log 2>&1")
    assert schedule.cron_schedule.split() == CLOCK
    log = tmp_path / "log"
    asset["orders_report"].op.compute_fn.decorated_fn.__globals__["COMMAND"] = (
        f"echo made >> {log}; exit {code}"
    )
    done = dagster.materialize([asset["orders_report"]], raise_on_error=False)
    assert done.success == (code == 0)
    assert log.read_text().split() == ["made"] * times


def test_the_model_of_dbt_returns_the_unpaid_orders_and_its_test_counts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    files = dict(re.findall(r'title="(\S+)" \}\n(.*?)^```$', PAGE.read_text(), re.M | re.S))
    exec(compile(files["models/unpaid_orders.py"], "unpaid_orders.py", "exec"), names := {})
    model = names["model"]
    check = files["tests/few_unpaid.sql"].replace("{{ ref('unpaid_orders') }}", "unpaid_orders")
    for unpaid in (0, 2, 9):
        write_data(tmp_path, unpaid)
        session = duckdb.connect()
        for name in ("orders", "payments"):
            session.execute(f"CREATE VIEW {name} AS {files[f'models/{name}.sql']}")
        found = model(SimpleNamespace(ref=session.table), session)
        assert found.column_names == ["id", "total", "ts"]
        assert sorted(found["id"].to_pylist()) == [*range(40 - unpaid, 40)]
        session.register("unpaid_orders", found)
        assert session.execute(check).fetchall() == ([(9,)] if unpaid == 9 else [])
        assert not list((tmp_path / "temporary").iterdir()), "the folder of the run is gone"


def test_all_schedules_run_the_same_command_at_the_same_time() -> None:
    unit, timer = (ConfigParser(strict=True, interpolation=None) for _ in range(2))
    assert unit.read(DOCS / "units/braid-report.service")
    assert timer.read(DOCS / "units/braid-report.timer")
    assert unit["Service"]["ExecStart"] == WORDS
    assert unit["Service"]["WorkingDirectory"] == "/srv/braid" and "%" not in COMMAND
    calls = [
        {one.arg: one.value for one in node.keywords}
        for node in ast.walk(ast.parse((DOCS / "examples/report_dag.py").read_text()))
        if isinstance(node, ast.Call)
    ]
    values = {name: value for call in calls for name, value in call.items()}
    assert ast.literal_eval(values["bash_command"]) == f"cd /srv/braid && {WORDS}"
    assert ast.literal_eval(values["schedule"]).split() == CLOCK == ["0", "6", "*", "*", "*"]
    assert timer["Timer"]["OnCalendar"] == "*-*-* 06:00:00"
    if analyze := shutil.which("systemd-analyze"):
        asked = [analyze, "calendar", timer["Timer"]["OnCalendar"]]
        assert subprocess.run(asked, capture_output=True).returncode == 0
