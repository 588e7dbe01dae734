"""Runs that earlier versions of the formats left behind go on in this one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid.core.state import VERSION
from braid.engine.store import Store
from braid.health import health
from braid.join import StreamJoin
from braid.papers.baselines.centralized import Centralized
from oracle import differ, expected, ids

KEPT = sorted((Path(__file__).parents[1] / "kept").glob("v*.tar.gz"))


def given(folder: Path) -> pa.Table:
    """A stream as it was given, of its copy: with the column that numbers its micro-batches."""
    parts = [pq.read_table(file) for file in sorted(folder.glob("*.parquet"))]
    number = [pa.array([k] * part.num_rows, pa.int32()) for k, part in enumerate(parts)]
    numbered = zip(parts, number, strict=True)
    return pa.concat_tables([part.add_column(1, "batch", n) for part, n in numbered])


def test_a_run_of_this_version_is_kept() -> None:
    """For the next one: tests/kept/make.py writes it."""
    assert f"v{VERSION}.tar.gz" in [file.name for file in KEPT]


@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.name)
def test_a_kept_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    shutil.unpack_archive(file, tmp_path)
    folder = tmp_path / "run"
    query = json.loads((folder / "run.json").read_text())
    routed = query["schemas"][""].removeprefix("tables, routed by DuckDB ")
    monkeypatch.setattr("duckdb.__version__", routed)
    streams = {alias: given(folder / "input" / alias) for alias in query["streams"]}
    batches = {"v3.tar.gz": 3}.get(file.name, 5)
    assert Store(folder).committed() == [*range(batches)] and health(folder).well is False
    run = StreamJoin.resume(folder, streams)
    assert run.awaitTermination()
    want = expected(streams, query["on"], {"a": 100, "b": 100})
    assert want.total() > 100 and differ(ids(run.results()), want) == ""
    assert health(folder).state == "completed"


def test_a_run_whose_keys_were_made_otherwise_is_refused(tmp_path: Path) -> None:
    """Also one of a version that did not write them down, if they are more than a column."""
    rows = pa.table({"id": [1, 2], "k": [1, 2], "n": [3, 4]})
    refused = "another version of Braid computed the keys of the condition in another way"
    for on, without, goes_on in [
        ("a.k = b.k", True, True),
        ("a.k - a.n < b.k", True, False),
        ("5 - a.n = b.n", True, False),
        ("a.n - b.n > b.n - a.n AND a.k = b.k", True, False),
        ("a.n | a.k & 4 = b.n", True, False),
        ("abs(a.n - b.n) <= 9 AND a.k <> b.k", True, True),
        ("a.k = b.k", False, False),
    ]:
        folder, streams = tmp_path / f"{on} {without}", {"a": rows, "b": rows}
        assert StreamJoin(streams, on, Centralized()).start(folder).awaitTermination()
        query = Store(folder).query()
        assert query is not None and query["keys"]
        keys = query.pop("keys")
        Store(folder).create(query if without else {**query, "keys": [{}, *keys[1:]]})
        if goes_on:
            assert StreamJoin.resume(folder, streams).awaitTermination()
        else:
            with pytest.raises(ValueError, match=refused):
                StreamJoin.resume(folder, streams)
