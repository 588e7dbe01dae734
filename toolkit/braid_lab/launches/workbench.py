"""The workbench: a join by a line of settings, modelled at once or run for real.

It needs no installation: the tables are joined in this process.
"""

from __future__ import annotations

import math
import shlex
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from braid.core import event_jsonl
from braid.core.placement import Placement
from braid.core.run_events import BatchCommitted
from braid.papers.baselines.centralized import Centralized
from braid.papers.shedding.shed import Shed
from braid.simulation.simulator import simulate
from braid.storage.generated_stream import GeneratedStream
from braid.touch_costs import compute_equal_share

from braid_lab.common.run_folders import new_run_folder

if TYPE_CHECKING:
    from braid.join_run import JoinRun

STREAMS = ("a", "b")
MOST = 400_000
"""Maximum number of generated tuples, so that a control cannot ask for hours."""


Profiles = tuple[tuple[float, ...], tuple[float, ...]]


def _make_growing_profiles(batches: int) -> Profiles:
    """Return profiles with which b outgrows a."""
    return (0.25,), tuple(0.25 + 2 * k / batches for k in range(batches))


def _make_swinging_profiles(batches: int) -> Profiles:
    """Return profiles with which first one stream is larger, then the other."""
    long = max(1, batches // 4)
    return (1.0,) * long + (0.05,) * long, (0.05,) * long + (3.0,) * long


def _make_steady_profiles(batches: int) -> Profiles:
    """Return equal, constant profiles of both streams."""
    return (1.0,), (1.0,)


def _make_bursty_profiles(batches: int) -> Profiles:
    """Return profiles with a burst, five times as large, in every fifth batch."""
    return ((1.0,) * 4 + (5.0,),) * 2


DATA = {
    "grow": _make_growing_profiles,
    "swing": _make_swinging_profiles,
    "steady": _make_steady_profiles,
    "bursts": _make_bursty_profiles,
}
"""Generated streams by name: factors of the rate by batch, of each stream."""

KEYS = 100
"""Number of keys of generated streams."""

SEED = 7
"""Seed of the first generated stream; that of the second is one more."""

SAMPLE = 1000
"""Tuples sampled from each stream to estimate the selectivity of a condition."""

RIVALS = 3
"""Maximum number of alternatives shown beside a run."""

READERS = {".csv": pd.read_csv, ".parquet": pd.read_parquet, ".jsonl": None}


@dataclass(frozen=True)
class WorkbenchSettings:
    """The settings of a workbench run.

    - ``data``: a name in ``DATA``; or two files with a comma between (CSV or Parquet, each with an
      event-time column ts); or a recording (.jsonl), which is shown as it is.
    - ``on``: the join condition.
    - ``window``: seconds; 0: full history.
    - ``rate``: approximate number of tuples a batch of each stream.
    - ``shed``: fraction of pairs that is processed.
    - ``skew``: Zipf parameter of the keys of generated streams; 0: all are as frequent.
    - ``pace``: minimum seconds from batch to batch of a real run, which leaves time to change it.

    Raises ValueError for a value out of range.
    """

    data: str = "swing"
    on: str = "a.k = b.k"
    window: float = 0.0
    placement: str = "AdaptiveGrid"
    hosts: int = 16
    batches: int = 24
    rate: int = 200
    shed: float = 1.0
    skew: float = 0.0
    pace: float = 0.0

    def __post_init__(self) -> None:
        limits = {"window": (0, 10**6), "hosts": (1, 256), "batches": (2, 400), "shed": (0.01, 1)}
        limits |= {"skew": (0, 4), "pace": (0, 60)}
        for name, (low, high) in limits.items():
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} is {getattr(self, name)}; it is from {low} to {high:,}")
        if self.rate < 1 or 8 * self.rate * self.batches > MOST:
            most = MOST // (8 * self.batches)
            raise ValueError(
                f"rate is {self.rate:,}; with {self.batches} batches it is from 1 to {most:,}"
            )
        if self.data not in DATA and Path(self.data.split(",")[0]).suffix not in READERS:
            raise ValueError(
                f"data is {self.data!r}; it is one of {', '.join(DATA)}, two files (CSV or "
                "Parquet) with a comma between, or a recording (.jsonl)"
            )
        self.make_placement()

    @classmethod
    def parse(cls, text: str) -> WorkbenchSettings:
        """Return settings from ``key:value`` words; omitted ones have their defaults.

        A value with spaces is quoted. Raises ValueError.

        >>> WorkbenchSettings.parse("data:grow hosts:4").hosts
        4
        """
        kinds = {f.name: f.type for f in fields(cls)}
        given: dict[str, Any] = {}
        for word in shlex.split(text):
            name, colon, value = word.partition(":")
            if not colon or name not in kinds:
                raise ValueError(f"the board has no {name!r}; it has: {', '.join(kinds)}")
            kind = {"int": int, "float": float}.get(str(kinds[name]), str)
            try:
                given[name] = kind(value)
            except ValueError:
                article = {int: "a whole number", float: "a number"}[kind]
                raise ValueError(f"{name} is {value!r}; it is {article}") from None
        return cls(**given)

    def __str__(self) -> str:
        """Return the line that ``parse`` reads: the data, and settings that are not the default."""
        plain = {f.name: f.default for f in fields(self)}
        return " ".join(
            f"{name}:{shlex.quote(format(value, 'g') if isinstance(value, float) else str(value))}"
            for name, value in asdict(self).items()
            if name == "data" or value != plain[name]
        )

    def make_shedder(self) -> Shed | None:
        """Return the shedder if not all pairs are processed, else None."""
        return Shed(fraction=self.shed) if self.shed < 1 else None

    def make_placement(self) -> Placement:
        """Return the placement on ``hosts`` hosts. Raises ValueError."""
        kind = Placement.class_by_name(self.placement)
        placement = kind.from_settings(
            {"hosts": self.hosts} if "hosts" in kind.setting_names() else {}
        )
        if not placement.supports_streams(len(STREAMS)) or placement.shares_queries:
            raise ValueError(f"{self.placement} does not join two streams for one query")
        return placement

    @property
    def is_recording(self) -> bool:
        """Whether the data is a recording."""
        return self.data.endswith(".jsonl")


