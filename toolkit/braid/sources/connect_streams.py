"""Streams that are DataFrames of Spark Connect: a server has their rows, this process joins them.

Static frames are collected at the start of a run and then joined as tables. Streaming frames are
landed by the server, see ``server_landing``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
import pyspark

from braid.condition.spark_type_checker import make_arrow_schema
from braid.errors import RefusedColumnError
from braid.execution.executors import check_executor
from braid.sources.arrow_replay import ArrowReplay
from braid.sources.arrow_streams import ArrowStreams
from braid.sources.frame_conversion import convert_frame
from braid.sources.input_fingerprints import InputFingerprint, check_rows, fingerprint_table
from braid.sources.server_landing import ServerLanding, check_size, make_size_sql
from braid.sources.spark_frames import parse_spark_trigger, read_frame_watermarks
from braid.sources.stream_filters import check_filters, parse_filter
from braid.sources.unread_streams import UnreadStreams
from braid.storage.run_store import RunStore
from braid.storage.table_input import read_parquet_schema
from braid.time_arguments import Watermarks
from braid.util.clock_and_threads import current_environment
from braid.util.time_zones import UTC

_ZONE = "spark.sql.session.timeZone"
_LOCAL = ("localhost", "127.0.0.1")
"""Hosts whose server reaches the folders of this machine."""


class ConnectStreams(UnreadStreams, ArrowStreams):
    """DataFrames of one session of Spark Connect, by alias. The join runs in this process.

    - ``streams``: their columns, as tables without rows.

    ``where``: see ``filter_streams``. Raises ValueError if the frames or the session cannot be
    joined.
    """

    def __init__(self, frames: Mapping[str, Any], where: Mapping[str, str] | None) -> None:
        _check_session(frames)
        super().__init__({alias: _make_empty_table(alias, f) for alias, f in frames.items()})
        filters = check_filters(where, frames)
        conditions = {a: parse_filter(a, self.streams[a], sql) for a, sql in filters.items()}
        self._frames = {
            a: f.filter(conditions[a]) if a in conditions else f for a, f in frames.items()
        }
        self._endless = {a: f for a, f in self._frames.items() if f.isStreaming}
        self._collected: dict[str, pa.Table] = {}
        self._parent = self._folder = ""

    @property
    def spark_session(self) -> Any:
        """The session of Spark Connect."""
        return next(iter(self._frames.values())).sparkSession

    def read_watermarks(self) -> Watermarks:
        return read_frame_watermarks(self._frames)

    def describe_schemas(self) -> dict[str, str]:
        """Return the columns as for tables; those of a stream that is landed say so."""
        landed = dict.fromkeys(self._endless, ", landed by Spark Connect")
        return {a: text + landed.get(a, "") for a, text in super().describe_schemas().items()}

    def is_static(self, alias: str) -> bool:
        return alias not in self._endless

    def measure_extent(self, alias: str, time: str | None) -> tuple[int, int]:
        micros = "0" if time is None else f"unix_micros(cast(`{time}` AS timestamp))"
        span = f"coalesce(max({micros}) - min({micros}), 0)"
        [(rows, micros_between)] = self._frames[alias].selectExpr("count(1)", span).collect()
        return int(rows), int(micros_between)

    def check_execution(self, executor: Any, driver_memory: Any) -> str:
        """Return the executor.

        Raises ValueError if it is Spark: a server of Spark Connect runs no tasks of Braid.
        """
        if check_executor(executor) == "spark":
            raise ValueError(
                "executor is 'spark', but the streams are of Spark Connect, whose server runs no "
                "tasks of Braid; leave it out"
            )
        return "process"

    def parse_trigger(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return parse_spark_trigger(given) if self._endless else super().parse_trigger(given)

    def set_landing(self, folder: str | None, store: RunStore) -> None:
        """Set the folder for landed micro-batches. Default: one of the run, if that is local."""
        if not self._endless:
            super().set_landing(folder, store)
            return
        host = self.spark_session.client.host
        if folder is None and not store.url and host in _LOCAL:
            folder = str(store.path.absolute() / "landing")
        if folder is None and store.read_settings() is None:
            raise ValueError(
                f"stream {next(iter(self._endless))} does not end and no landing is given; it must "
                f"be a folder that the server on {host} reads and writes, as "
                "landing='s3://bucket/landing'"
            )
        self._parent = "" if folder is None else folder.rstrip("/")

    def make_replay(
        self,
        batches: int | str,
        times: Mapping[str, str],
        memory: int,
        undivided: Collection[str] = (),
    ) -> ArrowReplay:
        """Return the static streams, collected. Beside streams that do not end they come at once.

        The server makes a micro-batch when rows come, so others would wait for rows.
        """
        if self._endless and isinstance(batches, str):
            raise ValueError(
                f"batches is {batches!r}, but stream {next(iter(self._endless))} does not end; "
                "static streams of Spark Connect come whole in the first micro-batch beside it, "
                "so leave it out"
            )
        static = [alias for alias in self._frames if alias not in self._endless]
        self._collected = self._collect_frames(static, memory)
        return ArrowReplay(self._collected, times, 1 if self._endless else batches, undivided)

    def _collect_frames(self, aliases: Collection[str], memory: int) -> dict[str, pa.Table]:
        """Return the rows of static frames. Raises ValueError if they take too much memory."""
        for alias in aliases:
            sql = make_size_sql(self.streams[alias].schema)
            size = self._frames[alias].selectExpr(sql).collect()[0][0] or 0
            check_size(f"stream {alias}", size, memory)
            memory -= size
        return {alias: self._collect_frame(alias) for alias in aliases}

    def _collect_frame(self, alias: str) -> pa.Table:
        rows = convert_frame(alias, self._frames[alias].toArrow())
        assert rows is not None
        return rows.cast(self.streams[alias].schema)

    def record_fingerprints(self) -> dict[str, Any]:
        """Return fingerprints of static streams, and where the others are landed."""
        collected, self._collected = self._collected, {}
        prints = {alias: fingerprint_table(rows).to_plain() for alias, rows in collected.items()}
        path = f"{self._parent}/{current_environment().make_token()}"
        landed = {alias: {"type": "Spark Connect", "path": path} for alias in self._endless}
        return {"fingerprints": prints, "sources": landed}

    def check_input(self, store: RunStore, stored: Mapping[str, Any], resumed: bool) -> None:
        if self._endless and self._parent and not self._folder.startswith(f"{self._parent}/"):
            there = self._folder.rpartition("/")[0]
            raise ValueError(
                f"landing is {self._parent!r} where the run in {store.where} began with "
                f"{there!r}; give that, or use a new folder"
            )
        for alias, plain in stored["fingerprints"].items() if not resumed else ():
            before = InputFingerprint.from_plain(plain)
            rows = self.measure_extent(alias, None)[0]
            if rows == before.rows:
                check_rows(
                    alias, store.where, before, fingerprint_table(self._collect_frame(alias))
                )
            check_rows(alias, store.where, before._replace(hash_sum=0), InputFingerprint(rows, 0))

    def check_source_position(self, store: RunStore) -> None:
        """Raise DamagedRunError unless the server continues from the run's last commit."""
        if not self._endless:
            return
        settings, state = store.read_settings(), store.last_state()
        assert settings is not None
        self._folder = next(iter(settings["sources"].values()))["path"]
        if state is not None and state.epoch >= 0:
            self.make_landing().check_position(state.epoch)

    def make_landing(self) -> ServerLanding:
        """Return the landing of the run whose source was checked last."""
        schemas = {alias: self._find_stored_schema(alias) for alias in self._endless}
        return ServerLanding(self._endless, schemas, self._folder)

    def _find_stored_schema(self, alias: str) -> pa.Schema:
        return read_parquet_schema(self.streams[alias].schema)

    def open_streams(self, store: RunStore) -> dict[str, pa.Schema]:
        return {
            alias: self._find_stored_schema(alias)
            if alias in self._endless
            else store.input.stream_schema(alias)
            for alias in self._frames
        }


