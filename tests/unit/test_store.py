"""The folder of a run: a batch exists if and only if its manifest does."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from braid.core.facts import HostUsage
from braid.core.match_rules import MatchRule
from braid.core.plan import Block
from braid.core.query import Query
from braid.core.run_events import RunEnded
from braid.core.run_state import (
    FileChecksum,
    ReplicaAddress,
    RunState,
    state_from_json,
    state_to_json,
)
from braid.core.stream_clocks import IrregularCounts
from braid.papers.theta.run_events import MigrationEnded
from braid.storage import durable_files
from braid.storage.run_store import RunStore
from hypothesis import given
from hypothesis import strategies as st

NUMBER = st.integers(0, 2**40)
TIME = st.integers(-(2**62), 2**62)
KEYS = st.tuples(st.integers(0, 64), st.integers(0, 64))


BLOCKS = st.builds(
    Block,
    NUMBER,
    st.integers(0, 2),
    KEYS,
    NUMBER,
    st.sets(st.integers(0, 63), min_size=1, max_size=4).map(lambda hosts: tuple(sorted(hosts))),
    NUMBER,
    NUMBER,
    st.one_of(st.none(), st.tuples(TIME, TIME)),
)
FILES = st.sampled_from(["000001-0-aa-0.arrow", "000001-1-bb-0.arrow", "000002-0-cc-1.arrow"])
ADDRESSES = st.builds(
    ReplicaAddress,
    FILES,
    st.integers(0, 9),
    st.one_of(st.none(), KEYS),
    st.one_of(st.none(), st.tuples(st.integers(0, 9), st.integers(9, 99))),
)
VISITS = st.tuples(st.sampled_from([(0,), (1,), (0, 2)]), st.integers(0, 2))
SHARES = st.floats(0, 1e9)
QUERIES = st.builds(
    Query,
    st.text(),
    st.tuples(NUMBER, NUMBER),
    st.tuples(st.none(), st.text()),
    st.integers(0, 62),
    st.tuples(st.none(), TIME),
    match=st.sampled_from([None, MatchRule("latest", tolerance=5, ties=("id",))]),
)


@dataclass(frozen=True)
class Policy:
    """The state of a placement."""

    said: str = ""
    ages: tuple[tuple[int, ...], ...] = ()
    seen: Mapping[int, float] = field(default_factory=dict)


THREE = st.tuples(NUMBER, NUMBER, NUMBER)
AGES = st.lists(st.lists(NUMBER).map(tuple)).map(tuple)
COUNTS = st.dictionaries(NUMBER, SHARES)
STATES = {
    "batch": NUMBER,
    "epoch": NUMBER,
    "next_id": NUMBER,
    "placement_state": st.builds(Policy, st.text(), AGES, COUNTS),
    "received": THREE,
    "received_bytes": THREE,
    "previous_received": THREE,
    "clocks": st.tuples(st.none(), TIME, TIME),
    "pending": st.tuples(st.tuples(TIME, TIME), st.just(()), st.just(())),
    "irregular": st.builds(IrregularCounts, st.tuples(NUMBER, NUMBER, NUMBER)),
    "pinned_blocks": st.frozensets(NUMBER),
    "pending_pairs": st.frozensets(st.tuples(NUMBER, NUMBER)),
    "host_usage": st.lists(st.builds(HostUsage, NUMBER, stored_tuples=NUMBER)).map(tuple),
    "match_counts": st.dictionaries(
        st.tuples(VISITS, st.integers(0, 15)), st.tuples(SHARES, SHARES)
    ),
    "queries": st.lists(QUERIES).map(tuple),
    "key_counts": st.lists(COUNTS).map(tuple),
}
"""Fields of a state other than blocks and their data."""


@st.composite
def states(draw: st.DrawFn) -> RunState:
    blocks = {b.id: b for b in draw(st.lists(BLOCKS, max_size=6))}
    places = {(b.id, h): draw(ADDRESSES) for b in blocks.values() for h in b.hosts}
    files = {a.file: FileChecksum(draw(NUMBER), draw(NUMBER)) for a in places.values()}
    rest = {name: draw(each) for name, each in STATES.items()}
    return RunState(blocks=blocks, replica_addresses=places, block_files=files, **rest)


@given(states())
def test_a_state_is_read_back_as_it_was_written(state: RunState) -> None:
    assert state_from_json(state_to_json(state), Policy) == state


def test_the_state_of_another_policy_is_refused() -> None:
    with pytest.raises(ValueError, match="the stored state of the placement is not accepted"):
        state_from_json(state_to_json(RunState(placement_state={"said": 3})), Policy)


@pytest.mark.parametrize("part", ["run.json", "commits/000000.json", "state"])
@pytest.mark.parametrize("version", [2, None])
@pytest.mark.parametrize("whole", [True, False])
def test_another_version_is_refused_in_one_sentence(
    store: RunStore, part: str, version: Any, whole: bool
) -> None:
    """With a seal of this version or another."""
    commit(store, 0, [B[0]], [R[0]])
    file = next(store.log.folder.glob("state-*")) if part == "state" else store.path / part
    changed = {k: v for k, v in json.loads(file.read_text()).items() if k != "crc"}
    body = json.dumps(changed | {"format_version": version}).encode()
    file.write_bytes(durable_files.encode_checksummed(body) if whole else body)
    sentence = rf"^(a|the|entry) .* is of version {version}; this version of Braid reads version 1$"
    with pytest.raises(ValueError, match=sentence):
        if part == "state":
            state_from_json(file.read_bytes())
        RunStore(store.path).read_settings()
        RunStore(store.path).last_state()


B = [f"{n:06d}-0-{n:08x}-0.arrow" for n in range(4)]
"""Names of block files."""
R = [f"{n:06d}-0-{n:08x}.parquet" for n in range(4)]
NOTHING = FileChecksum(0, 0)


def state(batch: int, *files: str) -> RunState:
    """Return a state whose only block has a replica in each of the files, which are empty."""
    blocks = {1: Block(1, 0, (0, 8), 0, tuple(range(len(files))), 5, 40, (0, 9))} if files else {}
    slots = {(1, h): ReplicaAddress(f, 0) for h, f in enumerate(files)}
    zeros, seals = (0, 0), dict.fromkeys(files, NOTHING)
    counts = (2, {"said": True}, zeros, zeros, zeros, (None, 3))
    return RunState(batch, batch, blocks, slots, seals, *counts)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    store = RunStore(tmp_path / "run")
    store.create_run({"on": "a.k = b.k"})
    return store


def commit(
    store: RunStore, batch: int, blocks: list[str], results: list[str], tidy: bool = True
) -> RunState:
    """Commit a batch as the engine does: tasks write files, then the driver commits."""
    for folder, names in ((store.blocks.folder, blocks), (store.published.new, results)):
        for name in names:
            (folder / name).touch()
    made = state(batch, *blocks)
    snapshot = store.states.write_state(made)
    store.commit_batch(batch, snapshot, dict.fromkeys(results, NOTHING), [MigrationEnded(batch, 0)])
    if tidy:
        store.remove_old_files(made, snapshot)
        store.blocks.wait_for_removals()
    return made


def names(folder: Path) -> list[str]:
    return sorted(f.name for f in folder.iterdir())


def results(store: RunStore) -> list[str]:
    """Return the results as a reader of plain files sees them."""
    return sorted(f.name for f in store.published.results.iterdir() if f.is_file())


def test_before_the_first_commit_there_is_nothing(store: RunStore) -> None:
    assert (
        store.last_state(),
        store.log.committed_batches(),
        store.results.result_files(),
        store.archive.committed_events(),
    ) == (
        None,
        [],
        [],
        [],
    )


def test_the_last_manifest_says_what_exists(store: RunStore) -> None:
    commit(store, 0, [B[0]], [R[0]])
    last = commit(store, 1, [B[1]], [R[1], R[2]])
    again = RunStore(store.path)
    assert again.last_state() == last
    assert [Path(f).name for f in again.results.result_files()] == [R[0], R[1], R[2]]
    assert again.archive.committed_events() == [MigrationEnded(0, 0), MigrationEnded(1, 0)]
    assert names(store.blocks.folder) == [B[0], B[1]]
    assert len(list(store.log.folder.glob("state-*"))) == 2
    again.remove_unnamed_files()
    commit(again, 2, [B[2]], [])
    commit(again, 3, [B[3]], [])
    assert names(store.blocks.folder) == [B[2], B[3]]
    assert len(list(store.log.folder.glob("state-*"))) == 2


def test_without_its_manifest_a_batch_has_not_happened(store: RunStore) -> None:
    """The driver is killed after every file of batch 1, but before the rename of its manifest."""
    first = commit(store, 0, [B[0]], [R[0]])
    commit(store, 1, [B[1]], [R[1]], tidy=False)
    manifest = store.log.folder / "000001.json"
    manifest.rename(store.log.folder / ".000001.json.tmp")
    (store.published.results / R[1]).rename(store.published.new / R[1])
    (store.published.sink_log.folder / "1").unlink()
    again = RunStore(store.path)
    assert (again.last_state(), again.log.committed_batches()) == (first, [0])
    again.remove_unnamed_files()
    assert names(store.blocks.folder) == [B[0]]
    assert results(store) == [R[0]]
    assert [Path(f).name for f in again.results.result_files()] == [R[0]]


def test_a_commit_that_was_not_tidied_holds(store: RunStore) -> None:
    """The driver is killed right after the rename. The older state and its files remain, without
    harm.
    """
    commit(store, 0, [B[0]], [R[0]])
    last = commit(store, 1, [B[1]], [R[1]], tidy=False)
    again = RunStore(store.path)
    again.remove_unnamed_files()
    assert again.last_state() == last
    assert names(store.blocks.folder) == [B[0], B[1]]
    assert results(store) == [R[0], R[1]]


def test_strays_of_killed_tasks_are_cleaned_and_nothing_else(store: RunStore) -> None:
    commit(store, 0, [B[0]], [R[0]])
    for folder in (
        store.blocks.folder,
        store.published.results,
        store.published.new,
        store.log.folder,
    ):
        for name in ("000001-0-0000dead-0.arrow", "000001-0-0000dead.parquet", "thesis.tex"):
            (folder / name).touch()
    (store.log.folder / "state-000001-0000dead.json").touch()
    (store.log.folder / ".000001.json.0000dead").touch()
    RunStore(store.path).remove_unnamed_files()
    assert names(store.blocks.folder) == [B[0], "thesis.tex"]
    assert results(store) == [R[0], "thesis.tex"]
    assert names(store.published.new) == ["thesis.tex"]
    assert [n for n in names(store.log.folder) if "dead" in n] == []
    assert "thesis.tex" in names(store.log.folder)


def test_results_of_a_task_that_came_second_go_with_a_commit(store: RunStore) -> None:
    """Speculation leaves them; they are removed with the sixteenth batch, not at the next start.

    Until then results have both names, because results/ is not synced to disk.
    """
    commit(store, 0, [B[0]], [R[0]])
    strays = [f"{batch:06d}-0-0000dead.parquet" for batch in (1, 16)]
    for name in (*strays, "thesis.parquet"):
        (store.published.new / name).touch()
    for batch in range(1, 15):
        commit(store, batch, [], [])
    assert names(store.published.new) == [R[0], *strays, "thesis.parquet"]
    commit(store, 15, [], [])
    assert names(store.published.new) == [strays[1], "thesis.parquet"]
    assert results(store) == [R[0]]


def test_blocks_that_cannot_be_removed_are_told_of_and_hold_nothing_up(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def dies(gone: list[Path]) -> None:
        raise OSError(f"{len(gone)} files are there")

    store.acquire_run()
    for batch in range(3):
        commit(store, batch, [B[batch]], [])
    monkeypatch.setattr("braid.storage.block_readers.remove_block_files", dies)
    last = commit(store, 3, [B[3]], [], tidy=False)
    store.remove_old_files(last, store.states.write_state(last))
    store.release_run()
    assert "1 files are there" in caplog.text and not store.lock.is_held()
    monkeypatch.undo()
    RunStore(store.path).remove_unnamed_files()
    assert names(store.blocks.folder) == [B[2], B[3]]


def test_a_commit_is_whole_or_absent(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    first = commit(store, 0, [B[0]], [R[0]])

    def dies(*_: Any, **__: Any) -> None:
        raise OSError("no space left")

    snapshot = store.states.write_state(state(1))
    monkeypatch.setattr("braid.util.file_system.os.fsync", dies)
    with pytest.raises(OSError, match="no space left"):
        store.commit_batch(1, snapshot, {}, [])
    assert (RunStore(store.path).last_state(), store.log.committed_batches()) == (first, [0])


def test_results_are_seen_after_their_manifest_only(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver is killed between the manifest and the move.

    The batch is committed, and a resumed run shows it.
    """
    commit(store, 0, [B[0]], [R[0]])

    def dies(*_: Any) -> None:
        raise OSError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("braid.storage.published_results.PublishedResults.publish_batch", dies)
        with pytest.raises(OSError, match="killed"):
            commit(store, 1, [B[1]], [R[1]])
    again = RunStore(store.path)
    assert (again.log.committed_batches(), results(again)) == ([0, 1], [R[0]])
    assert again.results.result_files() == [
        str(store.published.results / R[0]),
        str(store.published.new / R[1]),
    ]
    again.remove_unnamed_files()
    assert results(again) == [R[0], R[1]]
    assert again.results.result_files() == [
        str(store.published.results / R[0]),
        str(store.published.results / R[1]),
    ]


