"""Log messages and their levels."""

from __future__ import annotations

import logging

import pytest
from braid.core.event_jsonl import log_events
from braid.core.run_events import RunEnded
from braid.papers.theta.run_events import MigrationEnded, MigrationStarted
from unit.scripted import make_commit


def test_changes_are_information_and_a_failure_is_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    happened = [
        MigrationStarted(3, 0, 40, 5),
        MigrationEnded(4, 0),
        RunEnded(5, "completed", ""),
        RunEnded(5, "failed", "OSError: full"),
    ]
    with caplog.at_level(logging.DEBUG, "braid"):
        log_events(happened)
    assert [(r.levelname, r.message) for r in caplog.records] == [
        ("INFO", "MigrationStarted: batch 3, group 0, tuples_to_copy 40, discarded_tuples 5"),
        ("INFO", "MigrationEnded: batch 4, group 0"),
        ("INFO", "RunEnded: batch 5, outcome 'completed', error ''"),
        ("ERROR", "RunEnded: batch 5, outcome 'failed', error 'OSError: full'"),
    ]


def test_batches_are_for_debugging_only(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "braid"):
        log_events([make_commit(0, (3, 2), (3, 2))])
    assert not caplog.records
    with caplog.at_level(logging.DEBUG, "braid"):
        log_events([make_commit(0, (3, 2), (3, 2))])
    assert caplog.records[0].levelname == "DEBUG"
    assert caplog.records[0].message.startswith("BatchCommitted: batch 0, ")
