"""The column that says which row of a table a tuple was."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from braid import StreamJoin, with_origin


def test_results_name_the_rows_of_tables(tmp_path: Path) -> None:
    left = with_origin(pd.DataFrame({"k": [7, 8, 8]}, index=[5, 3, 4]))
    right = with_origin(pl.DataFrame({"k": [8, 9]}))
    run = StreamJoin({"a": left, "b": right}, "a.k = b.k").start(tmp_path / "run")
    run.awaitTermination()
    rows = run.results().to_pylist()
    assert sorted((r["a"]["origin"]["row"], r["b"]["origin"]["row"]) for r in rows) == [
        (1, 0),
        (2, 0),
    ]


def test_refused_frames_are_named() -> None:
    assert with_origin(pa.table({"k": [1]}).slice(1))["origin"].to_pylist() == []
    with pytest.raises(ValueError, match="has a column origin already"):
        with_origin(pa.table({"origin": [1]}))
    with pytest.raises(TypeError, match="or an Arrow table, not dict"):
        with_origin({"k": [1]})
