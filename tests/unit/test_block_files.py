"""Columns of block files and result files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid import Centralized
from braid.condition.access_paths import Order
from braid.core import compaction
from braid.core.join_kinds import INNER
from braid.core.run_events import BatchCommitted, BatchPlanned
from braid.errors import DamagedRunError
from braid.execution import merge_pools, path_probing, probe_pools
from braid.execution.thread_executor import ThreadExecutor
from braid.kernels import probe
from braid.kernels.block_builder import build_block, merge_blocks
from braid.kernels.column_views import drop_views, restore_views, take_without_views
from braid.kernels.host_block_rows import BlockRows, PartialMatches, concat_rows
from braid.kernels.join_spec import GeneratedColumn, StreamLayout
from braid.papers.baselines.hash_partition import HashPartition
from braid.storage import block_files
from braid.storage.block_files import BlockFileWriter, ResultFileWriter, read_parquet
from braid.storage.block_readers import keep_open_only, open_replica, remove_block_files
from braid.storage.run_files import is_run_file
from braid.stream_join import StreamJoin
from stages import InProcessStages

ECHOES = (
    GeneratedColumn("__time", "ts", "int64"),
    GeneratedColumn("__k", "k", "int64"),
    GeneratedColumn("__n", "n", "int64"),
)
"""Columns derived from others; one is wider than its source."""


def tuples(k: list[int]) -> pa.RecordBatch:
    """Return a block of a stream, as Spark delivers tuples."""
    layout = StreamLayout((("k", "c0"), ("ts", "c1"), ("n", "c2"), ("x", "c3")), ECHOES)
    columns = {
        "__key": pa.array([0] * len(k), pa.int32()),
        "c0": pa.array(k),
        "c1": pa.array([datetime.fromtimestamp(v, UTC) for v in k], pa.timestamp("us", "UTC")),
        "c2": pa.array([*range(len(k))], pa.int32()),
        "c3": pa.array([f"{v}" for v in k]),
    }
    return layout.extract_rows(pa.record_batch(columns), np.arange(len(k)))


def stored(folder: Path, name: str, batch: pa.RecordBatch) -> BlockRows:
    written = BlockFileWriter(folder, name, False)
    at = written.append_block(0, batch)
    return open_replica(str(folder / at.file), at, written.close_files()[at.file])


def test_columns_that_are_views_are_not_stored_and_there_when_a_block_is_read(
    tmp_path: Path,
) -> None:
    batch = tuples([1, 5, 9])
    rows = stored(tmp_path, "000000-0-0000cafe", batch)
    assert rows.batch.equals(batch) and rows.batch.schema.equals(batch.schema, check_metadata=True)
    with pa.ipc.open_file(tmp_path / "000000-0-0000cafe-0.arrow") as file:
        assert file.schema.names == ["__key", "k", "ts", "n", "x", "__n"]


def test_views_are_views_after_blocks_are_sliced_taken_and_merged(tmp_path: Path) -> None:
    blocks = [
        BlockRows(tuples([5, 7, 1]).slice(1)),
        BlockRows(tuples([9, 2])),
        BlockRows(tuples([])),
    ]
    merged = merge_blocks(blocks, (Order("__k"),))
    assert merged["k"].to_pylist() == merged["__k"].to_pylist() == [1, 2, 7, 9]
    assert drop_views(merged).schema.names == ["__key", "k", "ts", "n", "x", "__n"]
    assert stored(tmp_path, "000000-0-0000cafe", merged).batch.equals(merged)


def test_columns_of_users_and_those_of_other_values_are_no_views() -> None:
    k, kinds = pa.array([1, 5, 9]), {"a": pa.int64(), "b": pa.int64(), "__k": pa.float64()}
    batch = pa.record_batch({name: k.view(kind) for name, kind in kinds.items()})
    assert drop_views(batch).schema.names == ["a", "b"]
    assert restore_views(drop_views(batch)).equals(batch)
    fields = [pa.field("a", pa.int64(), nullable=False), pa.field("__k", pa.int64())]
    strict = pa.record_batch([k, k], schema=pa.schema(fields, {"of": "a user"}))
    taken = take_without_views(strict, np.array([2, 0]))
    assert taken.schema.equals(strict.schema, check_metadata=True)
    assert restore_views(drop_views(strict)).schema.equals(strict.schema, check_metadata=True)
    shifted = pa.record_batch({"a": k.slice(0, 2), "__k": k.slice(1, 2)})
    nulls = pa.record_batch({"a": k, "__k": pa.array([1, None, 9])})
    for other in (shifted, nulls, batch.slice(0, 0)):
        assert drop_views(other) is other


def test_blocks_that_store_views_are_read_and_merged_with_others(tmp_path: Path) -> None:
    apart = pa.concat_batches([tuples([1]), tuples([7])])
    assert drop_views(apart) is apart
    old = stored(tmp_path, "000000-0-0000cafe", apart)
    new = stored(tmp_path, "000001-0-0000cafe", tuples([2, 9]))
    merged = merge_blocks([old, new], (Order("__k"),))
    again = stored(tmp_path, "000002-0-0000cafe", merged).batch
    assert again.equals(merged) and again.schema.names == tuples([1]).schema.names
    for name in ("k", "__k"):
        assert again[name].to_pylist() == [1, 2, 7, 9]
    assert again["__time"].to_pylist() == [v * 1_000_000 for v in (1, 2, 7, 9)]


@pytest.mark.parametrize("is_own", [True, False])
def test_a_segment_is_closed_when_its_file_is_gone(tmp_path: Path, is_own: bool) -> None:
    """Whether this process removes it, or another one has."""
    written = BlockFileWriter(tmp_path, "000000-0-0000cafe", False)
    at = written.append_block(0, tuples([1]))
    path, checksum = tmp_path / at.file, written.close_files()[at.file]
    assert open_replica(str(path), at, checksum).batch.num_rows
    if is_own:
        remove_block_files([path])
    else:
        path.unlink()
        keep_open_only(tmp_path, [])
    with pytest.raises(DamagedRunError, match=r"cafe\S* is missing"):
        open_replica(str(path), at, checksum)


def test_views_of_different_columns_are_in_files_of_their_own(tmp_path: Path) -> None:
    a, b = pa.array([1, 2]), pa.array([3, 4])
    batches = [pa.record_batch({"a": a, "b": b, "__k": k}) for k in (a, b)]
    files = BlockFileWriter(tmp_path, "000000-0-0000cafe", False)
    addresses = [files.append_block(0, batch) for batch in batches]
    checksums = files.close_files()
    for address, batch in zip(addresses, batches, strict=True):
        path = str(tmp_path / address.file)
        assert open_replica(path, address, checksums[address.file]).batch.equals(batch)


@pytest.mark.parametrize(
    "way", [lambda: ThreadExecutor(1), lambda: ThreadExecutor(2, alone=0), InProcessStages]
)
@pytest.mark.parametrize("hosts", [1, 3])
def test_blocks_of_tables_store_each_number_once(
    way: Callable[[], Any], hosts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that were sent to another task, and mergers."""
    monkeypatch.setattr("braid.arrow_join.make_executor", lambda _: way())
    number = pa.array(range(90))
    rows = pa.table({"k": number, "ts": number.cast(pa.timestamp("us")), "v": number})
    join = StreamJoin({"a": rows, "b": rows}, "a.k = b.k", HashPartition(hosts), None, "ts")
    run = join.start(tmp_path, batches=6)
    assert run.awaitTermination() and run.results().num_rows == 90
    files = [pa.ipc.open_file(file).schema.names for file in tmp_path.glob("blocks/*.arrow")]
    assert files and all(names == ["k", "ts", "v", "__key"] for names in files)


