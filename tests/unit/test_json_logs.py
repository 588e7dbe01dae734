"""Logs as lines of JSON: each parses, and events say which run and batch."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import braid
import pytest
from unit.test_doctor import run_late_stream


@pytest.fixture
def kept_logger() -> Iterator[logging.Logger]:
    """Yield Braid's logger, and restore it."""
    logger = logging.getLogger("braid")
    kept = [*logger.handlers], logger.level, logger.propagate
    yield logger
    logger.handlers[:], logger.propagate = kept[0], kept[2]
    logger.setLevel(kept[1])


def test_each_line_is_an_object_with_run_and_batch(
    tmp_path: Path, kept_logger: logging.Logger
) -> None:
    first, lines = StringIO(), StringIO()
    braid.logs(stream=first)
    braid.logs("DEBUG", lines)
    run_late_stream(tmp_path / "run")
    try:
        raise OSError("the disk is full")
    except OSError:
        kept_logger.exception("two\nlines")
    assert first.getvalue() == "", "the second call replaces the first"
    objects = [json.loads(line) for line in lines.getvalue().splitlines()]
    commits = [each for each in objects if each.get("event") == "BatchCommitted"]
    assert [each["batch"] for each in commits] == [*range(10)]
    assert {each["run"] for each in commits} == {str(tmp_path / "run")}
    assert {each["level"] for each in objects} >= {"DEBUG", "INFO", "ERROR"}
    last = objects[-1]
    assert last["message"] == "two\nlines" and "OSError: the disk is full" in last["error"]
    ended = next(each for each in objects if each.get("event") == "RunEnded")
    assert ended["level"] == "INFO" and ended["time"].endswith("+00:00")


def test_another_level_is_refused(kept_logger: logging.Logger) -> None:
    with pytest.raises(ValueError, match="level is 'LOUD'; it must be one of DEBUG, INFO"):
        braid.logs("LOUD")
