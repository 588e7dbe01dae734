"""Types of settings are checked, even if only type checkers can resolve them.

Text is converted to a number by one function.
"""

from __future__ import annotations

import ast
import json
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from braid.core.plan import Release
from braid.util.validation import check_settings, read_natural
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

Colour = Literal["red", "blue"]


@dataclass(frozen=True)
class Priced(Release):
    """A release with a price; only its own module can resolve its types."""

    price: Decimal | None = None
    colour: Colour = "red"


@dataclass(frozen=True)
class Dear(Priced):
    query: Decimal | None = None  # type: ignore[assignment]


@contextmanager
def painted(price: Decimal, colour: Colour = "red") -> Iterator[None]:
    """Return a function wrapped by one of a module that does not know its types."""
    yield


@pytest.mark.parametrize(
    ("of", "setting", "refused"),
    [
        (Priced, {"colour": "green"}, "^colour is 'green'; it must be of type Colour$"),
        (Priced, {"host": "yes"}, "^host is 'yes'; it must be a whole number$"),
        (Priced, {"partners": 3}, "^partners is 3; it must be of type Hop$"),
        (painted, {"colour": "green"}, "^colour is 'green'; it must be of type Colour$"),
    ],
)
def test_types_next_to_an_unknown_one_are_checked(
    of: Any, setting: dict[str, Any], refused: str
) -> None:
    with pytest.raises(ValueError, match=refused):
        check_settings(of, setting)


def test_an_unknown_type_says_nothing() -> None:
    for of in (Priced, painted):
        check_settings(of, {"price": "3", "colour": "blue"})
    check_settings(Dear, {"query": "yes"})


@given(st.integers(0, 10**30), st.integers(0, 10**30), st.text("0", max_size=9))
def test_what_is_written_as_a_natural_number_is_read(number: int, most: int, zeros: str) -> None:
    assert read_natural(f"{zeros}{number}", most) == (number if number <= most else None)


@given(st.text(max_size=4) | st.text("0123456789²٣१+-_ .e\n", max_size=4))
def test_nothing_else_is_a_natural_number(text: str) -> None:
    digits = text.isascii() and all("0" <= letter <= "9" for letter in text)
    assert read_natural(text) == (int(text) if text and digits else None)


ROOT = Path(__file__).parents[2]
DIGITS = {"isdigit", "isdecimal", "isnumeric"}
"""Methods that return True for characters that `int` refuses, or that nobody types as a number."""


def sources() -> dict[Path, str]:
    """Return the project's Python by file, and by cell of its notebooks; tests stand alone."""
    folders = ("toolkit", "widgets", "benchmarks", "docs", ".ci")
    files = [f for folder in folders for f in (ROOT / folder).rglob("*.py")]
    found = {f: f.read_text(encoding="utf-8") for f in files if "node_modules" not in f.parts}
    for file in (ROOT / "notebooks").rglob("*.ipynb"):
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        for number, cell in enumerate(cells):
            if cell["cell_type"] == "code":
                text = "".join(cell["source"])
                lines = [line for line in text.splitlines() if not line.startswith(("%", "!"))]
                found[file / str(number)] = "\n".join(lines)
    return found


def test_text_is_a_number_by_one_function() -> None:
    known = sources()
    assert len(known) > 200
    for file, text in known.items():
        names = {n.attr for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Attribute)}
        assert not names & DIGITS, f"{file} asks {names & DIGITS}; use validation.read_natural"
