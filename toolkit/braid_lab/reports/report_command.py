"""The arguments of ``braid report``, and what they ask for."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from braid.util.validation import check_ending

from braid_lab.reports import notebook_runner
from braid_lab.reports.expectations import Expectation
from braid_lab.reports.notebook_parameters import (
    NotebookError,
    Parameter,
    list_combinations,
    read_parameters,
)
from braid_lab.reports.report_history import ReportRun, history_file, read_history
from braid_lab.reports.sweep import find_varied_names, name_run_page

FOLDER = Path("runs")
"""Default folder of pages."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add = parser.add_argument
    add(
        "name",
        metavar="NAME",
        nargs="?",
        help="a notebook, as `braid list` names it, how that begins, or its path, NAME.ipynb",
    )
    add(
        "-p",
        dest="parameters",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="set a parameter; several values, as in skew=0,0.5,1, give a page each and a table",
    )
    add("-o", dest="output", metavar="FILE", type=Path, help="the page (default: runs/NAME.html)")
    add("-f", "--force", action="store_true", help="replace the page if it exists")
    add(
        "--json",
        action="store_true",
        help="write verdict, claims and figures beside it, as FILE with the ending .json",
    )
    add(
        "--expect",
        dest="expectations",
        metavar="TEXT",
        action="append",
        default=[],
        help="a bound on a figure, such as 'seconds < 2'; exit code 1 if it is not kept",
    )
    add(
        "--on-change",
        metavar="CMD",
        help="a shell command to run if a check or a figure differs from earlier runs",
    )
    add(
        "--keep",
        metavar="N",
        type=int,
        default=0,
        help="also keep the last N pages under a name with their time (default: 0)",
    )
    add("--index", metavar="DIR", type=Path, help="write DIR/index.html of all reports in DIR")
    add("--open", action="store_true", help="show the page in a browser")
    add("-v", "--verbose", action="store_true", help="print cells and their output to stderr")


@dataclass(frozen=True)
class ReportOrder:
    """One call of the command, checked before anything runs.

    - ``defaults``: the notebook's own parameters.
    - ``combinations``: the parameters that each run sets; more than one: a sweep.
    - ``output``: the page, or that of the sweep.
    - ``earlier``: the history, the oldest run first.
    """

    name: str
    notebook: Path
    defaults: Mapping[str, Any]
    combinations: Sequence[Mapping[str, Any]]
    output: Path
    expectations: Sequence[Expectation]
    earlier: list[ReportRun] = field(default_factory=list)

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> ReportOrder:
        """Return the order of parsed arguments.

        Raises NotebookError or ValueError if it cannot be run, or its pages cannot be written.
        """
        _check_options(options)
        name, notebook = _find_notebook_file(options.name, options.notebooks)
        accepted = read_parameters(notebook)
        combinations = list_combinations(_split_settings(options.parameters), accepted)
        output = options.output or FOLDER / f"{name}.html"
        order = cls(
            name,
            notebook,
            _read_defaults(accepted),
            combinations,
            output,
            [Expectation.parse(text) for text in options.expectations],
        )
        for page in {output, *order.run_pages}:
            _check_output(page, options.force)
        order.earlier.extend(read_history(history_file(output)))
        return order

    @property
    def varied_names(self) -> list[str]:
        """The names of the parameters that a sweep varies."""
        return find_varied_names(self.combinations) if self.is_sweep else []

    @property
    def is_sweep(self) -> bool:
        """Whether there is more than one run."""
        return len(self.combinations) > 1

    @property
    def run_pages(self) -> list[Path]:
        """The page of each run."""
        return [
            name_run_page(self.output, values, self.varied_names) if self.is_sweep else self.output
            for values in self.combinations
        ]


def _find_notebook_file(name: str, folder: Path) -> tuple[str, Path]:
    """Return the name and the file of a notebook, given by its path or its name in a folder."""
    file = Path(name)
    if file.suffix == ".ipynb" and file.is_file():
        return file.stem, file
    name = notebook_runner.find_notebook(name, folder)
    return name, folder / f"{name}.ipynb"


def _check_options(options: argparse.Namespace) -> None:
    if options.name is None:
        raise NotebookError("report takes the NAME of a notebook, or --index DIR")
    if options.keep < 0:
        raise NotebookError(f"--keep is {options.keep}; it takes 0 or more")


def _read_defaults(accepted: Mapping[str, Parameter]) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in accepted.items()}


def _split_settings(texts: Sequence[str]) -> list[tuple[str, str]]:
    for text in texts:
        if "=" not in text:
            raise NotebookError(f"-p takes KEY=VALUE, such as skew=1.0; found {text!r}")
    return [(text.partition("=")[0], text.partition("=")[2]) for text in texts]


def _check_output(output: Path, force: bool) -> None:
    """Raise NotebookError, or ValueError for its ending, unless the page can be written."""
    if output.is_dir():
        raise NotebookError(f"{output} is a folder; -o takes a file")
    check_ending(output, ".html", ".htm")
    if output.exists() and not force:
        raise NotebookError(f"{output} exists; -f replaces it")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=output.parent):
            pass
    except OSError as error:
        raise NotebookError(
            f"{output} cannot be written ({error.strerror}); -o takes a file of a folder that can"
        ) from None
