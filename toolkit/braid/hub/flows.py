"""What goes over the network in a batch: rows and bytes, counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from braid.core.columns import TIME
from braid.hub.flat import flat
from braid.hub.instance import Rows
from braid.hub.works import Fault, Works
from braid.papers.reuse.deployment import Asked, Deployment
from braid.papers.reuse.events import Flowed


def counted(
    works: Works,
    deployment: Deployment,
    came: Mapping[int, Mapping[str, Rows]],
    epoch: int,
    compensations: Mapping[str, str | None],
) -> Iterator[Flowed]:
    """All that went from node to node in a batch, each flow for itself. ``compensations`` are by
    query (see ``Span.where``). Raises Fault.
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
    for asked in deployment.queries.values():
        try:
            answer = delivered(works, asked, epoch, compensations[asked.name])
        except works.reader.faults as error:
            raise Fault(error, query=asked.name) from error
        node = deployment.operators[asked.operator].node
        if answer is not None:
            yield _flow(str(asked.operator), asked.name, node, asked.sink, answer)


def delivered(works: Works, asked: Asked, epoch: int, where: str | None) -> pa.Table | None:
    """What a query was told in a batch, as it goes to its sink: matches, with event times."""
    rows = works.results(asked.operator, epoch, asked.bit)
    if rows is None:
        return None
    time = works.reader.time
    columns = zip(asked.definition.streams, asked.definition.columns, strict=True)
    told = [flat(s, c) for s, mine in columns for c in sorted(mine | {time})]
    return works.passing(asked.operator, rows, where).select(told)


def _flow(what: str, to: str, source: str, target: str, rows: pa.Table) -> Flowed:
    return Flowed(what, to, source, target, rows.num_rows, int(rows.nbytes))
