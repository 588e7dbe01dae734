"""Fold a run's events into what the cockpit shows: a frame per batch and the timeline."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from braid.core.plan_sentences import format_count
from braid.core.run_diagnosis import diagnose_run
from braid.core.run_events import (
    BatchCommitted,
    BatchShed,
    QueryAdded,
    QueryRemoved,
    RunEnded,
    RunStarted,
)
from braid.core.run_record import BATCHES, RunRecord
from braid.run_touches import Touch
from braid.util.durations import UNITS, format_duration

from braid_widgets.base.block_map import BlockMapFrame
from braid_widgets.base.columnar import Columns
from braid_widgets.base.key_figures import KeyFigure
from braid_widgets.base.progress import FINISHING, is_finishing
from braid_widgets.base.run_view import HISTORY, RunView
from braid_widgets.base.state_maps import StateMap, choose_map
from braid_widgets.base.text import MODELLED
from braid_widgets.base.track_records import Series, Track
from braid_widgets.cockpit.answer_flow import AnswerCollector, AnswerFlow
from braid_widgets.cockpit.condition_flow import BatchFlow, make_flow
from braid_widgets.cockpit.decision_flags import Annotation, FlagCollector
from braid_widgets.cockpit.key_figures import SheddingTotals, strip_figures
from braid_widgets.cockpit.tracks import TimelineFrame, make_timeline
from braid_widgets.cockpit.verdict import Verdict, VerdictTracker
from braid_widgets.diffusion.segment_map import SegmentsFrame
from braid_widgets.hotkeys.hot_keys_map import HotKeysFrame
from braid_widgets.hypercube.hypercube_map import CubeFrame
from braid_widgets.psp.ring_map import RingFrame
from braid_widgets.reuse.hub_map import HubFrame
from braid_widgets.reuse.hub_run import HubTranslator
from braid_widgets.shedding.shedding_map import SheddingFrame
from braid_widgets.slices.age_map import AgesFrame
from braid_widgets.theta.grid_map import GridFrame

_COUNTS = (
    "stored_tuples",
    "received_tuples",
    "compared_pairs",
    "skipped_pairs",
    "migrated_tuples",
    "results",
)
MEASURES = ("stored", "received", "compared", "shed", "moved", "results", "busy", "waits")
"""Measures of the rows of hosts over time; one is shown at a time.

