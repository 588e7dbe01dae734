"""No refusal shows an internal name: those that tests expect, and those that the code can make."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import refusals
from braid.condition.set_similarity import MEASURES
from braid.core import reserved_columns
from braid.papers.reuse.deployment import Deployment, remove_queries
from braid.util.validation import check_int

PUBLIC = {"CHANGE_TYPE", "WEIGHT"}
"""Columns of results that Braid adds, which a user knows."""
ADDED = {name for name in vars(reserved_columns) if name.isupper()} - PUBLIC
COLUMN, FLAT = "__" + "k0", "trips" + "__" + "fare"


@pytest.mark.parametrize("name", [COLUMN, FLAT, *MEASURES, *(f.upper() for f in MEASURES.values())])
def test_a_refusal_with_an_internal_name_fails_its_test(name: str) -> None:
    with (
        pytest.raises(AssertionError, match=f"a refusal shows {name}"),
        pytest.raises(ValueError, match="must be"),
    ):
        check_int("many", name, 1, 2)


def test_an_error_of_a_look_up_is_no_refusal() -> None:
    """Errors of all classes are seen, those of Python's own look-ups too."""
    with (
        pytest.raises(AssertionError, match=r"is no sentence: KeyError\('q1'\)"),
        pytest.raises(KeyError),
    ):
        remove_queries(Deployment({}), "q1")


def list_raised_texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and each text of a module's errors, and added columns that they show."""
    raised = (n.exc for n in ast.walk(tree) if isinstance(n, ast.Raise) and n.exc is not None)
    made = (n for n in ast.walk(tree) if isinstance(n, ast.Call) and _names_error(n.func))
    for node in {*raised, *made}:
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield node.lineno, part.value
            shown = part.value if isinstance(part, ast.FormattedValue) else None
            if isinstance(shown, ast.Name) and shown.id in ADDED:
                yield node.lineno, str(getattr(reserved_columns, shown.id))


def _names_error(call: ast.expr) -> bool:
    """Return whether a call makes an error, such as one that a function returns."""
    return isinstance(call, ast.Name) and call.id.endswith("Error")


def test_no_error_of_the_code_names_what_only_the_code_knows() -> None:
    shown, count = [], 0
    for file in (file for folder in refusals.PACKAGES for file in Path(folder).rglob("*.py")):
        for line, text in list_raised_texts(ast.parse(file.read_text(encoding="utf-8"))):
            count += 1
            shown += [(file.name, line, n) for n in refusals.find_internal_names(text, "")]
    assert shown == [] and count > 1000
