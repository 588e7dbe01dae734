"""Check that a run is given the streams with which it began.

A run joins the copy in its folder, so new rows in an old folder would be ignored. Rows are compared
by their number and by the sum of their 64-bit hashes modulo 2^64, whatever their order.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from braid.condition.residual_evaluation import query_table
from braid.storage.run_store import RunStore
from braid.storage.source_files import MOST_FILES, SourceFile, list_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MODULUS = 1 << 64
_IDENTITY = frozenset(
    (
        *("path", "subscribe", "subscribepattern", "assign", "topic", "kafka.bootstrap.servers"),
        *("host", "port", "table", "database"),
    )
)
"""Options that identify the data of a streaming source, in lower case.

Others are not stored, as they may hold secrets.
"""
SOCKET = "socket"
_RESUME = ", or StreamJoin.resume(...) to go on with the old input"


class InputFingerprint(NamedTuple):
    """Number of rows, and the sum of their hashes modulo 2^64."""

    rows: int
    hash_sum: int

    def to_plain(self) -> tuple[int, str]:
        """Return the values for run.json. The sum is text, since JSON readers keep 53 bits."""
        return self.rows, f"{self.hash_sum:016x}"

    @classmethod
    def from_plain(cls, plain: tuple[int, str]) -> InputFingerprint:
        """Return the fingerprint with these values of ``to_plain``."""
        return cls(plain[0], int(plain[1], 16))

    def add(self, other: InputFingerprint) -> InputFingerprint:
        """Return the fingerprint of both sets of rows together."""
        return InputFingerprint(self.rows + other.rows, (self.hash_sum + other.hash_sum) % _MODULUS)


def fingerprint_table(rows: pa.Table) -> InputFingerprint:
    """Return the fingerprint of an Arrow table."""
    if not rows.num_rows:
        return InputFingerprint(0, 0)
    if not rows.num_columns:
        return InputFingerprint(rows.num_rows, 0)
    rows = rows.cast(pa.schema([f.with_type(_replace_maps(f.type)) for f in rows.schema]))
    names = ['"' + name.replace('"', '""') + '"' for name in rows.column_names]
    # The hash of a list ignores where it ends, and NULL hashes like an empty list.
    texts = [
        f"CAST({name} AS VARCHAR)"
        for name, field in zip(names, rows.schema, strict=True)
        if pa.types.is_nested(field.type)
    ]
    # The hash of -0.0 is that of 0.0.
    signs = [
        f"({name} = 0 AND signbit({name}))"
        for name, field in zip(names, rows.schema, strict=True)
        if pa.types.is_floating(field.type)
    ]
    hashed = f"sum(hash({', '.join([*names, *texts, *signs])})) % {_MODULUS}"
    answered = query_table(
        f"SELECT count(*) AS n, CAST({hashed} AS VARCHAR) AS h FROM tuples", rows
    )
    return InputFingerprint(answered["n"][0].as_py(), int(answered["h"][0].as_py()))


def _replace_maps(kind: pa.DataType) -> pa.DataType:
    """Return a type with lists of entries in place of maps.

    DuckDB accepts no map with duplicate keys, which streams may contain.
    """
    if pa.types.is_map(kind):
        entry = [pa.field("key", _replace_maps(kind.key_type))]
        entry.append(pa.field("value", _replace_maps(kind.item_type)))
        return pa.list_(pa.struct(entry))
    if pa.types.is_struct(kind):
        fields = [kind.field(n) for n in range(kind.num_fields)]
        return pa.struct([f.with_type(_replace_maps(f.type)) for f in fields])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_replace_maps(kind.value_type)))
    return kind


def fingerprint_frame(frame: DataFrame) -> InputFingerprint:
    """Return the fingerprint of a static Spark DataFrame. Runs one job."""
    from pyspark.sql import functions as F

    from braid.sources import static_replay

    hashed = F.expr(
        f"cast(xxhash64({', '.join(static_replay.identity_columns(frame))}) as decimal(38, 0))"
    )
    row = frame.agg(F.count(F.lit(1)), F.coalesce(F.sum(hashed), F.lit(0))).first()
    assert row is not None
    return InputFingerprint(int(row[0]), int(row[1]) % _MODULUS)


def check_rows(
    alias: str,
    where: str,
    there: InputFingerprint,
    here: InputFingerprint,
    otherwise: str = _RESUME,
) -> None:
    """Raise ValueError unless the rows a run began with and the rows it is given are the same.

    - ``there``, ``here``: fingerprints of the rows at the start and now.
    - ``otherwise``: remedies in the error besides a new folder.
    """
    if there != here:
        others = f"{there.rows:,} others" if there.rows else "none"
        raise ValueError(
            f"stream {alias} has {here.rows:,} rows where the run in {where} began with {others}; "
            f"use a new folder{otherwise}"
        )


def check_batches(batches: int | str | None, stored: Mapping[str, Any], where: str) -> None:
    """Raise ValueError if a run is to have other micro-batches than it began with."""
    before = stored.get("cut")
    if batches is not None and before is not None and batches != before:
        raise ValueError(
            f"batches is {batches!r} where the run in {where} began with {before!r}; use a new "
            "folder, or leave it out"
        )


# Static frames of Spark.


def list_frame_files(frame: DataFrame) -> dict[str, SourceFile]:
    """Return the files that a frame reads, with lengths and times; {} unless all are local.

    Nothing is scanned.
    """
    plan: Any = frame._jdf.queryExecution().analyzed()
    leaves = plan.collectLeaves()
    kinds = {leaves.apply(n).getClass().getSimpleName() for n in range(leaves.size())}
    urls = [urlsplit(url) for url in frame.inputFiles()] if kinds == {"LogicalRelation"} else []
    if any(url.scheme not in ("", "file") for url in urls):
        return {}
    return list_files(sorted(unquote(url.path) for url in urls))


def digest_files(frame: DataFrame, files: Mapping[str, SourceFile]) -> str | None:
    """Return a digest of a frame's plan and of its ``files``; None if it has none."""
    if not files:
        return None
    plan: Any = frame._jdf.queryExecution().analyzed()
    digest = hashlib.sha256(str(plan.canonicalized().semanticHash()).encode())
    for path, (length, time) in files.items():
        digest.update(f"{path}\0{length}\0{time}\n".encode())
    return digest.hexdigest()


