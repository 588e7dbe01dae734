"""Why something failed: the line of an error that says it."""

from __future__ import annotations

import re


def summarize_error(error: BaseException) -> str:
    """What went wrong, in one line: what a Python worker of Spark's raised, which stands at the end
    of its traceback; else the Java exception that is at the root; else the first line.

    >>> cause(ValueError("no"))
    'no'
    >>> cause(OSError("Traceback (most recent call last):\\n  File x\\nKeyError: 3\\n\\tat y"))
    'KeyError: 3'
    """
    text = str(error).strip()
    lines = text.splitlines() or [type(error).__name__]
    traced = [n for n, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    raised = [line for line in lines[traced[-1] + 1 :] if re.match(r"\w", line)] if traced else []
    java = re.compile(r"(?:: |Caused by: )([\w.$]+(?:Error|Exception)\b.*)")
    thrown = [found[1] for line in lines if (found := java.match(line))]
    return (raised[:1] or thrown[-1:] or lines)[0].strip()


def with_cause(error: BaseException, what: str) -> BaseException:
    """The error, or one that begins with ``what`` and tells the cause where its own first line does
    not; the error is its ``__cause__`` then.
    """
    told = summarize_error(error)
    if told == (str(error).strip().splitlines() or [told])[0]:
        return error
    short = RuntimeError(f"{what}: {told}")
    short.__cause__ = error
    return short
