"""`braid check --answers`: results recomputed from the input by a different method."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid import Shed
from braid.answer_check import check_answers
from braid.answer_report import AnswerReport
from braid.cli import main
from braid.core.run_state import VERSION
from braid.kernels.probe import BlockJoiner
from braid.papers.baselines.centralized import Centralized
from braid.storage import durable_files
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from fuzz.cases import CORPUS, load
from fuzz.cases import Case as FuzzedCase
from fuzz.grammar import random_case, random_streams
from fuzz.routes import timed
from oracle import compute_expected, make_tables, wait_until

WINDOWS = {"a": 150, "b": 110, "c": 130}


@dataclass
class Case:
    """A join whose answers are recomputed."""

    on: str
    windowed: bool = False
    streams: str = "ab"
    settings: dict[str, Any] | None = None

    def run(self, folder: Path, rows: int = 300) -> int:
        """Return the number of results of the whole join."""
        streams = make_tables(self.streams, rows, seed=7)
        windows = {a: WINDOWS[a] for a in streams} if self.windowed else {}
        spans = {a: f"{seconds} seconds" for a, seconds in windows.items()} or None
        join = StreamJoin(streams, self.on, windows=spans, time="ts", **(self.settings or {}))
        join.start(folder, batches="batch").awaitTermination()
        kept = {a: t.drop_columns(["batch"]) for a, t in streams.items()}
        return compute_expected(kept, self.on, windows).total()


CASES = {
    "equality and residual": Case("a.k = b.k AND a.s <> b.s"),
    "band": Case("a.n BETWEEN b.n - 3 AND b.n + 3", windowed=True),
    "text, decimal, NaN": Case("a.s LIKE concat(b.s, '%') AND a.f >= b.f AND a.m < b.m"),
    "three streams": Case("a.k = b.k AND b.n < c.n AND a.d = c.d", True, "abc"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_right_answers_are_all_right(case: Case, tmp_path: Path) -> None:
    """The number of compared rows is DuckDB's on the given streams."""
    results = case.run(tmp_path / "run")
    report = check_answers(tmp_path / "run")
    assert report.is_right and not report.late
    assert report.results == results > 0
    assert str(report).startswith(f"{report.results:,} results, recomputed from the input by Duck")


def with_query(folder: Path, **changed: Any) -> None:
    """Change the run's stored settings to differ from what it ran."""
    store = RunStore(folder)
    query = store.read_settings()
    assert query is not None
    durable_files.write_atomically(
        store.settings.path,
        durable_files.encode_checksummed({"format_version": VERSION, **query, **changed}),
        False,
    )


@pytest.mark.parametrize(
    ("on", "windows", "missing", "wrong"),
    [
        ("a.k = b.k AND a.n < b.n AND a.flag", None, False, True),
        ("a.k = b.k AND a.n <= b.n + 100", None, True, False),
        ("a.k = b.k AND a.n < b.n", {"a": "60 seconds", "b": "60 seconds"}, False, True),
    ],
)
def test_a_result_too_few_or_too_many_is_found(
    on: str, windows: Any, missing: bool, wrong: bool, tmp_path: Path
) -> None:
    Case("a.k = b.k AND a.n < b.n").run(tmp_path / "run")
    with_query(tmp_path / "run", on=on, windows=windows or {})
    report = check_answers(tmp_path / "run")
    assert (report.missing > 0, report.wrong > 0) == (missing, wrong)
    assert len(report.examples) == 5
    assert all(e.is_missing == missing for e in report.examples)
    assert "a(id=" in str(report.examples[0]) and "b(id=" in str(report.examples[0])
    shares = [check_answers(tmp_path / "run", sample) for sample in (0.3, 0.6)]
    counts = [r.missing + r.wrong for r in (*shares, report)]
    assert counts == sorted(counts) and 0 < counts[0] < counts[2]


