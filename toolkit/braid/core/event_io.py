"""Read and write events as lines of JSON: a run's log, its events.jsonl, and recordings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from braid.core.events import EVENTS, Event
from braid.core.provider import current_provider

VERSION = 1
"""Version of the line format. Other versions are refused."""


def event_types() -> dict[str, type[Event]]:
    """Return all event classes by name: built-in, installed and user-defined ones."""
    current_provider().load_events()
    return dict(EVENTS.classes)


def event_to_dict(event: Event) -> dict[str, Any]:
    """Return an event as plain values, with its type and the format version."""
    values: dict[str, Any] = msgspec.to_builtins(event, str_keys=True)
    return {"format_version": VERSION, "type": type(event).__name__, **values}


def event_from_dict(data: Mapping[str, Any]) -> Any:
    """Return the event from its plain values.

    Raises ValueError for another version or an unknown type.
    """
    name, version = data.get("type"), data.get("format_version")
    if version != VERSION or (kind := _find_event_type(name)) is None:
        raise ValueError(_describe_refusal(name, version))
    return msgspec.convert(data, kind, str_keys=True)


def _find_event_type(name: Any) -> type[Event] | None:
    return EVENTS.classes.get(name) or event_types().get(name)


def _describe_refusal(name: Any, version: Any) -> str:
    """Return a sentence that names an event, the accepted ones, and plugins that do not work."""
    broken = current_provider().load_events()
    refusal = (
        f"event of kind {name!r}, version {version!r}; this version of Braid reads version "
        f"{VERSION} of {', '.join(EVENTS.classes)}"
    )
    return "; ".join((refusal, *broken))


def encode_event(event: Event) -> bytes:
    """Return an event as a line of JSON, with its newline."""
    return msgspec.json.encode(event_to_dict(event)) + b"\n"


def decode_event(line: bytes | msgspec.Raw) -> Any:
    """Return the event of a line. Raises ValueError as ``event_from_dict`` does."""
    return event_from_dict(msgspec.json.decode(line))


def write_events(path: str | Path, events: Iterable[Event], append: bool = False) -> None:
    """Write events as lines of JSON; with ``append``, at the end of the file."""
    with open(path, "ab" if append else "wb") as file:
        file.writelines([encode_event(e) for e in events])


def read_events(path: str | Path) -> list[Any]:
    """Return the events of a JSONL file, in order."""
    with open(path, "rb") as file:
        return [decode_event(line) for line in file if line.strip()]
