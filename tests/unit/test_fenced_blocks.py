"""Every block of Python in the documentation is run, or says why it is not."""

from __future__ import annotations

import re
from pathlib import Path
from runpy import run_path
from typing import Any

import braid
import pyarrow.parquet as pq
import pytest
from braid import QueryHub, StreamJoin
from braid.core.placement import PLACEMENTS
from fenced_blocks import DOCS, FENCE, find_blocks, make_streams, run_blocks

SNIPPET = re.compile(r'--8<-- "(docs/examples/\w+\.py)"\n')
SQL = """
    SELECT f.num, c.status FROM flights [RANGE 5 MINUTES] f, checkins [RANGE 1 MINUTE] c
    WHERE f.num = c.flight
"""
BLOCKS = find_blocks(is_for_spark=False)


def test_blocks_that_are_not_run_say_why() -> None:
    kept = {}
    for page in sorted(DOCS.rglob("*.md")):
        for kind, text in FENCE.findall(page.read_text(encoding="utf-8")):
            if kind != "python" and not SNIPPET.fullmatch(text):
                kept[str(page.relative_to(DOCS))] = kind
    assert set(kept) == {"cluster.md", "object-storage.md", "spark-connect.md"}
    for kind in kept.values():
        assert re.fullmatch(r'\{ \.python \.not-run title="Not run: .+" \}', kind), kind


def test_every_example_of_the_documentation_is_run_by_a_test() -> None:
    """By its name; test_documented_sinks takes all whose names begin with sink."""
    tests = "".join(f.read_text("utf-8") for f in Path(__file__).parents[1].rglob("*.py"))
    pages = [page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md")]
    names = {Path(file).stem for page in pages for file in SNIPPET.findall(page)}
    own = {name for name in names if not name.startswith("sink")}
    assert len(own) >= 5 and 'EXAMPLES.glob("sink*.py")' in tests
    assert [name for name in own if not re.search(rf'[/"]{name}(\.py)?"', tests)] == []


@pytest.mark.parametrize("page", BLOCKS)
def test_blocks_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(PLACEMENTS, "classes", dict(PLACEMENTS.classes))
    start = QueryHub.start  # at a pace at which no hub has ended when it is given a query
    paced = lambda hub, path, **more: start(hub, path, pace=0 if more else 600, **more)  # noqa: E731
    monkeypatch.setattr(QueryHub, "start", paced)
    run_blocks(BLOCKS[page], make_names(page))


def make_names(page: str) -> dict[str, Any]:
    """Return what the text of a page has introduced before its blocks."""
    streams = make_streams()
    sales = {"o": streams["orders"], "p": streams["payments"]}
    on = "o.id = p.order_id"
    join = StreamJoin(sales, on, windows="1 hour", time="ts")
    names = {name: getattr(braid, name) for name in ("QueryHub", "Shed", "StreamJoin")}
    names |= {**streams, "streams": sales, "on": on, "join": join, "sql": SQL}
    if page in ("index.md", "query-hub.md"):
        names["streams"] = {name: streams[name] for name in ("flights", "checkins")}
    if page == "add-a-placement.md":
        names |= run_path(str(DOCS / "examples/in_turn.py"))
    if page == "sinks.md":
        names |= run_path(str(DOCS / "examples/sinks.py"))
    if page in ("formats.md", "recipes.md"):
        join.start("runs/demo" if page == "formats.md" else "runs/payments").awaitTermination()
    if page == "recipes/schedules.md":
        for name in ("orders", "payments"):
            Path("data", name).mkdir(parents=True)
            pq.write_table(streams[name], Path("data", name, "0.parquet"))
    if page == "reports.md":
        run = join.start("runs/demo")
        run.awaitTermination()
        names |= {"run": run, "found": 10, "seconds": 0.5, "longest": 0.1, "orphans": 0}
    return names
