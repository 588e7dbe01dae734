"""``why`` of a hub's queries: those that come and go, the filters of relaxed operators, refusals."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import braid
import pyarrow.parquet as pq
import pytest
from braid.cli import main
from braid.errors import DamagedRunError
from braid.hub import kept_hub_tuples
from braid.hub.hub import QueryHub
from braid.hub.hub_state import HubState
from braid.result_explanation import Why
from braid.storage import committed_results
from braid.storage.hub_files import read_last_hub_state
from braid.storage.run_store import RunStore
from hub_cases import SteppedHub, make_hub_tables
from hub_kind_runs import SIDES, KindScenario
from unit.test_hub_answer_check import make_folder

FLIGHTS, CHECKINS = "flights [RANGE 90 SECONDS] f", "checkins [RANGE 60 SECONDS] c"
PAIRS = f"SELECT f.id, c.id AS c FROM {FLIGHTS}, {CHECKINS} WHERE f.num = c.flight"
FEW = f"{PAIRS} AND c.seats > 2"
EVERY = {"flights": "true", "checkins": "true"}


def find_reasons(answer: Why, verdict: str) -> set[str]:
    """Return the values of the last steps of the combinations with a verdict."""
    return {pair.steps[-1].values for pair in answer.pairs if pair.verdict == verdict}


def test_no_pair_of_a_hub_whose_queries_come_and_go_is_a_fault(tmp_path: Path) -> None:
    assert not [*KindScenario(10).run(make_folder(tmp_path, *SIDES))]
    ledger = HubState.from_json(read_last_hub_state(RunStore(tmp_path)))
    verdicts: Counter[str] = Counter()
    for query in ledger.queries:
        for rows in (EVERY, {"flights": "true"}, {"c": "true"}):
            answer = braid.why(tmp_path, rows, query=query.name, limit=25)
            verdicts.update(pair.verdict for pair in answer.pairs)
            assert answer.is_certain and "fault" not in verdicts, str(answer)
    assert {"found", "not served", "window", "condition", "filtered", "untimed"} <= {*verdicts}


def test_a_removed_result_of_a_hub_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = SteppedHub(make_folder(tmp_path, *SIDES), make_hub_tables(3))
    hub.submit(PAIRS, "pairs")
    for _ in range(3):
        hub.step()
    before = Counter(p.verdict for p in braid.why(tmp_path, EVERY, query="pairs", limit=60).pairs)
    monkeypatch.setattr(committed_results.durable_files, "check_file", lambda *_: None)
    results = sorted(tmp_path.glob("operators/*/results/*.parquet"))
    file = next(f for f in results if pq.read_metadata(f).num_rows)
    pq.write_table(pq.read_table(file).slice(1), file)
    after = Counter(p.verdict for p in braid.why(tmp_path, EVERY, query="pairs", limit=60).pairs)
    assert before - after == {"found": 1} and after - before == {"fault": 1}


def test_pairs_before_a_query_and_after_its_end_are_not_served(tmp_path: Path) -> None:
    hub = SteppedHub(make_folder(tmp_path, *SIDES), make_hub_tables(3))
    hub.step()
    hub.submit(PAIRS, "pairs")
    hub.step()
    hub.submit(FEW, "few")
    hub.step()
    hub.registry.withdraw_query("pairs")
    hub.step()
    some = {"f": "id % 4 = 0", "c": "id % 4 = 0"}
    late = braid.why(tmp_path, some, query="pairs", limit=99)
    answer = braid.why(tmp_path, EVERY, query="pairs", limit=60)
    assert find_reasons(answer, "not served") | find_reasons(late, "not served") == {
        "the query is answered from batch 2 on",
        "the query was withdrawn after batch 3",
    }
    assert {"found", "window", "condition"} <= {pair.verdict for pair in answer.pairs}
    few = braid.why(tmp_path, {"f": "true", "c": "seats = 1"}, query="few", blocks=True)
    assert {pair.verdict for pair in few.pairs} <= {"filtered", "condition"}
    assert (
        "few: answered by operator 0 (version 0) in batches 3 to 4, after the filter"
        in (few.blocks[0])
    )


def test_a_hub_answers_by_command_and_handle_and_refuses_what_it_cannot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = QueryHub(make_hub_tables(3), "ts").start(
        tmp_path / "run", batches="batch", queries={"pairs": PAIRS}
    )
    assert run.awaitTermination()
    never = run.why({"f": "id = 99999"}, query="pairs")
    assert never.verdict == "never arrived"
    rows = ["--row", "f", "id >= 0", "--row", "c", "id >= 0", "--query", "pairs"]
    assert main(["why", str(tmp_path / "run"), *rows]) == 0
    shown = capsys.readouterr().out
    assert "came in batch" in shown and "combinations: " in shown
    with pytest.raises(ValueError, match="query is missing; the hub in .* has the queries pairs"):
        braid.why(tmp_path / "run", {"f": "true"})
    with pytest.raises(ValueError, match="there is no stream 'x'; the run joins flights, check"):
        braid.why(tmp_path / "run", {"x": "true"}, query="pairs")


@pytest.mark.parametrize("goes_on", [True, False])
def test_files_that_a_hub_removes_meanwhile_are_read_from_its_next_state(
    goes_on: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing file is damage only if the hub has made no batch since."""
    hub = SteppedHub(make_folder(tmp_path, *SIDES), make_hub_tables(3))
    hub.submit(PAIRS, "pairs")
    hub.step()
    read_files, read_states = kept_hub_tuples.read_kept_tuples, list[int]()

    def lose_first(store: Any, settings: Any, state: Any) -> Any:
        read_states.append(state.epoch)
        if len(read_states) > 1:
            return read_files(store, settings, state)
        if goes_on:
            hub.step()
        raise DamagedRunError("a file is missing")

    monkeypatch.setattr(kept_hub_tuples, "read_kept_tuples", lose_first)
    if not goes_on:
        with pytest.raises(DamagedRunError, match="a file is missing"):
            braid.why(tmp_path, EVERY, query="pairs")
        return
    assert braid.why(tmp_path, EVERY, query="pairs").pairs
    assert read_states == [0, 1]
