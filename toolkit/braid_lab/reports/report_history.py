"""The history of a report: one line of JSON for each run, in a file beside its page."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from braid_lab.reports.report_figures import Change, Figure, compare_figure

KEPT = 300
"""Maximum number of runs in a history."""
SUFFIX = ".history.jsonl"


@dataclass(frozen=True, slots=True)
class ReportRun:
    """One run of a report.

    - ``time``: start of its page, ISO 8601, UTC.
    - ``settings``: all parameters by name.
    - ``passed``, ``total``: number of checks.
    - ``failed``: names of the checks that failed.
    - ``error``: the reason if the run broke off, in a line.
    - ``seconds``: duration of all cells.
    - ``commit``: Braid's commit, or its version in an installed package.
    - ``page``: file name of the page of this run.
    - ``cells``: first line and seconds of each cell; only the newest run has them.
    - ``expectations``: text of each expectation, and why it is not met; empty: it is.
    """

    report: str
    title: str
    time: str
    settings: Mapping[str, Any]
    answer: str
    passed: int
    total: int
    failed: tuple[str, ...]
    error: str
    figures: tuple[Figure, ...]
    seconds: float
    commit: str
    page: str
    cells: tuple[tuple[str, float], ...] = ()
    expectations: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> ReportRun:
        """Return the run of a line of a history. Unknown fields are ignored."""
        fields = {name: stored[name] for name in cls.__dataclass_fields__ if name in stored}
        figures = tuple(Figure(**f) for f in stored["figures"])
        pairs = {
            name: tuple((first, second) for first, second in stored.get(name, ()))
            for name in ("cells", "expectations")
        }
        return cls(**{**fields, "failed": tuple(stored["failed"]), "figures": figures, **pairs})

    @property
    def is_sound(self) -> bool:
        """Whether the run came to its end and all checks held."""
        return not self.failed and not self.error

    @property
    def is_as_expected(self) -> bool:
        """Whether the run is sound and meets all expectations."""
        return self.is_sound and not self.unmet

    @property
    def unmet(self) -> dict[str, str]:
        """Why expectations are not met, by their text."""
        return {text: reason for text, reason in self.expectations if reason}

    @property
    def verdict(self) -> str:
        """The verdict of checks and expectations in a few words; those that fail come first."""
        if not self.expectations:
            return self.verdict_of_checks
        texts = [self.verdict_of_checks] if self.total or not self.is_sound else []
        place = 0 if self.is_sound and self.unmet else len(texts)
        texts.insert(place, self.verdict_of_expectations)
        return ", ".join(texts)

    @property
    def verdict_of_checks(self) -> str:
        """The verdict of the checks in a few words."""
        if self.failed:
            return f"{len(self.failed)} of {self.total} checks failed"
        if self.error:
            return "broke off"
        if not self.total:
            return "nothing to check"
        return f"all {self.total} checks hold" if self.total > 1 else "the check holds"

    @property
    def verdict_of_expectations(self) -> str:
        """The verdict of the expectations in a few words."""
        unmet, total = len(self.unmet), len(self.expectations)
        if total == 1:
            return "the expectation failed" if unmet else "the expectation is met"
        return (
            f"{unmet} of {total} expectations failed" if unmet else f"all {total} expectations met"
        )


def history_file(page: Path) -> Path:
    """Return the file of the history of a page."""
    return page.with_name(page.stem + SUFFIX)


def read_history(file: Path) -> list[ReportRun]:
    """Return the runs of a history, the oldest first. A last line that is incomplete is ignored.

    Raises ValueError if any other line is no run.
    """
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    runs = list[ReportRun]()
    for number, line in enumerate(lines, 1):
        try:
            runs.append(ReportRun.from_dict(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            if number == len(lines):
                break
            raise ValueError(
                f"line {number} of {file} is no run of a report: {error}; remove the line"
            ) from None
    return runs


def append_run_to_history(file: Path, earlier: Sequence[ReportRun], run: ReportRun) -> None:
    """Write a history with one more run, atomically; the oldest runs over 300 go."""
    retained = [replace(r, cells=()) for r in earlier[-(KEPT - 1) :]]
    text = "".join(f"{json.dumps(asdict(r), ensure_ascii=False)}\n" for r in [*retained, run])
    write_atomically(file, text)


def write_atomically(file: Path, text: str) -> None:
    """Write a file so that a reader never sees a part of it."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=file.parent, suffix=".part", delete=False
    ) as part:
        part.write(text)
    os.chmod(part.name, 0o644)
    os.replace(part.name, file)


def select_equal_settings(
    runs: Sequence[ReportRun], settings: Mapping[str, Any]
) -> list[ReportRun]:
    """Return the runs with these settings, the oldest first."""
    return [run for run in runs if dict(run.settings) == dict(settings)]


def list_figure_values(runs: Sequence[ReportRun], name: str) -> list[float]:
    """Return the values of a figure in the runs that have it, the oldest first."""
    return [f.value for run in runs for f in run.figures if f.name == name]


def compare_with_earlier(run: ReportRun, earlier: Sequence[ReportRun]) -> dict[str, Change]:
    """Return by figure how a run differs from earlier runs of equal settings.

    Runs that broke off or failed a check do not count.
    """
    sound = [r for r in select_equal_settings(earlier, run.settings) if r.is_sound]
    return {f.name: compare_figure(f, list_figure_values(sound, f.name)) for f in run.figures}


def describe_changes(run: ReportRun, earlier: Sequence[ReportRun]) -> list[str]:
    """Return what is different from earlier runs of equal settings, one sentence each.

    These are the checks and expectations that failed or hold again since the last run, those that
    fail in the first, and changed figures.
    """
    equal = select_equal_settings(earlier, run.settings)
    sentences = [
        f"{figure.name[:1].upper()}{figure.name[1:]}: {figure.text}, {change.text}."
        for figure, change in zip(
            run.figures, compare_with_earlier(run, earlier).values(), strict=True
        )
        if change.is_change
    ]
    unmet = equal[-1].unmet if equal else {}
    before, now = _list_failures(equal[-1]) if equal else {}, _list_failures(run)
    given = dict(run.expectations)
    return [
        *(f"Fails since this run: {now[name]}" for name in now if name not in before),
        *(
            f"Holds again: {name}"
            for name in before
            if name not in now and (name in given or name not in unmet)
        ),
        *sentences,
    ]


def _list_failures(run: ReportRun) -> dict[str, str]:
    """Return what failed, and its text: checks, the end of the run, and expectations."""
    names = [*run.failed, *([run.error] if run.error else [])]
    return {**{name: name for name in names}, **run.unmet}
