"""A run in an object store is as exact as one in a folder, at every point of a driver's end."""

from __future__ import annotations

import gc
import os
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import object_store_driver
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid import StreamJoin
from braid.errors import DamagedRunError
from braid.execution import engine
from braid.execution.thread_executor import ThreadExecutor
from braid.health import read_health
from braid.join_run import JoinRun
from braid.papers.shedding.shed import Shed
from braid.run_inspector import inspect_run
from braid.storage import durable_files, entry_bundles, task_file_access
from braid.storage.integrity import check_run, repair_run
from braid.storage.log_entries import DriverIdentity
from braid.storage.object_store import ObjectStore, open_object_store
from braid.storage.result_retention import RetentionPolicy
from braid.storage.run_medium import LocalMedium
from braid.storage.run_store import open_store
from buckets import check_end, check_no_leftovers, start_run
from object_store_driver import STREAMS
from oracle import compute_expected, describe_difference, make_tables, result_ids, wait_until
from world.machine import URL, Machine, kill_before


@pytest.fixture(params=["memory", "file", "s3"])
def there(request: pytest.FixtureRequest, tmp_path: Path, url: str) -> ObjectStore:
    if request.param == "memory":
        return ObjectStore(url)
    if request.param == "file":
        return ObjectStore(tmp_path.as_uri())
    return ObjectStore(f"{request.getfixturevalue('seaweed')}/{uuid.uuid4().hex}")


