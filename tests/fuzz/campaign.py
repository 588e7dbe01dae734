"""Draw conditions, answer them by every route and compare the answers with the oracles."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache as cached
from typing import Any

from braid.core.placement import Placement
from msgspec.structs import replace
from oracle import PLACEMENTS

from fuzz import routes
from fuzz.brute_force import brute_force
from fuzz.cases import AUTO, Case
from fuzz.grammar import link_streams, random_case, random_streams
from fuzz.kinds import draw_kind, list_kind_results
from fuzz.oracles import SparkOracle, compiled_truth
from fuzz.outcomes import UNKNOWN, Answer, Truth, judge, kind_of_sentence
from fuzz.shrinking import Budget, shrink
from fuzz.spark_values import EvaluationError

PER_ROUND = 200
"""Number of conditions over the same streams."""
_RUN_EACH = 20
"""One in this number of conditions is answered by a whole run too."""
_SPARK_RUN_EACH = 2000
_AUTO = 0.3
"""Share of the conditions that are run with the default placement."""
_LINKED = 0.25
"""Share of the conditions that begin with equalities that link all streams."""
_SPANS = (30_000_000, 60_000_000, 90_000_000)
_SPARK_EACH = 5
"""One in this number of conditions is also joined over Spark's frames."""
Route = Callable[[Case], Answer]
Asked = Callable[[], Truth | EvaluationError]
"""The right answer, computed once and only if an answer is to be judged."""


class _Given:
    """The answer of a route to the case at a position of its round."""

    def __init__(
        self, name: str, place: int, case: Case, route: Route, answer: Answer | None = None
    ) -> None:
        self.name, self.place, self.case, self.route = name, place, case, route
        self.answer = route(case) if answer is None else answer


@dataclass(frozen=True)
class Finding:
    """A route with a wrong answer, the original case, and the shrunk one."""

    route: str
    wrong: str
    case: Case
    shrunk: Case


