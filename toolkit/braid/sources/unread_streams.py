"""UnreadStreams: a source whose rows are not read before batches run."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping

import numpy as np

from braid.condition.predicate import Predicate
from braid.sources.stream_source import StreamSource, TupleSample


class UnreadStreams(StreamSource, ABC):
    """Streams of Spark or of a server: all that depends on their rows is unknown."""

    def read_event_times(self, alias: str, time: str | None) -> np.ndarray | None:
        """Return None: the rows are not in memory."""
        return None

    def estimate_rows(self) -> tuple[float, ...]:
        """Return equal sizes: they are unknown."""
        return (1.0,) * len(self.streams)

    def most_frequent_share(self, predicate: Predicate) -> float:
        """Return 0: the share is unknown."""
        return 0.0

    def sample_tuples(
        self, predicate: Predicate, times: Mapping[str, str], most: int
    ) -> list[TupleSample]:
        """Return nothing: Spark or the server would read the frames."""
        return []
