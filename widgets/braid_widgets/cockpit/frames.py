"""Fold a run's events into what the cockpit shows: a frame per batch and the timeline."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, NotRequired, TypedDict

from braid.core.plan_sentences import format_count
from braid.core.run_diagnosis import diagnose_run
from braid.core.run_events import BatchCommitted, BatchShed, RunStarted
from braid.core.run_record import BATCHES, RunRecord
from braid.run_touches import Touch
from braid.util.durations import format_duration

from braid_widgets.base.block_map import BlockMapFrame
from braid_widgets.base.columnar import Columns
from braid_widgets.base.key_figures import KeyFigure
from braid_widgets.base.progress_line import FINISHING, format_time_left
from braid_widgets.base.run_view import HISTORY, RunView
from braid_widgets.base.state_maps import StateMap, choose_map
from braid_widgets.base.text import MODELLED
from braid_widgets.base.track_records import Series, Track
from braid_widgets.cockpit.answer_flow import AnswerCollector, AnswerFlow
from braid_widgets.cockpit.condition_flow import BatchFlow, make_flow
from braid_widgets.cockpit.decision_flags import Annotation, FlagCollector
from braid_widgets.cockpit.key_figures import make_key_figures
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

_COUNTS = {
    "rows held": "stored_tuples",
    "rows received": "received_tuples",
    "pairs compared": "met_pairs",
    "pairs left out": "skipped_pairs",
    "rows moved here": "migrated_tuples",
    "results": "results",
}
MEASURES = (*_COUNTS, "seconds of work", "seconds of waiting")
"""Measures of the hosts over time, in words; the rows of color show one at a time.

