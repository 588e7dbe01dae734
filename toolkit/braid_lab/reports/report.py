"""The command ``braid report``: one notebook, headless, as one page."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from braid_lab.reports import notebook_runner as files
from braid_lab.reports import report_outcome, report_summary
from braid_lab.reports.notebook_parameters import NotebookError, parse_values, read_parameters
from braid_lab.reports.report_page import render_page

FOLDER = Path("runs")
"""Default folder of pages."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "name", metavar="NAME", help="a notebook, as `braid list` names it, or how that begins"
    )
    parser.add_argument(
        "-p",
        dest="parameters",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="set a parameter",
    )
    parser.add_argument(
        "-o",
        dest="output",
        metavar="FILE",
        type=Path,
        help="the HTML file (default: runs/NAME.html)",
    )
    parser.add_argument(
        "-f", "--force", action="store_true", help="replace the HTML file if it exists"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="write verdict, claims and figures beside it, as FILE with the ending .json",
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help="say what is different from the last run, of which there is such JSON",
    )
    parser.add_argument("--open", action="store_true", help="show the page in a browser")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="tell cells and what they print, to stderr"
    )


def run_report(options: argparse.Namespace) -> int:
    """Run the report.

    Return 0; 1 if the notebook fails (the page has the outputs so far); 2 if the notebook cannot be
    run or the page cannot be written.
    """
    try:
        name = files.find_notebook(options.name, options.notebooks)
        notebook = options.notebooks / f"{name}.ipynb"
        accepted = read_parameters(notebook)
        values = parse_values(_parse_settings(options.parameters), accepted)
        output = options.output or FOLDER / f"{name}.html"
        _check_output(output, options.force)
        aside = output.with_suffix(".json")
        last = report_outcome.read_outcome(aside)
    except (NotebookError, ValueError) as error:
        return _print_refusal(str(error), 2)
    defaults = {n: p.default for n, p in accepted.items()}
    about = files.read_notebook_info(notebook)
    expected = about.expected_minutes and 60 * about.expected_minutes
    ran, claims = _run_with_claims(notebook, values, options.verbose, last, expected)
    outcome = report_outcome.make_outcome(name, about.title, defaults | values, ran, claims)
    try:
        html = render_page(
            ran.notebook,
            outcome["title"] or name,
            notebook.parent,
            report_summary.render_head(outcome, defaults, last, options.compare),
        )
    except NotebookError as error:
        return _print_refusal(f"{name}: {error}", 1)
    _write_page(output, html)
    if options.json or options.compare:
        report_outcome.write_outcome(outcome, aside)
    print(
        f"wrote {output} ({len(html.encode()) / 1e6:.1f} MB); "
        f"{report_summary.format_verdict(outcome)}"
    )
    if options.open:
        webbrowser.open(output.resolve().as_uri())
    return _print_refusal(f"{name}: {ran.error}", 1) if ran.error else 0


def _print_refusal(why: str, code: int) -> int:
    print(f"braid: {why}", file=sys.stderr)
    return code


def _parse_settings(texts: Sequence[str]) -> dict[str, str]:
    for text in texts:
        if "=" not in text:
            raise NotebookError(f"-p takes KEY=VALUE, such as skew=1.0; found {text!r}")
    return dict(text.split("=", 1) for text in texts)


def _check_output(output: Path, force: bool) -> None:
    """Raise NotebookError unless the page can be written."""
    if output.is_dir():
        raise NotebookError(f"{output} is a folder; -o takes a file")
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


def _run_with_claims(
    notebook: Path,
    values: Mapping[str, Any],
    verbose: bool,
    last: report_outcome.Outcome | None,
    expected: float | None,
) -> tuple[files.NotebookRun, list[Any]]:
    """Run the notebook. Return the run and the claims that it checked."""
    before = {title: took for title, took in (last or {}).get("cells", ())}
    line = _Line()
    with tempfile.TemporaryDirectory(prefix="braid-") as folder:
        claims_file = Path(folder) / "claims.jsonl"
        writers = (
            (_write_to_stderr, _write_to_stderr) if verbose else (line.show_text, _ignore_text)
        )
        ran = files.run_notebook(
            notebook,
            values,
            *writers,
            before,
            report_outcome.claim_environment(claims_file),
            expected,
        )
        report_outcome.forward_claims(claims_file, os.environ.get("BRAID_CLAIMS"))
        line.clear_line()
        return ran, report_outcome.read_claims(claims_file)


class _Line:
    """A line on a terminal that the next one replaces; nothing if there is no terminal."""

    def show_text(self, text: str) -> None:
        if sys.stderr.isatty():
            _write_to_stderr(f"\r\x1b[K{text.strip()[:110]}")

    def clear_line(self) -> None:
        if sys.stderr.isatty():
            _write_to_stderr("\r\x1b[K")


def _ignore_text(text: str) -> None:
    """Ignore progress if there is no terminal."""


def _write_to_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _write_page(output: Path, html: str) -> None:
    """Write the page atomically: a page that is being served is never incomplete."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=output.parent, suffix=".part", delete=False
    ) as file:
        file.write(html)
    os.chmod(file.name, 0o644)
    os.replace(file.name, output)
