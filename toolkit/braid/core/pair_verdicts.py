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
| ``dropped`` | load shedding dropped one of the tuples on arrival |
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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from braid.core.combination_facts import PairFacts, PartFacts, RunFacts, TupleFacts
from braid.util.batch_numbers import display_batch
from braid.util.durations import UNITS, format_duration

FAULT = "fault"
_REPORT = "please report it, with `braid bundle RUN`"
_VALUES = {True: "true", False: "false", None: "NULL"}


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
    if verdict in ("found", "not delivered"):
        steps += [Step("found by", access, parts) for access, parts in pair.access]
    others = dict.fromkeys(v for v, _ in obstacles if v != verdict)
    is_alone = verdict in ("unmatched", "waiting") and bool(pair.absent)
    also = () if is_alone or verdict == FAULT else tuple(others)
    return PairVerdict(
        verdict,
        also,
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
            reason = f"no kept tuple fulfils the condition; {run.keeping_setting} keeps others"
            yield "unknown", Step(alias, "unknown", reason)
            yield from (("unknown", step) for step in _describe_nearest(pair))
    for part in pair.parts:
        if part.reason:
            yield "unknown", _describe_part(part)
    if any(fact.behind is None for fact in pair.tuples) and not _is_removed(pair, run):
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
    if pair.absent and pair.waiting and run.kind.writes_unmatched and "filtered" not in obstacles:
        return "waiting", Step("answer", "waits", f"{pair.waiting} may still get a partner")
    if pair.result is not None and not (run.kind.writes_matched and obstacles):
        batch = display_batch(pair.result)
        hard = [o for o in obstacles if o in ("untimed", "filtered", "condition", "window")]
        if hard:
            return FAULT, Step(
                "result", FAULT, f"it is a result of batch {batch} and should not be: {_REPORT}"
            )
        if run.delivered is not None and pair.result > run.delivered:
            until = f"foreachBatch has received the batches up to {display_batch(run.delivered)}"
            return "not delivered", Step("result", "yes", f"in batch {batch}; {until}")
        return "found", Step("result", "yes", f"in batch {batch}")
    if obstacles:
        return obstacles[0], Step("result", "no", "")
    return _conclude_absence(pair, run)


def _conclude_absence(pair: PairFacts, run: RunFacts) -> tuple[str, Step]:
    """Return the verdict on a combination that nothing prevents, but that is no result."""
    if pair.partner:
        return "outranked", Step(run.match, "no", f"its partner is {pair.partner}")
    if pair.waiting:
        return "waiting", Step("answer", "waits", f"the answer of {pair.waiting} is not final yet")
    if run.kind.writes_unmatched and not run.kind.writes_pairs and pair.unmatched is None:
        return "matched", Step("kind", "no", f"{run.kind.name} joins keep tuples without a partner")
    if (skipped := _judge_shedding(pair, run)) is not None:
        return skipped[0], Step("shedding", *skipped)
    if run.has_pending_pairs:
        return "pending", Step(
            "placement", "not yet", "joined when the change of placement has ended"
        )
    if _is_removed(pair, run):
        return "no longer kept", Step("result", "removed", _describe_removal(pair, run))
    return FAULT, Step("result", FAULT, f"it should be a result and is not: {_REPORT}")


def _judge_shedding(pair: PairFacts, run: RunFacts) -> tuple[str, str] | None:
    """Return the verdict of load shedding and a sentence; None: it did not skip the tuples."""
    if pair.shedding is None or (_is_removed(pair, run) and not pair.shedding.is_known):
        return None
    return pair.shedding.find_verdict()


def _is_removed(pair: PairFacts, run: RunFacts) -> bool:
    """Return whether the results of the batch in which the tuples met are removed."""
    batches = [fact.batch for fact in pair.tuples if fact.batch is not None]
    return bool(batches) and max(batches) < run.first_retained_batch


def _describe_removal(pair: PairFacts, run: RunFacts) -> str:
    last = max(fact.batch for fact in pair.tuples if fact.batch is not None)
    is_sure = pair.shedding is None and all(fact.behind is not None for fact in pair.tuples)
    how = "found by" if is_sure else "if it was found, then by"
    since = f"results are kept from batch {display_batch(run.first_retained_batch)} on"
    return f"{how} batch {display_batch(last)}; {since}"


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
