"""Judge why a combination of tuples is in a run's results, or is not, from plain facts.

The verdicts of ``judge_pair``, in the order in which they are tried:

| verdict | meaning |
|---|---|
| ``untimed`` | a tuple has no event time, and the join needs one |
| ``filtered`` | a part of the condition that concerns one stream is not true |
| ``condition`` | another part of the condition is not true |
| ``window`` | the event times are too far apart |
| ``outranked`` | in an as-of join, the tuple has another partner |
| ``matched`` | in an anti join, a tuple with a partner is no result |
| ``late`` | the later tuple came when its partner might be gone |
| ``not served`` | the query of a shared run did not have to answer it |
| ``shed`` | load shedding skipped the pair |
| ``pending`` | a change of placement is in progress; the pair is joined later |
| ``waiting`` | the tuple waits for its partner or answer |
| ``found`` | it is a result |
| ``not delivered`` | it is a result that ``foreachBatch`` has not received |
| ``no longer kept`` | its batch's results have been removed |
| ``unknown`` | it cannot be judged; the steps say what is missing |
| ``fault`` | it should be a result and is not, or the other way round |

``never arrived`` is the verdict if a stream has no such tuple, and ``unmatched`` that of a tuple
that is a result without a partner. The functions are pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from braid.core.join_kinds import INNER, JoinKind
from braid.util.batch_numbers import display_batch
from braid.util.durations import UNITS, format_duration, format_instant
from braid.util.validation import format_value

FAULT = "fault"
_LONGEST = 60
"""Characters of a value in a step."""
_VALUES = {True: "true", False: "false", None: "NULL"}
_NUMBERS = (int, float, Decimal)


@dataclass(frozen=True)
class TupleFacts:
    """Facts about one tuple.

    - ``alias``: its stream.
    - ``label``: the alias and some columns, such as ``o id 7``.
    - ``batch``: the micro-batch in which it came; None: unknown.
    - ``time``: event time in microseconds; None: it has none.
    - ``behind``: microseconds by which it came behind what its stream's ``lateness`` allows; 0: it
      was in time; None: unknown.
    - ``let_go``: the first batch after which it may have been dropped; None: it is held, or this is
      unknown.
    """

    alias: str
    label: str
    batch: int | None = None
    time: int | None = None
    behind: int | None = 0
    let_go: int | None = None

    @property
    def arrival(self) -> str:
        """The label with the event time and the batch."""
        parts = [] if self.time is None else [format_instant(self.time).removesuffix(" UTC")]
        parts += [] if self.batch is None else [f"came in batch {display_batch(self.batch)}"]
        return f"{self.label} ({', '.join(parts)})" if parts else self.label


@dataclass(frozen=True)
class PartFacts:
    """A conjunct of the condition, evaluated for one combination of tuples.

    - ``text``: Spark SQL.
    - ``value``: whether it is true; None: it is NULL.
    - ``sides``: the values that a comparison compares; None: it is no comparison.
    - ``is_filter``: whether it concerns one stream.
    - ``reason``: why it could not be evaluated; empty: it was.
    """

    text: str
    value: bool | None
    sides: tuple[Any, Any] | None = None
    is_filter: bool = False
    reason: str = ""

    @property
    def is_true(self) -> bool:
        """Whether it is known to be true."""
        return self.value is True and not self.reason

    @property
    def distance(self) -> float | None:
        """How far the sides of a false comparison are apart; None: they have no distance."""
        if self.sides is None or None in self.sides or self.is_true:
            return None
        left, right = self.sides
        if isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
            return abs(float(left) - float(right))
        if isinstance(left, date) and type(left) is type(right):
            return abs((left - right) / timedelta(microseconds=1))
        return None

    def describe_values(self) -> str:
        """Return the compared values, such as ``120 < 100``; empty if there are none."""
        if self.sides is None:
            return ""
        left, right = map(_format_operand, self.sides)
        if None in self.sides:
            return f"{left} and {right}"
        distance = self.distance
        if distance is None or self.value is None:
            return f"{left} and {right}"
        is_date = isinstance(self.sides[0], date)
        gap = format_duration(distance) if is_date else f"{distance:,.6g}"
        return f"{left} and {right}: misses by {gap}"


@dataclass(frozen=True)
class RunFacts:
    """Facts about the run that hold for all its tuples.

    - ``windows``: microseconds by alias; an absent alias has full history.
    - ``kind``: the kind of the join.
    - ``match``: "latest", "first" or "nearest" for an as-of join; empty: none.
    - ``timed``: aliases of streams whose tuples join nothing without event time.
    - ``sheds``: whether load is shed.
    - ``has_pending_pairs``: whether a change of placement is in progress.
    - ``first_retained_batch``: the first batch whose results are kept.
    - ``delivered``: the last batch that ``foreachBatch`` received; None: the run has none.
    """

    windows: Mapping[str, int] = field(default_factory=dict)
    kind: JoinKind = INNER
    match: str = ""
    timed: frozenset[str] = frozenset()
    sheds: bool = False
    has_pending_pairs: bool = False
    first_retained_batch: int = 0
    delivered: int | None = None


@dataclass(frozen=True)
class PairFacts:
    """Facts about one combination of tuples.

    - ``tuples``: one of each named stream.
    - ``parts``: the conjuncts that concern only these streams.
    - ``result``: the batch whose results contain it; None: none does.
    - ``unmatched``: the alias and batch of a member that is a result without a partner; None: none.
    - ``partner``: in an as-of join, the partner that the first tuple has instead; empty: none.
    - ``waiting``: the alias of a member whose answer is not final; empty: none.
    - ``absent``: streams that were left out and have no tuple that completes it.
    - ``forgetful``: those of ``absent`` that no longer keep all of their tuples.
    - ``nearest``: the tuple of an absent stream that comes closest to it, with the parts of the
      condition for both; None: there is none, or it is unknown.
    - ``unserved``: why the query of a shared run need not answer it; empty: it must.
    """

    tuples: tuple[TupleFacts, ...]
    parts: tuple[PartFacts, ...] = ()
    result: int | None = None
    unmatched: tuple[str, int] | None = None
    partner: str = ""
    waiting: str = ""
    absent: tuple[str, ...] = ()
    forgetful: tuple[str, ...] = ()
    nearest: tuple[TupleFacts, tuple[PartFacts, ...]] | None = None
    unserved: str = ""


@dataclass(frozen=True)
class Step:
    """One line of a judgment: the subject, the verdict on it, and the values."""

    subject: str
    outcome: str
    values: str = ""


@dataclass(frozen=True)
class PairVerdict:
    """The judgment of one combination of tuples.

    - ``verdict``: a word of the module's table.
    - ``also``: further verdicts that apply.
    - ``steps``: what was compared, in order.
    - ``advice``: the setting with which it would be a result; empty: none.
    - ``tuples``: the tuples.
    - ``batch``: the batch whose results contain it; None: none.
    - ``distance``: conjuncts that are not true, and the distance of the first: the lower, the
      nearer.
    """

    verdict: str
    also: tuple[str, ...]
    steps: tuple[Step, ...]
    advice: str
    tuples: tuple[TupleFacts, ...]
    batch: int | None = None
    distance: tuple[int, float] = (0, 0.0)

    @property
    def is_certain(self) -> bool:
        """Whether nothing unknown could change the verdict."""
        return self.verdict != "unknown" and not (self.verdict == "late" and "unknown" in self.also)


def judge_pair(pair: PairFacts, run: RunFacts) -> PairVerdict:
    """Return why a combination of tuples is a result, or is not."""
    obstacles = [*_find_obstacles(pair, run)]
    steps = [_describe_part(part) for part in pair.parts]
    steps += [step for _, step in obstacles if step not in steps]
    verdict, last = _conclude_pair(pair, run, [verdict for verdict, _ in obstacles])
    also = tuple(dict.fromkeys(v for v, _ in obstacles if v != verdict))
    return PairVerdict(
        verdict,
        also if verdict != FAULT else (),
        (*steps, last) if last.values else tuple(steps),
        _advise_setting(pair, run, verdict),
        pair.tuples,
        pair.result,
        _measure_distance(pair),
    )


def _find_obstacles(pair: PairFacts, run: RunFacts) -> Iterator[tuple[str, Step]]:
    """Yield the verdicts that prevent a result, in their order, each with its step."""
    for fact in pair.tuples:
        if fact.alias in run.timed and fact.time is None:
            yield (
                "untimed",
                Step(fact.alias, "untimed", "it has no event time, so it joins nothing"),
            )
    for name, is_filter in (("filtered", True), ("condition", False)):
        for part in pair.parts:
            if part.is_filter is is_filter and not part.is_true and not part.reason:
                yield name, _describe_part(part)
    incomplete = pair.absent if all(part.value is not False for part in pair.parts) else ()
    for alias in incomplete:
        if alias not in pair.forgetful:
            yield "condition", Step(alias, "none", "no tuple fulfils the condition with it")
            yield from (("condition", step) for step in _describe_nearest(pair))
    yield from (("window", step) for step in _find_narrow_windows(pair, run))
    for fact in pair.tuples:
        if fact.behind:
            late = f"came {format_duration(fact.behind)} behind what lateness allows"
            yield (
                "late",
                Step(fact.alias, "late", f"{fact.label} {late}{_describe_partner(pair, fact)}"),
            )
    if pair.unserved:
        yield "not served", Step("query", "not served", pair.unserved)
    for alias in incomplete:
        if alias in pair.forgetful:
            reason = "no tuple that is kept fulfils the condition; start(trace=...) keeps others"
            yield "unknown", Step(alias, "unknown", reason)
            yield from (("unknown", step) for step in _describe_nearest(pair))
    for part in pair.parts:
        if part.reason:
            yield "unknown", _describe_part(part)
    if any(fact.behind is None for fact in pair.tuples):
        yield "unknown", Step("lateness", "unknown", "the events of its batch are no longer kept")


def _describe_nearest(pair: PairFacts) -> Iterator[Step]:
    """Yield the tuple that comes closest to a partner, and the parts that are not true with it."""
    if pair.nearest is None:
        return
    fact, parts = pair.nearest
    yield Step(f"nearest {fact.alias}", "no", fact.arrival)
    yield from (_describe_part(part) for part in parts if not part.is_true)


def _find_narrow_windows(pair: PairFacts, run: RunFacts) -> Iterator[Step]:
    times = [fact.time for fact in pair.tuples if fact.time is not None]
    for fact in pair.tuples:
        window = run.windows.get(fact.alias)
        if window is None or fact.time is None or max(times) - fact.time < window:
            continue
        distance = max(times) - fact.time
        latest = next(f.alias for f in pair.tuples if f.time == max(times))
        yield Step(
            f"window of {fact.alias}",
            "exceeded",
            f"{latest} is {format_duration(distance)} after {fact.alias}; {fact.alias} is kept for "
            f"{format_duration(window)}: {format_duration(distance - window)} too late",
        )


def _describe_partner(pair: PairFacts, late: TupleFacts) -> str:
    """Return when the other tuples may have been dropped, as the end of a sentence."""
    gone = [
        f"{f.label} was let go in batch {display_batch(f.let_go)}"
        for f in pair.tuples
        if f.let_go is not None
    ]
    return f"; {' and '.join(gone)}" if gone and late.let_go is None else ""


def _conclude_pair(pair: PairFacts, run: RunFacts, obstacles: Sequence[str]) -> tuple[str, Step]:
    """Return the verdict and the last step, given the obstacles in order."""
    if pair.unmatched is not None and pair.absent:
        batch = display_batch(pair.unmatched[1])
        return "unmatched", Step("answer", "unmatched", f"a result of batch {batch}")
    if pair.result is not None and not (run.kind.writes_matched and obstacles):
        batch = display_batch(pair.result)
        hard = [o for o in obstacles if o in ("untimed", "filtered", "condition", "window")]
        if hard:
            return FAULT, Step("result", FAULT, f"it is a result of batch {batch}")
        if run.delivered is not None and pair.result > run.delivered:
            until = f"foreachBatch has received the batches up to {display_batch(run.delivered)}"
            return "not delivered", Step("result", "yes", f"in batch {batch}; {until}")
        return "found", Step("result", "yes", f"in batch {batch}")
    if obstacles:
        return obstacles[0], Step("result", "no", "")
    return _conclude_absence(pair, run)


def _conclude_absence(pair: PairFacts, run: RunFacts) -> tuple[str, Step]:
    """Return the verdict on a combination that nothing prevents, but that is no result."""
    batches = [fact.batch for fact in pair.tuples if fact.batch is not None]
    if pair.partner:
        return "outranked", Step(run.match, "no", f"its partner is {pair.partner}")
    if pair.waiting:
        return "waiting", Step("answer", "waits", f"the answer of {pair.waiting} is not final yet")
    if run.kind.writes_unmatched and not run.kind.writes_pairs and pair.unmatched is None:
        return "matched", Step("kind", "no", f"{run.kind.name} joins keep tuples without a partner")
    if run.sheds:
        return "shed", Step("shedding", "no", "the run sheds load, and skipped this pair")
    if run.has_pending_pairs:
        return "pending", Step(
            "placement", "not yet", "joined when the change of placement has ended"
        )
    if batches and max(batches) < run.first_retained_batch:
        since = f"results are kept from batch {display_batch(run.first_retained_batch)} on"
        return "no longer kept", Step(
            "result", "removed", f"found by batch {display_batch(max(batches))}; {since}"
        )
    advice = "it should be a result and is not: please report it, with the run folder"
    return FAULT, Step("result", FAULT, advice)


def _describe_part(part: PartFacts) -> Step:
    if part.reason:
        return Step(part.text, "unknown", part.reason)
    nulls = "" if part.value is not None else "; NULL never matches, <=> compares it"
    return Step(part.text, _VALUES[part.value], part.describe_values() + nulls)


def _advise_setting(pair: PairFacts, run: RunFacts, verdict: str) -> str:
    """Return the setting with which a combination would be a result; empty: there is none."""
    if verdict == "window":
        times = [fact.time for fact in pair.tuples if fact.time is not None]
        needed = {
            fact.alias: _round_up(max(times) - fact.time + 1)
            for fact in pair.tuples
            if fact.time is not None
            and max(times) - fact.time >= run.windows.get(fact.alias, max(times) - fact.time + 1)
        }
        spans = ", ".join(f'"{a}": "{format_duration(w, exact=True)}"' for a, w in needed.items())
        factors = ", ".join(
            f"{w / run.windows[a]:.1f} times the tuples of {a}" for a, w in needed.items()
        )
        return f"windows={{{spans}}} holds {factors}"
    if verdict == "late":
        late = {f.alias: _round_up(f.behind) for f in pair.tuples if f.behind}
        spans = ", ".join(f'"{a}": "{format_duration(b, exact=True)}"' for a, b in late.items())
        return f"lateness={{{spans}}} more than now waits for it"
    return ""


def _round_up(micros: int) -> int:
    """Return a duration rounded up to whole seconds, or minutes from ten minutes on."""
    unit = UNITS["second"] if micros < 10 * UNITS["minute"] else UNITS["minute"]
    return -(-micros // unit) * unit


def _measure_distance(pair: PairFacts) -> tuple[int, float]:
    false = [part for part in pair.parts if not part.is_true]
    distances = [part.distance for part in false if part.distance is not None]
    return len(false), min(distances, default=0.0)


def _format_operand(value: Any) -> str:
    if value is None:
        return "NULL"
    text = str(value) if isinstance(value, date | timedelta | Decimal) else format_value(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
