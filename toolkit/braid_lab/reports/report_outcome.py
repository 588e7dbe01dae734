"""The outcome of a report as plain data: parameters, verdict, claims, figures and versions."""

from __future__ import annotations

import ast
import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import braid
from braid.util.git_checkout import git_commit

from braid_lab.common.recorded_settings import describe_machine
from braid_lab.reports.expectations import Expectation, judge_expectations
from braid_lab.reports.notebook_runner import NotebookRun
from braid_lab.reports.page import VARIABLE, PageContent
from braid_lab.reports.report_history import ReportRun

Outcome = dict[str, Any]
"""An outcome as stored in JSON."""
VERSION = 2
"""Version of the stored outcome."""
_HOLDS = {True: "yes", False: "no", None: "not reached"}
PACKAGES = ("pyspark", "duckdb", "pyarrow", "numpy", "pandas", "sqlglot")


def make_outcome(
    name: str,
    title: str,
    parameters: Mapping[str, Any],
    ran: NotebookRun,
    claims: Iterable[Any],
    content: PageContent,
    expectations: Sequence[Expectation],
) -> Outcome:
    """Return the outcome of report ``name``.

    ``claims`` are those that its notebook checked, ``content`` is its first page, and
    ``expectations`` are those of its figures.
    """
    asserted = [*_list_asserting_cells(ran)]
    checks = [*asserted, *_list_required_claims(claims)]
    failed = [what for what, passed in checks if passed is False]
    seconds = round(ran.total_seconds, 1)
    judged = judge_expectations(expectations, content.figures, seconds, len(failed))
    return {
        "format_version": VERSION,
        "report": name,
        "title": title,
        "parameters": dict(parameters),
        "verdict": {
            "passed": sum(passed is True for _, passed in checks),
            "total": len(checks),
            "failed": failed,
            "error": ran.error,
            "expectations": [[text, reason] for text, reason in judged],
        },
        "answer": content.answer,
        "headlines": [asdict(f) for f in content.figures],
        "findings": content.findings,
        "asserted": [[title, _HOLDS[passed]] for title, passed in asserted],
        "claims": [dict(c) for c in _select_latest_claims(claims)],
        "figures": list(_read_figures(ran)),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": seconds,
        "cells": [[title, round(took, 1)] for title, took in ran.cells],
        "versions": package_versions(),
        "machine": describe_machine(),
    }


def package_versions() -> dict[str, str]:
    """Return the versions of Braid, its commit in a checkout, and of the packages below it."""
    versions = {
        "braid": braid.__version__,
        "commit": git_commit(),
        "python": platform.python_version(),
    }
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:  # an optional package
            continue
    return {name: text for name, text in versions.items() if text}


def _list_asserting_cells(ran: NotebookRun) -> Iterator[tuple[str, bool | None]]:
    """Yield the cells that assert something, and whether they passed; None: not reached."""
    cells = [c for c in ran.notebook.cells if c.cell_type == "code" and c.source.strip()]
    for n, cell in enumerate(cells):
        if any(isinstance(node, ast.Assert) for node in ast.walk(_parse_cell(cell.source))):
            last = n == len(ran.cells) - 1
            reached = n < len(ran.cells)
            title = cell.source.strip().splitlines()[0].lstrip("# ")
            yield title, (not (last and ran.error)) if reached else None


def _parse_cell(source: str) -> ast.AST:
    """Return the cell's code; an empty module if it is not plain Python, such as a magic."""
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.Module([], [])


def _list_required_claims(claims: Iterable[Any]) -> Iterator[tuple[str, bool | None]]:
    for c in _select_latest_claims(claims):
        if c["is_required"]:
            yield (
                f"{c['paper']}, {c['source']}: {c['statement']}: {c['result']}",
                c["holds"] != "no",
            )


def _select_latest_claims(claims: Iterable[Any]) -> list[Any]:
    """Return each claim once, with its latest result."""
    return list({_format_claim_name(c): c for c in claims}.values())


def _format_claim_name(claim: Mapping[str, Any]) -> str:
    return f"{claim['paper']}, {claim['source']}: {claim['statement']}"


def _read_figures(ran: NotebookRun) -> Iterator[dict[str, Any]]:
    """Yield the data of every chart that was shown, in order."""
    for cell in ran.notebook.cells:
        for output in cell.get("outputs", ()):
            if "braid" in output.get("metadata", {}):
                yield dict(output.metadata.braid)


def make_report_run(outcome: Outcome, page: str, content: PageContent) -> ReportRun:
    """Return the run that a history keeps of an outcome; ``page`` is the page's file name."""
    verdict, versions = outcome["verdict"], outcome["versions"]
    reason = str(verdict["error"]).strip().splitlines()[-1:]
    return ReportRun(
        report=outcome["report"],
        title=outcome["title"],
        time=outcome["date"],
        settings=outcome["parameters"],
        answer=content.answer,
        passed=verdict["passed"],
        total=verdict["total"],
        failed=tuple(verdict["failed"]),
        error=(reason or [""])[0],
        figures=tuple(content.figures),
        seconds=outcome["seconds"],
        commit=versions.get("commit", versions["braid"]),
        page=page,
        cells=tuple((title, took) for title, took in outcome["cells"]),
        expectations=tuple((text, reason) for text, reason in verdict["expectations"]),
    )


def write_outcome(outcome: Outcome, file: Path) -> None:
    """Write the outcome as JSON with one value a line, so that runs can be compared by line."""
    file.write_text(json.dumps(outcome, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_claims(file: Path) -> list[Any]:
    """Return the claims that a notebook wrote to the file named by BRAID_CLAIMS."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def forward_claims(file: Path, to: str | None) -> None:
    """Append the claims to the file that BRAID_CLAIMS names for this process, if it is set."""
    if to and file.exists():
        with open(to, "a", encoding="utf-8") as target:
            target.write(file.read_text(encoding="utf-8"))


def make_environment(claims: Path, page: Path) -> dict[str, str]:
    """Return the environment in which a notebook writes its claims and its first page to files."""
    return {"BRAID_CLAIMS": os.fspath(claims), VARIABLE: os.fspath(page)}
