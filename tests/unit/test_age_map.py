"""The numbers of the map of shared slices equal a count over the event file, apart from the fold."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from braid.core.event_jsonl import read_events
from braid.util.durations import format_duration
from braid_widgets.cockpit.page import recorded_page
from unit.scripted import list_rows

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"


@pytest.fixture(scope="module", params=["slices", "shared_ring"])
def run(request: pytest.FixtureRequest) -> tuple[list[Any], list[dict[str, Any]], list[Any]]:
    path = RECORDINGS / f"{request.param}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    page = recorded_page(read_events(path))
    return page["frames"], lines, page["timeline"]["tracks"]


def test_a_shared_run_has_the_map_of_ages(run: Any) -> None:
    frames, *_ = run
    assert {name for frame in frames for name in frame["state_map"]} == {"ages"}


def test_results_of_a_query_are_those_of_the_events(run: Any) -> None:
    frames, lines, tracks = run
    totals: Counter[str] = Counter()
    for frame in frames:
        of_batch = [
            line["results_by_query"]
            for line in lines
            if line["type"] == "BatchQueryResults" and line["batch"] + 1 == frame["batch"]
        ]
        for found in of_batch:
            totals.update(found)
        shown = {q[0]: (q[2], q[3]) for q in list_rows(frame["state_map"]["ages"]["queries"])}
        for row in tracks[-1]["series"] if of_batch else ():
            value = row["values"][row["batch"].index(frame["batch"])]
            assert value == shown[row["name"].removeprefix("query:")][1]
        assert shown == {
            name: (totals[name], sum(found.get(name, 0) for found in of_batch)) for name in shown
        }
    heat = tracks[-1]
    assert heat["kind"] == "heat" and [track["kind"] for track in tracks].count("heat") == 1
    by_query = {row["name"]: sum(row["values"]) for row in heat["series"]}
    assert by_query == {f"query:{name}": n for name, n in totals.items()}
    assert heat["top"] == max(n for row in heat["series"] for n in row["values"])


def test_slices_hold_all_rows_in_the_order_of_their_ages(run: Any) -> None:
    frames, lines, tracks = run
    ends: dict[int, list[int]] = {}
    commits = {line["batch"] + 1: line for line in lines if line["type"] == "BatchCommitted"}
    chains = [line for line in lines if line["type"] == "ChainChanged"]
    for frame in frames:
        view = frame["state_map"]["ages"]
        live = commits[frame["batch"]]["live_tuples"]
        ends |= {c["stream"]: c["slice_ends"] for c in chains if c["batch"] + 1 == frame["batch"]}
        for track in (t for t in tracks if t["name"] == "rows in windows"):
            series = [row["values"][row["batch"].index(frame["batch"])] for row in track["series"]]
            assert (
                series == [sum(live), *live] and len({p[1] for p in list_rows(view["pieces"])}) == 1
            )
        assert view["rows"] == live and view["scale_max"] == max(view["pieces"]["rows"])
        for stream, held in enumerate(live):
            own = [p for p in list_rows(view["pieces"]) if p[0] == stream]
            assert sum(p[5] for p in own) == held
            assert [p[2] for p in own] == [0, *(p[3] for p in own[:-1])], "no gap, young first"
            assert set(ends[stream]) <= {p[3] for p in own}


def test_a_slice_holds_the_rows_of_its_blocks(run: Any) -> None:
    """New rows are in the youngest slice."""
    frames, lines, _ = run
    rows: dict[int, int] = {}
    slices: dict[int, list[list[int]]] = {}
    for line in lines:
        if line["type"] == "SliceContents":
            slices[line["stream"]] = line["blocks_by_slice"]
        if line["type"] != "BatchCommitted":
            continue
        rows = {id: n for id, n in rows.items() if id not in line["dropped_block_ids"]}
        rows |= {block["id"]: block["rows"] for block in line["changed_blocks"]}
        held: dict[int, Counter[int]] = {stream: Counter() for stream in slices}
        for piece in list_rows(frames[line["batch"]]["state_map"]["ages"]["pieces"]):
            held[piece[0]][piece[4]] += piece[5]
        for stream, by_slice in slices.items():
            older = [sum(rows.get(id, 0) for id in ids) for ids in by_slice[1:]]
            youngest = line["live_tuples"][stream] - sum(older)
            assert [held[stream][k] for k in range(len(by_slice))] == [youngest, *older]


def test_the_query_with_the_shortest_window_comes_first(run: Any) -> None:
    frames, *_ = run
    longest = [max(q[1]) for q in list_rows(frames[-1]["state_map"]["ages"]["queries"])]
    assert longest == sorted(longest) and len(longest) >= 3


def test_slices_that_hosts_share_anew_have_a_flag_with_the_ages_of_the_picture() -> None:
    page = recorded_page(read_events(RECORDINGS / "shared_ring.jsonl"))
    flags = {flag["batch"]: flag for flag in page["annotations"]}
    assert {batch: flag["short"] for batch, flag in flags.items()} == {
        1: "7 slices",
        9: "shared out anew",
    }
    assert all(len(flag["text"]) <= 220 for flag in flags.values())
    pieces = list_rows(page["frames"][-1]["state_map"]["ages"]["pieces"])
    parts = [[p for p in pieces if p[0] == 0 and p[1] == host] for host in range(4)]
    ends = ", ".join(format_duration(part[-1][3]) for part in parts[:-1])
    assert f"slices of a are split between hosts at {ends} (least state)" in flags[9]["text"]
