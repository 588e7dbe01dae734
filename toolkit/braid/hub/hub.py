"""QueryHub: submit queries, and have them answered by joins that run already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from braid.batch_sink import Give, check_sink
from braid.condition.parser import parse_predicate
from braid.core.change_types import refuse_changes
from braid.errors import DamagedRunError
from braid.hub.arrow_backend import ArrowStreamReader
from braid.hub.hub_backend import StreamReader
from braid.hub.hub_run import HubRun
from braid.hub.hub_settings import HubSettings
from braid.hub.query_handle import HubQuery
from braid.join_config import (
    AHEAD,
    LONGEST_PACE,
    merge_equal,
)
from braid.papers.reuse.network import Network
from braid.papers.reuse.planner import REUSES, Reuse
from braid.papers.reuse.result_rates import Rates
from braid.sources import input_fingerprints
from braid.sources.frame_conversion import convert_frame
from braid.sources.stream_arguments import make_source
from braid.sources.stream_source import ReplaySource
from braid.storage.integrity import repair_hint
from braid.storage.run_store import RunStore
from braid.time_arguments import check_times, parse_lateness, parse_time_columns
from braid.util.durations import Span, format_duration, normalize_duration, parse_duration
from braid.util.machine import parse_memory_limit
from braid.util.validation import check_folder, check_int, check_seconds

_BATCHES = 20
"""Default number of micro-batches in which static streams are replayed."""


class QueryHub:
    """Many queries over the same streams, answered by few joins.

    Queries are Spark SQL and come and go while the hub runs.

    Parameters
    ----------
    streams
        Spark DataFrames by name, streaming or static. Or pandas or Polars frames or Arrow tables:
        then everything runs in this process without Spark, answers are Arrow tables, and queries
        are limited to Spark SQL that is known to mean the same without Spark.
    time
        Event-time column of all streams.
    lateness
        Maximum delay behind the clock of a stream, as a duration or as durations by stream. A
        stream that is left out has no late tuples. Default: "0 seconds".
    ahead
        Maximum lead over the clock of a stream with which a single tuple may advance it; see
        StreamJoin.
    idle
        How far, in event time, a stream may fall behind the others before they no longer wait for
        it; see StreamJoin. Default: None, they wait for ever.
    changes
        Not supported: a ValueError says why.
    reuse
        What a new query may reuse.
        "relaxed": operators that can be widened to hold the query. Default.
        "contained": operators that hold it.
        "exact": equal operators.
        "separate": nothing.
    network
        Sites on which operators are placed. Latencies are taken from the network; traffic is
        counted. Default: one site.
    at
        Node of origin by stream. Default: the node of the stream's name.
    history
        Minimum retention, in event time, for queries submitted later. Tuples are always retained
        for the longest window of an active query. Default: "0 seconds".
    rates
        Stream rates for the planner. Default: measured rates and a sample of tuples.

    Raises ValueError for invalid arguments.
    """

    def __init__(
        self,
        streams: Mapping[str, Any],
        time: str,
        lateness: Span | Mapping[str, Span] = "0 seconds",
        reuse: Reuse = "relaxed",
        network: Network | None = None,
        at: Mapping[str, str] | None = None,
        history: Span = "0 seconds",
        rates: Rates | None = None,
        ahead: Span = AHEAD,
        idle: Span | None = None,
        changes: Mapping[str, str] | None = None,
    ) -> None:
        refuse_changes(changes, "a hub")
        if reuse not in REUSES:
            raise ValueError(f"reuse is {reuse!r}; it must be one of {', '.join(REUSES)}")
        given = {s: convert_frame(s, f) for s, f in streams.items()}
        self.tables = {s: t for s, t in given.items() if t is not None}
        if self.tables and len(self.tables) < len(streams):
            other = next(s for s in streams if s not in self.tables)
            raise ValueError(
                f"stream {other} is a {type(streams[other]).__name__} and others are tables; give "
                "all as tables or all as Spark DataFrames"
            )
        self.streams = dict(self.tables or streams)
        self._source = make_source(self.streams, accepts_connect=False)
        check_times(self._source.read_columns(), parse_time_columns(time, [*self.streams]))
        parse_predicate("1 = 1", self.streams, [None] * len(self.streams))
        self.time, self.reuse, self.network = time, reuse, network
        self._slack = parse_lateness(lateness, [*self.streams])
        self.lateness = merge_equal(
            {s: format_duration(t, exact=True) for s, t in self._slack.items()}
        )
        self.ahead = normalize_duration(ahead, "ahead")
        self.idle = None if idle is None else normalize_duration(idle, "idle")
        self.history = normalize_duration(history, "history", zero=True)
        self.at, self.rates = dict(self._parse_stream_nodes(at)), rates

    def _parse_stream_nodes(self, at: Mapping[str, str] | None) -> Iterator[tuple[str, str]]:
        given = dict(at or {})
        if unknown := sorted(set(given) - set(self.streams)):
            raise ValueError(f"at= has {unknown[0]!r}; the streams are {', '.join(self.streams)}")
        if self.network is None:
            if given:
                raise ValueError("at= names the nodes of streams; that needs network=")
            yield from dict.fromkeys(self.streams, "here").items()
            return
        names = {n.name.lower(): n for n in self.network.nodes}
        for stream in self.streams:
            node = names.get(given.get(stream, stream).lower())
            if node is None or node.role not in ("source", "site"):
                sources = [n.name for n in self.network.nodes if n.role in ("source", "site")]
                raise ValueError(
                    f"stream {stream} comes from no known node; name one in at=, of "
                    f"{', '.join(sources)}"
                )
            yield stream, node.name

    def start(
        self,
        path: str | Path,
        batches: int | str | None = None,
        queries: Mapping[str, str | Mapping[str, Any]] | Sequence[str] = (),
        pace: float = 0.0,
        foreachBatch: Give | None = None,
        **trigger: Any,
    ) -> HubRun:
        """Start a hub in the folder ``path``, or continue the one in it.

        Parameters
        ----------
        path
            Folder of the hub.
        batches
            Number of micro-batches in which static streams are replayed, or the column that numbers
            them. Default: 20. The hub ends after them if all streams are static.
        queries
            Queries that a new hub answers from the first batch on, by name or in order. Each is SQL
            text or the arguments of ``HubRun.submit``.
        pace
            Minimum time from the start of one batch to the start of the next, in seconds.
        foreachBatch
            Function that is called after each batch with the new rows of the answers, by id of the
            query (``HubQuery.id``), and the number of the batch; see ``StreamJoin.start``. Queries
            without new rows are left out. A match comes with the batch that made it, a tick with
            the batch after which it is final; what a later tuple would change of it does not come.
        trigger
            Trigger of Spark's streaming query.

        Raises ValueError if the folder holds something else, if this hub has run over other rows,
        sources or ``batches``, and for an invalid query.
        """
        give = check_sink(foreachBatch)
        store = RunStore(check_folder(path))
        check_seconds(pace, "pace", LONGEST_PACE)
        trigger = self._source.parse_trigger(trigger)
        cut = _BATCHES if batches is None else batches
        if not isinstance(cut, str):
            most = self._source.most_batches
            check_int(cut, "batches", 1, most, ", or the name of a column")
        described = self._describe_settings()
        self._stored_settings(store, described)
        store.acquire_run()
        try:
            with store.raise_if_superseded():
                settings = self._prepare_folder(store, described, batches, cut)
                numbered = {f"q{n}": sql for n, sql in enumerate(queries, 1)}
                named = queries if isinstance(queries, Mapping) else numbered
                reader = self._make_reader(store, settings)
                return self._open_run(store, reader, trigger, named, pace, give)
        except BaseException:
            store.release_run()
            raise

    def _prepare_folder(
        self,
        store: RunStore,
        requested: Mapping[str, Any],
        batches: int | str | None,
        cut: int | str,
    ) -> dict[str, Any]:
        """Return the settings in a folder that holds this hub, or copy the input into a new one."""
        settings, replay = self._stored_settings(store, requested), None
        if settings is None or not settings["ready"]:
            replay = self._make_replay(cut)
            if settings is None:
                store.create_run({**requested, "ready": False})
            store.take_over()
            settings = self._stored_settings(
                store, requested
            )  # another driver may have made it ready
        if settings is None or not settings["ready"]:
            return self._copy_input(store, requested, replay, cut)
        store.input.check_files()
        input_fingerprints.check_batches(batches, settings, store.where)
        self._check_input(store, settings)
        return settings

    def _copy_input(
        self,
        store: RunStore,
        requested: Mapping[str, Any],
        replay: ReplaySource | None,
        cut: int | str,
    ) -> dict[str, Any]:
        """Copy the static streams into the folder, make the hub ready, and return its settings."""
        written = (
            None if replay is None else replay.write_input(store.input.folder, store.check_driver)
        )
        store.input.write_checksums(store.force, () if replay is None else self._static_streams())
        store.input.split_all(store.force)
        ends = len(self._static_streams()) == len(self.streams)
        settings = {
            **requested,
            "batches": written.batches if written and ends else None,
            "last_batches": written.last_batches if written else {},
            "cut": cut,
            "ready": True,
        }
        settings |= self._source.record_fingerprints()
        store.create_run(settings)
        return settings

    def _stored_settings(
        self, store: RunStore, requested: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return the settings in a folder; None if it is new.

        Raises ValueError if they belong to another hub, DamagedRunError if the file is damaged.
        """
        stored = store.read_settings()
        if stored is not None and "hub" not in stored:
            raise ValueError(f"{store.path} holds a run that is not a hub; use a new folder")
        if stored is not None and (differ := [k for k in requested if stored[k] != requested[k]]):
            raise ValueError(
                f"{store.path} holds another hub: {differ[0]} is {stored[differ[0]]!r} there and "
                f"{requested[differ[0]]!r} here"
            )
        return stored

    def _describe_settings(self) -> dict[str, Any]:
        network = None if self.network is None else self.network.to_dict()
        described: dict[str, Any] = {
            "hub": sorted(self.streams),
            "time": self.time,
            "lateness": self.lateness,
        }
        described |= {"ahead": self.ahead, "idle": self.idle}
        # The version of DuckDB determines the hashes of tables.
        tables = f"DuckDB {duckdb.__version__}" if self.tables else ""
        return described | {"network": network, "at": self.at, "tables": tables}

    def _open_run(self, store: RunStore, *more: Any) -> HubRun:
        """Open the hub in a folder. An error that names damage also names a way to repair it."""
        try:
            return HubRun(self._make_settings(), store, *more)
        except DamagedRunError as damaged:
            raise DamagedRunError(f"{damaged}; {repair_hint(store)}") from None

    def _make_settings(self) -> HubSettings:
        history = parse_duration(self.history, "history", zero=True)
        ahead = parse_duration(self.ahead, "ahead")
        idle = None if self.idle is None else parse_duration(self.idle, "idle")
        return HubSettings(
            self.time,
            self._slack,
            ahead,
            self.reuse,
            history,
            self.network,
            self.at,
            self.rates,
            idle,
        )

    def _static_streams(self) -> dict[str, Any]:
        return {s: f for s, f in self.streams.items() if self._source.is_static(s)}

    def _make_replay(self, batches: int | str) -> ReplaySource | None:
        """Return a checked source that replays the static streams; None if there are none."""
        copied = self._static_streams()
        if not copied:
            return None
        times = dict.fromkeys(copied, self.time)
        return self._source.make_replay(batches, times, parse_memory_limit())

    def _check_input(self, store: RunStore, stored: Mapping[str, Any]) -> None:
        """Raise ValueError unless the streams are those with which the hub in a folder began."""
        for stream, plain in stored.get("fingerprints", {}).items():
            before = input_fingerprints.InputFingerprint.from_plain(plain)
            here = input_fingerprints.fingerprint_table(self.tables[stream])
            input_fingerprints.check_rows(stream, store.where, before, here, "")
        if "sources" not in stored:
            return
        sources = input_fingerprints.describe_sources(self.streams)
        input_fingerprints.check_sources(sources, stored, store.where)
        for stream, frame in self._static_streams().items():
            input_fingerprints.check_frame(stream, frame, store, stored, "")

    def _make_reader(self, store: RunStore, settings: Mapping[str, Any]) -> StreamReader:
        """Return the reader of the streams, in the order in which stored files number them."""
        batches, last_batches = settings["batches"], settings["last_batches"]
        if self.tables:
            assert batches is not None
            store.input.check_files(0, deep=True)
            plain = {s: pa.schema(list(store.input.stream_schema(s))) for s in settings["at"]}
            return ArrowStreamReader(plain, self.time, store.input, batches, last_batches)
        from braid.hub.spark_backend import SparkStreamReader

        opened = self._source.open_streams(store)
        frames = {stream: opened[stream] for stream in settings["at"]}
        return SparkStreamReader(frames, self.time, batches, last_batches)


__all__ = ["HubQuery", "HubRun", "QueryHub"]
