"""Explain why tuples are joined in a run, or are not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from braid.answer_check_kinds import read_checkable_settings
from braid.answer_check_queries import ServedQuery, find_served_query
from braid.answer_check_text import set_session_zone
from braid.core.pair_verdicts import PairVerdict, Step, judge_pair
from braid.core.run_state import RunState
from braid.pair_facts import PairSearch
from braid.row_selectors import Selector, list_conjuncts, qualify_columns
from braid.storage.run_store import RunStore, open_store
from braid.stored_tuples import StoredTuples, read_last_state
from braid.util.batch_numbers import display_batch_range
from braid.util.html_table import render_html_table
from braid.util.validation import check_int, format_value

_MOST = 1_000
"""Greatest ``limit``."""


@dataclass(frozen=True)
class Why:
    """The answer to why tuples are joined, or are not.

    - ``verdict``: that of the nearest combination; see ``braid.core.pair_verdicts``.
    - ``is_certain``: whether all that it rests on is kept.
    - ``pairs``: the judged combinations, nearest first.
    - ``seen``: tuples that were chosen, by alias.
    - ``searched``: where tuples were looked for.
    - ``missing``: by alias, why no tuple was chosen.
    - ``blocks``: which blocks hold the tuples of the nearest combination, and where they met.
    """

    verdict: str
    is_certain: bool
    pairs: tuple[PairVerdict, ...]
    seen: Mapping[str, int]
    searched: str
    missing: Mapping[str, str]
    blocks: tuple[str, ...] = ()

    def __str__(self) -> str:
        chosen = ", ".join(f"{count:,} of {alias}" for alias, count in self.seen.items())
        certain = "Certain." if self.is_certain else "Not certain: not all is kept."
        return "\n".join(
            [*self._describe_answer(), f"tuples: {chosen}; searched {self.searched}. {certain}"]
        )

    def _describe_answer(self) -> list[str]:
        if self.missing:
            return [*self.missing.values()]
        lines = [] if len(self.pairs) == 1 else [self._count_verdicts()]
        return [*lines, *_describe_nearest_pair(self.pairs[0]), *self.blocks]

    def _count_verdicts(self) -> str:
        counts = Counter(pair.verdict for pair in self.pairs)
        parts = ", ".join(f"{count:,} {verdict}" for verdict, count in counts.most_common())
        return f"{len(self.pairs):,} combinations: {parts}; the nearest:"

    def to_json(self) -> str:
        """Return the answer as a JSON object."""
        return json.dumps(asdict(self), default=str, ensure_ascii=False)

    def _repr_html_(self) -> str:
        title, *lines = str(self).splitlines()
        return render_html_table(title, ([line] for line in lines))


def _describe_nearest_pair(pair: PairVerdict) -> list[str]:
    if pair.verdict in ("found", "not delivered", "unmatched"):
        outcome = pair.verdict
    else:
        outcome = f"no result: {pair.verdict}"
    head = f"{' and '.join(fact.arrival for fact in pair.tuples)}: {outcome}"
    steps = [*pair.steps]
    steps += [Step("also", ", ".join(pair.also))] if pair.also else []
    steps += [Step("to have it", pair.advice)] if pair.advice else []
    width = max((len(step.subject) for step in steps), default=0)
    return [head, *(_format_step(step, width) for step in steps)]


def _format_step(step: Step, width: int) -> str:
    return f"  {step.subject:<{width}}  {step.outcome}" + (
        f"  {step.values}" if step.values else ""
    )


def explain_rows(
    path: str | Path,
    rows: Mapping[str, Selector],
    limit: int,
    spark: Any = None,
    query: str | None = None,
    blocks: bool = False,
) -> Why:
    """Return why tuples of a run that is no hub are joined, as ``braid.why`` does.

    ``spark``: session that evaluates parts of the condition which DuckDB cannot; None: they are
    unknown.
    """
    store = open_store(path)
    settings = read_checkable_settings(store)
    check_question(rows, settings["streams"], limit)

    def explain_state(state: RunState) -> Why:
        served = find_served_query(store, settings, query)
        of_query = settings if served is None else _restrict_settings(served)
        return _explain_state(store, of_query, state, served, rows, limit, spark, blocks)

    if (answer := read_last_state(store, explain_state)) is None:
        raise ValueError(f"{store.where} has no committed batch, so it stores no tuple")
    return answer


def _restrict_settings(served: ServedQuery) -> dict[str, Any]:
    """Return the settings of a query, with what it selects as parts of the condition."""
    parts = list_conjuncts(served.settings["on"])
    for alias, sql in served.selections.items():
        parts += [qualify_columns(alias, part) for part in list_conjuncts(sql)] if sql else []
    return {**served.settings, "on": " AND ".join(f"({part})" for part in parts)}


def _explain_state(
    store: RunStore,
    settings: Mapping[str, Any],
    state: RunState,
    served: ServedQuery | None,
    rows: Mapping[str, Selector],
    limit: int,
    spark: Any,
    blocks: bool,
) -> Why:
    store.fetch_all()
    with duckdb.connect() as database:
        set_session_zone(database, settings)
        stored = StoredTuples(database, store, settings, state, served)
        search = PairSearch(stored, rows, limit, spark)
        answer = explain_chosen_pairs(search)
        if not blocks or not answer.pairs:
            return answer
        return replace(answer, blocks=(*search.places.describe_blocks(answer.pairs[0].tuples),))


def check_question(rows: Any, aliases: Sequence[str], limit: Any) -> None:
    """Raise ValueError unless rows are selected from one stream at least, all of them known, and
    ``limit`` is a number of tuples.
    """
    check_int(limit, "limit", 1, _MOST)
    if not isinstance(rows, Mapping) or not rows:
        raise ValueError(
            f"rows are {format_value(rows)}; they must be conditions by alias, such as "
            f"{{{aliases[0]!r}: 'id = 7'}}"
        )
    for alias in rows:
        if alias not in aliases:
            raise ValueError(
                f"there is no stream {format_value(alias)}; the run joins {', '.join(aliases)}"
            )


def explain_chosen_pairs(search: PairSearch) -> Why:
    """Return the judgment of all combinations of chosen tuples, the nearest first."""
    seen = {alias: len(search.tuples[alias]) for alias in search.selectors}
    searched = display_batch_range(0, search.stored.last_batch)
    absent = {a: search.describe_absence(a) for a, count in seen.items() if not count}
    if absent:
        verdict = next(iter(absent.values()))[0]
        sentences = {alias: sentence for alias, (_, sentence) in absent.items()}
        return Why(verdict, verdict != "unknown", (), seen, searched, sentences)
    judged = [judge_pair(pair, search.run) for pair in search.list_pair_facts()]
    pairs = tuple(sorted(judged, key=_measure_nearness))
    is_certain = all(pair.is_certain for pair in pairs)
    return Why(pairs[0].verdict, is_certain, pairs, seen, searched, {})


def _measure_nearness(pair: PairVerdict) -> tuple[bool, tuple[int, float]]:
    return pair.batch is None, pair.distance