def test_events_are_kept_in_the_manifests(store: RunStore) -> None:
    store.commit_batch(
        0, store.states.write_state(state(0)), {}, [MigrationEnded(0, 1), RunEnded(0, "stopped")]
    )
    assert store.archive.committed_events() == [MigrationEnded(0, 1), RunEnded(0, "stopped")]


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    assert RunStore(tmp_path / "new").read_settings() is None
    assert RunStore(tmp_path).read_settings() is None
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ValueError, match="holds files but no run of Braid"):
        RunStore(tmp_path).read_settings()


def test_what_a_killed_start_leaves_is_a_new_folder(tmp_path: Path) -> None:
    RunStore(tmp_path).acquire_run()
    (tmp_path / ".run.json.1234").touch()
    assert RunStore(tmp_path).read_settings() is None


def test_one_process_at_a_time_holds_a_run(store: RunStore) -> None:
    store.acquire_run()
    with pytest.raises(RuntimeError, match="in use by a run that has not ended"):
        RunStore(store.path).acquire_run()
    store.release_run()
    other = RunStore(store.path)
    other.acquire_run()
    other.release_run()


def test_a_killed_process_holds_nothing(store: RunStore) -> None:
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    process = context.Process(target=_hold, args=(store.path, held), daemon=True)
    process.start()
    assert held.wait(60)
    with pytest.raises(RuntimeError):
        store.acquire_run()
    process.kill()
    process.join()
    store.acquire_run()
    store.release_run()