@cache
def _read_stream_file(path: str) -> pd.DataFrame:
    reader = READERS[Path(path).suffix]
    if reader is None or not Path(path).is_file():
        raise ValueError(f"{Path(path).absolute()} is not a CSV or Parquet file that is there")
    rows = reader(path)
    if "ts" not in rows.columns:
        raise ValueError(f"{path} has no column ts; it has: {', '.join(rows.columns)}")
    return rows.assign(ts=pd.to_datetime(rows["ts"])).sort_values("ts")


def make_generated_streams(board: WorkbenchSettings) -> dict[str, GeneratedStream]:
    """Return the generated streams of a board, by alias."""
    profiles = DATA[board.data](board.batches)
    return {
        alias: GeneratedStream(board.rate, board.skew, KEYS, profile=profile, seed=seed)
        for seed, (alias, profile) in enumerate(zip(STREAMS, profiles, strict=True), SEED)
    }


def load_streams(board: WorkbenchSettings) -> dict[str, pd.DataFrame]:
    """Return the streams by alias, with the column ``batch``, in which a tuple arrives.

    Generated ones have id, ts, k (a key of a hundred) and x (a number from 0 to 1). Raises
    ValueError.
    """
    if board.data in DATA:
        generated = make_generated_streams(board)
        return {a: _number_batches(s, board.batches) for a, s in generated.items()}
    paths = board.data.split(",")
    if board.is_recording or len(paths) != len(STREAMS):
        raise ValueError(f"data is {board.data!r}; a run needs two files, with a comma between")
    streams = dict(zip(STREAMS, map(_read_stream_file, paths), strict=True))
    first, step = _compute_batch_span(streams.values(), board.batches)
    return {
        a: rows.assign(batch=_assign_batches(rows["ts"] - first, step, board.batches))
        for a, rows in streams.items()
    }


def _compute_batch_span(
    streams: Collection[pd.DataFrame], batches: int
) -> tuple[pd.Timestamp, pd.Timedelta]:
    """Return the first event time, and the event time that each batch covers."""
    first = min(rows["ts"].min() for rows in streams)
    last = max(rows["ts"].max() for rows in streams)
    return first, max((last - first) / batches, pd.Timedelta(1, "us"))