def check_frame(
    alias: str,
    frame: DataFrame,
    store: RunStore,
    stored: Mapping[str, Any],
    otherwise: str = _RESUME,
) -> None:
    """Raise ValueError unless a frame has the rows of the copy in a run's folder.

    ``otherwise``: see ``check_rows``.
    """
    before = stored.get("files", {}).get(alias)
    if before is not None and before == digest_files(frame, list_frame_files(frame)):
        return
    if isinstance(column := stored.get("cut"), str):
        frame = frame.drop(column)
    check_rows(
        alias, store.where, _copy_rows(store, alias, frame), fingerprint_frame(frame), otherwise
    )


def _copy_rows(store: RunStore, alias: str, frame: DataFrame) -> InputFingerprint:
    from braid.sources import static_replay

    spark, rows = frame.sparkSession, store.input.read_unsplit_rows(alias)
    if rows is not None:
        return fingerprint_frame(spark.createDataFrame(rows, frame.schema))
    schema = static_replay.stored_schema(store.input, alias, spark)
    return fingerprint_frame(spark.read.schema(schema).parquet(str(store.input.folder / alias)))


def record_fingerprints(
    streams: Mapping[str, Any], static: Mapping[str, DataFrame]
) -> dict[str, Any]:
    """Return fingerprints that identify the DataFrames on a later start, and warn of sockets."""
    files = {alias: list_frame_files(frame) for alias, frame in static.items()}
    texts = {alias: digest_files(frame, files[alias]) for alias, frame in static.items()}
    sources = describe_sources(streams)
    warn_of_sockets(sources)
    digests = {alias: digest for alias, digest in texts.items() if digest is not None}
    few = {alias: each for alias, each in files.items() if 0 < len(each) <= MOST_FILES}
    return {"files": digests, "sources": sources, "source_files": few}


