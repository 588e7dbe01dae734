"""Blocks of Python in the documentation, and streams for them."""

from __future__ import annotations
import __future__

import re
from pathlib import Path
from typing import Any

import pyarrow as pa

DOCS = Path(__file__).parents[1] / "docs"
FENCE = re.compile(r"^ *``` *([^\n]*python[^\n]*)\n(.*?)^ *```$", re.M | re.S)
NEEDS_SPARK = re.compile(r"\b(SharedJoin|shared)\b")
MINUTE = 60_000_000


def find_blocks(is_for_spark: bool) -> dict[str, list[str]]:
    """Return the blocks that are run, by page."""
    pages: dict[str, list[str]] = {}
    for page in sorted(DOCS.rglob("*.md")):
        name = str(page.relative_to(DOCS))
        for kind, text in FENCE.findall(page.read_text(encoding="utf-8")):
            if kind == "python" and bool(NEEDS_SPARK.search(text)) == is_for_spark:
                pages.setdefault(name, []).append(text)
    return pages


def run_blocks(blocks: list[str], names: dict[str, Any]) -> None:
    """Run the blocks of a page, one after the other, with the names that its text assumes."""
    flags = __future__.annotations.compiler_flag
    try:
        for text in blocks:
            exec(compile(text, "block", "exec", flags, dont_inherit=True), names)
    finally:
        for run in [value for value in names.values() if hasattr(value, "awaitTermination")]:
            run.stop()


def make_streams() -> dict[str, pa.Table]:
    """Return the streams that pages name, ten rows each."""
    rows = range(10)
    times = {"ts": pa.array([i * MINUTE for i in rows], pa.timestamp("us"))}
    ids = {"id": [*rows], "order_id": [*rows], "user": [i % 3 for i in rows]}
    sales = ids | {"total": [5.0 + i for i in rows], "amount": [4.75 + i for i in rows]}
    words = {"agency": ["x"] * 10, "words": [["a", "b", "c", f"{i}"] for i in rows]}
    flights = {"num": [*rows], "gate": ["g"] * 10, "terminal": ["A"] * 10}
    return {
        **dict.fromkeys(("orders", "payments"), pa.table(sales | times)),
        **dict.fromkeys(("cnn", "reuters"), pa.table(words | times)),
        **dict.fromkeys(("trades", "quotes"), pa.table({"sym": ["s"] * 10} | times)),
        "clicks": pa.table(ids | {"ad": [*rows]} | times),
        "impressions": pa.table({"ad": [*rows], "price": [4 + i for i in rows]} | times),
        "flights": pa.table(flights | times),
        "checkins": pa.table({"flight": [*rows], "status": ["in"] * 10} | times),
    }
