"""The outcome of a report as plain data, and the differences from the previous run.

An outcome has the report's parameters, whether its checks passed, and its figures.
"""

from __future__ import annotations

import ast
import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import braid
from braid.util.git_checkout import git_commit
from braid.util.machine import available_cores, machine_memory

from braid_lab.reports.notebook_runner import NotebookRun

Outcome = dict[str, Any]
"""An outcome as stored in JSON."""
VERSION = 1
"""Version of the stored outcome."""
PACKAGES = ("pyspark", "duckdb", "pyarrow", "numpy", "pandas", "sqlglot")
MOST = 20
"""Maximum number of differing figures that are listed."""
_MUCH = 0.05
"""Minimum relative change of a column's mean that is listed."""


def make_outcome(
    name: str, title: str, parameters: Mapping[str, Any], ran: NotebookRun, claims: Iterable[Any]
) -> Outcome:
    """Return the outcome of report ``name``; ``claims`` are those that its notebook checked."""
    checks = [*_list_asserting_cells(ran), *_list_required_claims(claims)]
    return {
        "format_version": VERSION,
        "report": name,
        "title": title,
        "parameters": dict(parameters),
        "verdict": {
            "passed": sum(passed is True for _, passed in checks),
            "total": len(checks),
            "failed": [what for what, passed in checks if passed is False],
            "error": ran.error,
        },
        "claims": [dict(c) for c in _select_latest_claims(claims)],
        "figures": list(_read_figures(ran)),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(ran.total_seconds, 1),
        "cells": [[title, round(took, 1)] for title, took in ran.cells],
        "versions": package_versions(),
        "machine": f"{platform.machine()}, {available_cores()} cores, "
        f"{machine_memory() / 1e9:.0f} GB",
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


def write_outcome(found: Outcome, file: Path) -> None:
    """Write the outcome as JSON with one value a line, so that runs can be compared by line."""
    file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_outcome(file: Path) -> Outcome | None:
    """Return the outcome of an earlier run; None if there is none, or one of another version."""
    if not file.exists():
        return None
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} is no outcome of a report: {error}") from None
    return stored if isinstance(stored, dict) and stored.get("format_version") == VERSION else None


Difference = tuple[str, str, str]
"""The name of the value that differs, its old and its new value."""


def compare_outcomes(last: Outcome, now: Outcome) -> list[Difference]:
    """Return the differences from an earlier run of the same report.

    Compared are the parameters, the verdict, the claims, and the means of the columns of figures.
    """
    differences = list(_compare_values(last["parameters"], now["parameters"], "parameter "))
    differences += _compare_values(_summarize_verdict(last), _summarize_verdict(now), "")
    claims = [{_format_claim_name(c): c["holds"] for c in of["claims"]} for of in (last, now)]
    differences += _compare_values(claims[0], claims[1], "holds: ")
    return differences + list(_compare_figure_means(last["figures"], now["figures"]))[:MOST]


def _summarize_verdict(of: Outcome) -> dict[str, str]:
    verdict = of["verdict"]
    return {
        "checks passed": f"{verdict['passed']} of {verdict['total']}",
        "failed": "; ".join(verdict["failed"]) or "none",
    }


def _compare_values(
    last: Mapping[str, Any], now: Mapping[str, Any], what: str
) -> Iterator[Difference]:
    for name in {**last, **now}:
        was, is_ = (str(of.get(name, "–")) for of in (last, now))
        if was != is_:
            yield f"{what}{name}", was, is_


def _compare_figure_means(last: Sequence[Any], now: Sequence[Any]) -> Iterator[Difference]:
    """Yield the columns of figures, by place and name, whose means differ noticeably."""
    means = {(n, f["name"]): _compute_column_means(f) for n, f in enumerate(last)}
    for n, figure in enumerate(now):
        for column, mean in _compute_column_means(figure).items():
            was = means.get((n, figure["name"]), {}).get(column)
            if was is not None and abs(mean - was) > _MUCH * max(abs(mean), abs(was)):
                yield f"{figure['name']}, mean of {column}", f"{was:.4g}", f"{mean:.4g}"


def _compute_column_means(figure: Mapping[str, Any]) -> dict[str, float]:
    columns = zip(figure["columns"], zip(*figure["rows"], strict=True), strict=False)
    numbers = {
        str(name): [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
        for name, values in columns
    }
    return {name: sum(values) / len(values) for name, values in numbers.items() if values}


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


def claim_environment(claims: Path) -> dict[str, str]:
    """Return the environment that tells a notebook where to write its claims."""
    return {"BRAID_CLAIMS": os.fspath(claims)}
