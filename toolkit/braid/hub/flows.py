"""What goes over the network in a batch: rows and bytes, counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from braid.core.columns import TIME
from braid.hub.flat import flat
from braid.hub.instance import Rows
from braid.hub.works import Works
from braid.papers.reuse.deployment import Asked, Deployment
from braid.papers.reuse.events import Flowed


def counted(
    works: Works,
    deployment: Deployment,
    came: Mapping[int, Mapping[str, Rows]],
    told: Mapping[str, pa.Table],
) -> Iterator[Flowed]:
    """All that went from node to node in a batch, each flow for itself. ``told`` are the matches
    that queries were told, by name.
    """
    for operator in deployment.operators.values():
        instance = works.instances[operator.id]
        inputs = instance.made.inputs
        for alias, rows in came[operator.id].items():
            read = inputs[alias].read
            node = (
                deployment.source(read)
                if isinstance(read, str)
                else deployment.operators[read].node
            )
            taken = instance.taken(alias, rows).select([*inputs[alias].stored, TIME])
            yield _flow(str(read), str(operator.id), node, operator.node, taken)
    for name, matches in told.items():
        asked = deployment.queries[name]
        node = deployment.operators[asked.operator].node
        answer = matches.select(_sent(asked, works.reader.time))
        yield _flow(str(asked.operator), name, node, asked.sink, answer)


def _sent(asked: Asked, time: str) -> list[str]:
    """The columns of matches that go to a query's sink: with event times."""
    columns = zip(asked.definition.streams, asked.definition.columns, strict=True)
    return [flat(s, c) for s, mine in columns for c in sorted(mine | {time})]


def _flow(what: str, to: str, source: str, target: str, rows: pa.Table) -> Flowed:
    return Flowed(what, to, source, target, rows.num_rows, int(rows.nbytes))
