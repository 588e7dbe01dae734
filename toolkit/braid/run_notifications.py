"""Alert on the runs of this process while they are active: ``braid.notify``."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, Self

from braid.core.event_jsonl import LOGGER
from braid.core.run_diagnosis import RULES, diagnose_run
from braid.core.run_events import BatchCommitted, RunEnded, RunStarted
from braid.core.run_record import BATCHES, RunRecord
from braid.event_handlers import SendingHandler, attach_handler
from braid.recent_events import read_recent_events
from braid.util.clock_and_threads import current_environment
from braid.util.durations import parse_duration
from braid.util.http_post import check_http_address
from braid.util.machine import available_cores
from braid.util.validation import format_value
from braid.watchdog import REMEDIES, RunAlert, send_alert

Receiver = Callable[[RunAlert], object]
_BATCHES = 5
"""A run is diagnosed after each five batches."""
_PAUSE = 60.0
"""Seconds without alerts on symptoms after one that was lost, so that the queue stays short.
It is also the time until an alert on a failure that was not taken is sent again."""
_LONGEST_PAUSE = 3600.0
"""The time until it is sent again doubles up to this one."""
FAILED = "failed"
_OF_FOLDER = ("files", "stale", "version")
"""Rules that see nothing in events."""
ACCEPTED = (FAILED, *(rule for rule in RULES if rule not in _OF_FOLDER))
_LISTED = ", ".join(ACCEPTED)


class _Watched(NamedTuple):
    """A run that is active: its start, None if that is unknown, and its last commits."""

    start: RunStarted | None
    commits: deque[BatchCommitted]


class _UndeliveredAlert(NamedTuple):
    """An alert that was not taken, when it is sent again, and the seconds that were waited."""

    alert: RunAlert
    due: float
    pause: float


class NotificationHandler(SendingHandler):
    """Sends alerts on active runs.

    - ``receive``: takes an alert.
    - ``when``: the rules, and "failed".
    - ``every``: seconds after which a rule of a run is reported again.
    """

    def __init__(self, receive: Receiver, when: Collection[str], every: float) -> None:
        self._receive, self._every = receive, every
        self._has_failures = FAILED in when
        self._rules = [rule for rule in RULES if rule in when]
        self._runs: dict[str, _Watched] = {}
        self._sent: dict[tuple[str, str], float] = {}
        self._silent_until = -inf
        self._failures: dict[str, _UndeliveredAlert] = {}
        """The last failure of a run that was not taken."""
        super().__init__("an alert")  # last: its thread reads them

    def take_over(self, other: Self) -> None:
        """Take over the active runs of another handler, and when their rules were reported."""
        self.put_item(other)

    def receive_event(self, event: Any, run: str, time: float) -> None:
        if isinstance(event, (RunStarted, BatchCommitted, RunEnded)):
            self.put_item((event, run, time))

    def send_item(self, item: NotificationHandler | tuple[Any, str, float]) -> None:
        if isinstance(item, NotificationHandler):
            item.close()
            self._runs, self._sent = item._runs, item._sent
            self._failures = item._failures
            return
        event, run, time = item
        try:
            for symptom in self._find_symptoms(event, run):
                self._send_in_time(symptom, run, time)
        finally:
            if isinstance(event, RunEnded):
                self._runs.pop(run, None)

    def _send_in_time(self, symptom: tuple[str, str, str, str], run: str, time: float) -> None:
        """Send an alert unless its rule was reported a short time ago."""
        level, rule, sentence, remedy = symptom
        is_silent = rule != FAILED and time < self._silent_until
        if is_silent or time - self._sent.get((run, rule), -inf) < self._every:
            return
        commits = self._runs[run].commits
        batches = commits[-1].batch + 1 if commits else 0
        moment = datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")
        alert = RunAlert(run, level, rule, sentence, remedy, batches, moment)
        if rule == FAILED:
            self._send_failure(alert, time, _PAUSE)
            return
        self._silent_until = time + _PAUSE
        self._receive(alert)
        self._sent[run, rule], self._silent_until = time, -inf

    def _send_failure(self, alert: RunAlert, time: float, pause: float) -> None:
        """Send an alert on a failure, which no later batch repeats, or keep it to send it again."""
        try:
            self._receive(alert)
        except Exception as error:
            due = current_environment().read_time() + pause
            self._failures[alert.run] = _UndeliveredAlert(alert, due, pause)
            LOGGER.warning(
                "an alert is not taken, and sent again in %.0f seconds: %s", pause, error
            )
        else:
            self._failures.pop(alert.run, None)
            self._sent[alert.run, FAILED] = time

    def find_pause(self) -> float | None:
        dues = [each.due for each in self._failures.values()]
        return max(0.0, min(dues) - current_environment().read_time()) if dues else None

    def send_again(self) -> None:
        time = current_environment().read_time()
        for alert, due, pause in [*self._failures.values()]:
            if due <= time:
                self._send_failure(alert, time, min(2 * pause, _LONGEST_PAUSE))

    def _find_symptoms(self, event: Any, run: str) -> Iterator[tuple[str, str, str, str]]:
        """Yield level, rule, sentence and remedy of each symptom of a run."""
        if isinstance(event, RunStarted):
            self._runs[run] = _Watched(event, deque(maxlen=BATCHES + 1))
            return
        if run not in self._runs:
            self._runs[run] = _read_active_run(run, event)
        start, commits = self._runs[run]
        if isinstance(event, RunEnded):
            if event.outcome == FAILED and self._has_failures:
                yield "fault", FAILED, f"{FAILED}: {event.error}", REMEDIES[FAILED]
            return
        commits.append(event)
        if start is not None and self._rules and not (event.batch + 1) % _BATCHES:
            record = RunRecord.from_events(start, [*commits])
            for each in diagnose_run(replace(record, cores=available_cores()), self._rules):
                yield each.level, each.rule, each.sentence, each.remedy


def _read_active_run(run: str, event: BatchCommitted | RunEnded) -> _Watched:
    """Return a run that began before it was watched, from its folder up to an event.

    If that cannot be read, it is unknown, with a warning.
    """
    start, commits = None, deque[BatchCommitted](maxlen=BATCHES + 1)
    try:
        start, recent, _ = read_recent_events(Path(run) / "events.jsonl", BATCHES + 1)
    except (OSError, ValueError) as error:
        LOGGER.warning("%s began before notify was called, so only its end is seen: %s", run, error)
        return _Watched(None, commits)
    last = event.batch if isinstance(event, RunEnded) else event.batch - 1
    commits.extend(e for e in recent if isinstance(e, BatchCommitted) and e.batch <= last)
    return _Watched(start if isinstance(start, RunStarted) else None, commits)


def notify(
    receiver: str | Receiver,
    when: Collection[str] = (FAILED, "behind", "late", "idle"),
    every: str = "10 minutes",
) -> logging.Handler:
    """Alert on the runs of this process while they are active. Return the handler.

    Each run of a StreamJoin is diagnosed after five batches, as by ``braid.doctor`` but by its
    events alone, in a thread that no batch waits for. For a process that ends without a word, have
    ``braid watchdog`` called by cron. Runs that are active already are diagnosed too. A second call
    replaces the first, and repeats no alert of it before its time.

    Parameters
    ----------
    receiver
        "http://..." or "https://...", where an alert is posted as a JSON object, or a function
        that takes an alert: ``run``, ``level``, ``rule``, ``sentence``, ``remedy``, ``batches``,
        ``time`` and ``text``. An alert that is not taken in three attempts, or for which the
        function fails, is lost, with a warning; its rule is reported again after a minute. That of
        a failed run is sent again after 1, 2, 4 ... 60 minutes until it is taken.
    when
        Rules of ``braid.doctor``, and "failed". "files", "stale" and "version", which need the
        folder of the run, are refused.
    every
        Time after which a rule of a run is reported again.

    Raises ValueError for another receiver, another rule, and a duration that is none.
    """
    if isinstance(when, str) or not isinstance(when, Collection):
        raise ValueError(f"when is {format_value(when)}; it must list some of {_LISTED}")
    if unknown := [name for name in when if name not in ACCEPTED]:
        raise ValueError(f"when has {format_value(unknown[0])}; it must list some of {_LISTED}")
    if isinstance(receiver, str):
        check_http_address(receiver, "receiver")
        receiver = partial(send_alert, url=receiver)
    elif not callable(receiver):
        raise ValueError(
            f"receiver is {format_value(receiver)}; it must be an address or a function"
        )
    seconds = parse_duration(every, "value of every", zero=True) / 1e6
    handler = NotificationHandler(receiver, {*when}, seconds)
    attach_handler(handler, logging.DEBUG)
    return handler
