"""The styles of a report and of the views in it leave each other alone."""

from __future__ import annotations

import re
from pathlib import Path

import braid_widgets
from braid_lab.reports.report_style import STYLE

CLASS = re.compile(r"\.(braid-[\w-]+)")


def test_a_report_and_its_views_share_no_class() -> None:
    files = Path(braid_widgets.__file__).parent.rglob("*.css")
    of_views = {name for file in files for name in CLASS.findall(file.read_text("utf-8"))}
    of_report = {*CLASS.findall(STYLE)}
    assert len(of_views) > 50 and of_report and not of_report & of_views
