"""Commands of the lab for the console command ``braid``: ``report`` and ``list``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

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