def _make_empty_table(alias: str, frame: Any) -> pa.Table:
    """Return a table with the columns of a frame. Raises RefusedColumnError."""
    for field in frame.schema.fields:
        kind = field.dataType.simpleString()
        if refused := re.search(r"\bvariant\b|\binterval\b", kind):
            problem = f"is of type {kind}"
            raise RefusedColumnError(
                alias, field.name, problem, f"cast it, as {refused[0]}s are not read from a server"
            )
    empty = convert_frame(alias, make_arrow_schema(frame.schema).empty_table())
    assert empty is not None
    return empty


def _check_session(frames: Mapping[str, Any]) -> None:
    """Raise ValueError unless the session computes as tables do, and all frames are of it."""
    sessions = {alias: frame.sparkSession for alias, frame in frames.items()}
    (first, session), *others = sessions.items()
    for alias, other in others:
        if other.session_id != session.session_id:
            raise ValueError(
                f"streams {first} and {alias} are of two sessions of Spark Connect; give frames "
                "of one"
            )
    here = pyspark.__version__
    if session.version.split(".")[:2] != here.split(".")[:2]:
        raise ValueError(
            f"the server of Spark Connect has Spark {session.version} and this process PySpark "
            f"{here}; they must be of the same minor version"
        )
    for name, accepted in ("spark.sql.ansi.enabled", ("true",)), (_ZONE, UTC):
        if (value := session.conf.get(name)) not in accepted:
            raise ValueError(
                f"{name} is {value} in the session of Spark Connect, but its frames are joined "
                f"here, in ANSI mode and in UTC; set it to {accepted[0]}"
            )
