"""Reasons of verdicts have no figure that is typed by hand: every digit is a value of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import braid_lab
import pytest

pytestmark = pytest.mark.unit
LAB = Path(braid_lab.__file__).parent
REASON_AT = {"judge": 2, "judge_reading": 2, "leave_untested": 1, "Finding": 2}
"""By function that makes a finding, which argument is the reason; later ones are reasons too."""
PLACE = re.compile(
    r"(Fig\.|Tables?|Eq\.|Theorem|Lemma|Algorithm|[Ss]ections?|chapters?|step) \d[\d.]*( and \d[\d.]*)?"
    r"|\(\d+\.\d[\d.]*(, \d+\.\d[\d.]*)*\)|\b\d+\.\d+\.\d+|\b[A-Z]+\d\b"
)
"""Places in a paper, and names such as C3, Z0 and SINK4."""
FORMAT = re.compile(r"\.\d[%efg]")
"""A text that is but the format of a value, for a function that renders values."""
FORMULA = re.compile(
    r"\d? ?[A-Zα-ω]+ [-+/≤] \d+|\d+ [-+/] \d?[A-Zα-ω]+|\b\d ?[A-Zα-ω]\b|[A-Za-zα-ω]_\d"
)
"""Terms with a variable: N - 1, 2W, 5 + 2β, r_1."""


class ReasonReader:
    """The texts of all reasons in a module, with … for each value of the code."""

    def __init__(self, code: str) -> None:
        module = ast.parse(code)
        self.functions = {n.name: n for n in ast.walk(module) if isinstance(n, ast.FunctionDef)}
        texts = (ast.Constant, ast.JoinedStr)
        named = list_assignments(module.body)
        self.constants = {n: v for n, v in named.items() if isinstance(v[0], texts)}

    def list_typed_figures(self) -> list[str]:
        """Return the texts in which a digit is neither quoted nor in a place or a formula."""
        return [text for text in self._iterate_reasons() if re.search(r"\d", strip_allowed(text))]

    def _iterate_reasons(self) -> Iterator[str]:
        for function in self.functions.values():
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and get_called_name(call) in REASON_AT:
                    named = [k.value for k in call.keywords if k.arg != "ran"]
                    for part in [*call.args[REASON_AT[get_called_name(call)] :], *named]:
                        yield from self._iterate_texts(part, function, set())

    def _iterate_texts(
        self, node: ast.AST, function: ast.FunctionDef, seen: set[str]
    ) -> Iterator[str]:
        if isinstance(node, ast.Constant | ast.JoinedStr):
            yield join_literals(node)
        if isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            yield from self._iterate_named(node.id, function, seen)
        for child in list_shown_parts(node):
            yield from self._iterate_texts(child, function, seen)

    def _iterate_named(self, name: str, function: ast.FunctionDef, seen: set[str]) -> Iterator[str]:
        """Yield the texts that a variable, a constant or a function of the module may have."""
        values = list_assignments(ast.walk(function)).get(name) or self.constants.get(name, [])
        for value in values:
            yield from self._iterate_texts(value, function, seen)
        if called := self.functions.get(name):
            for node in ast.walk(called):
                if isinstance(node, ast.Return) and node.value:
                    yield from self._iterate_texts(node.value, called, seen)


def get_called_name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def list_assignments(nodes: Iterable[ast.AST]) -> dict[str, list[ast.expr]]:
    """Return the values that are assigned, by name."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AugAssign) and node.value:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id, []).append(node.value)
    return found


def join_literals(node: ast.Constant | ast.JoinedStr) -> str:
    """Return a text with … for its values."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(map(join_literals_of_part, node.values))


def join_literals_of_part(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else "…"


def list_shown_parts(node: ast.AST) -> list[ast.AST]:
    """Return the parts of an expression that a text may show: no keys, no conditions."""
    if isinstance(node, ast.JoinedStr):
        return [v.value for v in node.values if isinstance(v, ast.FormattedValue)]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.Subscript):
        return [node.value]
    if isinstance(node, ast.Compare | ast.Constant):
        return []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return [node.func.value, *(node.args if node.func.attr in ("join", "format") else ())]
    return list(ast.iter_child_nodes(node))


def strip_allowed(text: str) -> str:
    """Return a text without its quotations, places and formulas."""
    if FORMAT.fullmatch(text):
        return ""
    return FORMULA.sub("", PLACE.sub("", re.sub(r'"[^"]*"', "", text)))


STUDIED = sorted(
    path for path in LAB.rglob("*.py") if "claims import" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("path", STUDIED, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_a_reason_has_no_figure_but_those_of_its_run(path: Path) -> None:
    assert not ReasonReader(path.read_text(encoding="utf-8")).list_typed_figures()


@pytest.mark.parametrize(
    "code",
    [
        "return judge('', True, 'by 8.3 % of the lines')",
        "why = f'of {x} in 16 batches'\n    return judge('', True, failure=why)",
        "reading = describe(x)\n    return judge_reading('', True, f'so: {reading}')",
        "return leave_untested('', LEFT)",
    ],
)
def test_a_figure_that_is_typed_into_a_reason_is_found(code: str) -> None:
    module = f"LEFT = '7 of 20'\ndef describe(x):\n    return '2 %'\ndef claim(x):\n    {code}\n"
    assert ReasonReader(module).list_typed_figures()
    quoted = re.sub(r"'([^']*\d[^']*)'", "'\"\\1\" (section 5.2), of N - 1 hosts'", module)
    assert not ReasonReader(quoted).list_typed_figures()
