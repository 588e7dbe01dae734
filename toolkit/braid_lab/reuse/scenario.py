"""Workloads of queries on the network of the studies."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache

from braid.condition.sql_types import SqlType
from braid.hub.query_conditions import Schemas
from braid.hub.query_parser import parse_stream_query
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import DeployedQuery, Deployment
from braid.papers.reuse.network import Network
from braid.papers.reuse.planner import Planner, PlanningService, Reuse
from braid.papers.reuse.result_rates import Rates, StreamRate

from braid_lab.workloads.networks import transit_stub
from braid_lab.workloads.query_texts import QueryWorkload, airline_workload, supply_chain_workload

WORKLOADS = {"enterprise": airline_workload, "rfid": supply_chain_workload}


def workload_schemas(workload: QueryWorkload) -> Schemas:
    """Return the types of a workload's columns."""
    return {
        s: {c: SqlType.parse(kind) for c, kind in columns.items()}
        for s, columns in workload.types.items()
    }


def workload_rates(workload: QueryWorkload, selectivity: float = 1.0) -> Rates:
    """Return the rates of a workload's streams; ``selectivity`` is a factor of all joins'."""
    streams = {
        s: StreamRate(r, workload.bytes, workload.rows[s]) for s, r in workload.rates.items()
    }
    return Rates(streams, {text: selectivity * of for text, of in workload.selectivity.items()})


@dataclass(frozen=True)
class ReuseScenario:
    """A workload on a network: the nodes of its streams and the sinks of its queries."""

    model: CostModel
    deployment: Deployment
    queries: tuple[DeployedQuery, ...]

    def make_service(self, reuse: Reuse) -> PlanningService:
        """Return a service without deployments, whose planner may reuse what ``reuse`` says."""
        return PlanningService(Planner(self.model, reuse), self.deployment)


@cache
def make_network() -> Network:
    """Return the network of the studies: 124 nodes in 8 regions."""
    return transit_stub()


def make_scenario(
    workload: str,
    queries: int,
    seed: int = 0,
    regions: int | None = None,
    selectivity: float = 1.0,
) -> ReuseScenario:
    """Return a workload whose queries have sinks in ``regions`` regions; None: everywhere.

    ``selectivity`` is a factor of the selectivities of all joins.
    """
    generator, rng = WORKLOADS[workload](seed), random.Random(seed)
    net, schemas = make_network(), workload_schemas(generator)
    names = [n.name for n in net.nodes]
    sinks = names if regions is None else [n for r in net.regions[:regions] for n in r]
    at = {s: rng.choice(names) for s in generator.types}
    deployed = [
        DeployedQuery(
            f"q{i}", parse_stream_query(sql, schemas, "ts").definition, rng.choice(sinks), sql=sql
        )
        for i, sql in enumerate(generator.generate_queries(queries, seed))
    ]
    model = CostModel(net, workload_rates(generator, selectivity))
    return ReuseScenario(model, Deployment(at), tuple(deployed))
