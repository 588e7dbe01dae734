"""Which placement a join is run by when nobody says: all that could serve it are simulated on what
is known of the join, and what their hosts do is weighed. Modelled, and the same for the same facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from braid.core.events import BatchCommitted, BatchPlanned
from braid.core.placement import Placement, offered
from braid.core.report import HostDid
from braid.core.words import counted
from braid.model.simulate import simulate

BATCHES = 8
"""Simulated, of each candidate."""
ROWS = 10_000
"""Tuples of the largest stream in a batch, about what a micro-batch has."""
RECEIVED, PROBED, COMPARED, FOUND, BLOCK = 1.0, 0.5, 0.02, 0.1, 2000.0
"""Microseconds that a host takes to take in a tuple, to look for its partners in a host's blocks,
to check a pair that no index has found, to write a result, and to make a block: 2 to 3 ms were
measured for each more in a batch of 4,000 tuples (benchmarks/auto.py).
"""
SHARED = {False: 0.9, True: 0.02}
"""What part of the other hosts' work the busiest host waits for: threads of a machine share memory
and locks, those of several machines only the driver. The first is by joins of 4,000 to 16,000
tuples a batch on two cores, in which a hash on two hosts took 1.03 to 1.3 times one host's time
(benchmarks/auto.py); the second is judged.
"""
ORDER = ("HashPartition", "AdaptiveGrid", "StaticGrid", "Centralized")
"""What is chosen among equals, the first; others come last, by name."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a join before it starts.

    ``rows`` are the tuples of each stream, in all or as they compare; ``windows`` W_i in seconds,
    None for full history, and ``span`` the seconds of event time in which the rows come, 0 when
    nobody knows. ``hosts`` work at once. ``equality``: one links all streams. ``indexed``: an index
    finds partners. ``share``: the part of tuples that has the most frequent value of the equality.
    ``apart``: hosts are on several machines.
    """

    rows: tuple[float, ...]
    windows: tuple[float | None, ...]
    hosts: int
    equality: bool
    indexed: bool
    span: float = 0.0
    share: float = 0.0
    apart: bool = False


class Chosen(NamedTuple):
    """A placement, the reason, and what each candidate would cost, as a part of what it does."""

    placement: Placement
    why: str
    costs: dict[str, float]


def choose(known: Known) -> Chosen:
    """The placement of the least modelled work on the busiest host."""
    made = {type(p).__name__: p for p in candidates(known)}
    costs = {name: cost(p, known) for name, p in made.items()}
    best = min(costs, key=lambda name: (round(costs[name], -2), _rank(name)))
    ratios = {name: costs[name] / costs[best] for name in sorted(costs, key=costs.__getitem__)}
    return Chosen(made[best], _why(known, best, ratios), ratios)


def candidates(known: Known) -> Iterable[Placement]:
    """What could serve the join on so many hosts, with the settings that they have by default."""
    streams = len(known.rows)
    for kind in offered(streams, known.equality).values():
        own = kind.__module__.startswith("braid.") and kind.coverage == "exactly once"
        if not own or kind.keying == "both" or kind.__name__ == "StaticOpt":
            continue
        try:
            placement = kind.of({"hosts": known.hosts} if "hosts" in kind.takes() else {})
        except ValueError:  # not with so few hosts
            continue
        if placement.serves(streams):
            yield placement


def cost(placement: Placement, known: Known) -> float:
    """Microseconds of all simulated batches."""
    whole = sum(share**2 for share in _shares(placement, known)) if known.share else 1.0
    return work(_events(placement, known), known.indexed, known.apart, known.share**2 / whole)


def work(events: Iterable[Any], indexed: bool, apart: bool, matches: float) -> float:
    """Microseconds of all batches of some events; ``matches`` is the part of the pairs that meet
    which are results.
    """
    total = 0.0
    made: Counter[int] = Counter()
    for event in events:
        if isinstance(event, BatchPlanned):
            made = Counter(h for r in event.routes if r.fresh for h in r.block.hosts)
            made.update(h for d in event.derivations for h in d.block.hosts)
        elif isinstance(event, BatchCommitted):
            each = [_work(did, made[h], indexed, matches) for h, did in enumerate(event.hosts)]
            busiest = max(each, default=0.0)
            total += busiest + SHARED[apart] * (sum(each) - busiest)
    return total


def _events(placement: Placement, known: Known) -> list[Any]:
    most = max(known.rows, default=0.0) or 1.0
    batch = [max(1, round(ROWS * n / most)) for n in known.rows]
    windows = [w for w in known.windows if w is not None]
    whole = known.span or 3 * max(windows, default=1.0)
    shares = _shares(placement, known)
    return simulate(
        placement,
        [batch] * BATCHES,
        windows=known.windows,
        seconds=whole / BATCHES,
        selectivity=1 / (ROWS * BATCHES),
        key_shares=[shares] * len(batch) if len(shares) > 1 else (),
    )


def _shares(placement: Placement, known: Known) -> list[float]:
    """The part of the tuples that has each routing key, where those of one value have one."""
    if placement.keying != "join":
        return [1.0]
    rest = (1 - known.share) / placement.keys
    return [known.share + rest, *[rest] * (placement.keys - 1)]


def _work(did: HostDid, blocks: int, indexed: bool, matches: float) -> float:
    """Microseconds that a host takes for what it did; ``matches`` is the part of the pairs that
    meet there which are results.
    """
    tuples = did.received + did.arrived + did.moved
    pairs = 0 if indexed else did.compared
    found = FOUND * matches * did.compared
    return RECEIVED * tuples + PROBED * did.probed + COMPARED * pairs + found + BLOCK * blocks


def _rank(name: str) -> tuple[int, str]:
    return (ORDER.index(name) if name in ORDER else len(ORDER)), name


def _why(known: Known, best: str, ratios: dict[str, float]) -> str:
    others = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items() if name != best)
    facts = [f"{len(known.rows)} streams", counted(known.hosts, "host")]
    facts.append("an equality links all" if known.equality else "no equality links all")
    if known.share:
        facts.append(f"its most frequent value has {known.share:.1%} of the tuples")
    if not known.indexed:
        facts.append("no index finds partners")
    than = f"; modelled work, compared with it: {others}" if others else ""
    return f"{best} for {', '.join(facts)}{than}"
