"""Runs in a bucket: start them and check the bucket's contents."""

from __future__ import annotations

from typing import Any

from braid.core.run_state import FileChecksum
from braid.join_run import JoinRun
from braid.storage.object_store import open_object_store
from braid.storage.run_store import open_store
from object_store_driver import WANTED, make_join
from oracle import describe_difference, result_ids


def start_run(url: str, **more: Any) -> JoinRun:
    return make_join().start(url, batches="batch", **more)


def check_end(run: JoinRun) -> None:
    assert run.awaitTermination()
    assert describe_difference(result_ids(run.results()), WANTED) == ""


def check_bucket(url: str) -> None:
    """Check that the bucket has what the manifests name: results of all commits, the last state and
    its blocks.
    """
    names = open_object_store(url).list_objects()
    reader = open_store(url)
    if reader.read_settings() is None:
        return
    for kept in reader.log.commits:
        assert {
            f"results/{f.name}": f.checksum.size_bytes for f in kept.results
        }.items() <= names.items()
    if (state := reader.last_state()) is not None:
        assert {
            f"blocks/{n}": s.size_bytes for n, s in state.block_files.items()
        }.items() <= names.items()


def opened_files(url: str) -> list[tuple[str, FileChecksum]]:
    reader = open_store(url)
    reader.read_settings()
    return [(f"results/{n}", s) for kept in reader.log.commits for n, s in kept.results]


def check_no_leftovers(url: str) -> None:
    """Check that the bucket has only the results of all commits and the last two states with their
    blocks.
    """
    names, reader = open_object_store(url).list_objects(), open_store(url)
    reader.read_settings()
    last = [kept for kept in reader.log.commits[-2:] if kept.state is not None]
    blocks = {
        f"blocks/{name}" for kept in last for name in reader.states.read_state(kept).block_files
    }
    states = {f"commits/{kept.state.name}" for kept in last if kept.state is not None}
    entries = {n for n in names if n.startswith(("commits/0", "commits/entries-"))}
    copied = {n for n in names if n.startswith("input/")}
    results = {name for name, _ in opened_files(url)}
    assert len({n.split("/")[1] for n in copied}) == 1
    assert names.keys() == {
        *{"run.json", "opening.jsonl"},
        *entries,
        *states,
        *blocks,
        *results,
        *copied,
    }
