"""The command ``braid report``: a notebook, headless, as one page, or a page for each setting."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import webbrowser
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from braid_lab.reports import notebook_runner as files
from braid_lab.reports import report_outcome, report_summary
from braid_lab.reports.notebook_parameters import NotebookError
from braid_lab.reports.page import PageContent, read_content
from braid_lab.reports.report_command import ReportOrder
from braid_lab.reports.report_history import (
    ReportRun,
    append_run_to_history,
    describe_changes,
    history_file,
    write_atomically,
)
from braid_lab.reports.report_index import write_report_index
from braid_lab.reports.report_page import render_page
from braid_lab.reports.sweep import render_sweep_page


def run_report(options: argparse.Namespace) -> int:
    """Run the report, or each run of a sweep.

    Return 0; 1 if a notebook fails (the page has the outputs so far), a figure is not as expected
    or the command of a change fails; 2 if the notebook cannot be run or a page cannot be written.
    """
    if options.index is not None and options.name is None:
        return _write_index(options.index)
    try:
        order = ReportOrder.from_options(options)
    except (NotebookError, ValueError, OSError) as error:
        return _print_refusal(str(error), 2)
    code = _run_all_combinations(order, options)
    if options.index is not None:
        code = max(code, _write_index(options.index))
    if options.open:
        webbrowser.open(order.output.resolve().as_uri())
    return code


def _write_index(folder: Path) -> int:
    """Write the index of a folder. Return 0; 2 if it has no report or cannot be written."""
    try:
        print(f"wrote {write_report_index(folder)}")
    except (ValueError, OSError) as error:
        return _print_refusal(str(error), 2)
    return 0


def _run_all_combinations(order: ReportOrder, options: argparse.Namespace) -> int:
    runs, codes = list[ReportRun](), list[int]()
    for values, page in zip(order.combinations, order.run_pages, strict=True):
        run, code, was_interrupted = _run_one_combination(order, values, page, options)
        codes.append(code)
        runs += [run] if run else []
        if was_interrupted:
            break
    if order.is_sweep and runs:
        write_atomically(order.output, render_sweep_page(runs, order.varied_names))
        print(f"wrote {order.output}; {len(runs)} of {len(order.run_pages)} runs")
    return max(codes)


def _run_one_combination(
    order: ReportOrder, values: Mapping[str, Any], page: Path, options: argparse.Namespace
) -> tuple[ReportRun | None, int, bool]:
    """Run the notebook and write its page.

    Return the run (None: no page), the exit code, and whether a signal ended it.
    """
    about = files.read_notebook_info(order.notebook)
    ran, claims, content = _execute_notebook(order, about, values, options.verbose)
    parameters = {**order.defaults, **values}
    outcome = report_outcome.make_outcome(
        order.name, about.title, parameters, ran, claims, content, order.expectations
    )
    run = report_outcome.make_report_run(outcome, page.name, content)
    top = report_summary.render_page_top(outcome, run, content, order.defaults, order.earlier)
    try:
        html = render_page(ran.notebook, run.title or order.name, order.notebook.parent, top)
    except NotebookError as error:
        return None, _print_refusal(f"{order.name}: {error}", 1), ran.was_interrupted
    write_atomically(page, html)
    if options.json:
        report_outcome.write_outcome(outcome, page.with_suffix(".json"))
    size = f"{len(html.encode()) / 1e6:.1f} MB"
    print(f"wrote {page} ({size}); {report_summary.format_verdict(run)}")
    if content.answer:
        print(content.answer)
    reasons = [ran.error] if ran.error else []
    reasons += run.unmet.values()
    reasons += [*_report_changes(order, run, page, options.on_change)]
    _keep_run_and_page(order, run, page, options.keep)
    for reason in reasons:
        _print_refusal(f"{order.name}: {reason}", 1)
    return run, 1 if reasons else 0, ran.was_interrupted


def _report_changes(
    order: ReportOrder, run: ReportRun, page: Path, command: str | None
) -> Iterator[str]:
    """Run the command if the run differs from earlier ones. Yield why the command failed."""
    changes = describe_changes(run, order.earlier)
    if not changes or command is None:
        return
    variables = {"BRAID_CHANGES": "\n".join(changes), "BRAID_REPORT": os.fspath(page.resolve())}
    done = subprocess.run(command, shell=True, env={**os.environ, **variables})
    if done.returncode:
        yield f"the command of --on-change ended with exit code {done.returncode}"


def _keep_run_and_page(order: ReportOrder, run: ReportRun, page: Path, keep: int) -> None:
    """Append the run to the history. Keep its page under a name with the time, if asked for."""
    if keep:
        stamp = run.time.partition("+")[0].replace(":", "")
        dated = page.with_name(f"{page.stem}.{stamp}{page.suffix}")
        shutil.copyfile(page, dated)
        run = replace(run, page=dated.name)
        for old in sorted(page.parent.glob(f"{page.stem}.????-??-??T??????{page.suffix}"))[:-keep]:
            old.unlink()
    append_run_to_history(history_file(order.output), order.earlier, run)
    order.earlier.append(run)


def _print_refusal(why: str, code: int) -> int:
    print(f"braid: {why}", file=sys.stderr)
    return code


def _execute_notebook(
    order: ReportOrder, about: files.NotebookInfo, values: Mapping[str, Any], verbose: bool
) -> tuple[files.NotebookRun, list[Any], PageContent]:
    """Run the notebook. Return the run, the claims that it checked, and its first page."""
    before = dict(order.earlier[-1].cells) if order.earlier else {}
    line = _Line()
    writers = (_write_to_stderr, _write_to_stderr) if verbose else (line.show_text, _ignore_text)
    with tempfile.TemporaryDirectory(prefix="braid-") as folder:
        claims, content = Path(folder) / "claims.jsonl", Path(folder) / "page.jsonl"
        ran = files.run_notebook(
            order.notebook,
            values,
            *writers,
            before,
            report_outcome.make_environment(claims, content),
            about.expected_minutes and 60 * about.expected_minutes,
        )
        report_outcome.forward_claims(claims, os.environ.get("BRAID_CLAIMS"))
        line.clear_line()
        return ran, report_outcome.read_claims(claims), read_content(content)


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
