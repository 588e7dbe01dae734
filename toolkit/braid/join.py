"""StreamJoin: what people call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from braid.condition.parse import parse
from braid.condition.predicate import Predicate
from braid.core.codec import plain
from braid.core.columns import TIME
from braid.core.placement import Placement
from braid.core.query import Query
from braid.core.spans import Span, micros
from braid.engine import static as replay
from braid.engine.layout import laid_out, layouts
from braid.engine.store import Store
from braid.engine.wire import Layout
from braid.run import JoinRun

_TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType)


class StreamJoin:
    """A join of two or more streams on any condition, spread over logical hosts by a placement
    policy.

    Parameters
    ----------
    streams
        Spark DataFrames by alias, streaming or static (a static one is replayed as micro-batches).
    on
        The condition: Spark SQL over ``alias.column``. NULL never matches.
    placement
        The policy, for instance ``AdaptiveGrid(hosts=16)``.
    windows
        By alias, how long a tuple stays joinable, as in "60 seconds". A result (s_1..s_m) needs T -
        T_i < W_i for every i, T being its latest event time. A stream that is left out keeps its
        full history.
    time
        The event-time column (timestamp or date), by the same name in every stream. Needed when
        there are windows.
    lateness
        How far a tuple may lie behind the latest event time of its stream at the start of its batch
        and still meet every partner. Tuples behind that are joined with what is left and counted as
        late.
    partitions
        Spark partitions on which the hosts are packed; by default the session's parallelism.
    seed
        Seed of the routing hash.
    check
        Hold every plan against the cover rule before it runs.

    Raises ValueError, with one sentence, for whatever cannot work; nothing has been started or
    written then.
    """

    runs = JoinRun
    shared = False
    queries: tuple[Query, ...] = ()

    def __init__(
        self,
        streams: Mapping[str, DataFrame],
        on: str,
        placement: Placement,
        windows: Mapping[str, Span] | None = None,
        time: str | None = None,
        lateness: Span = "0 seconds",
        partitions: int | None = None,
        seed: int = 0,
        check: bool = False,
    ) -> None:
        self.streams, self.on, self.placement, self.time = dict(streams), on, placement, time
        self.windows, self.lateness, self.seed, self.check = (
            dict(windows or {}),
            lateness,
            seed,
            check,
        )
        self._check_streams()
        self._check_time()
        self._micros = [
            micros(self.windows[a], f"window of {a}") if a in self.windows else None
            for a in self.streams
        ]
        self._lateness = micros(lateness, "lateness", zero=True)
        self.predicate: Predicate = parse(on, self.streams, self._micros)
        if placement.keying == "join" and self.predicate.equality is None:
            raise ValueError(
                f"{type(placement).__name__} partitions by the value that an equality joins on, "
                f"but {on!r} has no equality "
                "that links all streams; placements that route by tuple take any condition"
            )
        if placement.shares and not self.shared:
            raise ValueError(
                f"{type(placement).__name__} serves the queries of a shared join; use SharedJoin"
            )
        placement.start(len(self.streams))
        self.spark = next(iter(self.streams.values())).sparkSession
        if partitions is not None and partitions < 1:
            raise ValueError(f"partitions is {partitions}; it must be 1 or more")
        most = placement.max_hosts
        self.partitions = min(partitions or self.spark.sparkContext.defaultParallelism, most)

    def _check_streams(self) -> None:
        if len(self.streams) < 2:
            raise ValueError(
                f"a join needs two or more streams; got {len(self.streams)}: "
                f"{', '.join(self.streams) or 'none'}"
            )
        if len({a.lower() for a in self.streams}) < len(self.streams):
            raise ValueError(
                f"the aliases {', '.join(self.streams)} must differ by more than upper and lower "
                "case"
            )
        for alias, frame in self.streams.items():
            if not re.fullmatch(r"[A-Za-z]\w*", alias):
                raise ValueError(
                    f"the alias {alias!r} is not accepted; an alias is a letter, then letters, "
                    "digits or _"
                )
            if not isinstance(frame, DataFrame):
                raise ValueError(
                    f"stream {alias} is a {type(frame).__name__}; it must be a Spark DataFrame"
                )
            names = [n.lower() for n in frame.columns]
            if odd := sorted({n for n in names if names.count(n) > 1 or n.startswith("__")}):
                raise ValueError(
                    f"columns {odd} of stream {alias} are not accepted: names must differ and not "
                    "begin with __"
                )
        if unknown := set(self.windows) - set(self.streams):
            raise ValueError(
                f"windows are given for {sorted(unknown)}; the streams are "
                f"{', '.join(self.streams)}"
            )

    def _check_time(self) -> None:
        if self.time is None:
            if self.windows:
                raise ValueError("windows are given but no event-time column: name it with time=")
            return
        for alias, frame in self.streams.items():
            if self.time not in frame.columns:
                raise ValueError(
                    f"stream {alias} has no event-time column {self.time!r}; it has: "
                    f"{', '.join(frame.columns)}"
                )
            found = frame.schema[self.time].dataType
            if not isinstance(found, _TIMES):
                raise ValueError(
                    f"the event-time column {alias}.{self.time} is of type {found.simpleString()}; "
                    "it must be a timestamp or a date"
                )

    def start(
        self, path: str | Path, batches: int | str = 20, pace: float = 0.0, **trigger: Any
    ) -> JoinRun:
        """Start, or go on with, a run of this query in the folder ``path``; returns at once, like
        DataStreamWriter.start().

        Static streams are replayed in ``batches`` micro-batches (see ``replay.prepare``), and
        all-static input ends with them. ``pace`` is the least number of seconds between two
        micro-batches. ``trigger`` is Spark's, for streams that do not end (``processingTime="1
        second"``, ``availableNow=True``). Raises ValueError when the folder holds a run of another
        query.
        """
        store = Store(path)
        query = self._fingerprint()
        known = store.query()
        if known is not None and (differ := [k for k in query if known.get(k) != query[k]]):
            raise ValueError(
                f"{store.path} holds a run of another query: {differ[0]} is "
                f"{known.get(differ[0])!r} there and "
                f"{query[differ[0]]!r} here; use a new folder, or StreamJoin.resume to go on with "
                "that run"
            )
        fresh = known is None or not known.get("ready")
        if fresh:
            self._check_batches(batches)
        store.acquire()
        try:
            if fresh:
                store.create({**query, "ready": False})
                known = {**query, "batches": self._replayed(store, batches), "ready": True}
                store.create(known)
            store.clean()
            return self.runs(self, store, known, pace, trigger)
        except BaseException:
            store.release()
            raise

    @staticmethod
    def resume(path: str | Path, streams: Mapping[str, DataFrame], **trigger: Any) -> JoinRun:
        """Go on with the run in ``path`` exactly where its last commit was. Static streams go on
        from the copy in the folder.
        """
        query = Store(path).query()
        if query is None:
            raise ValueError(f"{path} holds no run that could be resumed")
        placement = Placement.by_name(query["placement"]).of(query["settings"])
        names = ("on", "windows", "time", "lateness", "partitions", "seed", "check")
        return StreamJoin(streams, placement=placement, **{n: query[n] for n in names}).start(
            path, **trigger
        )

    def _fingerprint(self) -> dict[str, Any]:
        query = {
            "on": self.on,
            "streams": list(self.streams),
            "schemas": {
                a: f.schema.simpleString() for a, f in self.streams.items() if f.isStreaming
            },
            "windows": self.windows,
            "time": self.time,
            "lateness": self.lateness,
            "placement": type(self.placement).__name__,
            "settings": self.placement,
            "partitions": self.partitions,
            "seed": self.seed,
            "check": self.check,
        }
        return dict(plain(query))

    def _static(self) -> dict[str, DataFrame]:
        return {a: f for a, f in self.streams.items() if not f.isStreaming}

    def _check_batches(self, batches: int | str) -> None:
        if isinstance(batches, int) and batches < 1:
            raise ValueError(f"batches is {batches}; it must be 1 or more, or the name of a column")
        if isinstance(batches, str):
            for alias, frame in self._static().items():
                replay.check(alias, frame, batches)

    def _replayed(self, store: Store, batches: int | str) -> int | None:
        static = self._static()
        count = replay.prepare(static, store.input, self.time, batches) if static else None
        return count if len(static) == len(self.streams) else None

    def sources(self, store: Store) -> dict[str, DataFrame]:
        """The streams as streaming DataFrames: static ones are read back from their copy, a file a
        batch.
        """
        read = {}
        for alias, frame in self.streams.items():
            if not frame.isStreaming:
                folder = store.input / alias
                schema = self.spark.read.parquet(str(folder / "000000.parquet")).schema
                frame = (
                    self.spark.readStream.schema(schema)
                    .option("maxFilesPerTrigger", 1)
                    .parquet(str(folder))
                )
            read[alias] = frame
        return read

    def union(self, sources: Mapping[str, DataFrame]) -> tuple[DataFrame, tuple[Layout, ...]]:
        """The streams as one DataFrame and where their columns are in it, without the tuples that
        can never match.
        """
        p, frames = self.predicate, list(sources.values())
        wanted = [
            {TIME: self._event_time(f)} | p.keys[i] | p.computed[i] for i, f in enumerate(frames)
        ]
        where = layouts(frames, wanted)
        parts = []
        for i, frame in enumerate(frames):
            part = frame if (condition := p.filters[i]) is None else frame.filter(F.expr(condition))
            part = laid_out(i, part, self._routing_key(i, frame), wanted[i], where[i])
            for name in (TIME, *p.keys[i]):
                part = part.filter(F.col(where[i].slot(name)).isNotNull())
            parts.append(part)
        return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts), where

    def _routing_key(self, i: int, frame: DataFrame) -> Column:
        """A seeded hash in [0, keys): of the whole tuple, or of the value that the equality joins
        on.
        """
        p = self.predicate
        hashed = replay.hashable(frame)
        if self.placement.keying == "join" and p.equality is not None:
            hashed = [F.expr(p.keys[i][p.equality[i]])]
        return F.pmod(F.xxhash64(F.lit(self.seed), *hashed), F.lit(self.placement.keys)).cast("int")

    def _event_time(self, frame: DataFrame) -> str:
        """Microseconds. Full history needs no time, and takes a tuple without one; a window does
        not.
        """
        if self.time is None:
            return "cast(0 as bigint)"
        column = f"(`{self.time}`)"
        instant = isinstance(frame.schema[self.time].dataType, T.TimestampType)
        time = f"unix_micros({column if instant else f'cast({column} as timestamp)'})"
        return time if self.windows or self.queries else f"coalesce({time}, cast(0 as bigint))"
