"""A query of a hub in words: what it asks for, the operators that serve it, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from braid.core import words
from braid.core.plan import Block
from braid.papers.reuse.deployment import Asked, Deployment
from braid.papers.reuse.events import HubCommitted
from braid.papers.reuse.relaxation import span

from braid_widgets.base.words import held

Blocks = Callable[[int], Sequence[Block]]
"""The live blocks of an operator."""


def query(deployment: Deployment, events: Iterable[Any], blocks: Blocks, name: str) -> str:
    """What serves a query now. Raises KeyError for one that is not answered."""
    asked = deployment.queries[name]
    found: dict[int, int] = {}
    for event in events:
        for did in event.operators if isinstance(event, HubCommitted) else ():
            found[did.operator] = found.get(did.operator, 0) + did.results
    lines = [f"query {name}, asked at {asked.sink}", f"  {asked.sql}".rstrip(), *_asks(asked)]
    return "\n".join([*filter(None, lines), *_operators(deployment, asked, blocks, found)])


def _asks(asked: Asked) -> Iterator[str]:
    own = asked.definition
    windows = ", ".join(f"{s} {span(w)}" for s, w in zip(own.streams, own.windows, strict=True))
    chosen = zip(own.streams, own.where, strict=True)
    where = ", ".join(f"{s}: {sel.text}" for s, sel in chosen if sel.text != "TRUE")
    yield f"  windows: {windows}; selections: {where or 'none'}"


def _operators(
    deployment: Deployment, asked: Asked, blocks: Blocks, found: dict[int, int]
) -> Iterator[str]:
    """A line for each operator that it needs, each before those that it reads, and its blocks."""
    due = [asked.operator]
    while due:
        operator = deployment.operators[due.pop(0)]
        reads = [
            f"{read} from {deployment.source(read)}" if isinstance(read, str) else f"σ{read}"
            for read in operator.inputs
        ]
        due += [read for read in operator.inputs if isinstance(read, int) and read not in due]
        shared = words.counted(len(operator.demands), "demand")
        done = f"{found.get(operator.id, 0):,} results so far"
        joins = " ⋈ ".join(operator.definition.streams)
        yield f"σ{operator.id} at {operator.node}: {joins}, {shared}, {done}"
        yield f"  reads {', '.join(reads)}"
        yield f"  holds {held(blocks(operator.id))}"
