"""Faults of shared rings: the queries of results, pushed selections and the location of state.

Source: Wang 2008, Part III.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from braid.core.query import Query
from braid_lab.common.claims import Claim
from braid_lab.common.recorded_settings import record_values
from braid_lab.shared_ring import claims as paper
from braid_lab.shared_ring import cost as shared_ring_cost
from braid_lab.shared_ring import experiments as shared_ring_experiments
from braid_lab.shared_ring import reference_bitmaps
from braid_lab.slices import live_chain

from mutations import Mutation, Tries

NAMES = "batches", "days", "hosts", "month", "passing", "queries", "rate", "seed", "streams"
VALUES: dict[str, object] = dict.fromkeys((*NAMES, "windows", "window_hours", "selecting"), "few")
"""Values that runs on Spark record, and runs in this process do not."""


def bitmaps() -> Tries:
    """Return the example of chapter 20."""
    return [lambda: paper.bitmaps_claim(reference_bitmaps.route_example())]


def equations() -> Tries:
    """Return Eq. 21.2."""
    return [lambda: paper.length_claim(shared_ring_cost.length_table())]


def deployment() -> Tries:
    """Return a run in this process of two queries; the one with the longer window selects."""
    from unit.test_bitmaps import Counted, make_queries

    selective = make_queries((12, 12), (32, 32), where=((None, None), ("v = 9", "v = 9")))
    with TemporaryDirectory() as folder:
        run = Counted(Path(folder) / "run", selective, 3, streams=2).fed(seconds(56))
    balances = shared_ring_experiments.compare_balances(run.events, VALUES)
    steady = balances[balances["batch"].isin(range(40, 56))]
    return [lambda: paper.balance_claim(steady)]


@contextmanager
def fed(queries: tuple[Query, ...], hosts: int = 1, batches: int = 12) -> Iterator[Any]:
    """Return a run in this process instead of on Spark: these queries over six random tuples a
    batch.
    """
    from unit.test_bitmaps import Counted, some_batches

    streams = len(queries[0].windows)
    with TemporaryDirectory() as folder:
        run = Counted(Path(folder) / "run", queries, hosts, streams)
        yield run.fed(some_batches(batches, streams))


def rotated() -> tuple[Query, ...]:
    """Return three queries on three streams, each with another longest window."""
    from unit.test_bitmaps import make_queries

    where = (("v < 3", None, None), (None, "v = 9", None), (None,) * 3)
    return make_queries((6, 12, 20), (20, 6, 12), (12, 20, 6), where=where)


def selective() -> tuple[Query, ...]:
    """Return two queries on two streams; the one with the longer window selects."""
    from unit.test_bitmaps import make_queries

    return make_queries((6, 6), (60, 60), where=((None, None), ("v < 3", "v < 3")))


def answered(
    queries: tuple[Query, ...], hosts: int
) -> tuple[shared_ring_experiments.QueryAnswers, int]:
    """Return the actual and expected answers of queries, and the number of results made.

    Brute force replaces DuckDB.
    """
    with fed(queries, hosts) as run:
        none = (None,) * run.streams
        got = {q.name: Counter(run.read_results(q, 0, None).tolist()) for q in queries}
        truth = {q.name: Counter(run.truth(q, 0, None, none)[0].tolist()) for q in queries}
        return shared_ring_experiments.QueryAnswers(got, truth, "abc", VALUES), run.total("results")


def answers() -> Tries:
    """Return Theorem 11 and section 18.2, on a ring of three hosts."""
    made = cache(lambda: answered(rotated(), 3))
    return [
        lambda: paper.results_claim(made()[0]),
        lambda: paper.each_result_once_claim(made()[0], {"results": made()[1]}),
    ]


def on_a_chain() -> Tries:
    """Return Part I, section 4.2: two streams on one host."""
    from unit.test_bitmaps import make_queries

    def found() -> pd.DataFrame:
        reported, _ = answered(
            make_queries((6, 6), (20, 20), where=((None, None), ("v < 3", None))), 1
        )
        rows = [
            (reported.actual[n].total(), reported.actual[n] == reported.expected[n])
            for n in reported.expected
        ]
        table = pd.DataFrame(rows, columns=["results", "the same"])
        names = ("chain", "days", "month", "batches", "queries", "windows", "selecting")
        changes = ("added", "complete", "removed", "changes")
        return record_values(
            table.replace({"the same": {True: "yes", False: "no"}}),
            **dict.fromkeys((*names, *changes), "few"),
        )

    return [lambda: live_chain.answers_claim(found())]


def used() -> Tries:
    """Return Theorem 12: stored and useful state, batch by batch."""
    from unit.test_bitmaps import is_wanted

    def use() -> pd.DataFrame:
        with fed(queries := selective()) as run:
            held = [sum(e.live_tuples) for e in run.commits]
            came = [(s, b, t) for s, each in enumerate(run.came) for b, t in each]
        ends = {b: max(t[3] for _, at, t in came if at <= b) for b in range(len(held))}
        late = {"of use": 0} | {k: 6 * k for k in shared_ring_experiments.LONGER}
        needed = {
            name: [
                sum(is_wanted(queries, s, t, now - more) for s, at, t in came if at <= b)
                for b, now in ends.items()
            ]
            for name, more in late.items()
        }
        return record_values(pd.DataFrame({"held": held, **needed}), **VALUES)

    return [lambda: paper.state_claim(use(), 0.0)]


def cost(queries: tuple[Query, ...], batches: int = 12, hosts: int = 1) -> dict[str, float]:
    """Return the cost of queries in one run."""
    from unit.test_bitmaps import is_wanted

    with fed(queries, hosts, batches) as run:
        came = [(s, t) for s, each in enumerate(run.came) for _, t in each]
        counts = shared_ring_experiments.count_totals(run.events)
        return counts | {"of use": sum(is_wanted(queries, s, t, run.clock) for s, t in came)}


def apart(queries: tuple[Query, ...], batches: int = 12) -> paper.IsolatedCosts:
    """Return the cost of queries in one run, and separately."""
    each = [cost((replace(q, bitmap_position=0),), batches) for q in queries]
    costs = pd.DataFrame([cost(queries, batches), *each])
    return paper.IsolatedCosts(record_values(costs, **VALUES))


def intermediate() -> Tries:
    """Return section 18.1, its CPU: three queries on three streams.

    Their selections leave many intermediate results that no query wants; so do windows whose ranks
    differ by stream.
    """
    from unit.test_bitmaps import make_queries

    selecting = [(text,) * 3 for text in ("v < 3", "v >= 5", "v >= 5")]
    probing = make_queries(*[(60,) * 3] * 3, where=(*selecting,))
    comparing = make_queries((4, 4, 20), (20, 4, 4), (4, 20, 4))
    return [
        lambda: paper.least_work_claim(apart(probing, 20), "probed", "probes"),
        lambda: paper.least_work_claim(apart(comparing), "compared", "pairs compared"),
    ]


def unlike() -> Tries:
    """Return section 18.1, its memory: of two queries, the one with the longer window selects."""
    return [lambda: paper.least_state_claim(apart(selective()))]


def deployed() -> Tries:
    """Return section 18.2: of two queries, on three hosts and on one."""

    def claim() -> Claim:
        on_one, on_three = (cost(selective(), hosts=n) for n in (1, 3))
        costs = record_values(pd.DataFrame([on_one, on_one]), **VALUES)
        return paper.deployment_claim(paper.IsolatedCosts(costs), on_three, 3)

    return [claim]


def everyone(of: Any) -> Any:
    """Send results to every query."""
    return lambda self, found: of(self, found) | -1


def seconds(count: int) -> list[list[tuple[int, int, int, int]]]:
    """Return batches of a second, each of eight tuples (stream, k, v, seconds after the last)."""
    draw = Random(0)
    return [
        [(n % 2, draw.randrange(2), draw.randrange(10), int(n == 0)) for n in range(8)]
        for _ in range(count)
    ]


def equal(deployed: Any) -> Any:
    """Return equal ranges of age, whatever selections leave of them."""

    def fault(facts: Any, stream: int, windows: Any, hosts: int) -> tuple[int, ...]:
        return tuple(windows[-1] * k // hosts for k in range(1, hosts))

    return fault


MUTATIONS = [
    Mutation(
        "every result is given to every query, of a ring in this process",
        "braid.kernels.query_bitmaps.QueryBitmaps.result_bitmaps",
        everyone,
        answers,
        ("Theorem 11: pushing selections", "Every joined result answers at least one query"),
    ),
    Mutation(
        "every result is given to every query, of a chain in this process",
        "braid.kernels.query_bitmaps.QueryBitmaps.result_bitmaps",
        everyone,
        on_a_chain,
        ("every query has the results that it has alone",),
    ),
    Mutation(
        "slices that hand nearly nothing on, in this process",
        "braid.papers.slices.chain._Planner._cut_block",
        lambda cut: lambda self, b, first, target: cut(self, b, b.key_range[1] - 1, target),
        used,
        ("Theorem 12: the state holds what some query needs",),
    ),
    Mutation(
        "selections are not pushed into a ring in this process",
        "braid.papers.slices.chain._Planner._cut_block",
        lambda cut: lambda self, b, first, target: b,
        unlike,
        ("Sharing saves memory",),
    ),
    Mutation(
        "selections are not pushed in, beside what is of use in this process",
        "braid.papers.slices.chain._Planner._cut_block",
        lambda cut: lambda self, b, first, target: b,
        used,
        ("Theorem 12: the state holds what some query needs",),
    ),
    Mutation(
        "selections are not pushed into a ring of several hosts, in this process",
        "braid.papers.slices.chain._Planner._cut_block",
        lambda cut: lambda self, b, *place: cut(self, b, *place) if self.chain.hosts == 1 else b,
        deployed,
        ("The deployment does not change the probing cost",),
    ),
    Mutation(
        "every intermediate result is probed with, whomever it serves, in this process",
        "braid.kernels.query_bitmaps.QueryBitmaps.result_bitmaps",
        everyone,
        intermediate,
        ("Sharing saves CPU",),
    ),
    Mutation(
        "every result is given to every query, of the book's example",
        "braid.kernels.query_bitmaps.QueryBitmaps.result_bitmaps",
        everyone,
        bitmaps,
        ("A result from B_2 and C_3",),
    ),
    Mutation(
        "the last node answers as soon as the first",
        "braid_lab.shared_ring.cost.node_latency",
        lambda latency: (
            lambda load, nodes, node: shared_ring_cost.ring_cost.ring_work(load, nodes) / nodes
        ),
        equations,
        ("More nodes lower a node's processing part",),
    ),
    Mutation(
        "ages are shared out in equal stretches",
        "braid.papers.slices.chain.choose_host_ages",
        equal,
        deployment,
        ("With regard to selectivities",),
    ),
]
