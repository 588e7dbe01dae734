"""Read, write, follow and log the events of a run: lines of JSON in its folder or a recording."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from braid.core.bundle_parts import EVENTS as BUNDLED_EVENTS
from braid.core.bundle_parts import is_bundle, read_bundle_part
from braid.core.plugin_provider import current_provider
from braid.core.run_events import EVENTS, Event, RunEnded
from braid.errors import DamagedRunError, UnknownEventError

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
    if version != VERSION:
        raise ValueError(_describe_refusal(name, version))
    if (kind := _find_event_type(name)) is None:
        raise UnknownEventError(_describe_refusal(name, version))
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
    head = msgspec.json.encode({"format_version": VERSION, "type": type(event).__name__})
    values = msgspec.json.encode(event)
    return head[:-1] + (b"," if len(values) > 2 else b"") + values[1:] + b"\n"


def decode_event(line: bytes | msgspec.Raw, source: object = "the event log") -> Any:
    """Return the event of a line of ``source``.

    Raises DamagedRunError if the line is not one, ValueError as ``event_from_dict`` does.
    """
    try:
        return event_from_dict(msgspec.json.decode(line, type=dict[str, Any]))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        text = bytes(line)[:80].decode(errors="replace")
        raise DamagedRunError(
            f"{source} is damaged: the line that begins with {text!r} is no event ({error})"
        ) from error


def read_events(path: str | Path) -> list[Any]:
    """Return the events of a JSONL file or of a bundle, in order."""
    if is_bundle(path):
        lines = read_bundle_part(path, BUNDLED_EVENTS).splitlines()
        return [decode_event(line, path) for line in lines]
    with open(path, "rb") as file:
        return [decode_event(line, path) for line in file if line.strip()]


class EventTail:
    """A reader of a growing file of events, in a run folder or a recording (.jsonl), or a bundle.

    Raises ValueError if the path is none of these.
    """

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        self.file = path / "events.jsonl" if path.is_dir() else path
        if not self.file.is_file():
            raise ValueError(f"{path} is neither a run folder nor a recording (.jsonl)")
        bundled = is_bundle(self.file)
        self._bundled = read_bundle_part(path, BUNDLED_EVENTS).splitlines() if bundled else None
        self._offset, self._begun, self._inode, self._head = 0, b"", -1, b""

    def seconds_since_write(self) -> float:
        """Return the seconds since the last write to the file."""
        return max(0.0, time.time() - self.file.stat().st_mtime)

    def read_new(self) -> list[Any]:
        """Return the events since the last call. An incomplete line is left for the next call.

        If the file was rewritten, all events are returned again, from RunStarted on. That
        happens if the run was resumed or its first events were trimmed. A bundle does not grow.
        """
        return [decode_event(line, self.file) for line in self.read_new_lines()]

    def read_new_lines(self) -> list[bytes]:
        """Return the lines of the events that ``read_new`` returns."""
        if self._bundled is not None:
            lines, self._bundled = self._bundled, []
            return lines
        with open(self.file, "rb") as file:
            now = os.fstat(file.fileno())
            head = file.readline() + file.readline()  # a new file may reuse the inode
            same = now.st_ino == self._inode and head.startswith(self._head)
            if not same or now.st_size < self._offset + len(self._begun):
                self._offset, self._begun = 0, b""
            self._inode, self._head = now.st_ino, head
            file.seek(self._offset + len(self._begun))
            text = self._begun + file.read()
        *lines, self._begun = text.split(b"\n")
        self._offset += len(text) - len(self._begun)
        return [line for line in lines if line.strip()]

    def read_cut_line(self) -> list[bytes]:
        """Return the line at the end of a recording that has no newline; none in a run folder,
        whose driver may be writing it.
        """
        is_recording = self.file.name != "events.jsonl"
        return [self._begun] if is_recording and self._begun.strip() else []


def read_known_events(path: str | Path) -> tuple[list[Any], str]:
    """Return the events of a run folder, a recording or a bundle, and what is left out, in words.

    Events of unknown kinds are left out. The first damaged line ends a recording, except if it is
    the first one: then DamagedRunError is raised, as ``decode_event`` does.
    """
    events: list[Any] = []
    unknown, ends = 0, ""
    tail = EventTail(path)
    for number, line in enumerate([*tail.read_new_lines(), *tail.read_cut_line()], 1):
        try:
            events.append(decode_event(line, path))
        except UnknownEventError:
            unknown += 1
        except DamagedRunError:
            if not events:
                raise
            ends = f"line {number:,} is damaged, the rest is left out"
            break
    kinds = f"events of unknown kinds, left out: {unknown:,}" if unknown else ""
    return events, "; ".join(filter(None, (kinds, ends)))


LOGGER = logging.getLogger("braid")


def log_events(happened: Iterable[Event], run: str = "") -> None:
    """Log each event at its level. ``run``: the folder or URL of the run."""
    for event in happened:
        failed = isinstance(event, RunEnded) and event.outcome == "failed"
        level = logging.ERROR if failed else event.level
        if LOGGER.isEnabledFor(level):
            LOGGER.log(level, format_event(event), extra={"event": event, "run": run})


def format_event(event: Event) -> str:
    """Return an event's type, with its sentence or its plain values.

    >>> format_event(RunEnded(7, "failed", "OSError: no space left"))
    "RunEnded: batch 7, outcome 'failed', error 'OSError: no space left'"
    """
    values = [(f.name, getattr(event, f.name)) for f in fields(event)]  # type: ignore[arg-type]
    plain = ", ".join(f"{name} {value!r}" for name, value in values if isinstance(value, int | str))
    return f"{type(event).__name__}: {event.sentence or plain}"
