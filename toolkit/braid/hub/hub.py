"""QueryHub: paste a query, have it answered by what runs already. What people call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from braid.core.spans import Span, micros, written
from braid.engine import static
from braid.engine.store import Store
from braid.hub.run import HubQuery, HubRun, Settings
from braid.papers.reuse.planner import REUSES, Reuse
from braid.setup import condition


class QueryHub:
    """Many queries over the same streams, on few joins. Queries are Spark SQL and come and go while
    the hub runs.

    Parameters
    ----------
    streams
        Spark DataFrames by name, streaming or static; all have the event-time column ``time``.
    lateness
        How far a tuple may lie behind others of its stream.
    reuse
        What may be reused: "relaxed" (what can be changed to hold a query), "contained" (what
        holds it), "exact" (what is the same), "separate" (nothing).

    Raises ValueError, with one sentence, for whatever cannot work.
    """

    def __init__(
        self,
        streams: Mapping[str, DataFrame],
        time: str,
        lateness: Span = "0 seconds",
        reuse: Reuse = "relaxed",
    ) -> None:
        if reuse not in REUSES:
            raise ValueError(f"reuse is {reuse!r}; it must be one of {', '.join(REUSES)}")
        condition(streams, "1 = 1", {}, time)
        self.streams, self.time, self.reuse = dict(streams), time, reuse
        self.lateness = written(lateness, "lateness", zero=True)

    def start(
        self,
        path: str | Path,
        batches: int | str = 20,
        queries: Mapping[str, str] | Sequence[str] = (),
        **trigger: Any,
    ) -> HubRun:
        """Start a hub in the folder ``path``, or go on with the one that is there.

        ``queries`` are answered from the first batch on, by name or in order, in a folder that is
        new; for others, and for windows that are not in the text, see ``HubRun.submit``. Static
        streams are replayed in ``batches`` micro-batches, or by the column of that name, and
        the hub ends with them if all are static. ``trigger`` is Spark's.

        Raises ValueError when the folder holds something else, and for a query that is not taken.
        """
        store = Store(path)
        known = store.query()
        if known is not None and "hub" not in known:
            raise ValueError(f"{path} holds a run that is no hub; use a new folder")
        mine = {"hub": sorted(self.streams), "time": self.time, "lateness": self.lateness}
        if known is not None and (differ := [k for k in mine if known[k] != mine[k]]):
            raise ValueError(
                f"{path} holds another hub: {differ[0]} is {known[differ[0]]!r} there and "
                f"{mine[differ[0]]!r} here"
            )
        store.acquire()
        try:
            if known is None or not known["ready"]:
                store.create({**mine, "ready": False})
                known = {**mine, "batches": self._replayed(store, batches), "ready": True}
                store.create(known)
            slack = micros(self.lateness, "lateness", zero=True)
            settings = Settings(
                self._frames(store), self.time, self.lateness, slack, self.reuse, known["batches"]
            )
            named = queries if isinstance(queries, Mapping) else dict(_numbered(queries))
            return HubRun(settings, store, trigger, named)
        except BaseException:
            store.release()
            raise

    def _static(self) -> dict[str, DataFrame]:
        return {s: f for s, f in self.streams.items() if not f.isStreaming}

    def _replayed(self, store: Store, batches: int | str) -> int | None:
        copied = self._static()
        if isinstance(batches, str):
            for name, frame in copied.items():
                static.check(name, frame, batches)
        elif batches < 1:
            raise ValueError(f"batches is {batches}; it must be 1 or more, or the name of a column")
        times = dict.fromkeys(copied, self.time)
        count = static.prepare(copied, store.input, times, batches) if copied else None
        return count if len(copied) == len(self.streams) else None

    def _frames(self, store: Store) -> dict[str, DataFrame]:
        found = dict(self.streams)
        for name, frame in self._static().items():
            folder, spark = store.input / name, frame.sparkSession
            schema = spark.read.parquet(str(folder / "000000.parquet")).schema
            reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
            found[name] = reader.parquet(str(folder))
        return found


def _numbered(queries: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((f"q{n}", sql) for n, sql in enumerate(queries, 1))


__all__ = ["HubQuery", "HubRun", "QueryHub"]
