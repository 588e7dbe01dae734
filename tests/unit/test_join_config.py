"""The settings of a join are plain values, made without Spark, and are what run.json holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.join_config import JoinArguments, JoinConfig, parse_join
from braid.papers.baselines.centralized import Centralized
from braid.papers.shedding.shed import Shed
from braid.papers.theta.grid import AdaptiveGrid
from braid.stream_join import StreamJoin

COLUMNS = {
    "a": {"k": "int", "ts": "timestamp"},
    "b": {"k": "int", "ts": "timestamp", "at": "date"},
}
MINUTE = 60_000_000
FULL = JoinArguments(
    "a.k = b.k",
    AdaptiveGrid(hosts=4),
    {"a": "1 minute"},
    {"a": "ts", "b": "at"},
    {"b": "90 s"},
    3,
    7,
    True,
    "spark",
    Shed(fraction=0.5),
    "1 MB",
    "2 hours",
    "10 min",
)

WITHOUT_SPARK = """
import sys
sys.modules.update(dict.fromkeys(("pyspark", "py4j", "duckdb", "sqlglot")))
from braid.join_config import JoinArguments, parse_join
config = parse_join(JoinArguments("a.k = b.k"), {"a": {"k": "int"}, "b": {"k": "int"}})
assert config.on == "a.k = b.k" and config.placement is None
"""


def test_settings_are_made_without_spark_and_without_sql_libraries() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_SPARK], check=True)


def test_settings_are_plain_values() -> None:
    config = parse_join(FULL, COLUMNS)
    assert (config.window_limits, config.partitions) == ((MINUTE, None), 3)
    assert config.event_time_columns == {"a": "ts", "b": "at"}
    assert config.lateness_microseconds == (0, 90_000_000)
    assert (config.ahead_microseconds, config.driver_memory) == (120 * MINUTE, 1_000_000)
    assert config.idle_microseconds == 10 * MINUTE
    assert (config.seed, config.checks_coverage, config.executor) == (7, True, "spark")


@pytest.mark.parametrize(
    "arguments",
    [
        FULL,
        JoinArguments("a.k = b.k", Centralized()),
        JoinArguments("x", Centralized(), "1 h", "ts"),
    ],
)
def test_settings_survive_run_json(arguments: JoinArguments) -> None:
    config = parse_join(arguments, COLUMNS)
    stored = json.loads(json.dumps(config.to_json()))
    memory = config.driver_memory
    assert JoinConfig.from_json(stored, COLUMNS, config.executor, memory) == config


def test_the_same_duration_in_other_units_is_the_same_setting() -> None:
    texts = [("90 seconds", "1 day"), ("1 minute 30 seconds", "24 hours")]
    same = [
        parse_join(JoinArguments("x", Centralized(), w, "ts", ahead=a), COLUMNS) for w, a in texts
    ]
    assert same[0] == same[1] and same[0].to_json()["windows"] == dict.fromkeys("ab", "1 min 30 s")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"windows": {"c": "1 s"}}, r"windows are given for \['c'\]; the streams are a, b"),
        ({"windows": "1 s"}, "windows are given but no event-time column: name it with time="),
        ({"time": "at"}, "stream a has no event-time column 'at'; it has: k, ts"),
        ({"time": "k"}, "the event-time column a.k is of type int; it must be a timestamp or a"),
        ({"time": {"c": "ts"}}, "time is for c; it must be the event-time column of all streams"),
        ({"lateness": {"c": "1 s"}}, r"lateness is given for \['c'\]; the streams are a, b"),
        ({"placement": None}, "placement is None; it must be 'auto', or one that has been made"),
        ({"partitions": 0}, "partitions is 0; it must be"),
        ({"seed": -1}, "seed is -1; it must be"),
        ({"check": 1}, "check is 1; it must be True or False"),
        ({"idle": "1 s"}, "idle is given but no event-time column: name it with time="),
        ({"ahead": "soon"}, "the ahead is 'soon'; it must be a positive span"),
    ],
)
def test_an_invalid_argument_is_refused_in_one_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said) as refusal:
        parse_join(JoinArguments("a.k = b.k", **given), COLUMNS)
    assert "\n" not in str(refusal.value)


def test_a_resumed_join_has_the_settings_of_its_folder(tmp_path: Path) -> None:
    times = pa.array([0, 1], pa.timestamp("us", "UTC"))
    streams = dict.fromkeys("ab", pa.table({"k": [1, 2], "ts": times}))
    given = {"windows": "90 seconds", "time": "ts", "seed": 5, "partitions": 2, "check": True}
    begun = StreamJoin(streams, "a.k = b.k", AdaptiveGrid(hosts=2), **given).start(tmp_path)
    begun.awaitTermination()
    again = StreamJoin.resume(tmp_path, streams)
    again.awaitTermination()
    assert again.config.to_json() == begun.config.to_json()
    assert again.config.resumed and not begun.config.resumed
