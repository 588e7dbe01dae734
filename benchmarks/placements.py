"""Reproduce Table 2 and Figure 5 of Elseidy 2014: SHJ, StaticMid, StaticOpt and Dynamic by skew z.

The load is the counted tuples that each host stores at the end. The time is the measured seconds of
the median batch. All hosts share this machine, so a batch does not wait for an overloaded host as
it would on a cluster; the maximum load shows that effect.
"""

from __future__ import annotations

import pandas as pd
from _common import (
    find_warm_median,
    make_scratch_folder,
    parse_arguments,
    read_batch_seconds,
    write_figures,
)
from braid.core.run_events import BatchCommitted
from braid.spark_session import session
from braid_lab.launches.launching import launch_join, make_placement, make_workload

SKEWS = (0.0, 1.0)
CONTENDERS = {
    "SHJ": "HashPartition",
    "StaticMid": "StaticGrid",
    "StaticOpt": "StaticOpt",
    "Dynamic": "AdaptiveGrid",
}


def main() -> None:
    args = parse_arguments(__doc__ or "", {"permille": 1}, hosts=16, batches=6, permille=10)
    spark, tables = session("benchmark"), {}
    for query in ("eq5", "eq7"):
        rows = []
        for z in SKEWS:
            join = make_workload(
                spark, query, skew=z, scale=args.permille / 1000, batches=args.batches
            )
            for name, kind in CONTENDERS.items():
                with make_scratch_folder() as folder:
                    run = launch_join(
                        spark, folder, join, make_placement(kind, args.hosts, join=join)
                    )
                    run.awaitTermination()
                    commits = [e for e in run.events() if isinstance(e, BatchCommitted)]
                    plan = sum(e.seconds_by_phase["planning"] for e in commits) / sum(
                        e.seconds_by_phase["total"] for e in commits
                    )
                    rows.append(
                        {
                            "z": z,
                            "placement": name,
                            "results": sum(e.results for e in commits),
                            "ILF (mean stored)": commits[-1].total_host_metrics.stored_tuples
                            / args.hosts,
                            "most stored": max(h.stored_tuples for h in commits[-1].host_metrics),
                            "MB sent": sum(e.total_host_metrics.received_bytes for e in commits)
                            / 1e6,
                            "MB moved": sum(e.total_host_metrics.migrated_bytes for e in commits)
                            / 1e6,
                            "median s/batch": find_warm_median(read_batch_seconds(run)),
                            "planning %": 100 * plan,
                        }
                    )
        title = f"{query.upper()}, {args.hosts} hosts, scale factor {args.permille / 1000}"
        tables[title] = pd.DataFrame(rows).round(2)
    write_figures(args, tables, [])


if __name__ == "__main__":
    main()