def _hold(path: Path, held: Any) -> None:
    store = RunStore(path)
    store.acquire_run()
    held.set()
    signal.pause()


@pytest.mark.parametrize("path", ["s3a://bucket/run", "hdfs://host:8020/run", "gs://b/r"])
def test_a_folder_of_another_file_system_is_refused(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not mistaken for a local folder of that name, as text or as a Path."""
    monkeypatch.chdir(tmp_path)
    for folder in (path, Path(path)):
        with pytest.raises(ValueError, match=r"is not a folder on this machine; a run needs one"):
            RunStore(folder)
    assert not [*tmp_path.iterdir()]


def test_a_folder_may_be_a_url_of_this_machine(tmp_path: Path) -> None:
    assert RunStore(f"file://{tmp_path}/a%20b").path == tmp_path / "a b"
    assert RunStore(f"file:{tmp_path}/x").path == tmp_path / "x"
    assert RunStore(tmp_path / "5:30/run").path == tmp_path / "5:30/run"


def test_a_run_folder_that_is_made_is_its_users_alone(tmp_path: Path) -> None:
    """An existing folder keeps its mode, and parent folders get the default mode."""
    (theirs := tmp_path / "theirs").mkdir(0o755)
    theirs.chmod(0o750)
    for path in (tmp_path / "above" / "run", theirs):
        store = RunStore(path)
        store.acquire_run()
        store.release_run()
    assert (tmp_path / "above" / "run").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "above").stat().st_mode & 0o777 == 0o777 & ~umask()
    assert theirs.stat().st_mode & 0o777 == 0o750


def umask() -> int:
    found = os.umask(0)
    os.umask(found)
    return found
