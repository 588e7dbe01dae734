"""The plan of a query: from its answer over operators down to its streams.

It marks operators as new, relaxed or unchanged, and shows the compensations. Source: Seshadri 2008,
sections 3.1 and 3.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd
from braid.core.plan_sentences import format_count
from braid.papers.reuse.deployment import Deployment, Operator
from braid.papers.reuse.query_definition import Definition, make_compensation
from braid.papers.reuse.relaxation import format_window
from braid.util.durations import format_duration

from braid_widgets.base.text_table import TextTable

INDENT = "\u2003"
"""Space before what a part of the plan reads; HTML does not collapse it."""


class PlanRow(NamedTuple):
    """A part of a plan: what it is, how it is reused, and what it passes on to the part that reads
    it.
    """

    part: str
    reuse: str
    passes_on: str


def plan_tree(before: Deployment, after: Deployment, name: str) -> TextTable:
    """Return the plan of a query in the deployment ``after``, marked by its reuse of ``before``.

    Below each part, indented, is what it reads.
    """
    query = after.queries[name]
    operator = after.operators[query.operator]
    text = _format_compensation(operator, query.definition)
    rows = [PlanRow(f"{name} at {query.sink}", "query", "")]
    rows += _list_operator_rows(before, after, operator, text, 1)
    return TextTable(pd.DataFrame(rows), caption=f"Plan of {name}")


def _list_operator_rows(
    before: Deployment, after: Deployment, operator: Operator, text: str, depth: int
) -> Iterator[PlanRow]:
    """Yield an operator and everything it reads."""
    demands = len(operator.demands)
    shared = f", {format_count(demands, 'demand')}" if demands > 1 else ""
    what = f"σ{operator.id} at {operator.node}: {' ⋈ '.join(operator.definition.streams)}{shared}"
    yield PlanRow(INDENT * depth + what, _classify_reuse(before, operator), text)
    indent = INDENT * (depth + 1)
    for read in operator.inputs:
        if isinstance(read, str):
            text = _format_source(operator.definition.restrict_to((read,)))
            yield PlanRow(f"{indent}{read} from {after.source_node(read)}", "stream", text)
        else:
            upstream = after.operators[read]
            wanted = operator.demands[-1].definition.restrict_to(upstream.definition.streams)
            text = _format_compensation(upstream, wanted)
            yield from _list_operator_rows(before, after, upstream, text, depth + 1)


def _classify_reuse(before: Deployment, operator: Operator) -> str:
    there = before.operators.get(operator.id)
    if there is None:
        return "new"
    return "as it was" if there.version == operator.version else "relaxed"


def _format_source(definition: Definition) -> str:
    (where,), (columns,) = definition.selections, definition.columns
    chosen = "" if where.to_sql == "TRUE" else f"{where.to_sql}; "
    return f"{chosen}{', '.join(sorted(columns))}"


def _format_compensation(operator: Operator, wanted: Definition) -> str:
    """Return the compensation of an operator's results in words."""
    extra, parts = make_compensation(operator.definition, wanted), []
    for stream, where, window in zip(wanted.streams, extra.where, extra.windows, strict=True):
        parts += [] if where is None else [f"{stream}: {where.to_sql}"]
        parts += [] if window is None else [f"{stream} younger than {format_window(window)}"]
    parts += [j.text for j in sorted(extra.joins) if not j.is_implied]
    if extra.slides:
        parts.append("every " + " or ".join(map(format_duration, sorted(extra.slides))))
    return "; ".join(parts) or "all of it"
