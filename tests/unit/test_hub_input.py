"""A hub resumes only with the rows that it started with, and refuses others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.hub.hub import HubRun, QueryHub
from hub_cases import WIDE, make_hub_tables, query_rows

pytestmark = pytest.mark.unit

DATA = make_hub_tables(1)


def start_hub(folder: Path, data: dict[str, pa.Table], batches: Any = "batch") -> HubRun:
    return QueryHub(data, "ts").start(folder, batches, {"wide": WIDE})


def test_a_folder_of_a_hub_refuses_other_rows(tmp_path: Path) -> None:
    run = start_hub(tmp_path, DATA)
    run.awaitTermination()
    before = query_rows(run, "wide")
    with pytest.raises(ValueError) as refused:
        start_hub(tmp_path, {**DATA, "flights": DATA["flights"].slice(1)})
    assert str(refused.value) == (
        f"stream flights has 119 rows where the run in {tmp_path} began with 120 others; use a new "
        "folder"
    )
    changed = DATA["checkins"].set_column(0, "id", DATA["checkins"]["flight"])
    with pytest.raises(ValueError, match="stream checkins has 160 rows where .* with 160 others"):
        start_hub(tmp_path, {**DATA, "checkins": changed})
    turned = DATA["flights"].take(list(range(119, -1, -1)))  # in any order
    again = start_hub(tmp_path, {**DATA, "flights": turned})
    assert again.awaitTermination() and query_rows(again, "wide") == before


def test_a_folder_of_a_hub_refuses_other_batches(tmp_path: Path) -> None:
    start_hub(tmp_path, DATA, 3).awaitTermination()
    for asked in (4, "batch"):
        with pytest.raises(ValueError, match=f"batches is {asked!r} where the run in .* with 3;"):
            start_hub(tmp_path, DATA, asked)
    assert start_hub(tmp_path, DATA, None).awaitTermination()
