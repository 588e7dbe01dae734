"""The folder of a run: a batch exists once its manifest does, and nothing else does."""

from __future__ import annotations

import json
import multiprocessing
import signal
from pathlib import Path
from typing import Any

import pytest
from braid.core.events import RunEnded
from braid.core.plan import Block
from braid.engine.store import Slot, State, Store
from braid.papers.theta.events import MigrationEnded
from hypothesis import given
from hypothesis import strategies as st

NUMBER = st.integers(0, 2**40)
TIME = st.integers(-(2**62), 2**62)
KEYS = st.tuples(st.integers(0, 64), st.integers(0, 64))


@st.composite
def states(draw: st.DrawFn) -> State:
    blocks = {}
    for i in draw(st.sets(NUMBER, max_size=6)):
        hosts = tuple(sorted(draw(st.sets(st.integers(0, 63), min_size=1, max_size=4))))
        span = draw(st.one_of(st.none(), st.tuples(TIME, TIME)))
        blocks[i] = Block(
            i,
            draw(st.integers(0, 2)),
            draw(KEYS),
            draw(NUMBER),
            hosts,
            draw(NUMBER),
            draw(NUMBER),
            span,
        )
    files = st.sampled_from(["000001-0-aa-0.arrow", "000001-1-bb-0.arrow", "000002-0-cc-1.arrow"])
    slot = st.builds(Slot, files, st.integers(0, 9), st.one_of(st.none(), KEYS))
    slots = {(b.id, h): draw(slot) for b in blocks.values() for h in b.hosts}
    three = st.lists(NUMBER, min_size=3, max_size=3)
    plain = st.one_of(st.none(), st.booleans(), NUMBER, st.text())
    policy = draw(
        st.recursive(plain, lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=5)
    )
    return State(
        draw(NUMBER),
        draw(NUMBER),
        blocks,
        slots,
        draw(NUMBER),
        policy,
        draw(three),
        draw(three),
        draw(three),
        draw(st.lists(st.one_of(st.none(), TIME), min_size=3, max_size=3)),
        draw(st.lists(NUMBER)),
        [[1, 2]],
    )


@given(states())
def test_a_state_is_read_back_as_it_was_written(state: State) -> None:
    assert State.from_json(json.loads(json.dumps(state.to_json()))) == state


def state(batch: int, *files: str) -> State:
    """A state whose only block has a replica in each of the files."""
    blocks = {1: Block(1, 0, (0, 8), 0, tuple(range(len(files))), 5, 40, (0, 9))} if files else {}
    slots = {(1, h): Slot(f, 0) for h, f in enumerate(files)}
    zeros = [0, 0]
    return State(batch, batch, blocks, slots, 2, {"told": True}, zeros, zeros, zeros, [None, 3])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "run")
    store.create({"on": "a.k = b.k"})
    return store


def commit(
    store: Store, batch: int, blocks: list[str], results: list[str], tidy: bool = True
) -> State:
    """A batch as the engine makes it: tasks write files, then the driver commits."""
    for folder, names in ((store.blocks, blocks), (store.output.new, results)):
        for name in names:
            (folder / name).touch()
    made = state(batch, *blocks)
    snapshot = store.snapshot(made)
    store.commit(batch, snapshot, results, [MigrationEnded(batch, 0)])
    if tidy:
        store.tidy(made, snapshot)
    return made


def names(folder: Path) -> list[str]:
    return sorted(f.name for f in folder.iterdir())


def results(store: Store) -> list[str]:
    """What a reader of plain files sees."""
    return sorted(f.name for f in store.results.iterdir() if f.is_file())


def test_before_the_first_commit_there_is_nothing(store: Store) -> None:
    assert (store.state(), store.committed(), store.result_files(), store.history()) == (
        None,
        [],
        [],
        [],
    )


def test_the_last_manifest_says_what_exists(store: Store) -> None:
    commit(store, 0, ["b0"], ["r0"])
    last = commit(store, 1, ["b1"], ["r1", "r1x"])
    again = Store(store.path)
    assert again.state() == last
    assert [Path(f).name for f in again.result_files()] == ["r0", "r1", "r1x"]
    assert again.history() == [MigrationEnded(0, 0), MigrationEnded(1, 0)]
    assert names(store.blocks) == ["b1"]
    assert len(list(store.commits.glob("state-*"))) == 1


