"""Changes that a user can ask of an active run, with their cost, and how to make them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from braid.condition.query_text import parse_query_texts
from braid.core.query import MOST, longest_windows
from braid.core.run_events import BatchCommitted, BatchShed
from braid.papers.shedding.budget import LEAST
from braid.papers.shedding.run_events import SheddingPlanned
from braid.touch_costs import (
    BatchPace,
    list_recent_commits,
    model_rate_cost,
    model_skew_cost,
)
from braid.util.durations import format_duration

ACTS, ACTS_LATER = "acts with the next batch", "acts within two batches"
CHAINS = {"least state": "memory", "fewest comparisons": "cpu", "the cheaper of both": "auto"}
"""Choices of the chain of a shared run (Mem-Opt, CPU-Opt) and their values of ``rebalance``."""

LABELS = {
    "interval": "Set seconds between batches",
    "epsilon": "Set growth before a new grid",
    "hosts": "Set nodes of the ring",
    "max_tuples_per_host": "Set rows that a host may store",
    "rate": "Set rows in a batch of {stream}",
    "skew": "Set skew of the keys of {stream}",
}
RANGES = {
    "interval": (0.0, 60.0),
    "epsilon": (0.01, 1.0),
    "hosts": (1, 64),
    "max_tuples_per_host": (1, 10_000_000),
    "rate": (0.0, 20_000.0),
    "skew": (0.0, 3.0),
}
"""Least and greatest value of a setting in the cockpit, by its argument of ``adjust``."""

OF = " of "
"""Word between the setting of a generated stream and the stream."""
SOURCE_COSTS = {
    "rate": "a batch has about {n} rows and takes {s} s (modelled); ",
    "skew": "if k is joined on, a batch comes to about {n} results and {s} s (modelled); ",
}

CALLS = {
    "fail": "fail_node",
    "restore": "restore_node",
    "withdraw": "withdraw",
    "remove": "remove",
    "pause": "pause",
    "go on": "unpause",
}
"""Methods that take the name of what is selected, if anything is, by the change that calls them."""


class Touch(TypedDict):
    """A change that a user can ask of an active run.

    - ``name``: what messages call it; ``label``: its button.
    - ``target``: the kind of selection that it concerns, such as "slice"; empty for the whole run.
    - ``kind``: "press", "text", "lines", "number", "choice", or "note" for what cannot be changed.
    - ``value``: the initial value; ``low``, ``high``: of a number.
    - ``choices``: of a choice; of lines, what else can be asked with them.
    - ``cost``: what it costs, and when it acts. In that of a number, "{n}" and "{s}" stand for
      amount and seconds on ``curve``; in that of a host, "{n}" for the rows that it holds.
    - ``curve``: points (value, amount, seconds), with straight lines between them.
    """

    name: str
    label: str
    target: str
    kind: str
    value: str
    choices: list[str]
    low: float
    high: float
    cost: str
    curve: list[list[float]]


def list_touches(run: Any, last: BatchCommitted | None) -> list[Touch]:
    """Return the changes that a run takes now; ``last``: its last batch, for their costs."""
    touches = _list_shared_touches(run) if hasattr(run, "split_slice") else []
    touches += _list_hub_touches(run) if hasattr(run, "fail_node") else []
    if getattr(getattr(run, "config", None), "shed", None) is not None:
        touches.append(_make_budget_touch(run))
    touches += _list_join_touches(run, last) if hasattr(run, "lose") else []
    return touches + (_list_source_touches(run) if hasattr(run, "adjustable_settings") else [])


def _list_join_touches(run: Any, last: BatchCommitted | None) -> list[Touch]:
    lose = "its {n} rows are copied from other hosts, or read from storage; " + ACTS
    stored = sum(host.stored_tuples for host in last.host_metrics) if last else 0
    costs = {
        "interval": f"nothing moves; a batch waits at least as long for the next; {ACTS}",
        "epsilon": f"a new grid moves some of the {stored:,} rows; {ACTS}",
        "hosts": f"slices of the {stored:,} rows move to other nodes; {ACTS_LATER}",
    }
    grows = (
        f"from half of this on, each host is split in four and sends its share of the {stored:,}"
    )
    costs["max_tuples_per_host"] = f"{grows} rows; acts when the grid is checked next"
    touches = [_make_touch("lose", "Lose this host", "host", "press", lose)]
    if reason := getattr(run, "kept_hosts", ""):
        touches.append(_make_touch("kept hosts", "", "", "note", reason))
    for name, value in run.adjustable_settings.items():
        if OF in name:
            continue
        touch = _make_touch(name, LABELS[name], "", "number", costs[name])
        low, high = RANGES[name]
        touches.append({**touch, "value": f"{value:g}", "low": low, "high": high})
    return touches


def _list_source_touches(run: Any) -> list[Touch]:
    """Return the changes of generated streams, with their modelled costs."""
    given = {n: v for n, v in run.adjustable_settings.items() if OF in n}
    if not given:
        return []
    sources, touches = run.store.input.generated, []
    pace = BatchPace.measure(list_recent_commits(run))
    acts = ACTS_LATER if run.reads_ahead else ACTS
    for name, value in given.items():
        setting, _, alias = name.partition(OF)
        low, high = RANGES[setting]
        high = max(high, value)
        if setting == "rate":
            high = min(high, sources[alias].highest_rate)
        model = model_rate_cost if setting == "rate" else model_skew_cost
        label, cost = LABELS[setting].format(stream=alias), SOURCE_COSTS[setting] + acts
        touch = _make_touch(name, label, "", "number", cost)
        curve = model(sources, alias, high, pace)
        touch |= {"value": f"{value:g}", "low": low, "high": high, "curve": curve}
        touches.append(touch)
    return touches


def _list_shared_touches(run: Any) -> list[Touch]:
    split = "the slice is written again as two; no row moves to another host; " + ACTS
    merge = "both slices are written again as one; " + ACTS
    recut = "slices whose ends change are written again; on several hosts rows move; " + ACTS
    add = "as name: windows where selection; rows are kept as long as its windows; " + ACTS
    remove = "the state that no other query uses goes with it; " + ACTS
    streams = list(run.config.streams)
    spans = [format_duration(each) for each in longest_windows(run.queries)]
    another = f"another: {', '.join(map(': '.join, zip(streams, spans, strict=True)))}"
    return [
        _make_touch("add", "Add this query", "", "lines", add, value=another),
        _make_touch("remove", "Remove this query", "query", "press", remove),
        _make_touch("split", "Split at the age", "slice", "text", split),
        _make_touch("merge", "Merge with the older slice", "slice", "press", merge),
        _make_touch("rebalance", "Cut the windows again", "", "choice", recut, [*CHAINS]),
    ]


def _list_hub_touches(run: Any) -> list[Touch]:
    submit = "Explain says how it would be answered, and what that adds; " + ACTS
    fail = "the state of its operators is lost and built again from history elsewhere; " + ACTS
    restore = "new operators may be put on it again; nothing moves by itself; " + ACTS
    withdraw = "operators that answer no other query go with it; " + ACTS
    move = "its state crosses the network; " + ACTS
    replan = "adopted if it saves more than it costs; " + ACTS
    queries, operators = [*run.deployment.queries.values()], run.deployment.operators.values()
    place = "" if run.settings.network is None else "node"
    label = "Submit this query here" if place else "Submit this query"
    text = queries[-1].sql if queries else ""
    touches = [
        _make_touch("submit", label, place, "lines", submit, ["Explain"], text),
        _make_touch("withdraw", "Withdraw this query", "query", "press", withdraw),
        _make_touch("pause", "Pause", "", "press", "the batch that runs is committed before"),
        _make_touch("go on", "Go on", "", "press", "after a pause"),
    ]
    if not place:
        return touches
    choices = [f"{each.id} at {each.node}" for each in operators]
    label = "Move this operator here"
    return [
        *touches,
        *([_make_touch("move", label, "node", "choice", move, choices)] if choices else []),
        _make_touch("fail", "Let this node fail", "node", "press", fail),
        _make_touch("restore", "Bring this node back", "node", "press", restore),
        _make_touch("replan", "Plan all queries again", "", "press", replan),
    ]


def _make_budget_touch(run: Any) -> Touch:
    happened = run.store.events.recent_events()
    planned = next((e for e in reversed(happened) if isinstance(e, SheddingPlanned)), None)
    shed = next((e for e in reversed(happened) if isinstance(e, BatchShed)), None)
    share = planned.fraction if planned else 0.5
    arrived = shed.considered_pairs + shed.skipped_pairs if shed else 0.0
    pairs = round(arrived / planned.kept_pair_share) if planned else 0
    cost = "about {n} pairs are compared in a batch; " + ACTS
    budget = _make_touch("budget", "Compare this share of the pairs", "", "number", cost)
    budget |= {
        "value": f"{max(LEAST, share):.3g}",
        "low": LEAST,
        "high": 1.0,
        "curve": [[0, 0, 0], [1, pairs, 0]],
    }
    return budget


def _make_touch(
    name: str,
    label: str,
    target: str,
    kind: str,
    cost: str,
    choices: Sequence[str] = (),
    value: str = "",
) -> Touch:
    return {
        "name": name,
        "label": label,
        "target": target,
        "kind": kind,
        "value": value,
        "choices": [*choices],
        "low": 0.0,
        "high": 0.0,
        "cost": cost,
        "curve": [],
    }


def apply_touch(run: Any, request: Mapping[str, Any]) -> str:
    """Make a change of the run and return a sentence about it.

    ``request``: ``name`` of the touch, ``selected`` and ``value``. Raises ValueError for what the
    run refuses, and RuntimeError if it has ended.
    """
    name, selected, value = (str(request.get(k, "")) for k in ("name", "selected", "value"))
    taken = [each for each in list_touches(run, None) if each["kind"] != "note"]
    also = {choice for each in taken if each["kind"] == "lines" for choice in each["choices"]}
    if name not in also.union(each["name"] for each in taken):
        raise ValueError(f"this run takes no change {name!r}")
    if name == "budget":
        run.adjust(fraction=_read_number(value))
    elif name == "rebalance":
        run.rebalance(CHAINS.get(value, value))
    elif OF in name:
        setting, _, alias = name.partition(OF)
        run.adjust(**{setting: _read_setting(setting, value)}, stream=alias)
    elif name in RANGES:
        run.adjust(**{name: _read_setting(name, value)})
    elif name == "lose":
        run.lose(int(selected.partition(":")[2]))
    elif name in CALLS:
        getattr(run, CALLS[name])(*filter(None, [selected.partition(":")[2]]))
    elif name == "add":
        _add_queries(run, value)
    elif name in ("submit", "Explain", "move", "replan"):
        return _change_hub(run, name, selected.partition(":")[2], value)
    else:
        _change_slice(run, name, selected, value)
    is_later = name == "hosts" or (OF in name and run.reads_ahead)
    return f"Asked for; it {ACTS_LATER if is_later else ACTS}."


def _add_queries(run: Any, text: str) -> None:
    """Add the queries of the lines to a shared run, once all of them are checked."""
    streams, served = list(run.config.streams), [query.name for query in run.queries]
    added = [query.to_arguments(streams) for query in parse_query_texts(text, streams)]
    for each in added:
        if each["name"] in served:
            raise ValueError(f"a query named {each['name']!r} is being served; remove it first")
        run.make_query(**each)
    if len(served) + len(added) > MOST:
        raise ValueError(f"{len(served)} queries are served; a run serves at most {MOST}")
    for each in added:
        run.add(**each)


def _change_hub(run: Any, name: str, node: str, value: str) -> str:
    """Submit or explain a query at a node, move an operator to it, or plan all queries again."""
    if name == "move":
        run.move_operator(_read_operator(value), node)
        return f"Moved; it {ACTS}."
    if name == "replan":
        plan = run.replan()
        done = "adopted" if plan.is_adopted else "left as it is"
        costs = f"{plan.cost_before:.4g} to {plan.cost_after:.4g} (modelled)"
        return f"All planned again: {costs}, {done}."
    place = {"sink": node} if node else {}
    if name == "Explain":
        return str(run.explain(value, **place))
    query = run.submit(value, **place)
    return f"Submitted as {query.name}; its operator: {query.reuse_kind}; it {ACTS}."


def _read_operator(text: str) -> int:
    """Return the number of an operator from a choice, as "3 at N1", or from the number alone."""
    id = text.partition(" ")[0]
    if not re.fullmatch("[0-9]+", id):
        raise ValueError(f"the operator is {text!r}; it is given by its number, as in '3 at N1'")
    return int(id)


def _read_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"the share is {text!r}; it is a number above 0 and at most 1") from None


def _read_setting(name: str, text: str) -> float:
    """Return the value of a setting; nodes and rows are whole."""
    is_whole = name in ("hosts", "max_tuples_per_host")
    try:
        return int(text) if is_whole else float(text)
    except ValueError:
        kind = "whole number" if is_whole else "number"
        low, high = RANGES[name]
        raise ValueError(f"{name} is {text!r}; it is a {kind} from {low:g} to {high:g}") from None


def _change_slice(run: Any, name: str, selected: str, age: str) -> None:
    """Split a slice at an age, by default in its middle, or merge it with the next older one.

    ``selected``: the slice as "slice:STREAM:FIRST:LAST", ages in microseconds.
    """
    _, stream, first, last = selected.split(":")
    alias = list(run.config.streams)[int(stream)]
    if name == "merge":
        run.merge_slices(f"{last} microseconds", alias)
    else:
        middle = f"{(int(first) + int(last)) // 2} microseconds"
        run.split_slice(age.strip() or middle, alias)