@pytest.mark.parametrize("change", ["lost", "doubled"])
@pytest.mark.parametrize("windowed", [False, True], ids=["history", "windows"])
def test_a_kernel_that_errs_is_found(
    windowed: bool,
    change: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The first part of each probe is lost or repeated; the command ends with 1.

    No tuple is late, so each lost or repeated result is counted.
    """
    real: Callable[..., Iterator[Any]] = BlockJoiner.probe_blocks

    def probe(self: BlockJoiner, *given: Any, **more: Any) -> Iterator[Any]:
        first, *rest = [*real(self, *given, **more)] or [None]
        times = 0 if first is None or change == "lost" else 2
        return iter([first] * times + rest)

    with monkeypatch.context() as patch:
        patch.setattr(BlockJoiner, "probe_blocks", probe)
        results = Case("a.k = b.k", windowed).run(tmp_path / "run")
    report = check_answers(tmp_path / "run")
    assert (report.missing > 0, report.wrong > 0) == (change == "lost", change == "doubled")
    assert (report.results, report.late) == (results - report.missing + report.wrong, 0)
    assert main(["check", str(tmp_path / "run"), "--answers"]) == 1
    output = capsys.readouterr().out
    assert "all whole" in output and f"{report.missing:,} missing, {report.wrong:,} wrong" in output


TINY: dict[str, pa.Array] = {
    "s": pa.array(["a_b", "abc", "A"]),
    "f": pa.array([-1.5, float("nan"), 1.0]),
    "g": pa.array([0.1, float("nan"), 16777216.0], pa.float32()),
    "h": pa.array([100, 2, 1], pa.int8()),
    "n": pa.array([200, 4, 16777217], pa.int32()),
    "d": pa.array([0, 1, 2], pa.date32()),
}


def check_run(streams: dict[str, pa.Table], on: str, folder: Path) -> tuple[int, AnswerReport]:
    """Return the number of results of a join, and the report on them."""
    run = StreamJoin(streams, on).start(folder, batches=2)
    run.awaitTermination()
    return run.results().num_rows, check_answers(folder)


@pytest.mark.parametrize(
    ("on", "results"),
    [
        (r"a.s LIKE 'a\_b' AND a.h = b.h", 1),
        ("substring(a.s, 0, 1) = left(b.s, 1)", 5),
        ("ln(a.f) <=> b.f", 1),
        ("isnan(a.f) AND isnan(b.f)", 1),
        ("a.h * 2 = b.n", 2),
        ("a.g = b.n", 0),
        ("a.d - b.d = INTERVAL 1 DAY", 2),
        ("a.s = b.s OR a.h = b.n - 100", 3),
        ("a.h <= b.n AND b.h <= a.n AND a.h > b.h - 2", 6),
        ("startswith(a.s, left(b.s, 1)) AND levenshtein(a.s, b.s) <= 2", 5),
        ("n = 4 AND a.h = b.h", None),
    ],
)
def test_right_results_are_not_called_wrong(on: str, results: int | None, tmp_path: Path) -> None:
    """DuckDB has another type, or another value at an edge, than Spark."""
    streams = {alias: pa.table(TINY) for alias in "ab"}
    if results is None:  # a column of one stream, without its alias
        streams["b"] = streams["b"].drop_columns(["n"])
        results = 1
    found, report = check_run(streams, on, tmp_path / "run")
    assert (found, report.is_right, report.results) == (results, True, results)


@pytest.mark.parametrize(
    ("left", "right", "column"),
    [
        ("results", "expected", "k"),
        ("differing", "lateness", "batch"),
        ("result_batches", "pairs", "alias"),
        ("filename", "found", "filename"),
        ("late", "must", "file_row_number"),
        ("of", "r", "of"),
    ],
)
def test_streams_and_columns_may_have_any_name(
    left: str, right: str, column: str, tmp_path: Path
) -> None:
    rows = pa.table({column: [1, 2, 3]} | ({} if column == "batch" else {"ts": [1, 2, 3]}))
    streams = {left: rows, right: rows}
    run = StreamJoin(streams, f"{left}.`{column}` = {right}.`{column}`").start(tmp_path / "run", 2)
    run.awaitTermination()
    report = check_answers(tmp_path / "run")
    assert (report.is_right, report.results) == (True, 3)


@pytest.mark.parametrize("on", ["power(a.f, b.f) = 1", "atan2(a.f, b.f) > 0", "round(a.f) = b.f"])
def test_a_function_that_duckdb_may_evaluate_differently_is_not_checked(
    on: str, tmp_path: Path
) -> None:
    Case("a.k = b.k").run(tmp_path / "run", rows=20)
    with_query(tmp_path / "run", on=on)
    sentence = "cannot be recomputed without Spark: DuckDB may evaluate .* differently from Spark$"
    with pytest.raises(ValueError, match=sentence):
        check_answers(tmp_path / "run")


def fuzzed_cases() -> Iterator[FuzzedCase]:
    stored = map(load, sorted(CORPUS.glob("*.json")))
    yield from (case for case in stored if isinstance(case, FuzzedCase))
    for seed in range(60):
        draw = random.Random(seed)
        yield random_case(draw, random_streams(draw))


def test_no_condition_of_the_fuzzer_raises_a_false_alarm(tmp_path: Path) -> None:
    """The engine's answers to these are right: the fuzzer compares them with Spark's."""
    counts, alarms = Counter[str](), list[str]()
    for number, case in enumerate(fuzzed_cases()):
        streams = {alias: timed(case, alias) for alias in case.streams}
        windows = {alias: f"{span} microseconds" for alias, span in case.windows.items()} or None
        try:
            run = StreamJoin(streams, case.on, Centralized(), windows, windows and "ts").start(
                tmp_path / str(number), batches="batch"
            )
            run.awaitTermination()
        except Exception:  # refused, or failed as Spark does
            continue
        try:
            report = check_answers(tmp_path / str(number))
        except ValueError as error:
            assert "cannot be recomputed" in str(error)
            counts["unchecked"] += 1
            continue
        counts["checked"] += 1
        alarms += [] if report.is_right else [f"{case.on}: {report}"]
    assert not alarms and counts["checked"] > 4 * counts["unchecked"]


def test_late_tuples_are_counted_apart(tmp_path: Path) -> None:
    """Partners of b's tuples of minute 0 that arrive in batch 3 may have expired."""
    first, second = make_tables("ab", 200, seed=3, batches=4).values()
    late = second["batch"].to_numpy().copy()
    late[:20] = 3
    moved = second.set_column(1, "batch", pa.array(late, pa.int32()))
    windows = {"a": "30 seconds", "b": "30 seconds"}
    join = StreamJoin({"a": first, "b": moved}, "a.k = b.k", windows=windows, time="ts")
    join.start(tmp_path / "run", batches="batch").awaitTermination()
    report = check_answers(tmp_path / "run")
    assert report.is_right and report.late > 0


def test_a_run_that_sheds_load_may_miss_rows(tmp_path: Path) -> None:
    whole = Case("a.k = b.k", windowed=True, settings={"shed": Shed(fraction=0.5)})
    results = whole.run(tmp_path / "run")
    report = check_answers(tmp_path / "run")
    assert report.is_right and 0 < report.results < results
    assert report.notes == ("the run sheds load: rows that are missing were not counted",)


def test_a_stopped_run_is_checked_as_far_as_it_came(tmp_path: Path) -> None:
    streams = make_tables("ab", 300, seed=7)
    join = StreamJoin(streams, "a.k = b.k", time="ts")
    run = join.start(tmp_path / "run", batches="batch", pace=30)
    wait_until(lambda: run.status["batch"], "first batch")
    run.stop()
    report = check_answers(tmp_path / "run")
    assert report.is_right and 0 < report.results < compute_expected(streams, "a.k = b.k").total()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"on": "a.k = nonsense(b.k)"},
            r"cannot be recomputed without Spark: DuckDB may .*NONSENSE",
        ),
        ({"on": "a.k = b.nonsense"}, "cannot be recomputed by DuckDB: Binder Error"),
    ],
)
def test_refusals_say_why(changed: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    Case("a.k = b.k").run(tmp_path / "run", rows=20)
    with_query(tmp_path / "run", **changed)
    with pytest.raises(ValueError, match=sentence):
        check_answers(tmp_path / "run")


@pytest.mark.parametrize("sample", [0, -1, 1.5, "all"])
def test_a_sample_is_a_share(sample: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it must be a share above 0, at most 1"):
        check_answers(tmp_path, sample)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no run"):
        check_answers(tmp_path / "none")


def test_a_report_counts_both_kinds() -> None:
    report = AnswerReport("Spark", 5, 2, 1, 0, (), ())
    assert not report.is_right
    assert str(report) == "5 results, recomputed from the input by Spark: 2 missing, 1 wrong"


@pytest.mark.parametrize(
    "on", ["size(array_intersect(a.l, b.l)) >= 0", "NOT arrays_overlap(a.l, b.l) AND a.id <= b.id"]
)
def test_arrays_that_are_null_match_nothing(on: str, tmp_path: Path) -> None:
    lists = pa.array([[1], None, [], [2, None]], pa.list_(pa.int32()))
    streams = {alias: pa.table({"id": range(4), "l": lists}) for alias in "ab"}
    run = StreamJoin(streams, on).start(tmp_path / "run", durability="process")
    run.awaitTermination()
    report = check_answers(tmp_path / "run")
    assert report.is_right and report.results == run.results().num_rows > 0, report
