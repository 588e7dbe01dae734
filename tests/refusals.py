"""Check that each refusal is a sentence without internal names: of a column, function or object.

``watch_refusals`` looks at each error of Braid that a test expects. A name that the test's own file
has is one that its user gave.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import braid
import braid_lab
import braid_widgets
from _pytest.raises import RaisesExc

PACKAGES = tuple(
    str(Path(package.__file__).parent) for package in (braid, braid_lab, braid_widgets)
)
TESTS = str(Path(__file__).parent)
FEWEST_WORDS = 3
"""Words below which an error is no sentence, as KeyError of a dictionary is none."""
INTERNAL = re.compile(
    r"(?<![\w.])__[a-z]\w*"  # columns that Braid adds
    r"|\b[A-Za-z]\w*?__[a-z]\w*"  # columns of flat results
    r"|\bset_(?:overlap|inner)\b"  # functions that only Braid has
    r"|\b(?:unix|timestamp)_micros\b"  # into which it translates event times
    r"|\b(?:stream|chosen|late)_\d\b"  # tables of answers to why
    r"|<[\w.]+ object at 0x",
    re.IGNORECASE,
)


def find_internal_names(message: str, given: str) -> list[str]:
    """Return the internal names in a message that are not in the ``given`` text of a user."""
    return [name for name in INTERNAL.findall(message) if name.lower() not in given.lower()]


def find_frames(trace: TracebackType | None) -> Iterator[str]:
    """Yield the files through which an error came, the outermost first."""
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename
        trace = trace.tb_next


def check_refusal(error: BaseException | None) -> None:
    """Fail if an error of any class that Braid raised is no sentence or shows an internal name.

    A failed ``assert`` is a fault of Braid, not a refusal.
    """
    is_refusal = isinstance(error, Exception) and not isinstance(error, AssertionError)
    files = [*find_frames(error.__traceback__)] if error and is_refusal else []
    if files and files[-1].startswith(PACKAGES):
        assert len(str(error).split()) >= FEWEST_WORDS, f"a refusal is no sentence: {error!r}"
        given = (_read_text(file) for file in files if file.startswith(TESTS))
        found = find_internal_names(str(error), "\n".join(given))
        assert not found, f"a refusal shows {', '.join(found)}: {error}"


@cache
def _read_text(file: str) -> str:
    return Path(file).read_text(encoding="utf-8")


def watch_refusals() -> None:
    """Check each error that ``pytest.raises`` expects from now on."""
    leave: Callable[..., bool] = RaisesExc.__exit__

    def is_expected_refusal(self: Any, kind: Any, error: Any, trace: Any) -> bool:
        __tracebackhide__ = True
        is_left = leave(self, kind, error, trace)
        if is_left:
            check_refusal(error)
        return is_left

    RaisesExc.__exit__ = is_expected_refusal  # type: ignore[method-assign]
