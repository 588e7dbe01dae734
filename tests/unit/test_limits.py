"""What Braid does not do: each row of docs/limits.md is tried, and its sentence is the error's."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import braid
import pyarrow as pa
import pytest
from braid import SharedJoin, Shed, StreamJoin
from braid.health import read_health

PAGE = Path(__file__).parents[2] / "docs/limits.md"
TIMES = [datetime(2026, 1, 5, hour) for hour in range(3)]
TABLE = pa.table({"k": [1, 2, 3], "name": list("xyz"), "ts": pa.array(TIMES, pa.timestamp("us"))})
CHANGES = TABLE.append_column("change", pa.array(["insert"] * 3))
TWO, THREE = dict.fromkeys("ab", TABLE), dict.fromkeys("abc", TABLE)
ON, ON_THREE = "a.k = b.k", "a.k = b.k AND b.k = c.k"


def resume_with_a_column(folder: Path) -> None:
    StreamJoin(TWO, ON).start(folder, batches=1).awaitTermination()
    more = TABLE.append_column("more", pa.array([1, 2, 3]))
    StreamJoin.resume(folder, streams={"a": TABLE, "b": more})


TRIED: dict[str, Callable[[Path], Any]] = {
    "an as-of join of three streams": lambda _: StreamJoin(THREE, ON_THREE, match="latest", time="ts"),
    "a left join of three streams": lambda _: StreamJoin(THREE, ON_THREE, how="left"),
    "a Python function over two streams": lambda _: StreamJoin(TWO, lambda a, b: a == b),  # type: ignore[arg-type]
    "a function of two streams that Spark alone has, on tables": lambda _: StreamJoin(TWO, "soundex(concat(a.name, b.name)) = 'X'"),
    "changes in a window": lambda _: StreamJoin({"a": CHANGES, "b": TABLE}, ON, changes={"a": "change"}, windows="1 hour", time="ts"),
    "an outer join that sheds load": lambda _: StreamJoin(TWO, ON, how="left", shed=Shed(fraction=0.5)),
    "a shared join of tables": lambda _: SharedJoin(TWO, ON, time="ts"),
    "another schema in a run that goes on": resume_with_a_column,
    "the health of a run in a bucket": lambda _: read_health("s3://lake/runs/payments"),
    "the diagnosis of a run in a bucket": lambda _: braid.doctor("s3://lake/runs/payments"),
    "a bundle of a run in a bucket": lambda _: braid.bundle("s3://lake/runs/payments"),
}  # fmt: skip


def read_rows() -> dict[str, str]:
    """Return the sentences of the page by the words before them."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [re.fullmatch(r"\| (.+?) \| `(.+)` \|", line) for line in lines]
    return {row[1]: row[2].replace("\\|", "|") for row in rows if row}


def test_each_row_of_the_page_is_tried() -> None:
    assert [*read_rows()] == [*TRIED]


@pytest.mark.parametrize("name", TRIED)
def test_what_is_not_there_is_refused_with_the_sentence_of_the_page(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError) as refused:
        TRIED[name](tmp_path / "run")
    sentence = str(refused.value).replace(str(tmp_path / "run"), "runs/payments")
    assert sentence == read_rows().get(name), sentence
