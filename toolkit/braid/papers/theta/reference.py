"""The adaptive grid one tuple at a time. Source: Elseidy et al. 2014, Algorithms 1 to 3 (sections
4.1 to 4.3).

Two reshufflers take turns. The first is the controller: it counts what it sees (Algorithm 1),
scaled by the number of reshufflers, and decides (Algorithm 2). The other hears of a decision
``delay`` tuples later and until then routes by the old mapping. Joiners follow Algorithm 3: what
they hold is tau (from before the decision), Delta (old epoch, came since), Delta' (new epoch) and
mu (sent by the partner); results of fresh tuples are found throughout the migration. Two migrated
tuples arrive for each tuple that comes, which is the rate that section 4.3.2 asks for.

A migration halves one side of the mapping and doubles the other (Lemma 4.2), so each joiner has one
partner: both had the same part of one stream and exchange their parts of the other. R is stream a,
S is stream b. A tuple's place in the join matrix is its ``key``, a number in [0, 1).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from braid.papers.theta.mapping import Mapping, ilf, optimal_mapping, square
from braid.papers.trace import (
    NAMES,
    Group,
    Move,
    Step,
    Theta,
    Trace,
    Tuple,
    by_stream,
    equal,
    typed,
)

RESHUFFLERS = 2
SETS = ("tau", "delta", "fresh", "mu")
MARKS = {"tau": "", "delta": " Δ", "fresh": " Δ′", "mu": " μ"}
"""How tuples of each set are written; those of tau have no mark."""

Place = tuple[int, int]


def part(key: float, parts: int) -> int:
    """The part of [0, 1) that a key is in."""
    return min(int(key * parts), parts - 1)


def stepped(place: Place, before: Mapping, after: Mapping) -> Place:
    """Where a joiner of the grid ``before`` is in ``after``, one step away (Fig. 3)."""
    (row, column), (n, m) = place, before
    if after == (n // 2, 2 * m):
        return row // 2, 2 * column + row % 2
    if after == (2 * n, m // 2):
        return 2 * row + column % 2, column // 2
    return place


@dataclass
class Joiner:
    """A joiner at a place of the grid; while it migrates, ``next`` is its place in the new one and
    ``partner`` whom it exchanges tuples with. ``signals`` counts reshufflers that have told it.
    """

    place: Place
    sets: dict[str, list[Tuple]] = field(default_factory=lambda: {name: [] for name in SETS})
    queue: deque[Tuple] = field(default_factory=deque)
    next: Place | None = None
    partner: int | None = None
    signals: int = 0

    def held(self, *names: str) -> list[Tuple]:
        """The tuples of some sets."""
        return [t for name in names for t in self.sets[name]]


@dataclass
class Grid:
    """A run. ``counts`` are |R|, |S|, |Delta R|, |Delta S| as the controller knows them, ``ahead``
    the mapping of the new epoch, ``unaware`` how many tuples come before the other reshuffler hears
    of it.
    """

    keys: Callable[[Tuple], float]
    theta: Theta
    delay: int
    warmup: int
    mapping: Mapping
    joiners: list[Joiner]
    trace: Trace
    counts: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    ahead: Mapping | None = None
    unaware: int = 0
    now: Tuple | None = None
    clock: int = 0

    def arrive(self, t: Tuple) -> None:
        """A tuple comes to one of the reshufflers, then migrated ones go on."""
        self.now, controller = t, self.clock % RESHUFFLERS == 0
        if self.ahead is not None and self.unaware == 0 and self._waits():
            self._signal("the other reshuffler hears of it: all of them have signalled")
        if controller:
            self._count(t)
        self._route(t, controller or self.unaware == 0)
        self.unaware = max(0, self.unaware - 1)
        for _ in range(2):
            self._migrate()
        self.clock += 1

    def finish(self) -> None:
        """Let a migration come to its end."""
        if self.ahead is not None and self._waits():
            self._signal("the other reshuffler hears of it: all of them have signalled")
        while self.ahead is not None:
            self._migrate()

    def _waits(self) -> bool:
        return self.joiners[0].signals == 1

    def _count(self, t: Tuple) -> None:
        """Algorithm 1, then Algorithm 2."""
        self.counts[2 + t.stream] += RESHUFFLERS
        side = "RS"[t.stream]
        self._tell(f"Alg. 1, line {2 + t.stream}: |Δ{side}| grows by {RESHUFFLERS}", None)
        if self.ahead is None and self.clock >= self.warmup:
            self._decide()

    def _decide(self) -> None:
        r, s, dr, ds = self.counts
        if dr < r and ds < s:
            return
        r, s = r + dr, s + ds
        best = self._nearer(optimal_mapping(r, s, len(self.joiners), self.mapping))
        self.counts = [r, s, 0, 0]
        loads = f"ILF {ilf(r, s, *self.mapping):g} under {self.mapping}"
        if best == self.mapping:
            self._tell(f"Alg. 2, lines 2 to 6: a stream has doubled; {loads} stays the least", None)
            return
        words = f"{loads}, {ilf(r, s, *best):g} under {best}: migrate"
        self._tell(f"Alg. 2, lines 2 to 6: a stream has doubled; {words}", None)
        self.ahead, self.unaware = best, self.delay
        for k, joiner in enumerate(self.joiners):
            joiner.next = stepped(joiner.place, self.mapping, best)
            joiner.partner = self._partner(k)
        self._signal("Alg. 3, lines 2 and 3: the first signal; τ is sent to partners")
        for joiner in self.joiners:
            for t in joiner.sets["tau"]:
                self._send(joiner, t)

    def _nearer(self, best: Mapping) -> Mapping:
        """One step from the mapping in force towards the best: Lemma 4.2 has it no further away."""
        n, m = self.mapping
        return best if best[0] == n else (2 * n, m // 2) if best[0] > n else (n // 2, 2 * m)

    def _partner(self, k: int) -> int:
        """The joiner that had the same part of the stream whose parts get smaller."""
        row, column = self.joiners[k].place
        assert self.ahead is not None
        other = (row ^ 1, column) if self.ahead[0] < self.mapping[0] else (row, column ^ 1)
        return next(j for j, joiner in enumerate(self.joiners) if joiner.place == other)

    def _signal(self, text: str) -> None:
        for joiner in self.joiners:
            joiner.signals += 1
        if self.joiners[0].signals == RESHUFFLERS:
            text = f"Alg. 3, lines 4 and 5: {text}; from here on no tuple is of the old epoch"
        self._tell(text, None)

    def _at(self, t: Tuple, place: Place, mapping: Mapping) -> bool:
        return part(self.keys(t), mapping[t.stream]) == place[t.stream]

    def _keeps(self, joiner: Joiner, t: Tuple) -> bool:
        """KEEP: whether the joiner is where the new mapping has the tuple."""
        assert self.ahead is not None and joiner.next is not None
        return self._at(t, joiner.next, self.ahead)

    def _send(self, joiner: Joiner, t: Tuple) -> None:
        """MIGRATED: the partner gets what it has a part of, and lacks, under the new mapping."""
        assert self.ahead is not None and joiner.partner is not None
        partner = self.joiners[joiner.partner]
        if not self._at(t, partner.place, self.mapping) and self._keeps(partner, t):
            partner.queue.append(t)

    def _route(self, t: Tuple, aware: bool) -> None:
        """Algorithm 1, line 5, and Algorithm 3, lines 9 to 19."""
        fresh = self.ahead is not None and aware
        for k, joiner in enumerate(self.joiners):
            mapping = self.ahead if fresh and self.ahead is not None else self.mapping
            place = joiner.next if fresh and joiner.next is not None else joiner.place
            if self._at(t, place, mapping):
                self._handle(k, t, "fresh" if fresh else "delta" if self.ahead else "tau")

    def _handle(self, k: int, t: Tuple, to: str) -> None:
        """HANDLETUPLE: join a tuple with what it must meet, and keep it."""
        joiner, lines = self.joiners[k], {"tau": "line 13", "delta": "lines 13 to 15"}
        meets = [u for u in self._meets(joiner, t, to) if u.stream != t.stream]
        found = [by_stream((t, u)) for u in meets if self.theta(t, u)]
        joiner.sets[to].append(t)
        if to == "delta":
            self._send(joiner, t)
        told = joiner.signals == RESHUFFLERS
        lines["fresh"] = "lines 18 and 19" if told else "lines 11 and 12"
        lines["mu"] = "line 17" if told else "line 10"
        name = "μ" if to == "mu" else MARKS[to].strip() or "τ"
        text = f"Alg. 3, {lines[to]}: {t} of {name} meets {_named(meets)}"
        self._tell(text, k, found, () if to == "mu" else (Move(str(t), "probe", None, k),))

    def _meets(self, joiner: Joiner, t: Tuple, to: str) -> list[Tuple]:
        """What a tuple of this set is joined with: Lemma 4.6."""
        old = joiner.held("tau", "delta")
        if to == "tau":
            return joiner.held("tau")
        if to == "mu":
            return joiner.held("fresh")
        if to == "delta":
            return old + (joiner.held("fresh") if self._keeps(joiner, t) else [])
        return joiner.held("mu", "fresh") + [u for u in old if self._keeps(joiner, u)]

    def _migrate(self) -> None:
        """A migrated tuple arrives, or the migration ends."""
        if self.ahead is None:
            return
        if waiting := [k for k, joiner in enumerate(self.joiners) if joiner.queue]:
            k = max(waiting, key=lambda k: len(self.joiners[k].queue))
            self._handle(k, self.joiners[k].queue.popleft(), "mu")
        elif not self._waits():
            self._end()

    def _end(self) -> None:
        """FINALIZEMIGRATION, at all joiners."""
        for joiner in self.joiners:
            kept = [t for t in joiner.held("tau", "delta") if self._keeps(joiner, t)]
            kept += joiner.held("mu", "fresh")
            joiner.sets = {name: [] for name in SETS} | {"tau": kept}
        self._settled()

    def _settled(self) -> None:
        assert self.ahead is not None
        for joiner in self.joiners:
            assert joiner.next is not None
            joiner.place, joiner.next, joiner.partner, joiner.signals = joiner.next, None, None, 0
        self.mapping, self.ahead = self.ahead, None
        self._tell(
            "Alg. 3, lines 20 to 23: what the new mapping has elsewhere is discarded; the "
            "migration has ended",
            None,
        )

    def _tell(
        self, text: str, node: int | None, found: Sequence[Group] = (), moves: Sequence[Move] = ()
    ) -> None:
        """One step of the trace, with the state after it."""
        sent = [
            Move(str(t), "copy", joiner.partner, k)
            for k, joiner in enumerate(self.joiners)
            for t in joiner.queue
        ]
        stored = tuple(
            tuple(
                tuple(f"{t}{MARKS[s]}" for s in SETS for t in joiner.sets[s] if t.stream == stream)
                for stream in (0, 1)
            )
            for joiner in self.joiners
        )
        self.trace.steps.append(
            Step(
                text,
                str(self.now),
                self.clock,
                node,
                stored,
                tuple([*moves, *sent]),
                found=tuple(found),
                table=self._table(),
            )
        )

    def _table(self) -> tuple[tuple[str, ...], ...]:
        r, s, dr, ds = map(str, self.counts)
        mapping = f"{self.mapping}" + (f" → {self.ahead}" if self.ahead else "")
        return ("mapping", "|R|", "|S|", "|ΔR|", "|ΔS|"), (mapping, r, s, dr, ds)


def _named(tuples: Sequence[Tuple]) -> str:
    return ", ".join(map(str, tuples)) or "nothing"


def spread(t: Tuple) -> float:
    """A key for each tuple: its number times the golden ratio, which spreads evenly."""
    return (t.number * 0.6180339887498949 + 0.31 * t.stream) % 1.0


def run(
    tuples: Sequence[Tuple],
    hosts: int = 4,
    delay: int = 2,
    warmup: int = 0,
    theta: Theta = equal,
    keys: Callable[[Tuple], float] = spread,
) -> Trace:
    """All steps of joining these tuples, of streams 0 (R) and 1 (S), in the order given, over the
    full history.

    ``delay`` is the number of tuples that come before the second reshuffler hears of a new mapping,
    ``warmup`` the number that come before anything is decided.
    Raises ValueError unless ``hosts`` is a power of two and all tuples are of two streams.
    """
    if unknown := [t for t in tuples if t.stream not in (0, 1)]:
        odd = unknown[0]
        raise ValueError(f"{odd} is of stream {odd.stream}; a grid joins streams 0 and 1")
    n, m = square(hosts)
    joiners = [Joiner((k // m, k % m)) for k in range(hosts)]
    trace = Trace("The adaptive grid, tuple by tuple: R is a, S is b", 2, hosts)
    grid = Grid(keys, theta, delay, warmup, (n, m), joiners, trace)
    for t in tuples:
        grid.arrive(t)
    grid.finish()
    return grid.trace


def own(text: str) -> Trace:
    """Tuples that somebody typed, on four joiners. Raises ValueError as ``typed`` does."""
    return run(typed(text), warmup=4)


def example() -> Trace:
    """Four joiners. S, stream b, outgrows R: the grid goes from (2, 2) to (1, 4) as tuples come."""
    order = "aabbbbbbbabbb"
    counts = dict.fromkeys(NAMES[:2], 0)
    tuples = []
    for time, letter in enumerate(order, 1):
        counts[letter] += 1
        tuples.append(Tuple(time, NAMES.index(letter), counts[letter], time % 2))
    return run(tuples, warmup=4)
