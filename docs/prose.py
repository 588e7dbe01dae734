"""Griffe, which reads our docstrings for the API pages, takes all that follows the heading
"Parameters" for parameters. We write prose there too; it goes before the heading.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_HEADING = re.compile(r"^Parameters\n-{3,}\n", re.MULTILINE)
_PROSE = re.compile(r"\n\n(?=\S+ \S.*)(?!\S+ : )")


class Prose(griffe.Extension):
    """Puts prose that follows the parameters before them."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = reordered(obj.docstring.value)


def reordered(text: str) -> str:
    """A docstring with its parameters last."""
    found = _HEADING.search(text)
    if found is None:
        return text
    prose = _PROSE.search(text, found.end())
    if prose is None:
        return text
    parameters, rest = text[found.start() : prose.start()], text[prose.end() :]
    return f"{text[: found.start()]}{rest}\n\n{parameters}\n"