``busy`` and ``waits`` are seconds, present only if they were measured or modelled. ``shed`` counts
the pairs left out, present only if there are any.
"""


class MapFrame(TypedDict):
    """A frame of the state map, under the name of the JavaScript that draws it."""

    blocks: NotRequired[BlockMapFrame]
    grid: NotRequired[GridFrame]
    ring: NotRequired[RingFrame]
    ages: NotRequired[AgesFrame]
    segments: NotRequired[SegmentsFrame]
    shedding: NotRequired[SheddingFrame]
    hotkeys: NotRequired[HotKeysFrame]
    hypercube: NotRequired[CubeFrame]
    hub: NotRequired[HubFrame]


class BatchFrame(TypedDict):
    """The view after a batch (from 1)."""

    batch: int
    title: str
    key_figures: Columns[KeyFigure]
    verdict: Verdict
    flow: BatchFlow
    answers: list[AnswerFlow]
    state_map: MapFrame


class HostRows(TypedDict):
    """The activity of each host in each batch, by measure; a host that did not exist yet has no
    entry.
    """

    batch: list[int]
    names: list[str]
    values: list[list[list[float]]]


class Symptom(TypedDict):
    """A finding of the doctor, and the batch (from 1) in which it is strongest."""

    batch: int
    text: str


class CockpitPage(TypedDict):
    """The visible state of a run.

    - ``state``: one word, such as "live".
    - ``name``: the joined streams; ``condition`` is on what they are joined.
    - ``note``: what runs and how it ended.
    - ``seconds_left``: the time left, in words.
    - ``seconds_since_commit``: seconds since the last commit; None if the run has ended or this is
      unknown.
    - ``what_if_placements``: placements for a what-if; empty if no kernel can answer.
    - ``what_if_message``: the result of the last what-if, in a sentence.
    - ``touches``: changes that the active run takes from this page.
    """

    state: str
    name: str
    condition: str
    note: str
    seconds_left: str
    seconds_since_commit: float | None
    frames: list[BatchFrame]
    timeline: TimelineFrame
    hosts: HostRows
    annotations: list[Annotation]
    symptoms: list[Symptom]
    what_if_placements: list[str]
    what_if_message: str
    touches: list[Touch]


class LinkedViewsPage(TypedDict):
    """Runs by name. ``timeline_page`` has the timeline of all runs and no frame."""

    names: list[str]
    pages: list[CockpitPage]
    timeline_page: CockpitPage


class FrameCollector:
    """Folds in events in order and collects a frame for each batch.

    ``frames`` and ``rows`` are those of the batches since they were last taken; the cockpit stores
    them.
    """

    def __init__(self) -> None:
        self.scene, self.shed_totals = RunView(), SheddingTotals()
        self.deciding, self.pace = FlagCollector(), VerdictTracker()
        self.answers = AnswerCollector()
        self._hub = HubTranslator()
        self.map: StateMap | None = None
        self.frames: list[BatchFrame] = []
        self.rows: deque[tuple[int, list[list[float]]]] = deque(maxlen=HISTORY)
        self._commits: deque[BatchCommitted] = deque(maxlen=BATCHES + 1)
        self.baselines: list[Series] = []
        self._tops: dict[str, float] = {}
        self._windows: dict[str, int] = {}
        self.offers: list[str] = []
        self.what_if_message = ""
        self.touches: list[Touch] = []
        self._waiting: list[Any] = []
        self._harvested: BatchShed | None = None

    def apply_events(self, events: Iterable[Any], draw: bool = True) -> None:
        """Fold in events of a run or a hub; without ``draw`` the batches get no frame."""
        for event in self._hub.translate_events(events):
            self._apply_event(event)
            if isinstance(event, BatchCommitted):
                self._record_commit(event, draw)

    def _apply_event(self, event: Any) -> None:
        self.scene.apply_event(event)
        self._waiting.append(event)
        if self.map is not None or isinstance(event, BatchCommitted):
            self._update_state_map()
        if isinstance(event, BatchShed):
            self._harvested = event
        if isinstance(event, QueryAdded):
            self._windows[event.name] = max(event.windows.values(), default=0)
        if isinstance(event, QueryRemoved):
            self._windows.pop(event.name, None)
        self.deciding.apply_event(event)
        self.pace.apply_event(event)
        self.answers.apply_event(event)

    def _update_state_map(self) -> None:
        """Choose the map at the first commit, based on the events so far."""
        if self.map is None:
            start = self.scene.start or RunStarted((), "", {}, "a run", {}, 1, 1, None)
            self.map = choose_map(start, {type(e) for e in self._waiting})(self.scene)
        for event in self._waiting:
            self.map.apply_event(event)
        self._waiting = []

    def _record_commit(self, event: BatchCommitted, draw: bool) -> None:
        if self._harvested is not None and self._harvested.batch == event.batch:
            self.shed_totals.add_batch(self._harvested, event.results)
        self.rows.append((event.batch + 1, _make_host_measures(event)))
        self._commits.append(event)
        if draw:
            self.frames.append(self.make_frame())

    def make_frame(self) -> BatchFrame:
        """Return the frame after the last commit."""
        assert self.scene.last is not None and self.map is not None
        return {
            "batch": self.scene.last.batch + 1,
            "title": run_title(self.scene),
            "key_figures": Columns.from_records(
                KeyFigure, strip_figures(self.scene, self.shed_totals, self.map.make_key_figure())
            ),
            "verdict": self.pace.verdict,
            "flow": make_flow(self.scene.start, self.scene.last),
            "answers": self.answers.list_flows(),
            "state_map": {self.map.name: self.map.make_frame()},  # type: ignore[misc]
        }

    def _list_own_tracks(self) -> list[Track]:
        """Return the tracks of the answers, if there are any, and else of the map."""
        return self.answers.list_tracks() or (self.map.make_tracks() if self.map else [])

    def host_rows(self, since: int = 0) -> HostRows:
        """Return the activity of each host in the batches after ``since``."""
        rows = [(batch, values) for batch, values in self.rows if batch > since]
        names = [n for k, n in enumerate(MEASURES) if any(any(v[k]) for _, v in self.rows)]
        measures = [MEASURES.index(n) for n in names]
        return {
            "batch": [batch for batch, _ in rows],
            "names": names,
            "values": [[values[k] for k in measures] for _, values in rows],
        }

    def _list_symptoms(self) -> list[Symptom]:
        """Return what the doctor finds in the last batches, except of a hub."""
        if self.scene.start is None or _is_hub(self.scene):
            return []
        findings = diagnose_run(RunRecord.from_events(self.scene.start, [*self._commits]))
        texts = (f"{each.level}: {each.sentence}; {each.remedy}" for each in findings)
        return [
            {"batch": each.batch + 1, "text": text}
            for each, text in zip(findings, texts, strict=True)
        ]

    def page_fields(
        self, state: str, left: float | None = None, lag: float | None = None
    ) -> dict[str, Any]:
        """Return the fields of a page other than frames and hosts."""
        return {
            "state": state,
            "name": join_names(self.scene),
            "condition": self.scene.start.condition if self.scene.start else "",
            "note": run_note(self.scene, list(self._windows.values())),
            "seconds_left": ""
            if left is None
            else f"{format_duration(round(left) * UNITS['second'])} left",
            "seconds_since_commit": None if self.scene.end is not None else lag,
            "timeline": make_timeline(
                self.scene, self.baselines, self._tops, self._list_own_tracks()
            ),
            "annotations": list(self.deciding.flags),
            "symptoms": self._list_symptoms(),
            "what_if_placements": self.offers,
            "what_if_message": self.what_if_message,
            "touches": self.touches,
        }


def _make_host_measures(event: BatchCommitted) -> list[list[float]]:
    """Return the values of each measure, by host."""
    hosts = event.host_metrics
    slowest = max((h.seconds for h in hosts), default=0.0)
    busy = [round(h.seconds, 4) for h in hosts]
    counts = ([getattr(h, name) for h in hosts] for name in _COUNTS)
    return [*counts, busy, [round(slowest - h.seconds, 4) for h in hosts]]


def join_names(scene: RunView) -> str:
    """Return the joined streams; those of a hub are listed, as its queries join some of them."""
    return (", " if _is_hub(scene) else " ⋈ ").join(scene.stream_aliases)


def _is_hub(scene: RunView) -> bool:
    return scene.start is not None and scene.start.placement == "QueryHub"


def run_title(scene: RunView) -> str:
    """Return the streams that are joined and the finished and total batches."""
    if scene.start is None:
        return "No run yet"
    on = f" ON {scene.start.condition}" if scene.start.condition else ""
    joined = f"{join_names(scene)}{on}"
    if scene.last is None:
        return f"{joined} · no batch yet"
    number, planned = scene.last.batch + 1, scene.start.planned_batches
    of = f" of {max(planned + scene.changes, number):,}" if planned else ""
    return f"batch {number:,}{of} · {joined}"


def run_note(scene: RunView, query_windows: Sequence[int] = ()) -> str:
    """Return the placement, its hosts and windows, and the origin of the figures.

    ``query_windows``: longest window of each query of a shared run, in microseconds.
    """
    start = scene.start
    if start is None:
        return ""
    hosts = scene.points[-1].hosts if scene.points else start.hosts
    windows = ", ".join(f"{a} {w}" for a, w in start.windows.items()) or "full history"
    if _is_hub(scene):
        windows = "windows of each query"
    elif query_windows:
        count = f"{len(query_windows)} {'query' if len(query_windows) == 1 else 'queries'}"
        windows = f"windows of {count}, up to {format_duration(max(query_windows))}"
    origin = MODELLED if scene.is_modelled else "measured"
    ended = f" · {scene.end.outcome}" if scene.end else ""
    failed = f": {scene.end.error}" if scene.end and scene.end.error else ""
    ended = f" · {FINISHING}" if is_finishing(scene) else ended
    some = format_count(hosts, "node" if _is_hub(scene) else "host")
    condition = f" · {start.condition}" if start.condition else ""
    retained = (
        f" · events are kept from batch {scene.first_retained_batch + 1:,} on"
        if scene.first_retained_batch
        else ""
    )
    return f"{start.placement}, {some}{condition} · {windows} · {origin}{retained}{ended}{failed}"


def run_state(scene: RunView, is_followed: bool) -> str:
    """Return the state of a run.

    ``is_followed``: whether it is or was followed here; a run that is only read is "recorded".
    """
    if scene.is_modelled:
        return "modelled"
    if not is_followed:
        return "recorded"
    if not isinstance(scene.end, RunEnded):
        return "live"
    return "failed" if scene.end.outcome == "failed" else "ended"


def make_page(
    track: FrameCollector,
    frames: Sequence[BatchFrame],
    state: str,
    left: float | None = None,
    lag: float | None = None,
) -> CockpitPage:
    """Return everything that the browser needs to show a run."""
    rest: Mapping[str, Any] = track.page_fields(state, left, lag)
    return {"frames": list(frames), "hosts": track.host_rows(), **rest}  # type: ignore[typeddict-item]
