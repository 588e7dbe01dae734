"""Compare HyperCube with routing in hops on a chain of three streams whose rates change half-way.

Tables are joined in this process with windows of six batches. Everything is counted, in the last
quarter of each half of a run: tuples that hosts receive and intermediate results that travel,
tuples stored over those of a window, and compared pairs, each over the tuples that came.
"HyperCube, fixed" has equal shares, a square. All placements must find the same results.
"""

from __future__ import annotations

from _common import Measure, parse_arguments, write_figures
from braid_lab.hypercube.claims import select_halves
from braid_lab.hypercube.experiments import FIXED, ChainSetting, compare_placements

MOST_RECEIVED = 0.75
"""Most that HyperCube may receive a tuple, over what the square receives."""


def main() -> None:
    args = parse_arguments(__doc__ or "", {"unit": 3}, unit=100, batches=36, hosts=16)
    first, later = ((n * args.unit for n in rates) for rates in ((8, 1, 1), (1, 1, 8)))
    setting = ChainSetting((*first,), (*later,), args.batches, args.hosts, values=10 * args.unit)
    table = compare_placements(setting)
    if (table.groupby("half")["results"].nunique() > 1).any():
        raise RuntimeError(f"placements differ in their results:\n{table}")
    cube, square = (select_halves(table, name)["received"] for name in ("HyperCube", FIXED))
    measures = [
        Measure(
            f"HyperCube, chain of three at {rates}, received a tuple / the square's",
            float(cube[half] / square[half]),
            MOST_RECEIVED,
            most=True,
        )
        for half, rates in ((1, "8:1:1"), (2, "1:1:8, after a change"))
    ]
    title = f"chain of three, {args.batches} batches of {10 * args.unit:,} rows, {args.hosts} hosts"
    write_figures(args, {title: table.round(2)}, measures)


if __name__ == "__main__":
    main()
