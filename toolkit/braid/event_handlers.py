"""Handlers of Braid's log that receive the events of runs: attach one, in place of its like."""

from __future__ import annotations

import logging
from abc import abstractmethod
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Self

from braid.core.event_jsonl import LOGGER


class EventHandler(logging.Handler):
    """Receives the events of all runs of this process, with the folder and the time."""

    def __init__(self) -> None:
        super().__init__()
        self.addFilter(has_event)  # other records never wait for the handler's lock

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.receive_event(record.event, getattr(record, "run", ""), record.created)  # type: ignore[attr-defined]
        except Exception:
            self.handleError(record)  # prints it; a batch goes on

    def take_over(self, other: Self) -> None:
        """Take over what is needed of another handler, which this one replaces."""

    @abstractmethod
    def receive_event(self, event: Any, run: str, time: float) -> None:
        """Receive an event of a ``run``, a folder or URL, at a ``time`` in Unix seconds."""


class SendingHandler(EventHandler):
    """Sends what it makes of events by a thread, in order. A run never waits for it.

    Closing the handler waits until all is sent. ``what``: the name of an item in a warning.
    """

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what
        self._unsent: SimpleQueue[Any] = SimpleQueue()
        self._thread = Thread(target=self._send_all_items, name="braid-sending", daemon=True)
        self._thread.start()

    def put_item(self, item: Any) -> None:
        """Have an item sent, which is not None."""
        self._unsent.put(item)

    @abstractmethod
    def send_item(self, item: Any) -> None:
        """Send an item. An error loses it, with a warning."""

    def find_pause(self) -> float | None:
        """Return the seconds until ``send_again`` is called, unless an item comes; None: never."""
        return None

    def send_again(self) -> None:
        """Send again what was not taken."""

    def close(self) -> None:
        self._unsent.put(None)
        self._thread.join()
        super().close()

    def _send_all_items(self) -> None:
        for item in iter(self._wait_for_item, None):
            try:
                self.send_item(item)
            except Exception as error:
                LOGGER.warning("%s is lost: %s", self._what, error)

    def _wait_for_item(self) -> Any:
        """Return the next item; None: the handler is closed."""
        while (pause := self.find_pause()) is not None:
            try:
                return self._unsent.get(timeout=pause)
            except Empty:
                self.send_again()
        return self._unsent.get()


def has_event(record: logging.LogRecord) -> bool:
    """Return whether a record is one of an event."""
    return getattr(record, "event", None) is not None


def attach_handler(handler: logging.Handler, level: int) -> None:
    """Give Braid's log a handler from a ``level`` on, in place of one of its class."""
    handler.setLevel(level)
    others = [each for each in LOGGER.handlers if type(each) is type(handler)]
    for other in others:
        LOGGER.removeHandler(other)
        if isinstance(handler, EventHandler) and isinstance(other, EventHandler):
            handler.take_over(other)
    LOGGER.addHandler(handler)  # before it waits for the others: no event is lost meanwhile
    for other in others:
        other.close()
    LOGGER.setLevel(min(each.level for each in LOGGER.handlers if each.level))