@dataclass
class Report:
    """Counts of a campaign so far: ``verdicts`` by route and kind, ``refusals`` by sentence."""

    conditions: int = 0
    seconds: float = 0.0
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Return conditions per second."""
        return self.conditions / self.seconds if self.seconds else 0.0


class Campaign:
    """All conditions of one seed.

    Without ``spark`` the truth is that of ``brute_force``, and of the compiler's SQL for conditions
    beyond it.
    """

    def __init__(self, seed: int, spark: Any = None, shrinks: bool = True) -> None:
        self.seed, self.spark, self.shrinks = seed, spark, shrinks
        self.oracle = None if spark is None else SparkOracle(spark)
        self.report = Report()
        self._seen: Counter[tuple[str, str]] = Counter()

    def run(self, minutes: float | None = None, count: int | None = None) -> Report:
        """Draw conditions for ``minutes``, or ``count`` of them."""
        began = time.monotonic()
        number = 0
        while (count is None or self.report.conditions < count) and (
            minutes is None or time.monotonic() - began < 60 * minutes
        ):
            self.round(
                number,
                PER_ROUND if count is None else min(PER_ROUND, count - self.report.conditions),
            )
            number += 1
            self.report.seconds = time.monotonic() - began
        return self.report

    def cases(self, number: int, count: int = PER_ROUND) -> Iterator[Case]:
        """Return the cases of a round; one in ten has three streams."""
        draw = random.Random(f"{self.seed} {number}")
        kinds = random.Random(f"{self.seed} {number} kinds")
        links = random.Random(f"{self.seed} {number} links")
        several = draw.random() < 0.1
        streams = random_streams(draw, 3 if several else 2, 4 if several else 6)
        for _ in range(count):
            case = random_case(draw, streams)
            if links.random() < _LINKED:
                case = link_streams(links, case)
            if draw.random() < 0.5:
                spans = {a: draw.choice(_SPANS) for a in streams if draw.random() < 0.8}
                case = replace(case, windows=spans)
            names = [n for n, p in PLACEMENTS.items() if _suits(p, case)]
            placement = AUTO if draw.random() < _AUTO else draw.choice(names)
            yield draw_kind(kinds, replace(case, placement=placement))

    def round(self, number: int, count: int = PER_ROUND) -> None:
        """Answer the conditions of a round and judge all answers.

        All are answered by the kernels over tables, some also by the kernels over Spark's frames or
        by whole runs.
        """
        cases = list(self.cases(number, count))
        plain = [replace(c, windows={}, how="inner", match="") for c in cases]
        given = [_Given("tables", n, c, routes.table_kernels) for n, c in enumerate(plain)]
        if self.spark is not None:
            places = range(number % _SPARK_EACH, count, _SPARK_EACH)
            known = [p for p in places if given[p].answer.kind != "refused"]
            given += self._by_spark_kernels(plain, places, known)
        for place in range(number % _RUN_EACH, count, _RUN_EACH):
            given += self._run_whole(cases[place], place, number * PER_ROUND + place)
        if self.oracle is not None:
            answered = sorted({g.place for g in given if g.answer.kind != "refused"})
            self.oracle.prepare(plain[0].streams, [plain[p].on for p in answered])
        truths = {n: cached(lambda n=n: self._truth(plain[n])) for n in range(count)}
        for each in given:
            self._judge(each, truths[each.place])
        self.report.conditions += count

    def _by_spark_kernels(
        self, cases: Sequence[Case], places: Sequence[int], known: Sequence[int]
    ) -> list[_Given]:
        """Return Spark's answers at some places; those ``known`` to tables are reused."""
        kernels = routes.SparkKernels(self.spark, cases[0])
        kernels.take([cases[p].on for p in known])
        found = kernels.answers([cases[p].on for p in places])
        return [
            _Given("Spark kernels", place, cases[place], self._by_spark, answer)
            for place, answer in zip(places, found, strict=True)
        ]

    def _run_whole(self, case: Case, place: int, number: int) -> list[_Given]:
        """Answer a condition by whole runs, with its windows."""
        case = self._place_by_value(case, number)
        named: dict[str, Route] = {"table run": routes.table_run}
        if self.spark is not None and not number % 5:
            named["process run"] = lambda c: routes.process_run(self.spark, c)
        if self.spark is not None and number % _SPARK_RUN_EACH < _RUN_EACH:
            named["Spark run"] = lambda c: routes.spark_run(self.spark, c)
        return [_Given(name, place, case, route) for name, route in named.items()]

    def _place_by_value(self, case: Case, number: int) -> Case:
        """Return the case, every other time with a placement by value if there is an equality."""
        draw = random.Random(f"{self.seed} {number} by value")
        streams = len(case.streams)
        names = [n for n, p in PLACEMENTS.items() if _routes_by_value(p, streams)]
        chosen = replace(case, placement=draw.choice(names))
        return chosen if draw.random() < 0.5 and routes.is_accepted(chosen) else case

    def _by_spark(self, case: Case) -> Answer:
        return routes.SparkKernels(self.spark, case).answers([case.on])[0]

    def _truth(self, case: Case) -> Truth | EvaluationError:
        """Return the right results, or an error if the conjuncts must be evaluated one by one."""
        mine = brute_force(case)
        if self.oracle is None:
            return mine if mine.is_known else compiled_truth(case)
        found = self.oracle.quick_truth(case)
        if (
            isinstance(found, Truth)
            and found.is_known
            and mine.is_known
            and found.rows != mine.rows
        ):
            self._find(
                "oracles", case, "brute force says otherwise than Spark", lambda c: Answer("rows")
            )
        return found

    def wrong(self, case: Case, answer: Answer, truth: Truth | EvaluationError) -> str:
        """Return the fault of an answer in a line, empty if it has none."""
        if isinstance(truth, EvaluationError):
            truth = Truth(Counter(), may_fail=True) if answer.kind != "rows" else self._exact(case)
        wrong = judge(answer, _of_kind(case, truth))
        if wrong and self.oracle is not None and answer.kind == "failed":
            wrong = judge(answer, _of_kind(case, self._exact(case)))
        return wrong

    def _exact(self, case: Case) -> Truth:
        assert self.oracle is not None
        return self.oracle.with_errors(case)

    def _judge(self, given: _Given, truth: Asked) -> None:
        name, answer = given.name, given.answer
        self.report.verdicts[name, answer.kind] += 1
        if answer.kind == "refused":
            self.report.refusals[kind_of_sentence(answer.sentence)] += 1
        elif wrong := self.wrong(given.case, answer, truth()):
            self._find(name, given.case, wrong, given.route)

    def _find(self, name: str, case: Case, wrong: str, route: Route) -> None:
        kind = (name, kind_of_sentence(wrong)[:60])
        self._seen[kind] += 1
        shrunk = case
        if self.shrinks and self._seen[kind] <= 5 and name != "oracles":
            shrunk = shrink(case, lambda c: self._is_wrong(c, route), Budget(15))
        self.report.findings.append(Finding(name, wrong, case, shrunk))

    def _is_wrong(self, case: Case, route: Route) -> bool:
        return bool(self.wrong(case, route(case), self.quiet_truth(case)))

    def quiet_truth(self, case: Case) -> Truth | EvaluationError:
        if self.oracle is not None:
            return self.oracle.quick_truth(case)
        mine = brute_force(case)
        return mine if mine.is_known else compiled_truth(case)


def _routes_by_value(placement: Placement, streams: int) -> bool:
    """Return whether a placement takes equalities of this number of streams."""
    return placement.routing_key_source != "tuple" and placement.supports_streams(streams)


def _suits(placement: Any, case: Case) -> bool:
    """Return whether a placement takes any condition over this number of streams."""
    if placement.routing_key_source != "tuple":
        return False
    try:
        placement.initial_state(len(case.streams))
    except ValueError:
        return False
    return True


def _of_kind(case: Case, truth: Truth) -> Truth:
    """Return the right results within the windows of a case, and of its kind of join."""
    if case.match and truth.may_fail:  # only some of the pairs are compared
        return UNKNOWN
    if not truth.is_known or (truth.must_fail and not case.windows):
        return truth
    rows = list_kind_results(case, routes.within_windows(case, truth.rows))
    return Truth(rows, truth.may_fail)
