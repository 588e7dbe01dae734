"""Remove values of rows from what a bundle has of a run.

- A text literal of a condition becomes ``'?'``, unless it is the length of an interval.
- Of an error, the name of its class remains, since its message may quote a value.
- Of a source, options that are named like secrets, and the folders of its path, are left out.
- Sketches of results, which load shedding keeps, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from braid.condition.spark_dialect import SparkSql

HIDDEN = "'?'"
_LEFT_OUT = "(left out)"
_TEXTS = {kind for kind in TokenType if kind.name.endswith("STRING")}
_QUOTE = re.compile("['\"]")
_SECRET = re.compile("key|secret|token|password|credential|user", re.IGNORECASE)
_MESSAGES = {
    "RunEnded": "error",
    "QueryEnded": "reason",
    "HistoryLost": "reason",
}
"""By type of event, the field with the message of an error."""


def hide_texts(text: str) -> str:
    """Return SQL, or a sentence with SQL in it, without the texts in quotes.

    >>> hide_texts("a.name = 'Ann' AND a.n > 3 AND b.ts < a.ts + INTERVAL '1' HOUR")
    "a.name = '?' AND a.n > 3 AND b.ts < a.ts + INTERVAL '1' HOUR"
    """
    try:
        tokens = SparkSql().tokenize(text)
    except TokenError:  # a sentence with an apostrophe
        return _QUOTE.split(text, maxsplit=1)[0] + _LEFT_OUT
    parts, end, before = [], 0, ""
    for token in tokens:
        if token.token_type in _TEXTS and before != "INTERVAL":
            parts += [text[end : token.start], HIDDEN]
            end = token.end + 1
        before = token.text.upper()
    return "".join([*parts, text[end:]])


def name_error(message: str) -> str:
    """Return the class of an error, without its message.

    >>> name_error("ValueError: 'Ann' is no number"), name_error("")
    ('ValueError: (left out)', '')
    """
    kind, colon, _ = message.partition(":")
    if not message:
        return ""
    return f"{kind}: {_LEFT_OUT}" if colon and kind.isidentifier() else _LEFT_OUT


def redact_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plain values of an event without values of rows."""
    redacted: dict[str, Any] = _redact_values(event)
    if (field := _MESSAGES.get(event["type"])) is not None:
        redacted[field] = name_error(event[field])
    if event["type"] == "BatchShed":
        redacted["sketches"] = []
    return redacted


def redact_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run without values of rows, secrets and folders."""
    redacted: dict[str, Any] = _redact_values(settings)
    for options in redacted.get("sources", {}).values():
        for name, value in options.items():
            options[name] = _LEFT_OUT if _SECRET.search(name) else value.rpartition("/")[2]
    return {name: value for name, value in redacted.items() if name != "source_files"}


def _redact_values(value: Any) -> Any:
    if isinstance(value, str):
        return hide_texts(value) if _QUOTE.search(value) else value
    if isinstance(value, Mapping):
        return {name: _redact_values(each) for name, each in value.items()}
    return [_redact_values(each) for each in value] if isinstance(value, list | tuple) else value