def test_what_a_run_needs_of_a_bucket(there: ObjectStore, tmp_path: Path) -> None:
    there.check_conditional_put()
    assert there.list_objects() == {}
    body = os.urandom(3 << 20)
    (tmp_path / "file").write_bytes(body)
    there.put_object("a/1", tmp_path / "file")
    there.put_object("a/1", body[:7])
    there.put_object("a/2", tmp_path / "file", new=True)
    there.put_object("ab", b"")
    assert (there.get_object("a/1"), there.list_objects("a")) == (
        body[:7],
        {"a/1": 7, "a/2": len(body)},
    )
    there.download("a/2", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == body
    assert (there.object_size("a/2"), there.object_size("a/3")) == (len(body), -1)
    for ask in (there.get_object, lambda name: there.download(name, tmp_path / "none")):
        with pytest.raises(FileNotFoundError, match=rf"^{there.url}/a/3 is missing$"):
            ask("a/3")
    with pytest.raises(FileExistsError, match="ab is there"):
        there.put_object("ab", b"x", new=True)
    there.delete_objects(["a/1", "a/2", "a/3"])
    assert [n for n in there.list_objects() if n not in ("file", "copy")] == ["ab"]
    assert not [f for f in tmp_path.iterdir() if f.name.startswith(".")]


def test_batches_are_delivered_once(url: str) -> None:
    """The next driver, with another mirror, knows what a finished driver delivered."""
    given = list[int]()

    def give(results: pa.Table, batch: int) -> None:
        if given == [0, 1]:
            given.append(-1)
            raise OSError("killed")
        given.append(batch)

    with pytest.raises(RuntimeError, match="killed"):
        start_run(url, foreachBatch=give).awaitTermination()
    check_end(StreamJoin.resume(url, STREAMS, foreachBatch=give))
    assert given == [0, 1, -1, 2, 3]


def test_the_trace_of_endless_streams_is_in_the_bucket(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The streams of tables count as endless ones. The next driver, with another cache, goes on."""
    trace_batch = engine.add_trace
    monkeypatch.setattr(engine, "add_trace", lambda *given: trace_batch(*given[:-1], [None, None]))
    bucket = open_object_store(url)
    run = start_run(url, trace="1 day", foreachBatch=lambda rows, batch: 1 // (batch < 2))
    with pytest.raises(RuntimeError, match="division"):
        run.awaitTermination()
    early = bucket.list_objects("trace")
    bucket.put_object(unnamed := "trace/000002-12345678-0.parquet", b"of a killed driver")
    check_end(StreamJoin.resume(url, STREAMS, trace="1 day", foreachBatch=lambda *_: None))
    names = bucket.list_objects("trace")
    assert len(early) < len(names) and early.keys() <= names.keys() and unnamed not in names
    store = open_store(url)
    store.read_settings()
    files = [*store.trace.list_committed()]
    assert {f"trace/{file.name}" for file in files} == names.keys()
    tables = [pq.read_table(path) for file in files if (path := store.trace.find_file(file))]
    keyed = sum(len(t) - t["k"].null_count for t in STREAMS.values())
    assert sum(map(len, tables)) == keyed and check_run(url)[0] == []
    bucket.delete_objects([f"trace/{files[0].name}"])
    again = open_store(url)
    again.read_settings()
    assert again.trace.find_file(files[0]) is None, "no result depends on it"
    download = ObjectStore.download

    def download_late(self: ObjectStore, name: str, path: Path) -> None:
        bucket.delete_objects([name])
        download(self, name, path)

    monkeypatch.setattr(ObjectStore, "download", download_late)
    assert again.trace.find_file(files[1]) is None, "its driver has just removed it"


def test_a_traced_file_that_goes_while_it_is_read_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path)
    rows = pa.record_batch({"k": [1, 2]})
    (file,) = store.trace.write_batch(0, {0: [rows]}, RetentionPolicy(max_age=1)).files
    assert store.trace.find_file(file) == store.trace.folder / file.name
    check = durable_files.check_file

    def check_late(path: Path, *given: Any) -> None:
        path.unlink()
        check(path, *given)

    monkeypatch.setattr(durable_files, "check_file", check_late)
    assert store.trace.find_file(file) is None


def test_a_bucket_keeps_no_more_of_the_trace_than_it_is_to(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace_batch = engine.add_trace
    monkeypatch.setattr(engine, "add_trace", lambda *given: trace_batch(*given[:-1], [None, None]))
    check_end(start_run(url, trace="1 B"))
    assert {n[:12] for n in open_object_store(url).list_objects("trace")} == {"trace/000003"}


def test_what_was_brought_goes(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreachBatch function has one batch at a time here, and an abandoned run leaves no
    files.
    """
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    here = dict[int, int]()

    def give(results: pa.Table, batch: int) -> None:
        here[batch] = len([*tmp_path.glob("braid-run-cache-*/**/*.parquet")])

    run = start_run(url, foreachBatch=give)
    assert run.awaitTermination()
    names = open_object_store(url).list_objects("results")
    assert here == {n: sum(f"/{n:06d}-" in name for name in names) for n in range(4)}
    assert sum(here.values()) == len(names) > max(here.values()) > 0
    check_end(run)
    inspect_run(url)
    del run

    def has_ended() -> bool:
        gc.collect()  # its thread may hold it a little longer
        return not [*tmp_path.glob("braid-run-cache-*")]

    wait_until(has_ended, "end of the local caches")
    check_end(StreamJoin.resume(url, STREAMS))


@pytest.mark.parametrize("at_once", [1, 2])
def test_an_older_state_is_not_needed(url: str, at_once: int) -> None:
    """Only the last one is."""
    assert start_run(url).awaitTermination()
    states = sorted(
        name for name in open_object_store(url).list_objects("commits") if "state-" in name
    )
    assert len(states) == 2
    open_object_store(url).delete_objects(states[:at_once])
    if at_once == 2:
        with pytest.raises(DamagedRunError, match=rf"{states[1]} is missing"):
            StreamJoin.resume(url, STREAMS)
    else:
        check_end(StreamJoin.resume(url, STREAMS))


def test_of_several_that_put_a_new_object_one_does(there: ObjectStore) -> None:
    def try_put(n: int) -> bool:
        try:
            there.put_object("1", b"%d" % n, new=True)
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        won = [*pool.map(try_put, range(4))]
    assert won.count(True) == 1 and there.get_object("1") == b"%d" % won.index(True)


def test_a_store_that_ignores_the_condition_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = obstore.put
    monkeypatch.setattr(obstore, "put", lambda *given, mode=None, **more: real(*given, **more))
    with pytest.raises(
        ValueError, match=r"overwrites an object that exists in spite of If-None-Match"
    ):
        start_run(url)
    assert open_object_store(url).list_objects() == {}


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("hdfs://host:8020/run", "cannot be opened: .* a run needs a folder, or a bucket as s3://"),
        ("s3://", "cannot be opened"),
        ("nonsense://a/b", "cannot be opened"),
    ],
)
def test_what_is_no_bucket_is_refused(path: str, sentence: str) -> None:
    for begin in (start_run, lambda path: StreamJoin.resume(path, STREAMS), inspect_run, check_run):
        with pytest.raises(ValueError, match=sentence) as said:
            begin(path)
        assert "\n" not in str(said.value)