def _assign_batches(age: pd.Series, step: pd.Timedelta, batches: int) -> pd.Series:
    """Return the batch of each tuple: event time in equal pieces."""
    return (age // step).clip(upper=batches - 1).astype(int)


def _number_batches(stream: GeneratedStream, batches: int) -> pd.DataFrame:
    numbers = np.repeat(np.arange(batches), stream.count_tuples(batches))
    return stream.make_batches(batches).to_pandas().assign(batch=numbers)


def simulate_run(board: WorkbenchSettings) -> list[Any]:
    """Return the events of the modelled run, or those of the recording. Raises ValueError."""
    if board.is_recording:
        try:
            return event_jsonl.read_events(board.data)
        except OSError as error:
            raise ValueError(f"{board.data} cannot be read: {error.strerror}") from None
    given = load_streams(board)
    counts = np.array(
        [np.bincount(rows["batch"], minlength=board.batches) for rows in given.values()]
    ).T
    window = board.window or None
    _, step = _compute_batch_span(given.values(), board.batches)
    return simulate(
        board.make_placement(),
        [tuple(map(int, c)) for c in counts],
        streams=STREAMS,
        windows=(window, window),
        seconds=1.0 if board.data in DATA else step.total_seconds(),
        selectivity=estimate_selectivity(
            board.data, board.on, board.batches, board.rate, board.skew
        ),
        tuple_bytes=(32, 32),
        shedder=board.make_shedder(),
    )


@cache
def estimate_selectivity(data: str, on: str, batches: int, rate: int, skew: float) -> float:
    """Return the fraction of pairs that satisfy the condition.

    It is measured on a join of ``SAMPLE`` tuples of each stream in this process; for an equality of
    generated keys it is known. Raises ValueError, also for a condition that cannot be joined on.
    """
    board = WorkbenchSettings(data, on, batches=batches, rate=rate, skew=skew)
    if data in DATA and on == WorkbenchSettings.on:
        return compute_equal_share(*[(KEYS, skew)] * len(STREAMS))
    from braid.stream_join import StreamJoin

    streams = load_streams(board).items()
    drawn = {a: rows.sample(min(SAMPLE, len(rows)), random_state=7) for a, rows in streams}
    with tempfile.TemporaryDirectory() as folder:
        run = StreamJoin(drawn, on, Centralized()).start(Path(folder) / "run")
        run.awaitTermination()
        result_count = sum(e.results for e in run.events() if isinstance(e, BatchCommitted))
    return result_count / math.prod(max(1, len(rows)) for rows in drawn.values())


def parse_alternatives(text: str) -> tuple[str, ...]:
    """Return the placements shown beside a run: up to three names with commas between.

    Raises ValueError, also for one that does not join two streams.

    >>> parse_alternatives("StaticGrid, JoinBiclique")
    ('StaticGrid', 'JoinBiclique')
    """
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if len(names) > RIVALS:
        raise ValueError(f"beside names {len(names)} placements; it takes at most {RIVALS}")
    for name in names:
        WorkbenchSettings(placement=name)
    return names


def simulate_alternatives(
    board: WorkbenchSettings, placements: Iterable[str]
) -> Iterator[tuple[str, list[Any]]]:
    """Yield name and events of other placements on the same tuples; none for a recording.

    Raises ValueError for one that does not join two streams.
    """
    for name in () if board.is_recording else placements:
        if name != board.placement:
            yield name, simulate_run(replace(board, placement=name))


def start_run(board: WorkbenchSettings) -> JoinRun:
    """Start the run with real tuples, joined in this process. Raises ValueError."""
    from braid.stream_join import StreamJoin

    if board.is_recording:
        raise ValueError("a recording is shown as it was; choose other data to run")
    is_generated = board.data in DATA
    given: Any = make_generated_streams(board) if is_generated else load_streams(board)
    windows = dict.fromkeys(STREAMS, f"{board.window:g} seconds") if board.window else None
    shed = board.make_shedder()
    join = StreamJoin(given, board.on, board.make_placement(), windows, time="ts", shed=shed)
    batches = board.batches if is_generated else "batch"
    return join.start(new_run_folder("board"), batches=batches, pace=board.pace)


def warm_up() -> None:
    """Join a few tuples, so that a later launch does not wait for imports and one-time work."""
    start_run(WorkbenchSettings(batches=2, rate=1)).awaitTermination()


COUNTED: dict[str, Callable[[BatchCommitted], int]] = {
    "tuples in": lambda e: sum(e.received_tuples),
    "copies sent to hosts": lambda e: e.total_host_metrics.received_tuples,
    "tuples moved between hosts": lambda e: e.total_host_metrics.migrated_tuples,
    "tuples given up": lambda e: e.total_host_metrics.discarded_tuples,
    "results": lambda e: e.results,
}


def compare_with_model(counted: Iterable[Any], simulated: Iterable[Any]) -> pd.DataFrame:
    """Return a run beside its model: what, ``counted``, ``modelled``.

    Values are sums over the batches; stored tuples are those of all hosts at the end.
    """
    runs = [[e for e in each if isinstance(e, BatchCommitted)] for each in (counted, simulated)]
    rows = [(what, *(sum(map(count, run)) for run in runs)) for what, count in COUNTED.items()]
    held = ("tuples held at the end", *(run[-1].total_host_metrics.stored_tuples for run in runs))
    return pd.DataFrame([*rows, held], columns=["what", "counted", "modelled"])
