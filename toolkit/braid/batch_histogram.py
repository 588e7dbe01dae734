"""Count the batches of a run by their seconds, for Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from prometheus_client.core import HistogramMetricFamily

BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Greatest seconds of a bucket; the last bucket has none."""
_COMMITS = (b'"type":"BatchCommitted"', b'"type":"HubBatchCommitted"')


class _Commit(msgspec.Struct):
    """The fields of a committed batch of a join or a hub that are read."""

    seconds_by_phase: dict[str, float] = {}
    seconds: float = 0.0
    batch: int | None = None
    epoch: int = 0

    @property
    def number(self) -> int:
        """The number of the batch, or its epoch in a hub."""
        return self.epoch if self.batch is None else self.batch


class BatchHistogram:
    """The batches of a run or hub by seconds: those whose events are kept at first, and all since.

    It reads only the events that are new since it was last asked. If events were trimmed meanwhile,
    it reads the file again without the batches that it has counted, so that no count falls. If
    another run was begun in the folder, which its first commit shows, it counts from 0.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "events.jsonl"
        self._first, self._first_line, self._first_offset = -1, b"", -1
        self._begin_count()

    def _begin_count(self) -> None:
        self._last, self._sum = -1, 0.0
        self._counts = [0] * (len(BOUNDS) + 1)

    def read_new_batches(self) -> None:
        """Count the batches that are committed since the last call."""
        with open(self._file, "rb") as lines:
            if not self._has_first_commit(lines):
                self._first_offset, self._offset = -1, 0
            lines.seek(self._offset)
            for line in lines:
                if not line.endswith(b"\n"):
                    break  # it is being written
                if any(kind in line[:80] for kind in _COMMITS):
                    self._count_batch(line)
                self._offset += len(line)

    def _has_first_commit(self, lines: IO[bytes]) -> bool:
        """Return whether the first commit is where it was. A new file may reuse the inode."""
        lines.seek(max(0, self._first_offset))
        return self._first_offset >= 0 and lines.readline() == self._first_line

    def _count_batch(self, line: bytes) -> None:
        """Count a batch unless that was done before the file was replaced."""
        commit = msgspec.json.decode(line, type=_Commit)
        if self._first_offset < 0:
            if line != self._first_line and commit.number <= self._first:
                self._begin_count()
            self._first, self._first_line, self._first_offset = commit.number, line, self._offset
        if commit.number <= self._last:
            return
        self._last = commit.number
        seconds = commit.seconds_by_phase.get("total", commit.seconds)
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self._sum += seconds

    def list_buckets(self) -> tuple[list[tuple[str, float]], float]:
        """Return the number of batches up to each bound, and the seconds of all."""
        bounds = [*map(str, BOUNDS), "+Inf"]
        return [*zip(bounds, map(float, accumulate(self._counts)), strict=True)], self._sum


class HistogramCollector:
    """The histograms of runs by the value of their label ``run``."""

    def __init__(self, histograms: Mapping[str, BatchHistogram]) -> None:
        self._histograms = histograms

    def collect(self) -> list[HistogramMetricFamily]:
        """Return one metric with the values of all runs."""
        from prometheus_client.core import HistogramMetricFamily

        family = HistogramMetricFamily(
            "braid_batch_duration_seconds", "seconds of a batch", labels=["run"]
        )
        for run, histogram in self._histograms.items():
            histogram.read_new_batches()
            family.add_metric([run], *histogram.list_buckets())
        return [family]