def check_streams(
    streams: Mapping[str, Any],
    static: Mapping[str, DataFrame],
    store: RunStore,
    stored: Mapping[str, Any],
) -> None:
    """Raise ValueError unless sources and rows are those with which a run began."""
    sources = describe_sources(streams)
    check_sources(sources, stored, store.where)
    check_sockets(sources, store)
    for alias, frame in static.items():
        check_frame(alias, frame, store, stored)


# Streaming sources.


def describe_sources(streams: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the types and options of the streaming sources that each stream reads."""
    endless = {a: s for a, s in streams.items() if getattr(s, "isStreaming", False)}
    return {alias: dict(_describe_source(frame)) for alias, frame in endless.items()}


def _describe_source(frame: DataFrame) -> Iterable[tuple[str, str]]:
    plan: Any = frame._jdf.queryExecution().analyzed()
    leaves = plan.collectLeaves()
    for n in range(leaves.size()):
        leaf, number = leaves.apply(n), f"{n}." if n else ""
        kind = leaf.getClass().getSimpleName()
        if kind not in ("StreamingRelation", "StreamingRelationV2"):
            continue
        yield f"{number}type", str(leaf.sourceName())
        given: Any = leaf.dataSource().options() if kind == "StreamingRelation" else None
        options = _convert_from_scala(given) if given is not None else dict(leaf.extraOptions())
        for name, value in sorted(options.items()):
            if name.lower() in _IDENTITY:
                yield f"{number}{name.lower()}", _make_absolute(value) if name == "path" else value


def _convert_from_scala(options: Any) -> dict[str, str]:
    pairs, plain = options.iterator(), {}
    while pairs.hasNext():
        pair = pairs.next()
        plain[str(pair._1())] = str(pair._2())
    return plain


def _make_absolute(path: str) -> str:
    url = urlsplit(path)
    return path if url.scheme not in ("", "file") else str(Path(unquote(url.path)).absolute())


def check_sources(
    here: Mapping[str, Mapping[str, str]], stored: Mapping[str, Any], where: str
) -> None:
    """Raise ValueError unless the streaming sources are those with which a run began."""
    for alias, source in here.items():
        before = stored.get("sources", {}).get(alias, {})
        if before != source:
            raise ValueError(
                f"stream {alias} reads {_describe_sources(source)} where the run in {where} "
                "began with "
                f"{_describe_sources(before)}; use a new folder"
            )


def _describe_sources(source: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in source.items()) or "no known source"


def find_sockets(sources: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the streams that read a socket."""
    return [alias for alias, source in sources.items() if _reads_socket(source)]


def _reads_socket(source: Mapping[str, str]) -> bool:
    types = (value for name, value in source.items() if name.rpartition(".")[2] == "type")
    return any(each in ("TextSocketV2", SOCKET) for each in types)


def warn_of_sockets(sources: Mapping[str, Mapping[str, str]]) -> None:
    """Warn that a socket cannot be read again."""
    for alias in find_sockets(sources):
        warnings.warn(
            f"stream {alias} reads a socket, which cannot be read again: if a batch fails, its "
            "tuples are lost and the run cannot be resumed",
            stacklevel=4,
        )


def check_sockets(sources: Mapping[str, Mapping[str, str]], store: RunStore) -> None:
    """Raise ValueError if a batch that read a socket was begun and not committed."""
    state = store.last_state()
    begun, committed = (
        store.checkpoint.last_micro_batch("offsets"),
        -1 if state is None else state.epoch,
    )
    for alias in find_sockets(sources) if begun > committed else ():
        raise ValueError(
            f"the run in {store.where} has begun micro-batch {begun} and not committed it, and "
            f"stream {alias} reads a socket, which cannot be read again; use a new folder"
        )
