"""Writes frames.ts: the types of all frames, as the views in Python declare them.

The file is not in the repository, and only the compiler reads it: a bundle has no types.
"""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from braid_widgets.base.columnar import Columns
from braid_widgets.base.stepper import StepAlgorithm
from braid_widgets.cockpit.frames import CockpitPage, LinkedViewsPage

ROOTS = (CockpitPage, LinkedViewsPage, StepAlgorithm)
TARGET = Path(__file__).parent / "frames.ts"
PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}
HEAD = """// Records that Python sends; the docstrings of braid_widgets describe their fields.
import type { Columns } from "./src/base/columns.ts";
"""


def typescript() -> str:
    """The file: an interface for each record, those that it uses before it."""
    found: dict[str, str] = {}
    for root in ROOTS:
        _declare(root, found)
    return HEAD + "".join(found.values())


def _declare(record: Any, found: dict[str, str]) -> str:
    if record.__name__ not in found:
        hints = get_type_hints(record, include_extras=True)
        fields = [_field(name, hint, found) for name, hint in hints.items()]
        lines = [f"\nexport interface {record.__name__} {{\n", *fields, "}\n"]
        found[record.__name__] = "".join(lines)
    return str(record.__name__)


def _field(name: str, hint: Any, found: dict[str, str]) -> str:
    optional = get_origin(hint) is NotRequired
    kind = _type(get_args(hint)[0] if optional else hint, found)
    return f"  {name}{'?' if optional else ''}: {kind};\n"


def _type(hint: Any, found: dict[str, str]) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if hint in PLAIN:
        return PLAIN[hint]
    if origin is list:
        of = _type(inner[0], found)
        return f"({of})[]" if " " in of else f"{of}[]"
    if origin is dict and inner[0] is str:
        return f"Record<string, {_type(inner[1], found)}>"
    if origin is Columns:
        return f"Columns<{_type(inner[0], found)}>"
    if origin is types.UnionType:
        return " | ".join(_type(part, found) for part in inner)
    if is_typeddict(hint) or hasattr(hint, "_fields"):
        return _declare(hint, found)
    raise TypeError(f"a frame holds {hint}, which has no counterpart in frames.py")


if __name__ == "__main__":
    TARGET.write_text(typescript(), encoding="utf-8")
