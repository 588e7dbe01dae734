"""The adaptive grid one tuple at a time.

Two reshufflers take turns. The first is the controller: it counts its tuples (Algorithm 1), scaled
by the number of reshufflers, and decides (Algorithm 2). The other learns of a decision ``delay``
tuples later and until then routes by the old mapping. Joiners follow Algorithm 3. They hold tau
(from before the decision), Delta (old epoch, arrived since), Delta' (new epoch) and mu (sent by the
partner); results of fresh tuples are found throughout the migration. Two migrated tuples arrive for
each new tuple, which is the rate that section 4.3.2 requires.

A migration halves one side of the mapping and doubles the other (Lemma 4.2), so each joiner has one
partner: both had the same part of one stream and exchange their parts of the other. R is stream a,
S is stream b. A tuple's place in the join matrix is its ``key``, a number in [0, 1).

Source: Elseidy et al. 2014, Algorithms 1 to 3 (sections 4.1 to 4.3).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from braid.papers.theta.host_groups import make_groups
from braid.papers.theta.mapping import Mapping, input_load_factor, optimal_mapping, square_mapping

from braid_lab.common.tuple_models import (
    NAMES,
    TUPLES,
    Group,
    Heads,
    Line,
    Place,
    Rows,
    StepExample,
    Stepper,
    Stored,
    Theta,
    Trace,
    TraceMove,
    Tuple,
    has_equal_values,
    parse_tuples,
    sort_by_stream,
)
from braid_lab.theta.listings import LISTINGS

RESHUFFLERS = 2
SETS = ("tau", "delta", "fresh", "mu")
MARKS = {"tau": "", "delta": " Δ", "fresh": " Δ′", "mu": " μ"}
"""Marks of the tuples of each set; those of tau have no mark."""


def find_partition(key: float, parts: int) -> int:
    """Return the part of [0, 1) that contains a key."""
    return min(int(key * parts), parts - 1)


def next_place(place: Place, before: Mapping, after: Mapping) -> Place:
    """Return a joiner's place in the grid ``after``, one step from ``before`` (Fig. 3)."""
    hosts = before[0] * before[1]
    (group,) = make_groups(hosts, [before], hosts)
    return group.with_mapping(after).cells_by_host()[group.host_at(*place)]


@dataclass
class Joiner:
    """A joiner at a place of the grid.

    During a migration ``next`` is its place in the new grid and ``partner`` the joiner with which
    it exchanges tuples. ``signals`` counts the reshufflers that have signaled the migration.
    """

    place: Place
    sets: dict[str, list[Tuple]] = field(default_factory=lambda: {name: [] for name in SETS})
    queue: deque[Tuple] = field(default_factory=deque)
    next: Place | None = None
    partner: int | None = None
    signals: int = 0

    def tuples_in(self, *names: str) -> list[Tuple]:
        """Return the tuples of some sets."""
        return [t for name in names for t in self.sets[name]]