def test_a_bucket_of_something_else_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="holds no run that could be resumed"):
        StreamJoin.resume(url, STREAMS)
    open_object_store(url).put_object("thesis.tex", b"")
    with pytest.raises(ValueError, match=r"holds files but no run of Braid, as thesis.tex"):
        start_run(url)
    assert [*open_object_store(url).list_objects()] == ["thesis.tex"]


def test_a_run_of_another_query_is_refused(url: str) -> None:
    check_end(start_run(url))
    with pytest.raises(ValueError, match=f"{url} holds a run of another query: on is"):
        StreamJoin(STREAMS, "a.k < b.k", object_store_driver.Scatter(), check=True).start(url)


def test_what_a_folder_alone_can_do_says_so(url: str) -> None:
    with pytest.raises(ValueError, match="does not tell whether somebody runs what is in it"):
        read_health(url)
    with pytest.raises(ValueError, match="only a run in a folder can be repaired"):
        repair_run(url, -1)
    with pytest.raises(ValueError, match="is not a folder on this machine"):
        open_store(Path(url))


def test_a_run_is_looked_into_from_elsewhere(url: str) -> None:
    run = start_run(url)
    check_end(run)
    assert run.health().committed_batches == 4 and run.health().state == "completed"
    assert url in repr(run) and url in run._repr_html_()
    assert "batches 1 to 4 committed: 53 of a and 55 of b in" in inspect_run(url)
    faults, has = check_run(url)
    assert faults == [] and has.startswith("4 batches, ")
    names = open_object_store(url).list_objects()
    block, *_ = [n for n in names if n.startswith("blocks/")]
    result = next(n for n in names if n.startswith("results/000002"))
    open_object_store(url).put_object(block, b"x" * names[block])
    open_object_store(url).delete_objects([result])
    one, two = check_run(url)[0]
    assert one == f"{url}/{result} is missing"
    assert two.startswith(f"{url}/{block} is damaged: its checksum is")
    with pytest.raises(DamagedRunError, match=f"^{url}/{result} is missing$"):
        StreamJoin.resume(url, STREAMS)


