"""Repeat spark_builtin.py with ten times the rows: a million per stream and batch.

The rivals and their settings are the same. They are slow here, so that they run only the first
batches. Braid runs all ten; a ratio compares the same batches.
"""

from __future__ import annotations

from _common import STORE_NAMES, parse_arguments
from spark_builtin import compare_engines


def main() -> None:
    args = parse_arguments(
        __doc__ or "",
        {"rows": 400_000, "memory": 4},
        rows=10_000_000,
        batches=10,
        window=60,
        hosts=2,
        inmemory=5,
        rocksdb=3,
        memory=9,
    )
    limits = dict(zip(STORE_NAMES, (args.inmemory, args.rocksdb), strict=True))
    compare_engines(args, limits, f"{args.memory}g", warm=0)


if __name__ == "__main__":
    main()
