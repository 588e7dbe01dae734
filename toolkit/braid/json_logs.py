"""Logs of Braid as lines of JSON, for programs that collect logs: ``braid.logs``."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

from braid.core.event_jsonl import LOGGER
from braid.event_handlers import attach_handler
from braid.util.validation import format_value

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class JsonFormatter(logging.Formatter):
    """Formats a record of the log as a JSON object in one line.

    It has ``time``, ``level``, ``logger`` and ``message``; of an event also ``event``, its class,
    ``run``, the folder or URL, and ``batch``; after an exception ``error``, with its lines.
    """

    def format(self, record: logging.LogRecord) -> str:
        values: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (event := getattr(record, "event", None)) is not None:
            values |= {"event": type(event).__name__, "run": getattr(record, "run", "")}
            values |= {"batch": event.batch} if hasattr(event, "batch") else {}
        if record.exc_info:
            values["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(values).decode()


class _JsonHandler(logging.StreamHandler[TextIO]):
    """The handler that ``logs`` has added, which a second call replaces."""


def logs(level: str = "INFO", stream: TextIO | None = None) -> logging.Handler:
    """Write Braid's log as one JSON object in each line. Return the handler.

    Each has ``time``, ``level``, ``logger`` and ``message``. Events also have ``event``, ``run``
    and ``batch``, and exceptions have ``error``. A second call replaces the first.

    Parameters
    ----------
    level
        "DEBUG", with an event for each batch and plan, "INFO", "WARNING" or "ERROR".
        Default: "INFO".
    stream
        A text file. Default: the standard error output.

    Raises ValueError for another level.
    """
    if level not in _LEVELS:
        raise ValueError(f"level is {format_value(level)}; it must be one of {', '.join(_LEVELS)}")
    added = _JsonHandler(stream)
    added.setFormatter(JsonFormatter())
    attach_handler(added, logging.getLevelNamesMapping()[level])
    LOGGER.propagate = False  # else handlers of other libraries write each line again
    return added
