"""The recorded runs that notebooks open on: what they are, where they lie, and how they are made.

``python -m braid.studies.recordings`` makes all of them, or those that are named, with Spark. They
are runs of fixed settings, so another machine makes the same plans and counts; only times differ.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from braid.core.events import read, write
from braid.studies.theta import RIVALS

_PACKAGED = Path(__file__).parents[1] / "reports" / "data" / "recordings"
FOLDER = _PACKAGED if _PACKAGED.exists() else Path(__file__).parents[3] / "data" / "recordings"
"""Of an installed package, else of the checkout."""
SKEWS = (0, 1)
"""Zipf parameters of the recorded rivals."""

_RIVAL = dict(workload="eq5", scale=0.01, hosts=16, epsilon=1.0, batches=6, pace=0.0)

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "fluct": dict(
        workload="fluct",
        placement="AdaptiveGrid",
        scale=0.02,
        skew=0.0,
        fluctuation=4,
        hosts=64,
        epsilon=1.0,
        batches=48,
        pace=0.0,
    )
} | {
    f"eq5-{name}-z{z}": {**_RIVAL, "placement": kind, "skew": float(z)}
    for z in SKEWS
    for name, kind in RIVALS.items()
}
"""By name, the settings of ``launch`` that a recording is made with."""


def path(name: str) -> Path:
    """The file of a recording. Raises ValueError for one that is not among SETTINGS."""
    if name not in SETTINGS:
        raise ValueError(f"no recording is named {name!r}; there are: {', '.join(SETTINGS)}")
    return FOLDER / f"{name}.jsonl"


def rivals() -> dict[str, list[Any]]:
    """The recorded runs of Table 2: events by name, as ``theta.rivals`` has them."""
    return {f"{name}, z={z}": read(path(f"eq5-{name}-z{z}")) for z in SKEWS for name in RIVALS}


def record(name: str, folder: Path = FOLDER) -> Path:
    """Make a recording anew, on Spark. Raises ValueError as ``path`` does."""
    from braid.studies import live

    target = folder / path(name).name
    run = live.theta(SETTINGS[name])
    run.awaitTermination()
    folder.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    write(target, run.events())
    return target


def main() -> None:
    """Make the recordings that are named, or all."""
    parser = ArgumentParser("python -m braid.studies.recordings", description=__doc__)
    parser.add_argument("names", nargs="*", help="by default all")
    for name in parser.parse_args().names or SETTINGS:
        print(record(name), flush=True)


if __name__ == "__main__":
    main()
