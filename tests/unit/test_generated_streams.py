"""Generated streams: their tuples follow from settings, which change while a run reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid import GeneratedStream, QueryHub, SharedJoin, StreamJoin
from braid.answer_check import check_answers
from braid.core.run_events import BatchCommitted
from braid.core.touch_events import SettingChanged
from braid.papers.baselines.hash_partition import HashPartition
from braid.papers.theta.grid import AdaptiveGrid
from braid.run_touches import apply_touch, list_touches
from braid.storage.static_input_copy import InputSnapshot
from braid.touch_costs import BatchPace, compute_equal_share
from braid_widgets.cockpit.view import Cockpit
from oracle import compute_expected, describe_difference, result_ids

ON = "a.k = b.k"


def make_streams() -> dict[str, GeneratedStream]:
    return {"a": GeneratedStream(rate=30, seed=1), "b": GeneratedStream(rate=40, seed=2)}


def run_changed(
    folder: Path, changes: Mapping[int, Callable[[Any], None]], placement: Any = None
) -> Any:
    """Run a join and change it after these batches. Return the ended run."""
    started = Future[Any]()

    def give(results: pa.Table, batch: int) -> None:
        if batch in changes:
            changes[batch](started.result(60))

    join = StreamJoin(make_streams(), ON, placement or AdaptiveGrid(4), check=True)
    run = join.start(folder, batches=6, foreachBatch=give)
    started.set_result(run)
    run.awaitTermination()
    return run


def read_rows(run: Any) -> dict[str, pa.Table]:
    """Return the input of a run, from its folder."""
    read = run.store.input.read_table_batch
    return {a: pa.concat_tables([read(a, n) for n in range(6)]) for a in make_streams()}


def change_all(run: Any) -> None:
    run.adjust(rate=90, stream="b")
    run.adjust(skew=2.0)


def test_a_changed_run_joins_what_its_folder_makes_again(tmp_path: Path) -> None:
    first, second = (run_changed(tmp_path / name, {1: change_all}) for name in "pq")
    rows = read_rows(first)
    assert rows == read_rows(second), "the tuples follow from seed and changes"
    found = result_ids(first.results())
    assert not (wrong := describe_difference(found, compute_expected(rows, ON))), wrong
    commits = [e for e in first.events() if isinstance(e, BatchCommitted)]
    assert [e.received_tuples for e in commits[:6]] == [(30, 40)] * 2 + [(30, 90)] * 4
    changed = [(e.batch, e.name, e.before, e.after) for e in first.events()[:] if is_change(e)]
    assert changed == [
        (2, "rate of b", 40, 90),
        (2, "skew of a", 0, 2.0),
        (2, "skew of b", 0, 2.0),
    ]
    flags = Cockpit(first.events()).page["annotations"]
    (flag,) = [each for each in flags if "user" in each["text"]]
    assert (flag["batch"], flag["short"]) == (3, "rate of b 90")
    assert "sets skew of a from 0 to 2" in flag["text"]
    assert rows["b"]["id"].to_pylist() == [*range(40 * 2 + 90 * 4)]
    assert check_answers(first.store.path).is_right
    asked = first.why({"a": "id < 20", "b": "id < 20"}).pairs
    some = {pair.tuples: pair.verdict for pair in asked}
    joined = {(f"a id {a}", f"b id {b}") for a, b in found if max(a, b) < 20}
    assert {(*(fact.label for fact in t),) for t, v in some.items() if v == "found"} == joined
    assert len(some) == 400 and {*some.values()} == {"found", "condition"}


def is_change(event: Any) -> bool:
    return isinstance(event, SettingChanged)


def test_a_change_survives_the_process_that_made_it(tmp_path: Path) -> None:
    """It dies after the change and before the batch; the resumed run has the rows of one run."""

    def change_and_die(run: Any) -> None:
        change_all(run)
        raise InterruptedError("the power goes")

    with pytest.raises(RuntimeError, match="the power goes"):
        run_changed(tmp_path / "run", {1: change_and_die})
    resumed = run_changed(tmp_path / "run", {})
    whole = run_changed(tmp_path / "whole", {1: change_all})
    assert read_rows(resumed) == read_rows(whole)
    assert result_ids(resumed.results()) == result_ids(whole.results())
    kept = [
        [(e.batch, e.name, e.after) for e in r.events() if is_change(e)] for r in (resumed, whole)
    ]
    assert sorted(kept[0]) == sorted(kept[1]), "each change is reported though the process died"


def test_the_cockpit_changes_streams_at_a_modelled_cost(tmp_path: Path) -> None:
    offered: list[dict[str, Any]] = []

    def touch(run: Any) -> None:
        commits = [e for e in run.events() if isinstance(e, BatchCommitted)]
        offered.extend(dict(each) for each in list_touches(run, commits[-1]))
        request = {"name": "rate of a", "selected": "", "value": "60"}
        assert apply_touch(run, request) == "Asked for; it acts with the next batch."
        with pytest.raises(ValueError, match="skew is 'much'; it is a number from 0 to 3"):
            apply_touch(run, {"name": "skew of b", "value": "much"})

    run = run_changed(tmp_path / "run", {2: touch}, HashPartition(2))
    for stream, high in (
        (GeneratedStream(30, profile=(1, 200)), 5_000),
        (GeneratedStream(90_000), 90_000),
    ):
        state = SimpleNamespace(
            adjustable_settings={"rate of a": stream.rate},
            reads_ahead=False,
            store=SimpleNamespace(
                input=SimpleNamespace(generated={"a": stream}),
                events=SimpleNamespace(recent_events=tuple),
            ),
        )
        assert [each["high"] for each in list_touches(state, None)] == [high]
    by_name = {each["name"]: each for each in offered}
    assert {n: e["value"] for n, e in by_name.items() if " of " in n} == {
        "rate of a": "30",
        "rate of b": "40",
        "skew of a": "0",
        "skew of b": "0",
    }
    rate, skew = by_name["rate of a"], by_name["skew of b"]
    assert rate["label"] == "Set rows in a batch of a"
    assert "(modelled); acts with the next batch" in rate["cost"]
    assert [point[:2] for point in rate["curve"]] == [[0, 40], [20_000, 20_040]]
    assert skew["curve"][0][0] == 0 and skew["curve"][-1][0] == 3
    commits = [e for e in run.events() if isinstance(e, BatchCommitted)]
    assert commits[3].received_tuples == (60, 40)
    mean = np.mean([e.results for e in commits[:3]])
    assert skew["curve"][0][1] == pytest.approx(mean), "as it is now"
    assert run.adjustable_settings["rate of a"] == 60


def test_the_model_of_skew_counts_pairs_of_equal_keys() -> None:
    streams = [GeneratedStream(3000, skew=z, keys=20, seed=s) for s, z in ((1, 0.5), (2, 1.5))]
    counts = [Counter(s.make_batch(0)["k"].to_pylist()) for s in streams]
    pairs = sum(n * counts[1][k] for k, n in counts[0].items())
    assert compute_equal_share((20, 0.5), (20, 1.5)) == pytest.approx(pairs / 3000**2, rel=0.05)
    assert compute_equal_share((20, 0.0), (20, 3.0)) == pytest.approx(1 / 20)


def test_seconds_follow_from_what_batches_took() -> None:
    def commit(rows: int, seconds: float) -> Any:
        return BatchCommitted(
            0, (rows, 0), (0, 0), (0, 0), 8, {"total": seconds, "kernels": 0.25}, (), (), ()
        )

    pace = BatchPace.measure([commit(n, 0.5 + 0.001 * n) for n in (100, 200, 400)])
    assert pace[:3] == pytest.approx((0.5, 0.001, 0.25))
    even = BatchPace.measure([commit(100, 0.5)] * 3)
    assert even[:2] == pytest.approx((0.0, 0.005)), "each row has its share"
    assert BatchPace.measure([]) == (0, 0, 0, 0, 0)


def test_a_stream_has_the_settings_of_each_batch() -> None:
    stream = GeneratedStream(10, keys=5, profile=(1, 0, 0.01), seconds=2, seed=3)
    assert stream.count_tuples(4).tolist() == [10, 0, 1, 10]
    later = stream.with_settings(2, rate=300).with_settings(2, skew=4)
    assert later.count_tuples(4).tolist() == [10, 0, 3, 300]
    batch = later.make_batch(3)
    assert batch["id"].to_pylist() == [*range(13, 313)]
    times = (
        batch["ts"].cast(pa.int64()).to_numpy() - stream.make_batch(0)["ts"][0].value // 2e6 * 2e6
    )
    assert (np.diff(times) >= 0).all() and 6e6 <= times[0] <= times[-1] < 8e6
    assert (
        Counter(batch["k"].to_pylist())[0]
        > 250
        > 100
        > Counter(stream.make_batch(3)["k"].to_pylist())[0]
    )
    together = later.make_batches(40)["id"].to_pylist()
    assert together == [*range(later.count_tuples(40).sum())]
    assert stream.make_batch(1).num_rows == 0 and stream.make_batch(0) == later.make_batch(0)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rate": -1}, "rate is -1; it is a number from 0 to 1e"),
        ({"rate": True}, "rate is True"),
        ({"skew": float("nan")}, "skew is nan; it is a number from 0 to 4"),
        ({"keys": 0}, "keys is 0; it must be a whole number, 1 or more"),
        ({"profile": ()}, "a factor in profile is None"),
        ({"profile": 2.0}, "profile is 2.0; it must list numbers"),
        ({"changes": ((3, 1, 0),)}, "a change is"),
        ({"rate": 5000, "profile": (1, 1000)}, "1,000,000 tuples, so the rate is at most 1000"),
        ({"seconds": 0}, "seconds is 0; it is a number from 0.001"),
    ],
)
def test_a_setting_out_of_range_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        GeneratedStream(**settings)


def test_what_no_generated_stream_takes_is_refused(tmp_path: Path) -> None:
    streams = make_streams()
    join = StreamJoin(streams, ON, HashPartition(2))
    with pytest.raises(ValueError, match="the streams are generated; give their number"):
        join.start(tmp_path / "run", batches="id")
    for given, words in (
        (
            {"a": streams["a"], "b": pa.table({"k": [1]})},
            "stream a is generated, but b is not in the same way",
        ),
        ({"a": streams["a"]}, "a join needs two or more streams"),
    ):
        with pytest.raises(ValueError, match=words):
            StreamJoin(given, ON)
    with pytest.raises(ValueError, match="stream a is generated, which a hub does not take"):
        QueryHub(streams, time="ts")
    with pytest.raises(ValueError, match="put it in on"):
        StreamJoin(streams, ON, where={"a": "a.x > 1"})
    with pytest.raises(ValueError, match="a shared join is of Spark; give its on_spark"):
        SharedJoin(streams, ON, time="ts")

    def refuse(run: Any) -> None:
        for call, words in (
            ({"rate": 5, "stream": "c"}, "stream 'c' is none; those are a, b"),
            ({"rate": 10**7}, "rate is 10000000; it is a number from 0 to 1e"),
            ({"rate": 5, "skew": 1.0}, "one setting at a time"),
            ({"interval": 1, "stream": "a"}, "stream is 'a', which goes with rate or skew"),
        ):
            with pytest.raises(ValueError, match=words):
                run.adjust(**call)

    run = run_changed(tmp_path / "run", {0: refuse})
    assert not any(map(is_change, run.events()))
    with pytest.raises(RuntimeError, match="has ended"):
        run.adjust(skew=1)
    other = StreamJoin(
        {**streams, "b": GeneratedStream(41, seed=2)}, ON, AdaptiveGrid(4), check=True
    )
    with pytest.raises(ValueError, match="generated with rate 41 where the run in .* with 40"):
        other.start(tmp_path / "run")
    tables = {a: s.make_batches(2) for a, s in streams.items()}
    plain = StreamJoin(tables, ON, HashPartition(2)).start(tmp_path / "plain", batches=2)
    with pytest.raises(ValueError, match="rate is for a generated stream, and the run has none"):
        plain.adjust(rate=5)
    plain.awaitTermination()


def test_files_for_spark_are_made_when_their_batch_is_due(tmp_path: Path) -> None:
    """Until then, a change applies to them; once all are there, they are the input."""
    copied = InputSnapshot(tmp_path)
    copied.write_checksums(False, "ab", make_streams(), 4)
    copied.start_splitting(0, force=False)
    copied.wait_for_batch(0)
    assert copied.first_unmade_batch == 1
    changed = make_streams()["a"].with_settings(1, rate=5, skew=4)
    copied.change_generated({"a": changed}, force=False)
    copied.wait_for_batch(1)
    files = [tmp_path / "a" / f"{n:06d}.parquet" for n in range(4)]
    assert [pq.read_metadata(f).num_rows for f in files[:2]] == [30, 5]
    assert [f.stat().st_size for f in files[2:]] == [0, 0], "placeholders"
    times = [f.stat().st_mtime for f in files]
    copied.stop()
    resumed = InputSnapshot(tmp_path)
    resumed.start_splitting(2, force=False)
    resumed.wait_for_batch(2)
    resumed.check_files(2)
    assert resumed.stream_schema("a") == changed.make_batch(0).schema
    resumed.wait_until_split()
    resumed.stop()
    assert [pq.read_table(f) for f in files] == [changed.make_batch(n) for n in range(4)]
    assert [f.stat().st_mtime for f in files] == times and not resumed.generated
    resumed.check_files(deep=True)


def test_a_slow_stream_may_have_more_micro_batches_than_tuples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("braid.sources.stream_source._FEW_BATCHES", 2)
    streams = {a: GeneratedStream(rate=0.1, seed=n) for n, a in enumerate("ab")}
    run = StreamJoin(streams, ON, HashPartition(2)).start(tmp_path / "run", batches=25)
    run.awaitTermination()
    assert len([e for e in run.events() if isinstance(e, BatchCommitted)]) >= 25
