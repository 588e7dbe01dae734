"""A run in words: what `braid inspect` prints about this drawn run and simulated ones.

            batch 0        batch 1            batch 2           batch 3
r, host 0   block 0        (0 copied to 1)    0 and 2 -> 5      (5 dropped)
r, host 0                  block 2
s, host 1   block 1 -> 0   block 3            block 4           block 6
                           puts 0 off         settles (3, 0)
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from braid import run_inspector
from braid.cli import main
from braid.core import narrative
from braid.core.batch_report import HostMetrics
from braid.core.block_history_index import EventIndex
from braid.core.plan import Block, Derivation, Hop, Route, value_range
from braid.core.run_events import (
    BatchCommitted,
    BatchPlanned,
    Event,
    EventsTrimmed,
    RunEnded,
    RunStarted,
)
from braid.papers.baselines.hash_partition import HashPartition
from braid.papers.hotkeys.hot_keys import HotKeys
from braid.papers.hypercube.hypercube import HyperCube
from braid.papers.psp.ring import Ring
from braid.papers.theta.grid import AdaptiveGrid
from braid.papers.theta.run_events import MigrationEnded
from braid.simulation.simulator import simulate
from braid.stream_join import JoinRun, StreamJoin
from braid_lab.common.recordings import write_events


def block(id: int, stream: int, batch: int, *hosts: int, rows: int = 10) -> Block:
    return Block(id, stream, (0, 1), batch, hosts, rows)


def fresh(b: Block, probes: dict[int, tuple[int, ...]], *deferred: int) -> Route:
    paths = ((Hop(1 - b.stream, probes),),) if probes else ()
    return Route(b, paths, deferred)


def done(batch: int, blocks: tuple[Block, ...], dropped: tuple[int, ...] = ()) -> BatchCommitted:
    total = (10 * (batch + 1),) * 2
    hosts = (HostMetrics(stored_tuples=30), HostMetrics(stored_tuples=20))
    return BatchCommitted(batch, (10, 10), total, (20, 30), 7, {}, blocks, dropped, hosts)


R0, S1, R2, S3, S4 = (block(n, s, b, h) for n, s, b, h in [(0, 0, 0, 0), (1, 1, 0, 1), (2, 0, 1, 0), (3, 1, 1, 1), (4, 1, 2, 1)])  # fmt: skip
COPIED, R5, S6 = block(0, 0, 0, 0, 1), block(5, 0, 0, 0, rows=20), block(6, 1, 3, 1, rows=0)
DRAWN = [
    RunStarted(("r", "s"), "r.k = s.k", {"r": "5 seconds"}, "Drawn", {"hosts": 2}, 2, 1, 4),
    BatchPlanned(0, (fresh(R0, {}), fresh(S1, {0: (0,)}))),
    done(0, (R0, S1)),
    BatchPlanned(
        1,
        (fresh(R2, {1: (1,)}), fresh(S3, {0: (2,)}, 0)),
        (Derivation(COPIED, (0,), {1: 0}),),
    ),
    done(1, (COPIED, R2, S3)),
    BatchPlanned(
        2,
        (Route(COPIED, ((Hop(1, {1: (3,)}),),), is_fresh=False), fresh(S4, {0: (5,)})),
        (Derivation(R5, (0, 2), {0: 0}),),
        {0: (0, 1), 2: (0,)},
    ),
    MigrationEnded(2, 0),
    done(2, (R5, S4), (0, 2)),
    BatchPlanned(3, (fresh(S6, {}),), (), {5: (0,)}),
    done(3, (), (5,)),
    RunEnded(3, "stopped"),
]


@pytest.fixture
def drawn() -> EventIndex:
    return EventIndex.from_events(DRAWN)


def test_a_summary_says_what_is_joined_how_far_and_what_is_held(drawn: EventIndex) -> None:
    assert narrative.describe_run(drawn).splitlines() == [
        "r, s joined on r.k = s.k; windows: r 5 seconds",
        "placement: Drawn(hosts=2) on 2 hosts, measured",
        "batches 1 to 4 committed: 40 of r and 40 of s in, 28 results",
        "held: 3 blocks, 50 tuples; 50 with replicas, 30 on the fullest of 2 hosts",
        "stopped",
    ]


def test_the_plan_of_a_batch(drawn: EventIndex) -> None:
    assert narrative.describe_batch_plan(drawn, 1).splitlines() == [
        "batch 2: 10 of r, 10 of s in, 7 results",
        "  block 0 of r, keys [0, 1), of batch 1 is copied: host 1 reads host 0",
        "  fresh block 2 of r, keys [0, 1), of batch 2: stored on host 0",
        "    probes s block 1 on host 1",
        "  fresh block 3 of s, keys [0, 1), of batch 2: stored on host 1",
        "    probes r block 2 on host 0",
        "    defers block 0",
    ]
    two = narrative.describe_batch_plan(drawn, 2)
    assert "block 5 of r, keys [0, 1), of batch 1 is merged from blocks 0, 2 on host 0" in two
    assert "settles pending pairs" in two and "MigrationEnded: group 0" in two
    assert "given up" not in two, "what is merged is no drop"
    assert "block 5 is given up by host 0" in narrative.describe_batch_plan(drawn, 3)


def test_the_story_of_a_block(drawn: EventIndex) -> None:
    assert narrative.describe_block_history(drawn, 0).splitlines() == [
        "block 0 of r, keys [0, 1), of batch 1, 10 tuples",
        "  batch 1: fresh block 0 of r, keys [0, 1), of batch 1: stored on host 0",
        "  batch 1: probed by block 1 on host 0",
        "  batch 2: block 0 of r, keys [0, 1), of batch 1 is copied: host 1 reads host 0",
        "  batch 3: merged into block 5, keys [0, 1)",
        "  batch 3: block 0 of r, keys [0, 1), of batch 1 settles pending pairs",
        "  batch 3: probes s block 3 on host 1",
        "  batch 3: gone from hosts 0, 1",
    ]
    assert narrative.describe_block_history(drawn, 4).endswith("after batch 4: held on host 1")
    assert narrative.describe_block_history(drawn, 6).endswith("after batch 4: it got no tuple")


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [
        (0, 1, "met in batch 1: block 1 probed block 0 on host 0"),
        (1, 0, "met in batch 1: block 1 probed block 0 on host 0"),
        (1, 3, "never met: they are of one stream, s"),
        (3, 0, "met in batch 3: block 0 probed block 3 on host 1; the pair had been deferred in batch 2 and was settled then"),
        (5, 1, "met in batch 1: block 1 probed block 0 on host 0; block 0 is now part of block 5"),
        (0, 4, "not met as such: block 0 became block 5 in batch 3; ask about those"),
        (5, 6, "never met: block 5 left in batch 4, block 6 came in batch 4"),
        (2, 6, "not met as such: block 2 became block 5 in batch 3; ask about those"),
    ],
)  # fmt: skip
def test_why_two_blocks_met_or_did_not(drawn: EventIndex, a: int, b: int, sentence: str) -> None:
    assert sentence in [
        line.strip() for line in narrative.explain_meeting(drawn, a, b).splitlines()[1:]
    ]


@pytest.mark.parametrize(
    "happened",
    [
        DRAWN,
        [DRAWN[0], EventsTrimmed(0, 2, 0, 0, 0, 0, 7, (R0, S1), (), HostMetrics(), {}), *DRAWN[3:]],
    ],
)
def test_all_sentences_count_batches_from_1(happened: list[Event]) -> None:
    said = _all_said(EventIndex.from_events(happened))
    numbers = {int(n) for n in re.findall(r"\bbatch(?:es)? (\d+)", said)}
    assert numbers == {1, 2, 3, 4, 78}
    assert "this run has batches 1 to 4" in said
    assert ("kept from batch 2 on" in said) == (happened is not DRAWN)


def _all_said(run: EventIndex) -> str:
    said = [
        narrative.describe_run(run),
        *(narrative.describe_batch_plan(run, batch) for batch in run.plans_by_batch),
    ]
    said += [narrative.describe_block_history(run, id) for id in run.blocks]
    said += [narrative.explain_meeting(run, a, b) for a in run.blocks for b in run.blocks]
    for asked in (narrative.describe_batch_plan, narrative.describe_block_history):
        with pytest.raises(ValueError, match=r"^there is no ") as error:
            asked(run, 77)
        said.append(str(error.value))
    return "\n".join(said)


def test_what_is_put_off_is_owed_until_it_is_settled() -> None:
    half = EventIndex.from_events(DRAWN[:5])
    assert half.pending_pairs() == [(3, 0)] and EventIndex.from_events(DRAWN).pending_pairs() == []
    assert "pending: 1 pairs of blocks, such as 3 and 0" in narrative.describe_run(half)
    assert "not met yet: block 3 deferred block 0 in batch 2; the pair is pending" in narrative.explain_meeting(half, 0, 3)  # fmt: skip


def test_blocks_without_a_common_join_key_never_meet() -> None:
    run = EventIndex.from_events(simulate(HashPartition(3), [(9, 9)] * 3))
    r, s = (next(b for b in run.blocks.values() if (b.stream, b.key_range) == k) for k in [(0, (0, 1)), (1, (2, 3))])  # fmt: skip
    assert "the routing keys [0, 1) and [2, 3) have none in common" in narrative.explain_meeting(
        run, r.id, s.id
    )


def test_parts_of_a_frequent_value_meet_and_other_values_say_why_they_do_not() -> None:
    shares = [[0.05] * 5 + [0.3] + [0.05] * 9] * 2
    placement = HotKeys(4, values=15, target=1.01)
    run = EventIndex.from_events(simulate(placement, [(90, 90)] * 5, key_shares=shares))
    last = [b for b in run.blocks.values() if b.batch == 4 and b.rows]
    values = {b.id: value_range(b.key_range, run.keys_per_value) for b in last}
    one, other = (
        next(b for b in each if b.stream == s and values[b.id] == (5, 6))
        for s, each in enumerate((last, last[::-1]))
    )
    assert one.hosts != other.hosts
    met = f"met in batch 5: block {other.id} probed block {one.id} on host {one.hosts[0]}"
    assert met in narrative.explain_meeting(run, one.id, other.id)
    apart = next(b for b in last if b.stream == 1 and values[b.id][0] > 5)
    low, high = values[apart.id]
    assert (
        f"the hashes [5, 6) and [{low}, {high}) of their join values have none in common"
        in narrative.explain_meeting(run, one.id, apart.id)
    )


def test_blocks_in_different_cells_of_a_hypercube_say_in_which_dimension_they_differ() -> None:
    counts = [(40, 5, 5)] * 5 + [(5, 5, 40)] * 6
    run = EventIndex.from_events(simulate(HyperCube(8, ((0, 1), (1, 2)), 1.0), counts))
    last, different = [b for b in run.blocks.values() if b.batch == 10 and b.rows], []
    boxes = run.find_boxes(last[-1])
    assert boxes is not None and len([s for s in boxes.layouts if s]) > 1
    for a in (b for b in last if b.stream == 0):
        for b in (b for b in last if b.stream == 1):
            text = narrative.explain_meeting(run, a.id, b.id)
            assert run.may_join(a, b) == ("met in batch 11" in text)
            different += [] if run.may_join(a, b) else [text]
    said = "never met: in dimension 1 of the hypercube, tuples of r have the hashes [0, "
    assert any(said in text for text in different)


def test_on_a_ring_two_old_blocks_are_visited_together() -> None:
    run = EventIndex.from_events(simulate(Ring(4), [(20, 20, 20)] * 12, windows=(5.0,) * 3, seed=1))
    said = narrative.explain_meeting(run, 3, 7)
    assert "visited together in batch 4: block 11 of t went to block 3, then to block 7" in said
    assert "then t " in narrative.describe_batch_plan(run, 6), "a path of two hops"


def test_every_pair_of_a_run_with_migrations_has_an_answer() -> None:
    """Elseidy 2014, Theorem 4.3 and Lemma 4.6, checked by the printed words.

    Through migrations no pair meets twice, and at the end none is pending.
    """
    run = EventIndex.from_events(
        simulate(AdaptiveGrid(8), [(200, 20 + 60 * b) for b in range(9)], seed=1)
    )
    assert run.deferred and not run.pending_pairs()
    first, second = (
        [b for b in run.blocks.values() if b.stream == s and b.id not in run.sources]
        for s in (0, 1)
    )
    for a in first:
        for b in second:
            direct = [m for m in run.meetings if {m.block, m.other} == {a.id, b.id}]
            said = narrative.explain_meeting(run, a.id, b.id)
            assert len(direct) <= 1 and ("  met in batch" in said) == bool(direct), said
            if a.batch == b.batch:
                assert direct, "fresh together"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> JoinRun:
    """A finished run of four batches; its grid adapts, so that blocks are copied and cut."""
    rows = {"r": 30, "s": 330}
    streams = {
        a: pa.table({"k": np.arange(n) % 7, "batch": np.arange(n) * 4 // n})
        for a, n in rows.items()
    }
    join = StreamJoin(streams, "r.k = s.k", AdaptiveGrid(4, warmup_tuples=90), check=True)
    run = join.start(tmp_path_factory.mktemp("inspect") / "run", batches="batch")
    run.awaitTermination()
    return run


def test_a_folder_and_a_recording_say_the_same(
    ran: JoinRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The events of the run are a recording; its folder has them in manifests.

    Only the start and the end are not in the folder.
    """
    assert any(isinstance(e, MigrationEnded) for e in ran.events())
    write_events(tmp_path / "run.jsonl", ran.events())
    for question in ([], ["--batch", "2"], ["--block", "0"], ["--why", "3", "0"]):
        said = []
        for path in (ran.store.path, tmp_path / "run.jsonl"):
            assert main(["inspect", str(path), *question]) == 0
            said.append(capsys.readouterr().out)
        assert said[0] == said[1] and len(said[0].splitlines()) > 1
    assert run_inspector.inspect_run(ran.store.path).endswith("completed")


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        (["--batch", "0"], "there is no batch 0; this run has batches 1 to 4"),
        (["--batch", "9"], "there is no batch 9; this run has batches 1 to 4"),
        (["--block", "170"], r"there is no block 170; this run has had \d+ blocks, 0 to \d\d"),
        (["--why", "0", "170"], "there is no block 170"),
    ],
)
def test_what_is_not_there_is_refused_with_a_sentence(
    ran: JoinRun, question: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(ran.store.path), *question]) == 2
    error = capsys.readouterr().err
    assert error.startswith("braid: ") and error.count("\n") == 1
    assert re.search(sentence, error)


def test_what_is_no_run_is_refused_with_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file.txt").write_text("x")
    (tmp_path / "none.jsonl").write_text("")
    for name in ("empty", "other", "none.jsonl", "missing"):
        assert main(["inspect", str(tmp_path / name)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("braid: ") and error.count("\n") == 1