def test_without_its_manifest_a_batch_has_not_happened(store: Store) -> None:
    """Killed after every file of batch 1 was written, but for the rename of its manifest."""
    first = commit(store, 0, ["b0"], ["r0"])
    commit(store, 1, ["b1"], ["r1"], tidy=False)
    manifest = store.commits / "000001.json"
    manifest.rename(store.commits / ".000001.json.tmp")
    (store.results / "r1").rename(store.output.new / "r1")
    (store.output.log / "1").unlink()
    again = Store(store.path)
    assert (again.state(), again.committed()) == (first, [0])
    again.clean()
    assert names(store.blocks) == ["b0"]
    assert results(store) == ["r0"]
    assert [Path(f).name for f in again.result_files()] == ["r0"]


def test_a_commit_that_was_not_tidied_holds(store: Store) -> None:
    """Killed right after the rename: the older state and its files are still there, and no harm."""
    commit(store, 0, ["b0"], ["r0"])
    last = commit(store, 1, ["b1"], ["r1"], tidy=False)
    again = Store(store.path)
    again.clean()
    assert again.state() == last
    assert names(store.blocks) == ["b1"]
    assert results(store) == ["r0", "r1"]


def test_strays_of_killed_tasks_are_cleaned_and_nothing_else(store: Store) -> None:
    commit(store, 0, ["b0"], ["r0"])
    for folder in (store.blocks, store.results, store.output.new):
        (folder / "000001-0-dead.tmp").touch()
    store.clean()
    assert (names(store.blocks), results(store)) == (["b0"], ["r0"])
    assert names(store.output.new) == []


def test_a_commit_is_whole_or_absent(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first = commit(store, 0, ["b0"], ["r0"])

    def dies(*_: Any, **__: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("braid.engine.store.json.dump", dies)
    with pytest.raises(OSError, match="no space left"):
        store.commit(1, "state-000001-x.json", [], [])
    assert (Store(store.path).state(), store.committed()) == (first, [0])


def test_results_are_seen_after_their_manifest_only(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the manifest and the move: the batch has happened, and a resumed run shows
    it.
    """
    commit(store, 0, ["b0"], ["r0"])

    def dies(*_: Any) -> None:
        raise OSError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("braid.engine.output.Output.publish", dies)
        with pytest.raises(OSError, match="killed"):
            commit(store, 1, ["b1"], ["r1"])
    again = Store(store.path)
    assert (again.committed(), results(again)) == ([0, 1], ["r0"])
    assert again.result_files() == [str(store.results / "r0"), str(store.output.new / "r1")]
    again.clean()
    assert results(again) == ["r0", "r1"]
    assert again.result_files() == [str(store.results / "r0"), str(store.results / "r1")]


def test_events_are_kept_in_the_manifests(store: Store) -> None:
    store.commit(0, store.snapshot(state(0)), [], [MigrationEnded(0, 1), RunEnded(0, "stopped")])
    assert store.history() == [MigrationEnded(0, 1), RunEnded(0, "stopped")]


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    assert Store(tmp_path / "new").query() is None
    assert Store(tmp_path).query() is None
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ValueError, match="holds files but no run of Braid"):
        Store(tmp_path).query()


def test_what_a_killed_start_leaves_is_a_new_folder(tmp_path: Path) -> None:
    Store(tmp_path).acquire()
    (tmp_path / ".run.json.1234").touch()
    assert Store(tmp_path).query() is None


def test_one_process_at_a_time_holds_a_run(store: Store) -> None:
    store.acquire()
    with pytest.raises(RuntimeError, match="in use by a run that has not ended"):
        Store(store.path).acquire()
    store.release()
    other = Store(store.path)
    other.acquire()
    other.release()


def test_a_killed_process_holds_nothing(store: Store) -> None:
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    process = context.Process(target=_hold, args=(store.path, held), daemon=True)
    process.start()
    assert held.wait(60)
    with pytest.raises(RuntimeError):
        store.acquire()
    process.kill()
    process.join()
    store.acquire()
    store.release()


def _hold(path: Path, held: Any) -> None:
    store = Store(path)
    store.acquire()
    held.set()
    signal.pause()
