"""Analyze a join for its streams: parse the condition, choose and check the placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from braid.condition.column_names import parse_condition
from braid.condition.match_orders import make_match_rule
from braid.condition.parser import make_analyzer, parse_predicate
from braid.condition.predicate import Predicate, with_derived_windows
from braid.condition.utility_expressions import parse_utilities
from braid.core.change_types import check_changes
from braid.core.horizon import Reach, intersect_reach, reach_of_windows
from braid.core.join_kinds import check_answerable, check_complete
from braid.core.match_rules import MatchRule, bound_match_times
from braid.core.placement import MOST_HOSTS, MOST_KEYS, Placement
from braid.join_config import JoinConfig
from braid.kernels.dominance import list_compared_columns
from braid.shedding_options import check_shedding
from braid.simulation.placement_comparison import JoinStatistics, PlacementChoice, choose_placement
from braid.sources.stream_source import AnalyzedJoin, StreamSource, count_partitions
from braid.step_estimates import SAMPLED_TUPLES, estimate_steps


def analyze_join(config: JoinConfig, source: StreamSource) -> AnalyzedJoin:
    """Return a join with its condition parsed and its placement chosen.

    Raises PredicateError for an unsupported condition or one that event times cannot satisfy,
    ValueError if a filter reads a change column, or the placement or the shedder does not support
    the join.
    """
    times = None if config.shares_queries else config.event_time_columns
    _check_filters(config.where, config.changes)
    predicate = parse_predicate(
        config.on,
        source.omit_columns(config.changes),
        config.window_limits,
        times=times,
        timeless=config.timeless_streams,
        changes=config.changes,
    )
    bounds, rule = _intersect_bounds(config, predicate), None
    if config.match is not None:
        rule, predicate, bounds = _apply_match(config, source, predicate, bounds)
    predicate = with_derived_windows(predicate, bounds)
    join = AnalyzedJoin(config, source, predicate, bounds, match=rule)
    if (placement := config.placement) is None:
        chosen = choose_auto_placement(join)
        placement = chosen.placement
        config = replace(config, chosen=chosen)
    placement = bind_placement(placement, predicate, config.on)
    config = replace(config, placement=placement)
    join = replace(join, config=config)
    check_placement(placement, predicate, config.on, config.shares_queries)
    _check_kind(join)
    is_partial = config.shed is not None or placement.delivery_guarantee != "exactly once"
    check_changes(config.changes, config.kind, [*config.streams], join.expiry_bounds, is_partial)
    if rule is not None:
        _check_match_kind(join, rule)
    if (shed := config.shed) is None:
        return join
    endless = any(not source.is_static(alias) for alias in config.streams)
    check_shedding(
        shed, config.streams, config.on, join.effective_windows, config.time, endless, predicate
    )
    return replace(join, utilities=parse_utilities(shed.utility, source.streams))


def _check_kind(join: AnalyzedJoin) -> None:
    """Raise ValueError if tuples cannot be answered as the kind of the join asks."""
    kind, aliases = join.config.kind, list(join.config.streams)
    if join.config.shed is not None:
        check_complete(kind, "shed")
    if join.placement.delivery_guarantee != "exactly once":
        check_complete(kind, f"the placement {type(join.placement).__name__}")
    endless = [not join.source.is_static(alias) for alias in aliases]
    check_answerable(kind, aliases, join.expiry_bounds, endless)


def _check_match_kind(join: AnalyzedJoin, rule: MatchRule) -> None:
    """Raise ValueError if the kind or the placement of an as-of join does not suit it."""
    kind = join.config.kind
    if join.config.changes:
        raise ValueError(
            "match is given with changes, but a partner that is deleted cannot be taken back from "
            "the answers yet; leave one of the two out"
        )
    if kind.name not in ("inner", "left"):
        raise ValueError(
            f"match is {rule.match!r} with how={kind.name!r}; it must be 'inner' or 'left', as "
            "only tuples of the first stream take partners"
        )
    if kind.is_early:
        raise ValueError(
            "match is given with emit='early', but a partner that is replaced by a better one "
            "cannot be taken back; leave one of the two out"
        )
    if join.placement.delivery_guarantee == "at most once":
        raise ValueError(
            f"match is {rule.match!r}, but {type(join.placement).__name__} leaves out pairs, so "
            "that no partner can be said to be the best; choose another placement"
        )


def _intersect_bounds(config: JoinConfig, predicate: Predicate) -> Reach:
    """Return the bounds of event times that the condition and the windows imply together.

    Raises ValueError if no event times satisfy both.
    """
    given = reach_of_windows(config.window_limits, config.timeless_streams)
    if (implied := predicate.time_bounds) is None:
        return given
    if (both := intersect_reach(implied.reach, given)) is None:
        windows = ", ".join(f"{a} {w}" for a, w in config.window_texts.items())
        raise ValueError(
            f"no rows can satisfy {config.on!r} within the windows {windows}, so no rows would "
            "match"
        )
    return both


def _check_filters(where: Mapping[str, str], changes: Mapping[str, str]) -> None:
    """Raise ValueError if a filter reads a change column."""
    for alias in changes.keys() & where.keys():
        columns = parse_condition(where[alias]).find_all(exp.Column)
        if changes[alias].lower() in {column.name.lower() for column in columns}:
            raise ValueError(
                f"where of {alias} reads {changes[alias]}, which says how a row changes; a filter "
                "that drops a deletion would leave its row in the results"
            )


def _apply_match(
    config: JoinConfig, source: StreamSource, predicate: Predicate, bounds: Reach
) -> tuple[MatchRule, Predicate, Reach]:
    """Return the rule of an as-of join, and the predicate and the bounds with what it implies.

    Raises ValueError if the rule does not suit the streams or other arguments.
    """
    assert config.match is not None
    if config.shed is not None:
        raise ValueError(
            "match is given with shed, which leaves out pairs, so that no partner can be said to "
            "be the best; leave one of the two out"
        )
    analyser, second = make_analyzer(source.streams), [*config.streams.values()][1]
    rule, predicate = make_match_rule(config.match, predicate, analyser, [*second])
    is_dominated = list_compared_columns(predicate, rule) is not None
    both = intersect_reach(bounds, bound_match_times(rule))
    if both is None:
        raise ValueError(
            f"no rows can satisfy {config.on!r} with match={rule.match!r} within the tolerance"
        )
    left, right = config.streams
    if both[0][1] is None and not source.is_static(right):
        raise ValueError(
            f"match is {rule.match!r}, and a better partner of a tuple of {left} may come in "
            f"{right} at any later time, which does not end; give tolerance= or windows="
        )
    return replace(rule, forgets_dominated=is_dominated), predicate, both


def bind_placement(placement: Placement, predicate: Predicate, on: str) -> Placement:
    """Return the placement with the equalities of the condition.

    Raises ValueError if it needs an equality and there is none, or too many.
    """
    if placement.routing_key_source == "equalities" and not predicate.equality_keys:
        raise ValueError(
            f"{type(placement).__name__} partitions by the values that equalities join on, but "
            f"{on!r} has none; placements that route by tuple take any condition"
        )
    return placement.bind_dimensions(tuple(tuple(keys) for keys in predicate.equality_keys))


def check_placement(placement: Placement, predicate: Predicate, on: str, shared: bool) -> None:
    """Raise ValueError if the placement does not support this join."""
    name = type(placement).__name__
    if placement.max_hosts > MOST_HOSTS or placement.key_space_size > MOST_KEYS:
        raise ValueError(
            f"{name} has up to {placement.max_hosts:,} hosts and {placement.key_space_size:,} "
            f"routing keys; at most {MOST_HOSTS:,} and {MOST_KEYS:,} are accepted"
        )
    if placement.routing_key_source == "join" and predicate.equality is None:
        raise ValueError(
            f"{name} partitions by the value that an equality joins on, but {on!r} has no equality "
            "that links all streams; placements that route by tuple take any condition"
        )
    if placement.shares_queries and not shared:
        raise ValueError(f"{name} serves the queries of a shared join; use SharedJoin")
    placement.initial_state(len(predicate.aliases))


def choose_auto_placement(join: AnalyzedJoin) -> PlacementChoice:
    """Return the placement for "auto", with one host for each task that runs at once."""
    config, source, predicate = join.config, join.source, join.predicate
    step = predicate.next_step(frozenset([0]), 1)
    frequent = source.most_frequent_share(predicate)
    if join.match is not None:
        share = frequent = 0.0  # a tuple compares and finds one partner, however many it has
    elif step.access_path is None:
        share = 1.0
    else:
        share = _estimate_compared_share(config, source, predicate)
    statistics = JoinStatistics(
        source.estimate_rows(),
        tuple(None if limit is None else limit / 1e6 for limit in join.effective_windows),
        min(count_partitions(config, source), MOST_HOSTS),
        predicate.equality is not None,
        share,
        most_frequent_share=frequent,
        has_remote_hosts=source.has_remote_hosts(),
        dimensions=tuple(tuple(keys) for keys in predicate.equality_keys),
    )
    return choose_placement(statistics)


def _estimate_compared_share(
    config: JoinConfig, source: StreamSource, predicate: Predicate
) -> float:
    """Return the share of the pairs of the first two streams that an index leaves to compare.

    0 if it is unknown.
    """
    samples = source.sample_tuples(predicate, config.event_time_columns, SAMPLED_TUPLES)
    steps = [estimate.counts for estimate in estimate_steps(predicate, samples)]
    if not steps:
        return 0.0
    rows = samples[0].count_rows() * samples[1].count_rows()
    return min(1.0, steps[0].candidate_pairs / max(1.0, rows))
