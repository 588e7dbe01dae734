"""The style of one widget does not reach into another: a notebook loads the sheets of both."""

from __future__ import annotations

import re
from pathlib import Path

import braid_widgets

ROOTS = {
    "cockpit": re.compile(r"\.braid-(cockpit|shell|presenting|inspecting)\b"),
    "stepper": re.compile(r"\.braid-(stepper|step >)"),
}
"""By style sheet, the classes that only its own widget has around it."""


def read_selectors(name: str) -> list[str]:
    text = (Path(braid_widgets.__file__).parent / "base" / f"{name}.css").read_text("utf-8")
    found = re.findall(r"([^{}]+)\{", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
    return [each.strip() for each in found if not each.strip().startswith("@")]


def name_classes(selectors: list[str]) -> set[str]:
    return set(re.findall(r"\.(braid-[\w-]+)", " ".join(selectors)))


def test_a_class_of_two_widgets_is_styled_inside_each_of_them_only() -> None:
    sheets = {name: read_selectors(name) for name in ROOTS}
    shared = set.intersection(*map(name_classes, sheets.values()))
    assert {"braid-side", "braid-step"} <= shared
    loose = [
        selector
        for name, selectors in sheets.items()
        for selector in selectors
        if name_classes([selector]) & shared and not ROOTS[name].search(selector)
    ]
    assert not loose
