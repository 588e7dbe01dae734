"""Writes the run that is kept of this version: ``python tests/kept/make.py``, once for each version
of the formats. It is stopped in the middle of a migration, and the results of one batch are merged.
"""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path

from braid import AdaptiveGrid
from braid.core.state import VERSION
from braid.engine import rolling
from braid.join import StreamJoin
from oracle import killed_before, tables

HERE = Path(__file__).parent


def main() -> None:
    streams = tables("ab", {"a": 60, "b": 400}, seed=14, batches=6)
    join = StreamJoin(
        streams, "abs(a.n - b.n) <= 9 AND a.k <> b.k", AdaptiveGrid(4), "100 s", "ts", "1 hour"
    )
    rolling._EVERY = 2
    with tempfile.TemporaryDirectory() as folder, killed_before(5):
        run = join.start(Path(folder) / "run", batches="batch")
        try:
            run.awaitTermination()
        except OSError:
            with tarfile.open(HERE / f"v{VERSION}.tar.gz", "w:gz") as kept:
                kept.add(Path(folder) / "run", "run")


if __name__ == "__main__":
    main()
