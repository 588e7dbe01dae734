"""A hub over Spark frames with damaged files answers correctly or names the damaged file.

tests/unit/test_hub_damage.py has more kinds of damage, for hubs over tables.
"""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from braid.hub.hub import HubRun, QueryHub
from braid.papers.reuse.hub_events import HistoryLost, HubBatchCommitted
from damages import DAMAGES, list_files
from hub_cases import WIDE, create_frames, expect_rows, make_hub_tables, query_rows
from py4j.protocol import Py4JJavaError
from pyspark.errors import NumberFormatException, StreamingQueryException
from pyspark.sql import SparkSession

BATCHES = 3
DATA = {
    stream: rows.filter(pc.less(rows["batch"], BATCHES)).slice(0, 40)
    for stream, rows in make_hub_tables(1).items()
    if stream != "baggage"
}
EVERY = WIDE.replace("[RANGE 90 SECONDS]", "[RANGE 90 SECONDS SLIDE 60 SECONDS]")
ASKED = {"wide": WIDE, "every": EVERY}


def start_hub(spark: SparkSession, folder: Path, **more: Any) -> HubRun:
    return QueryHub(create_frames(spark, DATA), "ts").start(folder, "batch", **more)


@pytest.fixture(scope="module")
def halfway(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a hub that ended before its last batch."""
    folder = tmp_path_factory.mktemp("halfway") / "hub"
    take = HubRun._join_batch

    def end_early(run: HubRun, source: Any, epoch: int) -> None:
        if epoch == BATCHES - 1:
            raise RuntimeError("no power")
        take(run, source, epoch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HubRun, "_join_batch", end_early)
        with pytest.raises(Exception, match="no power"):
            start_hub(spark, folder, queries=ASKED).awaitTermination()
    return folder


def judge_resume(spark: SparkSession, folder: Path, truth: dict[str, Any]) -> str:
    """Return how a hub resumes in a folder: right, refused or flagged."""
    try:
        run = start_hub(spark, folder)
        run.awaitTermination()
        found = {name: query_rows(run, name) for name in ASKED}
    except (ValueError, RuntimeError) as error:
        assert str(folder) in str(error) and "\n" not in str(error), str(error)
        return "refused"
    except (StreamingQueryException, NumberFormatException, Py4JJavaError):
        return "failed in Spark"  # from a file of Spark's own checkpoint, its query's id for one
    assert found == truth
    events = run.events()
    assert [e.epoch for e in events if isinstance(e, HubBatchCommitted)] == [*range(BATCHES)]
    return "flagged" if any(isinstance(e, HistoryLost) for e in events) else "right"


def list_samples(folder: Path) -> list[tuple[Path, str]]:
    """Return a file of each kind, by name without numbers, and a kind of damage for it."""
    sorts: dict[str, list[Path]] = {}
    for file in list_files(folder):
        if file.match("operators/*/events.jsonl") or file.match("checkpoint/commits/*"):
            continue  # nothing reads them
        name = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4,})*|\d+", "", str(file))
        sorts.setdefault(name.replace("checkins", "flights"), []).append(file)
    rng = random.Random(4)
    damages = [*DAMAGES] * len(sorts)
    return [(rng.choice(files), damages[n]) for n, files in enumerate(sorts.values())]


def test_a_hub_on_spark_with_a_damaged_file_is_right_or_says_so(
    spark: SparkSession, halfway: Path, tmp_path: Path
) -> None:
    truth = {name: expect_rows(DATA, sql, until=10**15) for name, sql in ASKED.items()}
    assert all(truth.values())
    verdicts, rng = Counter[str](), random.Random(5)
    kept = shutil.copytree(halfway, tmp_path / "kept")
    for name, damage in list_samples(kept):
        shutil.rmtree(halfway)  # Spark's checkpoint contains the folder's path
        shutil.copytree(kept, halfway)
        DAMAGES[damage](halfway / name, rng)
        verdicts[judge_resume(spark, halfway, truth)] += 1
    assert verdicts["refused"] > 5 and verdicts["right"], verdicts
