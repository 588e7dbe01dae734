"""The first page of a report, written by its notebook.

A notebook states its answer, up to three figures, one picture and findings. ``braid report`` puts
them at the top of its page and folds everything else. Outside a report the calls only check their
arguments.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from braid.run_doctor import Diagnosis, diagnose_events

from braid_lab.reports.line_picture import LinePicture
from braid_lab.reports.report_figures import Better, Figure
from braid_lab.reports.run_description import describe_run

LONGEST_ANSWER = 110
"""Maximum number of characters of an answer."""
WORDS = 60
"""Maximum number of words of a finding."""
HEADLINES, FINDINGS = 3, 4
"""Maximum number of figures and of findings at the top of a page."""
VARIABLE = "BRAID_PAGE"
"""Environment variable with the file to which the calls are appended; unset: no report."""


@dataclass(slots=True)
class PageContent:
    """The content of a first page.

    - ``findings``: pairs of a bold sentence and its text.
    - ``diagnosis``: the symptoms of the run, as ``braid doctor`` prints them; empty: unknown.
    """

    answer: str = ""
    figures: list[Figure] = field(default_factory=list)
    picture: LinePicture | None = None
    findings: list[tuple[str, str]] = field(default_factory=list)
    diagnosis: str = ""


def is_report() -> bool:
    """Return whether a report collects what is stated here."""
    return VARIABLE in os.environ


def set_answer(text: str) -> None:
    """Set the heading: the answer of this run, in at most 110 characters. The last call counts.

    Raises ValueError for a longer or an empty text.
    """
    if not 0 < len(text) <= LONGEST_ANSWER:
        raise ValueError(
            f"the answer {text[:40]!r}... has {len(text)} characters; it takes 1 to "
            f"{LONGEST_ANSWER}"
        )
    _append_line("answer", text)


def add_figure(name: str, value: float, *, unit: str = "", better: Better = "") -> None:
    """Add a figure, or replace the one of the same name. The first three are headlines.

    Parameters
    ----------
    name
        What is counted or measured.
    value
        A finite number.
    unit
        "s", "%", "rows" and so on; default: none.
    better
        Which direction is an improvement: "less", "more", or "" (default) for neither.

    Raises ValueError for any other value.
    """
    _append_line("figure", asdict(Figure(name, float(value), unit, better)))


def set_picture(shown: LinePicture) -> None:
    """Set the picture. The last call counts."""
    _append_line("picture", asdict(shown))


def add_finding(headline: str, text: str = "") -> None:
    """Add a finding: one sentence in bold, and up to three more.

    Raises ValueError if both together have over 60 words.
    """
    count = len(f"{headline} {text}".split())
    if not headline or count > WORDS:
        raise ValueError(
            f"the finding {headline[:40]!r} has {count} words; it takes a headline and at most "
            f"{WORDS} words in all"
        )
    _append_line("finding", [headline, text])


def show_run(events: Iterable[Any]) -> None:
    """Set answer, figures, picture, findings and diagnosis of a run from its events.

    Later calls replace or add to them. Raises ValueError for a run without a batch.
    """
    events = list(events)
    described = describe_run(events)
    set_answer(described.answer)
    for each in described.figures:
        _append_line("figure", asdict(each))
    set_picture(described.picture)
    for headline, text in described.findings:
        add_finding(headline, text)
    diagnosis = diagnose_events("the run", events)
    if diagnosis is not None and diagnosis.batches:
        set_diagnosis(diagnosis)


def set_diagnosis(diagnosis: Diagnosis) -> None:
    """Set the symptoms of a run, which ``run.doctor()`` returns; they are folded below the checks.

    The last call counts.
    """
    _append_line("diagnosis", str(diagnosis))


def _append_line(kind: str, value: Any) -> None:
    if file := os.environ.get(VARIABLE):
        with open(file, "a", encoding="utf-8") as target:
            target.write(json.dumps([kind, value], ensure_ascii=False) + "\n")


def read_content(file: Path) -> PageContent:
    """Return the content that a notebook wrote to the file named by BRAID_PAGE."""
    content, figures = PageContent(), dict[str, Figure]()
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    for kind, value in map(json.loads, lines):
        if kind == "answer":
            content.answer = value
        elif kind == "figure":
            figures[value["name"]] = Figure(**value)
        elif kind == "diagnosis":
            content.diagnosis = value
        elif kind == "picture":
            content.picture = LinePicture.from_dict(value)
        else:
            content.findings.append((value[0], value[1]))
    content.figures = list(figures.values())
    return content


def count_words(text: str) -> int:
    """Return the number of words in a text; signs between them do not count."""
    return len(re.findall(r"\w[\w.,%'-]*", text))