def test_workers_have_folders_of_their_own(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on other machines, which do not see the driver's: they fetch each file once."""
    real, fetch = ThreadExecutor.execute_batch, ObjectStore.download
    brought: list[str] = []

    def elsewhere(executor: ThreadExecutor, frame: Any, batch: Any) -> Any:
        spec = replace(batch.spec, folder=str(tmp_path / "on another machine"))
        done = real(executor, frame, replace(batch, spec=spec))
        own = task_file_access._make_process_folder(url)
        assert own.stat().st_mode & 0o777 == 0o700
        named = {f"{batch.batch:06d}", *(name[:6] for name in batch.files)}
        assert {f.name[:6] for f in (own / "blocks").iterdir()} <= named
        assert not [*(own / "staging").iterdir()]
        return done

    def counted(there: ObjectStore, name: str, path: Path) -> None:
        brought.append(name)
        fetch(there, name, path)

    monkeypatch.setattr(ThreadExecutor, "execute_batch", elsewhere)
    run = start_run(url, pace=0.02)
    wait_until(lambda: run.status["batch"] >= 2, "two batches")
    run.stop()
    task_file_access._make_process_folder.cache_clear()  # workers of an earlier run
    monkeypatch.setattr(ObjectStore, "download", counted)
    check_end(StreamJoin.resume(url, STREAMS))
    blocks = [name for name in brought if name.startswith("blocks/")]
    assert len(blocks) == len({*blocks}) and (blocks or run.status["batch"] == 4)


def test_a_budget_that_was_adjusted_stays(url: str) -> None:
    join = StreamJoin(
        STREAMS, object_store_driver.ON, object_store_driver.Scatter(), shed=Shed(fraction=0.5)
    )
    run = join.start(url, batches="batch", pace=0.1)
    run.adjust(fraction=1.0)
    run.stop()
    again = StreamJoin.resume(url, STREAMS)
    assert again._settings["shedding_budget"] == {"kind": "fraction", "amount": 1.0}
    assert again.awaitTermination()
    check_no_leftovers(url)


def test_what_a_worker_has_put_elsewhere_is_not_committed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a worker whose environment names another store."""
    real = ThreadExecutor.execute_batch

    def elsewhere(executor: ThreadExecutor, frame: Any, batch: Any) -> Any:
        done = real(executor, frame, batch)
        if batch.batch == 2:
            names = [
                n for n in open_object_store(url).list_objects() if n.startswith("results/000002")
            ]
            open_object_store(url).delete_objects(names)
        return done

    monkeypatch.setattr(ThreadExecutor, "execute_batch", elsewhere)
    with pytest.raises(RuntimeError, match=r"has written results/000002.* all workers must share"):
        start_run(url).awaitTermination()
    monkeypatch.setattr(ThreadExecutor, "execute_batch", real)
    check_end(StreamJoin.resume(url, STREAMS))


def test_local_runs_know_no_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not even import the library that opens one."""
    for name in ("obstore", "obstore.exceptions", "obstore.store"):
        monkeypatch.setitem(sys.modules, name, None)
    run = start_run(str(tmp_path / "run"))
    check_end(run)
    assert type(run.store.medium) is LocalMedium
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'braid-joins\[cloud\]' brings it"):
        ObjectStore("s3://bucket/run")


def test_a_long_run_is_rolled_up_in_its_mirror_alone(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bucket keeps every entry, and bundles of them."""
    monkeypatch.setattr("braid.storage.log_checkpointer._EVERY", 3)
    monkeypatch.setattr(entry_bundles, "_TOGETHER", 5)
    streams = make_tables("ab", 60, seed=91, batches=12)
    run = StreamJoin(
        streams, object_store_driver.ON, object_store_driver.Scatter(), check=True
    ).start(url, batches="batch")
    assert run.awaitTermination() and run.store.log.checkpoint is not None
    assert len(list_entries(url)) == 13 and list_bundles(url) == [
        "entries-000000-000004.jsonl",
        "entries-000005-000009.jsonl",
    ]
    again = StreamJoin.resume(url, streams)
    assert again.awaitTermination()
    assert (
        describe_difference(
            result_ids(again.results()), compute_expected(streams, object_store_driver.ON)
        )
        == ""
    )
    rows = [again.results_since(n)[0].num_rows for n in (0, 9)]
    assert rows[0] > rows[1] > 0
    check_no_leftovers(url)


def list_entries(url: str) -> list[str]:
    return [n for n in open_object_store(url).list_objects("commits") if n.startswith("commits/0")]


def list_bundles(url: str) -> list[str]:
    return sorted(
        n.split("/")[1] for n in open_object_store(url).list_objects("commits") if "/entries-" in n
    )


@pytest.mark.parametrize("lost", ["none", "killed before", "damaged", "deleted"])
def test_to_open_takes_a_request_for_many_entries(
    lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or one for each if their bundle is missing or incomplete; the next driver writes it."""
    monkeypatch.setattr(entry_bundles, "_TOGETHER", 5)
    streams = make_tables("ab", 60, seed=91, batches=12)
    how = StreamJoin(streams, object_store_driver.ON, object_store_driver.Scatter(), check=True)
    machine, name = Machine(), "commits/entries-000005-000009.jsonl"

    def begin() -> None:
        assert how.start(URL, batches="batch").awaitTermination()

    kill_before(machine, begin, f"put {name}" if lost == "killed before" else "never")
    with machine.simulated():
        if lost == "damaged":
            open_object_store(URL).put_object(
                name, open_object_store(URL).get_object(name)[:-30] + b"x" * 30
            )
        elif lost == "deleted":
            open_object_store(URL).delete_objects([name])
        del machine.steps[:]
        reader = open_store(URL)
        reader.read_settings()
        assert reader.log.committed_batches() == [*range(9 if lost == "killed before" else 12)]
        fetched = [ask for ask in machine.requests if ask.startswith("get commits/0")]
        assert len(fetched) == {"none": 3, "killed before": 5}.get(lost, 8)
        again = how.start(URL, batches="batch")
        assert again.awaitTermination()
        assert (
            describe_difference(
                result_ids(again.results()), compute_expected(streams, object_store_driver.ON)
            )
            == ""
        )
        bundles = list_bundles(URL)
        assert bundles == ["entries-000000-000004.jsonl", "entries-000005-000009.jsonl"]
        for bundle in bundles if lost != "damaged" else []:
            first = int(bundle.split("-")[1])
            bodies = [
                open_object_store(URL).get_object(f"commits/{n:06d}.json")
                for n in range(first, first + 5)
            ]
            assert open_object_store(URL).get_object(f"commits/{bundle}") == b"\n".join(bodies)


def test_a_bundle_that_is_refused_fails_no_commit(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The entry exists, and the bundle is written after a later one."""
    monkeypatch.setattr(entry_bundles, "_TOGETHER", 2)
    real, refused = ObjectStore.put_object, [2]

    def put(there: ObjectStore, name: str, body: Any, new: bool = False) -> None:
        if "/entries-" in name and refused[0]:
            refused[0] -= 1
            raise OSError(f"{there.url}/{name}: the store is busy")
        real(there, name, body, new)

    monkeypatch.setattr(ObjectStore, "put_object", put)
    store = open_store(url)
    store.create_run({})
    for n in range(1, 5):
        store._append_entry(driver=DriverIdentity.from_environment())
        assert len(list_entries(url)) == n
        assert len(list_bundles(url)) == (2 if n == 4 else 0)
        assert len(caplog.records) == min(n - 1, 2)
    assert "entries-000000-000001.jsonl: the store is busy; the run goes on" in caplog.text
    assert [r.levelname for r in caplog.records] == ["WARNING"] * 2


def test_what_foreachbatch_is_given_keeps_no_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's frames read files that stay after results are requested, and not before."""

    class Run(JoinRun):
        _schema = _spark = None

        def __init__(self, store: Any) -> None:
            self.store = store

        def _next_result_batch(self, batch: int) -> int:
            return batch + 1

    stayed = list[int]()
    store = SimpleNamespace(
        url="",
        results=SimpleNamespace(
            temporary_result_files=lambda *given: ["lent"],
            result_files=lambda *given, **named: ["whole"],
        ),
        keep_until_exit=lambda: stayed.append(1),
    )
    monkeypatch.setattr("braid.join_run.read_results", lambda spark, schema, files: files)
    run: Any = Run(store)
    assert run._read_batch_results(3) == ["lent"] and not stayed
    assert run.results() == ["whole"] and len(stayed) == 1
    assert run.results_since(3) == (["whole"], 4) and len(stayed) == 2
