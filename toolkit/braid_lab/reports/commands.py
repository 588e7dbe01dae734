"""Commands of the lab for the console command ``braid``, such as ``report`` and ``queries``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from braid.run_commands import exit_on_errors
from braid.util.durations import UNITS, format_duration

from braid_lab.reports import notebook_runner, report_command
from braid_lab.reports import report as reports
from braid_lab.reports.notebook_parameters import NotebookError, read_parameters
from braid_lab.reports.report_history import history_file, read_history


def add_commands(commands: Any) -> None:
    """Add the commands to argparse's ``commands``, the action that holds subparsers."""
    report = commands.add_parser(
        "report", help="run a notebook headless and write one self-contained HTML file"
    )
    report_command.add_arguments(report)
    report.set_defaults(command=reports.run_report)
    listing = commands.add_parser(
        "list", help="list the notebooks, with what each takes and how long"
    )
    listing.set_defaults(command=list_notebooks)
    for command in (report, listing):
        command.add_argument(
            "--notebooks",
            metavar="FOLDER",
            type=Path,
            default=notebook_runner.NOTEBOOKS,
            help="the folder of the notebooks (default: the project's own)",
        )
    advice = commands.add_parser(
        "queries",
        help="report how many joins a file of queries needs, and the savings of sharing them",
    )
    advice.add_argument("file", metavar="FILE", type=Path, help="SQL queries, each ended by ;")
    advice.add_argument("--time", metavar="COLUMN", default="ts", help="the event-time column")
    advice.set_defaults(command=advise_on_queries)
    cluster = commands.add_parser(
        "cluster", help="run a small Spark cluster on this machine until interrupted"
    )
    cluster.add_argument(
        "--workers", type=int, default=2, help="number of workers of one core each (default: 2)"
    )
    cluster.set_defaults(command=run_cluster)


@exit_on_errors(ValueError, OSError)
def advise_on_queries(options: argparse.Namespace) -> int:
    """Print how many joins the queries of a file need."""
    from braid_lab.reuse.sharing_advice import advise_sharing

    print(advise_sharing(options.file.read_text(encoding="utf-8"), options.time))
    return 0


def run_cluster(options: argparse.Namespace) -> int:
    """Run a Spark cluster until it is interrupted."""
    from braid_lab.launches.local_cluster import LocalCluster

    with LocalCluster(options.workers) as cluster:
        print(f"{options.workers} workers; session(master={cluster.url!r}), end with Ctrl-C")
        cluster.wait()
    return 0


def list_notebooks(options: argparse.Namespace) -> int:
    """Print the notebooks. Return 2 if there is none, 1 if one cannot be read, and 0 otherwise."""
    names = notebook_runner.list_notebooks(options.notebooks)
    if not names:
        print(f"braid: there is no notebook in {options.notebooks}", file=sys.stderr)
        return 2
    code = 0
    for name in names:
        file = options.notebooks / f"{name}.ipynb"
        try:
            accepted = read_parameters(file)
        except NotebookError as error:
            print(f"braid: {error}", file=sys.stderr)
            code = 1
            continue
        about = f"{notebook_runner.read_notebook_info(file)}{_format_last_duration(name)}"
        print(f"{name}: {about}" if about else name)
        for parameter in accepted.values():
            print(f"  {parameter}")
    return code


def _format_last_duration(name: str) -> str:
    """Return how long the last report took, if there is one at the default place."""
    runs = read_history(history_file(report_command.FOLDER / f"{name}.html"))
    took = format_duration(runs[-1].seconds * UNITS["second"]) if runs else ""
    return f" (the last took {took})" if took else ""
