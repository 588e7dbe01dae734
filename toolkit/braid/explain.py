"""Explain a join before it starts: a text and a small table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import inf

from braid.condition.access_paths import (
    Branch,
    EditDistance,
    IndexCondition,
    list_searched_conditions,
)
from braid.condition.condition_parts import (
    describe_access,
    find_condition_parts,
    find_residual_parts,
)
from braid.condition.predicate import computed_columns
from braid.condition.residual_predicate import ResidualPredicate
from braid.core.condition_cost_tree import TreeLine, build_condition_tree, format_condition_tree
from braid.core.query import longest_windows
from braid.core.reserved_columns import TIME
from braid.core.step_counts import StepCounts
from braid.execution.executors import available_parallelism
from braid.join_config import JoinConfig
from braid.kernels.step_tally import StepTally
from braid.sources.stream_source import AnalyzedJoin
from braid.state_forecast import (
    HeldTuples,
    check_rates,
    estimate_replication,
    estimate_row_bytes,
    find_narrow_windows,
    find_other_watermarks,
    forecast_held_tuples,
)
from braid.step_estimates import SAMPLED_TUPLES, StepEstimate, estimate_steps
from braid.util.durations import format_duration
from braid.util.html_table import render_html_table
from braid.util.machine import available_cores, format_bytes


@dataclass(frozen=True)
class Explanation:
    """Rows of (subject, object, detail), and the tree of the condition.

    Prints as text, and as a table in a notebook.
    """

    title: str
    rows: tuple[tuple[str, str, str], ...]
    tree: tuple[TreeLine, ...] = ()

    def __str__(self) -> str:
        widths = [max((len(row[k]) for row in self.rows), default=0) for k in (0, 1)]
        lines = (f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in self.rows)
        return "\n".join([self.title, *lines, *format_condition_tree(self.tree)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        tree = "\n".join(format_condition_tree(self.tree))
        return (
            render_html_table(self.title, self.rows)
            + f'<pre style="font-family: monospace; overflow-x: auto">{escape(tree)}</pre>'
        )


def explain_join(
    join: AnalyzedJoin,
    count: bool = False,
    rates: Mapping[str, float] | None = None,
    steps: Sequence[StepCounts] = (),
) -> Explanation:
    """Return the explanation of a join.

    With ``count``, read static streams once to estimate the state. ``rates``: rows a second by
    alias. ``steps``: what a run of it has counted; without them the pairs are estimated.

    Raises ValueError for a rate of an unknown stream, or one that is not above 0.
    """
    rows = (
        *_describe_kind(join),
        *_describe_streams(join),
        *_describe_index_conditions(join),
        *_describe_event_time(join),
        *_describe_placement(join),
        *_describe_bounds(join),
        *_describe_storage_cost(join, count, check_rates(join, rates)),
    )
    title = f"{' ⋈ '.join(join.config.streams)} on {join.config.on}"
    texts = [part.text for part in join.predicate.parts]
    if counted := build_condition_tree([*join.config.streams], texts, steps):
        return Explanation(title, rows, tuple(counted))
    estimates = estimate_steps(
        join.predicate,
        join.source.sample_tuples(join.predicate, join.config.event_time_columns, SAMPLED_TUPLES),
    )
    tree = _plan_condition_tree(join, estimates)
    return Explanation(title, (*rows, *_describe_samples(join, estimates)), tuple(tree))


def _describe_samples(
    join: AnalyzedJoin, estimates: Sequence[StepEstimate]
) -> Iterator[tuple[str, str, str]]:
    """Yield what the pairs of each step are estimated from."""
    streams = [*join.config.streams]
    for last, estimate in enumerate(estimates, 2):
        yield "estimate", " ⋈ ".join(streams[:last]), estimate.describe_sample(streams)


def _plan_condition_tree(join: AnalyzedJoin, estimates: Sequence[StepEstimate]) -> list[TreeLine]:
    """Return the tree of the condition, for tuples of the first stream joined in order.

    Its pairs are estimated from samples of tables, without windows.
    """
    predicate, streams = join.predicate, [*join.config.streams]
    texts = [part.text for part in predicate.parts]
    if estimates:
        shown = [estimate.hide_uncertain_counts() for estimate in estimates]
        return build_condition_tree(streams, texts, shown, estimated=True)
    joined = [frozenset(range(s)) for s in range(1, len(streams))]
    steps = [
        StepTally(predicate.next_step(before, len(before))).make_step_counts(
            before, predicate.parts
        )
        for before in joined
    ]
    return build_condition_tree(streams, texts, steps, counted=False)


def _describe_kind(join: AnalyzedJoin) -> Iterator[tuple[str, str, str]]:
    """Yield what a join that is not inner answers."""
    kind, aliases = join.config.kind, list(join.config.streams)
    if kind.is_inner:
        return
    when = "at once, until it matches" if kind.is_early else "once it is final"
    rows = [
        *(["pairs"] if kind.writes_pairs else []),
        *(["each matched tuple once"] if kind.writes_matched else []),
        *([f"each unmatched tuple {when}"] if kind.writes_unmatched else []),
    ]
    preserved = " and ".join(aliases[stream] for stream in kind.preserved)
    yield "kind", kind.name, f"{' and '.join(rows)}; preserved: {preserved}"


def _describe_streams(join: AnalyzedJoin) -> Iterator[tuple[str, str, str]]:
    config = join.config
    for i, alias in enumerate(config.streams):
        is_static = alias in join.static_streams
        kind = "static, replayed in micro-batches as it is at start()" if is_static else "streaming"
        window = "per query" if config.shares_queries else _describe_window(join, i)
        yield "stream", alias, f"{kind}; window: {window}"
        if (column := config.changes.get(alias)) is not None:
            yield "changes", alias, f"{column} says whether a row comes or goes"
        if (where := config.where.get(alias)) is not None:
            yield "where", alias, where
        if (condition := join.predicate.written_filters[i]) is not None:
            yield "filter", alias, condition
    for query in config.queries:
        spans = zip(config.streams, query.windows, strict=True)
        chosen = zip(config.streams, query.selections, strict=True)
        parts = [
            *(f"{a} {format_duration(w)}" for a, w in spans),
            *(f"{a}: {sql}" for a, sql in chosen if sql is not None),
        ]
        yield "query", query.name, "; ".join(parts)


def _describe_window(join: AnalyzedJoin, stream: int) -> str:
    limit, given = join.effective_windows[stream], join.config.window_limits[stream]
    if limit is None:
        is_unbounded = [*join.config.streams][stream] in join.config.unbounded_streams
        return "full history, as asked for" if is_unbounded else "full history"
    if given is None:
        return f"{format_duration(limit)}, from the condition"
    if limit >= given:
        return format_duration(limit)
    return f"{format_duration(limit)}, as the condition is narrower than {format_duration(given)}"


def _describe_bounds(join: AnalyzedJoin) -> Iterator[tuple[str, str, str]]:
    """Yield the windows that lose results, and the branches that can never hold."""
    for narrow in find_narrow_windows(join):
        yield "narrow window", "", str(narrow)
    for other in find_other_watermarks(join):
        yield "watermark", "", str(other)
    bounds = join.predicate.time_bounds
    for text in () if bounds is None else bounds.dropped:
        yield "left out", "", f"a branch of `{text}` that contradicts the rest of the condition"
    if (match := join.config.match) is not None:
        yield "match", " to ".join(join.config.streams), match.describe_options()


def _describe_index_conditions(join: AnalyzedJoin) -> Iterator[tuple[str, str, str]]:
    """Yield the conditions between every two streams. Those that the index uses come first."""
    p = join.predicate
    pairs: dict[tuple[int, int], list[IndexCondition]] = {}
    for link in sorted(p.index_conditions, key=lambda k: k.cost_rank):
        pairs.setdefault((link.left[0], link.right[0]), []).append(link)
    for (left, right), links in pairs.items():
        pair = left, right
        steps = p.next_step(frozenset({left}), right), p.next_step(frozenset({right}), left)
        searched = [link for step in steps for link in list_searched_conditions(step.access_path)]
        for link in sorted(links, key=lambda each: each not in searched):
            checked = "check" if link.is_exact else _name_inexact_role(link)
            role = "index" if link in searched else checked
            yield (
                "index condition",
                _join_aliases(join, pair),
                f"{role}: {_classify_index_condition(link)}: {_format_condition(join, link)}",
            )
    for c in p.common_elements:
        yield (
            "index condition",
            _join_aliases(join, (c.left[0], c.right[0])),
            f"index: common elements: >= {c.min_elements}",
        )
    for either in p.disjunctions:
        streams = _join_aliases(join, either.residual.streams)
        kinds = "; ".join(map(_classify_branch, either.branches))
        text = _format_residual(join, either.residual)
        yield "index condition", streams, f"index: any of {kinds}: {text}"
    for match in p.text_matches:
        streams = _join_aliases(join, match.residual.streams)
        kind = "texts that begin with another"
        if isinstance(match, EditDistance):
            kind = f"texts within {match.most_edits} edits"
        text = _format_residual(join, match.residual)
        yield "index condition", streams, f"index: {kind}: {text}"
    for scan in p.unindexed:
        streams = _join_aliases(join, scan.residual.streams)
        text = _format_residual(join, scan.residual)
        yield "index condition", streams, f"none for {text}: {scan.reason}"
    if not (pairs or p.common_elements or p.disjunctions or p.text_matches):
        yield "index condition", "none", "all pairs are candidates"


def _name_inexact_role(link: IndexCondition) -> str:
    return "not checked" if link.left[1] == TIME == link.right[1] else "left to a residual"


def _classify_branch(branch: Branch) -> str:
    return " and ".join(_classify_index_condition(c) for c in branch.conditions)


def _format_residual(join: AnalyzedJoin, residual: ResidualPredicate) -> str:
    """Return the conjuncts that a residual decides."""
    parts = join.predicate.parts
    return " AND ".join(parts[id].text for id in find_residual_parts(parts, residual))


def _classify_index_condition(link: IndexCondition) -> str:
    is_derived = link.left[1] == TIME == link.right[1] and not link.is_exact
    return describe_access(link) + (", derived from the condition" if is_derived else "")


def _format_condition(join: AnalyzedJoin, link: IndexCondition) -> str:
    """Return the conjuncts that an index condition was made from, or its bounds if none."""
    ids = find_condition_parts(join.predicate.parts, [link])
    return " AND ".join(join.predicate.parts[id].text for id in ids) or _format_bounds(join, link)


def _format_bounds(join: AnalyzedJoin, link: IndexCondition) -> str:
    left, right = (_format_key(join, end) for end in (link.left, link.right))
    if link.lower == link.upper == 0:
        return f"{left} = {right}"
    low = "" if link.lower == -inf else f"{link.lower:.15g} {'<' if link.open_bounds[0] else '<='} "
    high = "" if link.upper == inf else f" {'<' if link.open_bounds[1] else '<='} {link.upper:.15g}"
    return f"{low}{left} - {right}{high}"


def _format_key(join: AnalyzedJoin, end: tuple[int, str]) -> str:
    stream, name = end
    if name == TIME:
        return f"time of {list(join.config.streams)[stream]} (µs)"
    columns = computed_columns(join.predicate)[stream]
    return f"{list(join.config.streams)[stream]}: {columns[name]}"


def _join_aliases(join: AnalyzedJoin, streams: tuple[int, ...] | frozenset[int]) -> str:
    return ", ".join(list(join.config.streams)[s] for s in sorted(streams))


def _describe_event_time(join: AnalyzedJoin) -> Iterator[tuple[str, str, str]]:
    config = join.config
    if config.time is not None:
        each = ", ".join(f"{a}.{time}" for a, time in config.event_time_columns.items())
        name = config.time if isinstance(config.time, str) else each
        ahead = format_duration(config.ahead_microseconds)
        idle = config.idle_microseconds
        silent = "" if idle is None else f"; idle: {format_duration(idle)}"
        yield "event time", name, f"lateness: {_describe_lateness(config)}; ahead: {ahead}{silent}"
    if (shed := config.shed) is not None:
        basic = (
            "a twentieth of the window"
            if shed.basic_window_length is None
            else format_duration(shed.basic_window_length)
        )
        how = f"{shed.method}; basic windows: {basic}; least share: {shed.sample:g} of r"
        yield "shedding", str(shed.processing_budget), how


def _describe_lateness(config: JoinConfig) -> str:
    if len(set(config.lateness_microseconds)) == 1:
        return format_duration(config.lateness_microseconds[0])
    return ", ".join(
        f"{a} {format_duration(t)}"
        for a, t in zip(config.streams, config.lateness_microseconds, strict=True)
    )


def _describe_placement(join: AnalyzedJoin) -> Iterator[tuple[str, str, str]]:
    p = join.placement
    hosts = str(p.hosts) if p.hosts == p.max_hosts else f"{p.hosts}, at most {p.max_hosts}"
    yield "placement", p.label, f"{p!r}; hosts: {hosts}; results {p.delivery_guarantee}"
    if join.config.chosen is not None:
        yield "placement", "auto", join.config.chosen.reason
    yield "executor", join.config.executor, _describe_executor(join)
    hashed = (
        "the queries that a tuple serves"
        if join.config.shares_queries
        else "the value that the equality joins on"
        if p.routing_key_source == "join" and p.keys_per_value == 1
        else "the value that the equality joins on, and from the whole tuple"
        if p.routing_key_source == "join"
        else "the values that the equalities join on"
        if p.routing_key_source == "equalities"
        else f"the whole tuple, with seed {join.config.seed}"
    )
    yield "routing key", f"{p.key_space_size} values", f"from {hashed}"


def _describe_executor(join: AnalyzedJoin) -> str:
    on_spark = f"hosts packed on {join.partitions} partitions"
    if join.config.executor == "spark":
        return on_spark
    here = f"on up to {min(available_cores(), join.placement.hosts)} threads of this process"
    if join.config.executor == "process":
        return here
    machine = available_parallelism(join.source.spark_session, join.config.driver_memory)
    return (
        f"each batch {here}, or by Spark's tasks, {on_spark}: as the batches before make the one "
        f"or the other faster; over {format_bytes(machine.collect_limit_bytes)} of tuples "
        "always by Spark "
        f"(the driver may hold {format_bytes(machine.memory)})"
    )


def _describe_storage_cost(
    join: AnalyzedJoin, count: bool, rates: Mapping[str, float]
) -> Iterator[tuple[str, str, str]]:
    """Yield the storage for each tuple: bytes of its stored columns, and copies in a simulated run.

    Also yield what will be held. With ``count``, read static streams of Spark for that.
    """
    config = join.config
    limits = longest_windows(config.queries) if config.queries else join.effective_windows
    copies = None if config.shares_queries and not config.queries else estimate_replication(join)
    within = "in the windows" if config.shares_queries else "full history"
    for s, alias in enumerate(config.streams):
        size = estimate_row_bytes(join, s)
        stored = "" if copies is None else f"; {copies[s]:.3g} copies (modelled, {within})"
        yield "stored", alias, f"about {size} bytes a tuple{stored}"
        if copies is None:
            continue
        if not config.shares_queries and (held := forecast_held_tuples(join, s, copies[s], rates)):
            yield "held", alias, _describe_held_tuples(held)
        elif count and alias in join.static_streams:
            yield (
                "state",
                alias,
                _describe_state_size(*join.measure_extent(alias), limits[s], copies[s], size),
            )


def _describe_held_tuples(held: HeldTuples) -> str:
    retention = "every tuple, for ever: " if held.is_endless else ""
    return f"{retention}{held.rows:,.0f} rows, {format_bytes(round(held.size_bytes))}, {held.basis}"


def _describe_state_size(rows: int, span: int, limit: int | None, copies: float, size: int) -> str:
    """Return the maximum state of a stream as text.

    Its rows are assumed to be spread evenly over ``span`` (microseconds).
    """
    live = rows if limit is None or span <= limit else rows * limit / span
    return (
        f"about {format_bytes(round(live * copies * size))} (estimated: {live:,.0f} of {rows:,} "
        f"rows in the window, times {copies:.3g} copies, times {size} bytes; no filter counted)"
    )