@dataclass
class ReferenceGrid(Stepper):
    """A run of the adaptive grid.

    ``counts`` are |R|, |S|, |Delta R|, |Delta S| of the controller. ``ahead`` is the mapping of the
    new epoch. ``unaware`` is the number of tuples until the other reshuffler learns of it.
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

    def process_tuple(self, t: Tuple) -> None:
        """Send a tuple to one of the reshufflers, then move migrated ones on."""
        self.now, controller = t, self.clock % RESHUFFLERS == 0
        if self.ahead is not None and self.unaware == 0 and self._is_awaiting_signal():
            self._signal_joiners()
        if controller:
            self._count_tuple(t)
        self._route_tuple(t, controller or self.unaware == 0)
        self.unaware = max(0, self.unaware - 1)
        for _ in range(2):
            self._migrate_tuple()
        self.clock += 1

    def finish_migration(self) -> None:
        """Let a migration end."""
        if self.ahead is not None and self._is_awaiting_signal():
            self._signal_joiners()
        while self.ahead is not None:
            self._migrate_tuple()

    def _is_awaiting_signal(self) -> bool:
        return self.joiners[0].signals == 1

    def _count_tuple(self, t: Tuple) -> None:
        """Apply Algorithm 1, then Algorithm 2."""
        self.counts[2 + t.stream] += RESHUFFLERS
        side = "RS"[t.stream]
        line = Line("Algorithm 1", 2 + t.stream, 2 + t.stream)
        self.record_step(f"{t} comes: |Δ{side}| grows by {RESHUFFLERS}", None, line=line)
        if self.ahead is None and self.clock >= self.warmup:
            self._decide_migration()

    def _decide_migration(self) -> None:
        r, s, dr, ds = self.counts
        if dr < r and ds < s:
            return
        r, s = r + dr, s + ds
        best = self._step_toward_mapping(optimal_mapping(r, s, len(self.joiners), self.mapping))
        self.counts = [r, s, 0, 0]
        loads = f"ILF {input_load_factor(r, s, *self.mapping):g} under {self.mapping}"
        if best == self.mapping:
            self._record_decision(f"{loads} stays the least")
            return
        self._record_decision(f"{loads}, {input_load_factor(r, s, *best):g} under {best}: migrate")
        self.ahead, self.unaware = best, self.delay
        for k, joiner in enumerate(self.joiners):
            joiner.next = next_place(joiner.place, self.mapping, best)
            joiner.partner = self._find_partner(k)
        for joiner in self.joiners:
            for t in joiner.sets["tau"]:
                self._send_to_partner(joiner, t)
        self._signal_joiners()

    def _step_toward_mapping(self, best: Mapping) -> Mapping:
        """Return the mapping one step from the current one toward the best.

        By Lemma 4.2 the best one is no further away.
        """
        n, m = self.mapping
        return best if best[0] == n else (2 * n, m // 2) if best[0] > n else (n // 2, 2 * m)

    def _find_partner(self, k: int) -> int:
        """Return the joiner that had the same part of the stream whose parts get smaller."""
        row, column = self.joiners[k].place
        assert self.ahead is not None
        other = (row ^ 1, column) if self.ahead[0] < self.mapping[0] else (row, column ^ 1)
        return next(j for j, joiner in enumerate(self.joiners) if joiner.place == other)

    def _record_decision(self, words: str) -> None:
        line = Line("Algorithm 2", 2, 6)
        self.record_step(f"a stream has doubled; {words}", None, line=line)

    def _signal_joiners(self) -> None:
        for joiner in self.joiners:
            joiner.signals += 1
        if self.joiners[0].signals < RESHUFFLERS:
            text, first = "the first signal: τ is sent to partners", 2
        else:
            text, first = (
                "the other reshuffler hears of it: all of them have signalled; from here on no "
                "tuple is of the old epoch",
                4,
            )
        self.record_step(text, None, line=Line("Algorithm 3", first, first + 1))

    def _is_assigned_to_place(self, t: Tuple, place: Place, mapping: Mapping) -> bool:
        return find_partition(self.keys(t), mapping[t.stream]) == place[t.stream]

    def _should_keep_tuple(self, joiner: Joiner, t: Tuple) -> bool:
        """Return whether the joiner is where the new mapping has the tuple: KEEP."""
        assert self.ahead is not None and joiner.next is not None
        return self._is_assigned_to_place(t, joiner.next, self.ahead)

    def _send_to_partner(self, joiner: Joiner, t: Tuple) -> None:
        """Send the partner a tuple that it needs, and lacks, under the new mapping: MIGRATED."""
        assert self.ahead is not None and joiner.partner is not None
        partner = self.joiners[joiner.partner]
        if not self._is_assigned_to_place(
            t, partner.place, self.mapping
        ) and self._should_keep_tuple(partner, t):
            partner.queue.append(t)

    def _route_tuple(self, t: Tuple, aware: bool) -> None:
        """Apply Algorithm 1, line 5, and Algorithm 3, lines 9 to 19."""
        fresh = self.ahead is not None and aware
        for k, joiner in enumerate(self.joiners):
            mapping = self.ahead if fresh and self.ahead is not None else self.mapping
            place = joiner.next if fresh and joiner.next is not None else joiner.place
            if self._is_assigned_to_place(t, place, mapping):
                self._handle_tuple(k, t, "fresh" if fresh else "delta" if self.ahead else "tau")

    def _handle_tuple(self, k: int, t: Tuple, to: str) -> None:
        """Apply HANDLETUPLE: join a tuple with those that it must meet, and store it."""
        joiner = self.joiners[k]
        meets = [u for u in self._select_tuples_to_probe(joiner, t, to) if u.stream != t.stream]
        results = [sort_by_stream((t, u)) for u in meets if self.theta(t, u)]
        joiner.sets[to].append(t)
        if to == "delta":
            self._send_to_partner(joiner, t)
        moves = () if to == "mu" else (TraceMove(str(t), "probe", None, k),)
        text = f"{t} of {MARKS[to].strip() or 'τ'} meets {_format_tuples(meets)}"
        self.record_step(text, k, moves, results, _find_lines(to, joiner.signals == RESHUFFLERS))

    def _select_tuples_to_probe(self, joiner: Joiner, t: Tuple, to: str) -> list[Tuple]:
        """Return the tuples with which a tuple of this set is joined: Lemma 4.6."""
        old = joiner.tuples_in("tau", "delta")
        if to == "tau":
            return joiner.tuples_in("tau")
        if to == "mu":
            return joiner.tuples_in("fresh")
        if to == "delta":
            return old + (joiner.tuples_in("fresh") if self._should_keep_tuple(joiner, t) else [])
        return joiner.tuples_in("mu", "fresh") + [
            u for u in old if self._should_keep_tuple(joiner, u)
        ]

    def _migrate_tuple(self) -> None:
        """Receive a migrated tuple, or end the migration."""
        if self.ahead is None:
            return
        if waiting := [k for k, joiner in enumerate(self.joiners) if joiner.queue]:
            k = max(waiting, key=lambda k: len(self.joiners[k].queue))
            self._handle_tuple(k, self.joiners[k].queue.popleft(), "mu")
        elif not self._is_awaiting_signal():
            self._finalize_migration()

    def _finalize_migration(self) -> None:
        """Apply FINALIZEMIGRATION, at all joiners."""
        for joiner in self.joiners:
            remaining = [
                t for t in joiner.tuples_in("tau", "delta") if self._should_keep_tuple(joiner, t)
            ]
            remaining += joiner.tuples_in("mu", "fresh")
            joiner.sets = {name: [] for name in SETS} | {"tau": remaining}
        self._adopt_new_mapping()

    def _adopt_new_mapping(self) -> None:
        assert self.ahead is not None
        for joiner in self.joiners:
            assert joiner.next is not None
            joiner.place, joiner.next, joiner.partner, joiner.signals = joiner.next, None, None, 0
        self.mapping, self.ahead = self.ahead, None
        text = "what the new mapping has elsewhere is discarded; the migration has ended"
        self.record_step(text, None, line=Line("Algorithm 3", 20, 23))

    def list_stored(self) -> Stored:
        """Return the names and sets of the tuples, by joiner and stream."""
        return tuple(
            tuple(
                tuple(f"{t}{MARKS[s]}" for s in SETS for t in joiner.sets[s] if t.stream == stream)
                for stream in (0, 1)
            )
            for joiner in self.joiners
        )

    def record_step(
        self,
        text: str,
        node: int | None,
        moves: Iterable[TraceMove] = (),
        results: Iterable[Group] = (),
        line: Line | None = None,
    ) -> None:
        """Append a step to the trace, with the tuples that joiners send to their partners."""
        sent = (
            TraceMove(str(t), "copy", joiner.partner, k)
            for k, joiner in enumerate(self.joiners)
            for t in joiner.queue
        )
        super().record_step(text, node, (*moves, *sent), results, line)

    def list_places(self) -> tuple[Place, ...]:
        """Return the cell of each joiner, in a migration by the new mapping."""
        return tuple(joiner.next or joiner.place for joiner in self.joiners)

    def list_old_places(self) -> tuple[Place, ...]:
        """Return the cell of each joiner by the old mapping, in a migration."""
        return () if self.ahead is None else tuple(joiner.place for joiner in self.joiners)

    def list_heads(self) -> Heads:
        """Return the part of R of each row, and the part of S of each column."""
        rows, columns = (
            tuple(_format_part(k, parts, letter) for k in range(1, parts + 1))
            for parts, letter in zip(self.ahead or self.mapping, NAMES, strict=False)
        )
        return rows, columns

    def make_table(self) -> Rows:
        """Return the mapping and the controller's counts."""
        r, s, dr, ds = map(str, self.counts)
        mapping = f"{self.mapping}" + (f" → {self.ahead}" if self.ahead else "")
        return ("mapping", "|R|", "|S|", "|ΔR|", "|ΔS|"), (mapping, r, s, dr, ds)


