"""Move prose of docstrings before their parameters, for the pages of the API.

Griffe, which reads the docstrings, takes all that follows the heading "Parameters" for parameters.
This project writes prose there too.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_HEADING = re.compile(r"^Parameters\n-{3,}\n", re.MULTILINE)
_PROSE = re.compile(r"\n\n(?=\S+ \S.*)(?!\S+ : )")


class Prose(griffe.Extension):
    """An extension that moves prose from after the parameters to before them."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = move_parameters_last(obj.docstring.value)


def move_parameters_last(text: str) -> str:
    """Return a docstring with its parameters last."""
    heading = _HEADING.search(text)
    if heading is None:
        return text
    prose = _PROSE.search(text, heading.end())
    if prose is None:
        return text
    parameters, rest = text[heading.start() : prose.start()], text[prose.end() :]
    return f"{text[: heading.start()]}{rest}\n\n{parameters}\n"
