"""The plans of a placement, row by row: what it decides, moves, stores and joins.

Batches are planned and committed by the functions of the engine (``core.batch_step``), with the
cover rule checked. Here the rows of a few batches are stored, moved and joined as the plans say, a
step at a time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from braid.core import batch_step
from braid.core.batch_report import BatchReport, BlockSize
from braid.core.batch_work import BatchWork, RunRules
from braid.core.horizon import reach_of_windows
from braid.core.placement import Placement
from braid.core.plan import Block, KeySpace, Path, Plan, Route
from braid.core.run_state import RunState

from braid_lab.common.tuple_models import (
    NAMES,
    Line,
    Listing,
    Stepper,
    Stored,
    Trace,
    TraceMove,
    Tuple,
    group_name,
)
from braid_lab.common.typed_batches import TypedTuple

Hosts = tuple[int, ...]
Condition = Callable[[TypedTuple, TypedTuple], bool]
"""Whether tuples of two streams, the one with the smaller index first, may be in one result."""
ResultsByHost = dict[int, list[tuple[TypedTuple, ...]]]
"""Results by the host that makes them."""


class PlannedSteps(Stepper):
    """The base of steppers that run a placement on typed batches, over the full history.

    A subclass names the lines of its listing, and explains what a plan decides.

    - ``placement``: the placement.
    - ``columns``: by stream, the number of columns of its tuples.
    - ``condition``: the join condition of a pair.
    """

    def __init__(
        self,
        title: str,
        placement: Placement,
        columns: Sequence[int],
        condition: Condition,
        listing: Listing,
    ) -> None:
        streams = len(columns)
        names = tuple(f"H{n + 1}" for n in range(placement.hosts))
        self.rules = RunRules(
            placement, tuple(NAMES[:streams]), reach_of_windows((None,) * streams)
        )
        self.state = RunState.initial(streams, placement.initial_state(streams))
        self.condition, self.algorithm = condition, listing.algorithm
        self.trace = Trace(title, streams, placement.hosts, [], (listing,), names)
        self.now, self.clock = "", 0
        self.routing_keys: dict[TypedTuple, int] = {}
        self.contents: dict[int, list[TypedTuple]] = {}
        self.places: dict[TypedTuple, Hosts] = {}

    @abstractmethod
    def explain_plan(self, work: BatchWork) -> None:
        """Record what the plan of a batch decides."""

    @abstractmethod
    def find_number(self, t: TypedTuple, space: KeySpace) -> int:
        """Return the number that a tuple arrives with: its routing key, or what gives it."""

    @abstractmethod
    def choose_lines(self, t: TypedTuple, block: Block, is_stored: bool) -> tuple[int, int]:
        """Return the lines for a tuple at a host where it is stored, or only probes."""

    @abstractmethod
    def explain_storage(self, t: TypedTuple, block: Block) -> str:
        """Return the words between a tuple and the first host that stores it."""

    def count_keys(self, tuples: Sequence[TypedTuple]) -> tuple[dict[int, int], ...]:
        """Return the counts of values that the engine would report; by default none."""
        return ()

    def label_tuple(self, t: TypedTuple) -> str:
        """Return a tuple as nodes show it: with the digits of its columns."""
        return f"{t} ·{''.join(map(str, t.values))}"

    move_line = 0
    """The line at which stored tuples move."""

    def run_batches(self, batches: Iterable[Sequence[TypedTuple]]) -> Trace:
        """Return the steps of all batches."""
        for tuples in batches:
            self.clock += 1
            self._run_batch(tuples)
            if tuples:
                self.now = str(tuples[-1])
        return self.trace

    def _run_batch(self, tuples: Sequence[TypedTuple]) -> None:
        work = batch_step.plan_batch(self.rules, self.state)
        space = self.rules.placement.key_space(work.plan.state)
        self.explain_plan(work)
        self._move_tuples(work)
        for t in tuples:
            number = self.find_number(t, space)
            self.routing_keys[t] = int(space.routing_keys(number, t.stream))
        routes = [r for r in work.plan.routes if r.is_fresh]
        for route in routes:
            fresh = [t for t in tuples if self._is_in_block(t, route.block)]
            self.contents[route.block.id] = fresh
            for t in fresh:
                self._store_tuple(t, route)
        report = BatchReport(block_sizes=self._measure_new_blocks(work), key_counts=())
        report.key_counts = self.count_keys(tuples)
        self.state, _ = batch_step.commit_batch(self.rules, self.state, work, report)
        self._check_shown_places()

    def _is_in_block(self, t: TypedTuple, block: Block) -> bool:
        low, high = block.key_range
        return t.stream == block.stream and low <= self.routing_keys[t] < high

    def _measure_new_blocks(self, work: BatchWork) -> dict[int, BlockSize]:
        """Return the sizes of the blocks that a batch makes; those without tuples do not exist."""
        created = [d.block for d in work.combined_plan.derivations]
        created += [r.block for r in work.plan.routes if r.is_fresh]
        sizes = {}
        for b in created:
            if rows := len(self.contents[b.id]):
                times = [t.batch for t in self.contents[b.id]]
                sizes[b.id] = BlockSize(rows, rows, (min(times), max(times)))
        return sizes

    def _move_tuples(self, work: BatchWork) -> None:
        """Make the derived blocks, and record the tuples that go to other hosts by it."""
        for d in work.combined_plan.derivations:
            earlier = (t for source in d.source_blocks for t in self.contents[source])
            self.contents[d.block.id] = [t for t in earlier if self._is_in_block(t, d.block)]
        after = self._locate_tuples(work.live_blocks)
        moved = [t for t in self.places if after[t] != self.places[t]]
        before = dict(self.places)

        def get_host_change(t: TypedTuple) -> tuple[Hosts, Hosts, int]:
            return before[t], after[t], t.stream

        for _, alike in groupby(sorted(moved, key=get_host_change), get_host_change):
            self._record_tuple_moves([*alike], after, work.combined_plan)

    def _record_tuple_moves(
        self, tuples: Sequence[TypedTuple], after: Mapping[TypedTuple, Hosts], plan: Plan
    ) -> None:
        """Record that tuples go from the hosts that have them to others, and leave the rest."""
        before, now = self.places[tuples[0]], after[tuples[0]]
        gained = [h for h in now if h not in before]
        moves = []
        for t in tuples:
            self.places[t] = now
            source = self._find_source_hosts(t, plan)
            moves += [TraceMove(self.label_tuple(t), "copy", source[h], h) for h in gained]
        text = f"{self._describe_host_change(before, now)}."
        names = join_words(map(str, tuples))
        line = Line(self.algorithm, self.move_line, self.move_line)
        node = next(h for h in (*gained, *before) if h in gained or h not in now)
        verb = "is" if len(tuples) == 1 else "are"
        self.record_step(f"{names} {verb} {text}", node, moves, line=line)

    def _describe_host_change(self, before: Hosts, now: Hosts) -> str:
        """Return what happens to tuples that some hosts have and others are to have."""
        gained, left = ([h for h in a if h not in b] for a, b in ((now, before), (before, now)))
        dropped = f"dropped at {self.format_hosts(left)}" if left else ""
        if not gained:
            return dropped
        way = f"from {self.format_hosts(before)} to {self.format_hosts(gained)}"
        if len(left) == len(before):
            return f"moved {way}"
        return f"copied {way}, and {dropped}" if left else f"copied {way}"

    def _find_source_hosts(self, t: TypedTuple, plan: Plan) -> dict[int, int]:
        """Return, by host that makes a block with a tuple, the host that it reads from."""
        sources: dict[int, int] = {}
        for d in plan.derivations:
            if t in self.contents[d.block.id]:
                sources |= d.source_hosts
        return sources

    def _locate_tuples(self, blocks: Iterable[Block]) -> dict[TypedTuple, Hosts]:
        """Return the hosts that hold each tuple."""
        hosts: dict[TypedTuple, set[int]] = {}
        for b in blocks:
            for t in self.contents[b.id]:
                hosts.setdefault(t, set()).update(b.hosts)
        return {t: tuple(sorted(each)) for t, each in hosts.items()}

    def _check_shown_places(self) -> None:
        """Raise RuntimeError unless the picture is what the committed blocks hold."""
        if self._locate_tuples(self.state.blocks.values()) != self.places:
            raise RuntimeError("the steps show tuples where no block has them")

    def _store_tuple(self, t: TypedTuple, route: Route) -> None:
        """Record a new tuple at each host that stores it or that it probes."""
        self.now, self.places[t] = str(t), ()
        results: ResultsByHost = {}
        for path in route.paths:
            for host, groups in self._probe_route_path(t, path).items():
                results.setdefault(host, []).extend(groups)
        hosts = [*route.block.hosts, *sorted(results.keys() - {*route.block.hosts})]
        for host in hosts:
            is_stored = host in route.block.hosts
            if is_stored:
                self.places[t] = tuple(sorted({*self.places[t], host}))
            groups = results.get(host, [])
            visit = self._describe_host_visit(t, route.block, host)
            self.record_step(
                f"{t} {visit} {describe_found_partners(t, groups)}.",
                host,
                (TraceMove(self.label_tuple(t), "probe", None, host),),
                [tuple(map(to_plain_tuple, group)) for group in groups],
                Line(self.algorithm, *self.choose_lines(t, route.block, is_stored)),
            )

    def _describe_host_visit(self, t: TypedTuple, block: Block, host: int) -> str:
        name = self.format_hosts([host])
        if host not in block.hosts:
            return f"also probes {name}, and"
        if host == block.hosts[0]:
            return f"{self.explain_storage(t, block)} {name}, and"
        return f"is stored at {name}, too, and"

    def _probe_route_path(self, t: TypedTuple, path: Path) -> ResultsByHost:
        """Return the results of a tuple by the host of the last hop."""
        groups: list[tuple[TypedTuple, ...]] = [(t,)]
        results: ResultsByHost = {}
        for hop in path:
            results = {
                host: [
                    (*group, u)
                    for group in groups
                    for id in ids
                    for u in self.contents.get(id, [])
                    if all(self._can_join_tuples(u, other) for other in group)
                ]
                for host, ids in hop.blocks_by_host.items()
            }
            groups = [group for each in results.values() for group in each]
        return {
            h: [tuple(sorted(g, key=_get_stream_number)) for g in each]
            for h, each in results.items()
        }

    def _can_join_tuples(self, t: TypedTuple, u: TypedTuple) -> bool:
        first, second = sorted((t, u), key=_get_stream_number)
        return self.condition(first, second)

    def format_hosts(self, hosts: Sequence[int]) -> str:
        """Return the names of hosts."""
        return join_words(self.trace.names[h] for h in hosts)

    def list_stored(self) -> Stored:
        """Return the names of the tuples, by host and stream."""
        return tuple(
            tuple(
                tuple(
                    self.label_tuple(t)
                    for t, at in self.places.items()
                    if host in at and t.stream == s
                )
                for s in range(self.trace.streams)
            )
            for host in range(self.trace.nodes)
        )


def describe_found_partners(t: TypedTuple, groups: Sequence[tuple[TypedTuple, ...]]) -> str:
    """Return what a tuple finds at a host, as the end of a sentence."""
    partners = [group_name([u for u in group if u != t]) for group in groups]
    return f"finds {join_words(partners)}" if partners else "finds nothing"


def join_words(words: Iterable[str]) -> str:
    """Return words with commas and an "and".

    >>> join_words(["a1", "a2", "a3"])
    'a1, a2 and a3'
    """
    *some, last = words
    return f"{', '.join(some)} and {last}" if some else last


def to_plain_tuple(t: TypedTuple) -> Tuple:
    """Return the tuple as results have it."""
    return Tuple(t.batch, t.stream, t.number)


def _get_stream_number(t: TypedTuple) -> int:
    return t.stream
