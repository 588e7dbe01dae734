"""Alert on the runs of this process while they are active: ``braid.notify``."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from braid.core.run_diagnosis import RULES, diagnose_run
from braid.core.run_events import BatchCommitted, RunEnded, RunStarted
from braid.core.run_record import BATCHES, RunRecord
from braid.event_handlers import SendingHandler, attach_handler
from braid.util.durations import parse_duration
from braid.util.http_post import check_http_address
from braid.util.validation import format_value
from braid.watchdog import REMEDIES, RunAlert, send_alert

Receiver = Callable[[RunAlert], object]
_BATCHES = 5
"""A run is diagnosed after each five batches."""
FAILED = "failed"


class NotificationHandler(SendingHandler):
    """Sends alerts on active runs.

    - ``receive``: takes an alert.
    - ``when``: the rules, and "failed".
    - ``every``: seconds after which a rule of a run is reported again.
    """

    def __init__(self, receive: Receiver, when: Collection[str], every: float) -> None:
        super().__init__("an alert")
        self._receive, self._every = receive, every
        self._has_failures = FAILED in when
        self._rules = [rule for rule in RULES if rule in when]
        self._runs: dict[str, tuple[RunStarted, deque[BatchCommitted]]] = {}
        self._sent: dict[tuple[str, str], float] = {}

    def receive_event(self, event: Any, run: str, time: float) -> None:
        if isinstance(event, (RunStarted, BatchCommitted, RunEnded)):
            self.put_item((event, run, time))

    def send_item(self, item: tuple[Any, str, float]) -> None:
        event, run, time = item
        for level, rule, sentence, remedy in self._find_symptoms(event, run):
            if time - self._sent.get((run, rule), -self._every) < self._every:
                continue
            self._sent[run, rule] = time
            batches = self._count_batches(run)
            moment = datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")
            self._receive(RunAlert(run, level, rule, sentence, remedy, batches, moment))

    def _find_symptoms(self, event: Any, run: str) -> Iterator[tuple[str, str, str, str]]:
        """Yield level, rule, sentence and remedy of each symptom of a run."""
        if isinstance(event, RunStarted):
            self._runs[run] = event, deque(maxlen=BATCHES + 1)
        elif isinstance(event, RunEnded):
            if event.outcome == FAILED and self._has_failures:
                yield "fault", FAILED, f"{FAILED}: {event.error}", REMEDIES[FAILED]
            self._runs.pop(run, None)
        elif run in self._runs:
            start, commits = self._runs[run]
            commits.append(event)
            if self._rules and not (event.batch + 1) % _BATCHES:
                record = RunRecord.from_events(start, [*commits])
                for each in diagnose_run(record, self._rules):
                    yield each.level, each.rule, each.sentence, each.remedy

    def _count_batches(self, run: str) -> int:
        commits = self._runs[run][1] if run in self._runs else ()
        return commits[-1].batch + 1 if commits else 0


def notify(
    receiver: str | Receiver,
    when: Collection[str] = (FAILED, "behind", "late", "idle"),
    every: str = "10 minutes",
) -> logging.Handler:
    """Alert on the runs of this process while they are active. Return the handler.

    Each run of a StreamJoin is diagnosed after five batches, as by ``braid.doctor`` but by its
    events alone, in a thread that no batch waits for. For a process that ends without a word, have
    ``braid watchdog`` called by cron. A second call replaces the first.

    Parameters
    ----------
    receiver
        "http://..." or "https://...", where an alert is posted as a JSON object, or a function
        that takes an alert: ``run``, ``level``, ``rule``, ``sentence``, ``remedy``, ``batches``,
        ``time`` and ``text``. An alert that is not taken in three attempts, or for which the
        function fails, is lost, with a warning.
    when
        Rules of ``braid.doctor``, and "failed".
    every
        Time after which a rule of a run is reported again.

    Raises ValueError for another receiver, an unknown rule, and a duration that is none.
    """
    accepted = (FAILED, *RULES)
    unknown = [when] if isinstance(when, str) else [name for name in when if name not in accepted]
    if unknown:
        raise ValueError(
            f"when has {format_value(unknown[0])}; it must list some of {', '.join(accepted)}"
        )
    if isinstance(receiver, str):
        check_http_address(receiver, "receiver")
        receiver = partial(send_alert, url=receiver)
    elif not callable(receiver):
        raise ValueError(
            f"receiver is {format_value(receiver)}; it must be an address or a function"
        )
    seconds = parse_duration(every, "every", zero=True) / 1e6
    handler = NotificationHandler(receiver, {*when}, seconds)
    attach_handler(handler, logging.DEBUG)
    return handler
