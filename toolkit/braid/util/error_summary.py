"""Summarize errors of Spark and Python in one line."""

from __future__ import annotations

import re


def summarize_error(error: BaseException) -> str:
    """Return the error in one line.

    It is the Python worker's exception if there is one, else the root Java exception, else the
    first line.

    >>> summarize_error(ValueError("no"))
    'no'
    >>> text = "Traceback (most recent call last):\\n  File x\\nKeyError: 3\\n\\tat y"
    >>> summarize_error(OSError(text))
    'KeyError: 3'
    """
    text = str(error).strip()
    lines = text.splitlines() or [type(error).__name__]
    traced = [n for n, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    raised = [line for line in lines[traced[-1] + 1 :] if re.match(r"\w", line)] if traced else []
    java = re.compile(r"(?:: |Caused by: )([\w.$]+(?:Error|Exception)\b.*)")
    thrown = [match[1] for line in lines if (match := java.match(line))]
    return (raised[:1] or thrown[-1:] or lines)[0].strip()


def take_first_line(error: Exception) -> str:
    """Return the first line of an error that is not blank."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def with_cause(error: BaseException, what: str) -> BaseException:
    """Return the error, or one that begins with ``what`` and names the cause.

    The latter is returned if the error's first line does not name the cause. The error is then its
    ``__cause__``.
    """
    summary = summarize_error(error)
    if summary == (str(error).strip().splitlines() or [summary])[0]:
        return error
    short = RuntimeError(f"{what}: {summary}")
    short.__cause__ = error
    return short
