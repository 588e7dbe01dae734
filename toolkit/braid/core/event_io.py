"""Read and write events as lines of JSON: a run's log, its events.jsonl, and recordings."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from braid.core.events import KINDS, Event

VERSION = 1
"""Version of the line format. Other versions are refused."""


def event_types() -> dict[str, type[Event]]:
    """Return all event classes by name, including those of every paper."""
    papers = import_module("braid.papers")
    for folder in pkgutil.iter_modules(papers.__path__, "braid.papers."):
        if folder.ispkg and find_spec(f"{folder.name}.events"):
            import_module(f"{folder.name}.events")
    return dict(KINDS)


def event_to_dict(event: Event) -> dict[str, Any]:
    """Return an event as plain values, with its type and the format version."""
    values: dict[str, Any] = msgspec.to_builtins(event, str_keys=True)
    return {"format_version": VERSION, "type": type(event).__name__, **values}


def event_from_dict(data: Mapping[str, Any]) -> Any:
    """Return the event from its plain values.

    Raises ValueError for another version or an unknown type.
    """
    kind, version = data.get("type"), data.get("format_version")
    if version != VERSION or (kind not in KINDS and kind not in event_types()):
        raise ValueError(
            f"event of kind {kind!r}, version {version!r}; this version of Braid reads version "
            f"{VERSION} of {', '.join(event_types())}"
        )
    return msgspec.convert(data, KINDS[kind], str_keys=True)


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