def _find_lines(to: str, has_all_signals: bool) -> Line:
    """Return the lines of Algorithm 3 that handle a tuple of a set."""
    first, last = {
        "tau": (13, 13),
        "delta": (13, 15),
        "fresh": (18, 19) if has_all_signals else (11, 12),
        "mu": (17, 17) if has_all_signals else (10, 10),
    }[to]
    return Line("Algorithm 3", first, last)


def _format_part(number: int, parts: int, letter: str) -> str:
    return f"part {number} of {parts} of {letter}" if parts > 1 else f"all of {letter}"


def _format_tuples(tuples: Sequence[Tuple]) -> str:
    return ", ".join(map(str, tuples)) or "nothing"


def golden_ratio_key(t: Tuple) -> float:
    """Return a key for each tuple: its number times the golden ratio, which spreads evenly."""
    return (t.number * 0.6180339887498949 + 0.31 * t.stream) % 1.0


def run_grid(
    tuples: Sequence[Tuple],
    hosts: int = 4,
    delay: int = 2,
    warmup: int = 0,
    theta: Theta = has_equal_values,
    keys: Callable[[Tuple], float] = golden_ratio_key,
) -> Trace:
    """Return all steps of joining these tuples, of streams 0 (R) and 1 (S), in the order given.

    The join is over the full history. ``delay`` is the number of tuples until the second reshuffler
    learns of a new mapping, ``warmup`` the number before the first decision. Raises ValueError
    unless ``hosts`` is a power of two and all tuples are of two streams.
    """
    if unknown := [t for t in tuples if t.stream not in (0, 1)]:
        odd = unknown[0]
        raise ValueError(f"{odd} is of stream {odd.stream}; a grid joins streams 0 and 1")
    n, m = square_mapping(hosts)
    joiners = [Joiner((k // m, k % m)) for k in range(hosts)]
    title = "The adaptive grid, row by row: R is a, S is b (Elseidy 2014)"
    trace = Trace(title, 2, hosts, listings=LISTINGS)
    grid = ReferenceGrid(keys, theta, delay, warmup, (n, m), joiners, trace)
    for t in tuples:
        grid.process_tuple(t)
    grid.finish_migration()
    return grid.trace


def run_typed(text: str) -> Trace:
    """Return the steps on typed tuples, on four joiners. Raises as ``parse_tuples`` does."""
    return run_grid(parse_tuples(text), warmup=4)


def grid_example() -> Trace:
    """Return the steps of four joiners while S, stream b, outgrows R.

    The grid goes from (2, 2) to (1, 4) while tuples arrive.
    """
    return EXAMPLE.trace()


EXAMPLE = StepExample(
    run_typed,
    ("a:1 a:0 b:1 b:0 b:1 b:0 b:1 b:0 b:1 a:0 b:1 b:0 b:1",),
    (f"rows of R (a) and S (b): {TUPLES}",),
    {"R outgrows S": ("b:1 b:0 a:1 a:0 a:1 a:0 a:1 a:0 a:1",)},
    "J",
)