def test_blocks_with_and_without_ranks_are_in_files_of_their_own(tmp_path: Path) -> None:
    order, ranks = Order("k", within="n"), "__r:k,n"
    keys = [[1, 2, 3], [7] * 9, [4, 5], [8] * 9]
    blocks = [build_block(tuples(k), [order]) for k in keys]
    assert [ranks in block.schema.names for block in blocks] == [False, True, False, True]
    files = BlockFileWriter(tmp_path, "000000-0-0000cafe", False)
    addresses = [files.append_block(n % 2, block) for n, block in enumerate(blocks[:2] * 2)]
    addresses += [files.append_block(0, block) for block in blocks]
    checksums = files.close_files()
    assert len(checksums) == 3 and all(map(is_run_file, checksums))
    for address, block in zip(addresses, blocks[:2] * 2 + blocks, strict=True):
        path = str(tmp_path / address.file)
        rows = open_replica(path, address, checksums[address.file])
        assert rows.batch.equals(block)
    remove_block_files([tmp_path / file for file in checksums])
    with pytest.raises(DamagedRunError, match=address.file):
        open_replica(path, address, checksums[address.file])


def test_small_blocks_share_a_segment_and_large_ones_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment is written when it is full, or when a large block follows it."""
    blocks = [tuples([*range(n, n + size)]) for n, size in enumerate([3, 1, 40, 2, 2, 2, 2, 2, 5])]
    sizes = [block.nbytes for block in blocks]
    monkeypatch.setattr(block_files, "_LARGE", sizes[2])
    monkeypatch.setattr(block_files, "_MOST_WAITING", sum(sizes[3:8]))
    files = BlockFileWriter(tmp_path, "000000-0-0000cafe", False)
    addresses = [files.append_block(0, block) for block in blocks]
    [two] = {tuple(files.append_blocks(0, blocks[0], [(0, 1), (1, 3)]))}
    [(name, checksum)] = files.close_files().items()
    assert [(a.record_batch, a.rows) for a in addresses] == [
        (0, (0, 3)), (0, (3, 4)), (1, (0, 40)), (2, (0, 2)), (2, (2, 4)), (2, (4, 6)),
        (2, (6, 8)), (2, (8, 10)), (3, (0, 5)),
    ]  # fmt: skip
    for address, block in zip(addresses, blocks, strict=True):
        rows = open_replica(str(tmp_path / name), address, checksum)
        assert rows.batch.equals(block) and rows.row_count() == block.num_rows
    read = [open_replica(str(tmp_path / name), address, checksum) for address in two]
    assert [rows.batch.column("n").to_pylist() for rows in read] == [[0], [1, 2]]
    assert concat_rows(read).equals(blocks[0])
    with pa.memory_map(str(tmp_path / name)) as file:
        assert pa.ipc.open_file(file).num_record_batches == 4


@pytest.mark.parametrize(
    ("numbers", "encoding"),
    [
        ([5, None, 900, -3] * 32, "DELTA_BINARY_PACKED"),
        ([None, None] * 64, "DELTA_BINARY_PACKED"),
        ([-(2**63), 0, 2**63 - 1] * 43, "PLAIN"),
        ([5, None, 900, -3], "PLAIN"),
    ],
)
@pytest.mark.parametrize("kind", ["int64", "timestamp[us]"])
def test_results_are_read_as_they_were_whatever_numbers_they_have(
    tmp_path: Path, numbers: list[int | None], encoding: str, kind: str
) -> None:
    names = ("n", "n.n", "s")
    columns = [pa.array(numbers, pa.int64()).view(kind)] * 2
    struct = pa.array([{"n": "text"}] * len(numbers))
    rows = BlockRows(pa.record_batch([*columns, struct], names=names))
    spec: Any = SimpleNamespace(
        columns=[names],
        predicate=SimpleNamespace(aliases=["a"]),
        utility_rule=None,
        fsync=False,
        result_types=(),
        change_streams=(),
        kind=INNER,
    )
    results = ResultFileWriter(spec, tmp_path, "000000-0-0000cafe")
    results.append_results(PartialMatches({0: (rows, np.arange(len(numbers)))}))
    (name,) = results.close_file()
    table = pq.read_table(tmp_path / name)
    assert table["a"].combine_chunks().field("n").equals(columns[0])
    assert table["a"].combine_chunks().field("s").equals(struct)
    written = pq.ParquetFile(tmp_path / name).metadata.row_group(0).column(0)
    assert encoding in written.encodings


def test_results_of_many_bytes_are_written_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_files, "_EMIT_BYTES", 3_000)
    rows = BlockRows(pa.record_batch({"t": [f"{n:0400d}" for n in range(10)]}))
    spec: Any = SimpleNamespace(
        columns=[["t"]],
        predicate=SimpleNamespace(aliases=["a"]),
        utility_rule=None,
        fsync=False,
        result_types=(),
        change_streams=(),
        kind=INNER,
    )
    results = ResultFileWriter(spec, tmp_path, "000000-0-0000cafe")
    for n in range(0, 10, 2):
        results.append_results(PartialMatches({0: (rows, np.arange(n, n + 2))}))
    (name,) = results.close_file()
    written = pq.ParquetFile(tmp_path / name)
    assert [written.metadata.row_group(k).num_rows for k in range(written.num_row_groups)] == [8, 2]
    assert [row["a"]["t"] for row in written.read().to_pylist()] == rows.batch["t"].to_pylist()


def long_texts(aliases: str, rows: int, seed: int) -> dict[str, pa.Table]:
    draw = np.random.default_rng(seed)
    return {
        alias: pa.table(
            {
                "id": np.arange(rows),
                "k": draw.integers(0, 40, rows),
                "t": ["x" * n for n in draw.integers(0, 50, rows)],
            }
        )
        for alias in aliases
    }


@pytest.mark.parametrize("on", ["a.k = b.k", "a.k = b.k AND a.t <> b.t"])
def test_a_run_of_long_texts_finds_the_same_however_little_is_held_or_merged_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: str
) -> None:
    streams = long_texts("ab", 300, seed=5)

    def run(name: str) -> tuple[list[Any], int, int]:
        """Return the results, the number of merges, and the bytes of the largest block."""
        run = StreamJoin(streams, on, Centralized()).start(tmp_path / name, batches=30)
        assert run.awaitTermination()
        happened = run.events()
        merges = [d for e in happened if isinstance(e, BatchPlanned) for d in e.derivations]
        blocks = [b for e in happened if isinstance(e, BatchCommitted) for b in e.changed_blocks]
        rows = run.results().select(["a", "b"]).to_pylist()
        ids = sorted((r["a"]["id"], r["b"]["id"]) for r in rows)
        return ids, len(merges), max(b.size_bytes for b in blocks)

    whole, merges, largest = run("whole")
    monkeypatch.setattr(compaction, "MOST_BYTES", largest // 3)
    monkeypatch.setattr(probe, "BYTES", 500)
    monkeypatch.setattr(probe, "_LITTLE", 50)
    monkeypatch.setattr(block_files, "_EMIT_BYTES", 5_000)
    found, fewer, smaller = run("little")
    assert found == whole and len(whole) > 1_000
    assert 0 < fewer <= merges and smaller <= largest // 3


def test_no_more_is_copied_together_for_a_hop_than_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of small blocks, nor of the results of other blocks."""
    streams = long_texts("abc", 120, seed=6)
    most = 1 << 50
    many: list[int] = []
    copying = ("gather_blocks", "_concat_parts", "concat_rows")

    def checked(batches: list[pa.RecordBatch], real: Any = pa.concat_batches) -> pa.RecordBatch:
        copied = sys._getframe(1).f_code.co_name in copying
        texts = [sum(map(len, b["t"].to_pylist())) for b in batches if copied]
        assert sum(texts) <= most or len(texts) == 1
        many.append(len(texts))
        return real(batches)

    monkeypatch.setattr(pa, "concat_batches", checked)

    def run(name: str) -> list[Any]:
        many.clear()
        on = "a.k = b.k AND b.k = c.k"
        run = StreamJoin(streams, on, HashPartition(4)).start(tmp_path / name, batches=12)
        assert run.awaitTermination()
        rows = run.results().to_pylist()
        return sorted(tuple(r[a]["id"] for a in "abc") for r in rows)

    whole = run("whole")
    most = 1_000  # the texts of a batch, which may be one segment, have fewer bytes
    monkeypatch.setattr(path_probing, "BYTES", most)
    monkeypatch.setattr(probe_pools, "BYTES", most)
    monkeypatch.setattr(merge_pools, "_MOST_BYTES", most)
    monkeypatch.setattr(probe, "BYTES", most)
    assert run("little") == whole and max(many) > 1


def test_a_small_parquet_file_is_read_once_if_it_has_the_columns_that_are_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, long = tmp_path / "small.parquet", pa.int64()
    has = pa.schema([pa.field("k", long), pa.field("weight", pa.float64(), nullable=False)])
    pq.write_table(pa.table({"k": [1, 2], "weight": [1.0, 0.5]}, schema=has), file)
    expected = pa.schema([("k", long), ("weight", pa.float64())])
    fewer = read_parquet(file, pa.schema([("k", long)]))
    assert fewer.to_pylist() == [{"k": 1}, {"k": 2}]
    monkeypatch.setattr(pq, "read_table", None)
    found = read_parquet(file, expected)
    assert found.schema == expected and found["weight"].to_pylist() == [1.0, 0.5]
    assert read_parquet(file).schema == has