Seconds are present only if they were measured or modelled, and pairs left out if there are any.
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
    - ``note``: what runs and how it ended; ``host_word`` is "node" on a ring and in a hub.
    - ``seconds_left``: the time left, in words.
    - ``seconds_since_commit``: seconds since the last commit; None if the run has ended or this is
      unknown.
    - ``what_if_placements``: labels of placements for a what-if; empty if no kernel can answer.
    - ``what_if_message``: the result of the last what-if, in a sentence.
    - ``touches``: changes that the active run takes from this page.
    """

    state: str
    name: str
    condition: str
    note: str
    host_word: str
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
    """Folds in events in order and collects the frames and the rows of the latest batches.

    - ``is_followed``: whether the run is or was followed here; one that is read is "recorded".
    - ``omissions``: what was left out of the events, in words.
    """

    def __init__(self, is_followed: bool = False, omissions: str = "") -> None:
        self.scene, self.is_followed, self._omissions = RunView(), is_followed, omissions
        self._found_results = self._estimated_results = 0.0
        self.deciding, self.verdicts = FlagCollector(), VerdictTracker(self.scene)
        self.answers = AnswerCollector(self.scene)
        self._hub = HubTranslator()
        self.map: StateMap | None = None
        self.frames: deque[BatchFrame] = deque(maxlen=HISTORY)
        self._rows: deque[tuple[int, list[list[float]]]] = deque(maxlen=HISTORY)
        self._commits: deque[BatchCommitted] = deque(maxlen=BATCHES + 1)
        self.baselines: list[Series] = []
        self._tops: dict[str, float] = {}
        self.offers: dict[str, str] = {}
        self.what_if_message = ""
        self.touches: list[Touch] = []
        self._waiting: list[Any] = []

    def apply_events(self, events: Iterable[Any], draw: bool = True) -> None:
        """Fold in events of a run or a hub; without ``draw`` the batches get no frame."""
        for event in self._hub.translate_events(events):
            self._apply_event(event)
            if isinstance(event, BatchCommitted):
                self._record_commit(event, draw)

    @property
    def last_batch(self) -> int:
        """Return the number of the last batch, from 1; 0 before it."""
        return self.scene.last.batch + 1 if self.scene.last else 0

    def _apply_event(self, event: Any) -> None:
        self.scene.apply_event(event)
        self._waiting.append(event)
        if self.map is not None or isinstance(event, BatchCommitted):
            self._update_state_map()
        self.deciding.apply_event(event)
        self.verdicts.apply_event(event)
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
        shed = self.scene.find_latest(BatchShed)
        if shed is not None and shed.batch == event.batch:
            self._found_results += event.results
            self._estimated_results += shed.estimated_results
        self._rows.append((self.last_batch, _make_host_measures(event)))
        self._commits.append(event)
        if draw:
            self.frames.append(self.make_frame())

    @property
    def state(self) -> str:
        """Return the state of the run in one word."""
        if self.scene.is_modelled:
            return "modelled"
        if not self.is_followed:
            return "recorded"
        if self.scene.end is None:
            return "live"
        return "failed" if self.scene.end.outcome == "failed" else "ended"

    def make_frame(self) -> BatchFrame:
        """Return the frame after the last commit."""
        assert self.scene.last is not None and self.map is not None
        figures = make_key_figures(self.scene, self._estimate_recall(), self.map.make_key_figure())
        return {
            "batch": self.last_batch,
            "title": run_title(self.scene),
            "key_figures": Columns.from_records(KeyFigure, figures),
            "verdict": self.verdicts.verdict,
            "flow": make_flow(self.scene.start, self.scene.last),
            "answers": self.answers.list_flows(),
            "state_map": {self.map.name: self.map.make_frame()},  # type: ignore[misc]
        }

    def _estimate_recall(self) -> float | None:
        """Return the share of all results that was produced, as estimated from weights."""
        if self.scene.find_latest(BatchShed) is None:
            return None
        estimated = self._estimated_results
        return min(1.0, self._found_results / estimated) if estimated else 1.0

    def _list_own_tracks(self) -> list[Track]:
        """Return the tracks of the answers, if there are any, and else of the map."""
        return self.answers.list_tracks() or (self.map.make_tracks() if self.map else [])

    def host_rows(self, since: int = 0) -> HostRows:
        """Return the activity of each host in the batches after ``since``."""
        rows = [(batch, values) for batch, values in self._rows if batch > since]
        names = [n for k, n in enumerate(MEASURES) if any(any(v[k]) for _, v in self._rows)]
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
        return [
            {"batch": f.batch + 1, "text": f"{f.level}: {f.sentence}; {f.remedy}"} for f in findings
        ]

    def make_page(self, state: str = "", since: int = 0, lag: float | None = None) -> CockpitPage:
        """Return everything that the browser needs to show a run.

        - ``state``: shown in place of ``self.state``.
        - ``since``: only frames and rows of hosts of later batches are included.
        - ``lag``: seconds since the last commit, if it is known when that was.
        """
        return {
            "state": state or self.state,
            "name": join_names(self.scene),
            "condition": self.scene.start.condition if self.scene.start else "",
            "note": " · ".join(filter(None, (run_note(self.scene), self._omissions))),
            "host_word": _name_host(self.scene),
            "seconds_left": "" if lag is None else format_time_left(self.scene),
            "seconds_since_commit": None if self.scene.end is not None else lag,
            "frames": [frame for frame in self.frames if frame["batch"] > since],
            "timeline": make_timeline(
                self.scene, self.baselines, self._tops, self._list_own_tracks()
            ),
            "hosts": self.host_rows(since),
            "annotations": list(self.deciding.flags),
            "symptoms": self._list_symptoms(),
            "what_if_placements": [*self.offers.values()],
            "what_if_message": self.what_if_message,
            "touches": self.touches,
        }


def _make_host_measures(event: BatchCommitted) -> list[list[float]]:
    """Return the values of each measure, by host."""
    hosts = event.host_metrics
    slowest = max((h.seconds for h in hosts), default=0.0)
    busy = [round(h.seconds, 4) for h in hosts]
    counts = ([getattr(h, name) for h in hosts] for name in _COUNTS.values())
    return [*counts, busy, [round(slowest - h.seconds, 4) for h in hosts]]


def join_names(scene: RunView) -> str:
    """Return the joined streams; those of a hub are listed, as its queries join some of them."""
    return (", " if _is_hub(scene) else " ⋈ ").join(scene.stream_aliases)


def _is_hub(scene: RunView) -> bool:
    return scene.start is not None and scene.start.placement == "QueryHub"


def _name_host(scene: RunView) -> str:
    """Return the word for a host."""
    placement = scene.start.placement if scene.start else ""
    return "node" if placement in ("QueryHub", "Ring") else "host"


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


def run_note(scene: RunView) -> str:
    """Return the placement, its hosts and windows, and the origin of the figures."""
    start = scene.start
    if start is None:
        return ""
    hosts = scene.points[-1].hosts if scene.points else start.hosts
    windows = ", ".join(f"{a} {w}" for a, w in start.windows.items()) or "full history"
    if _is_hub(scene):
        windows = "windows of each query"
    elif scene.queries:
        longest = max(max(q.windows.values(), default=0) for q in scene.queries.values())
        count = f"{len(scene.queries)} {'query' if len(scene.queries) == 1 else 'queries'}"
        windows = f"windows of {count}, up to {format_duration(longest)}"
    since = scene.first_retained_batch + 1
    ends = (scene.end.outcome, scene.end.error) if scene.end else ()
    parts = (
        f"{start.placement}, {format_count(hosts, _name_host(scene))}",
        start.condition,
        windows,
        MODELLED if scene.is_modelled else "measured",
        f"events are kept from batch {since:,} on" if since > 1 else "",
        FINISHING if scene.is_finishing else ": ".join(filter(None, ends)),
    )
    return " · ".join(filter(None, parts))
