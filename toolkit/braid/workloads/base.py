"""What all workloads are: streams, what to join them on, and where generated data stays."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_cache_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCH = "batch"
"""The column that numbers the micro-batch, from 0, in which a tuple arrives."""


@dataclass(frozen=True)
class Workload:
    """Two or more streams and what to join them on; of two, the first is the paper's R, the second
    its S.

    ``batch`` names the integer column that numbers the micro-batches (from 0) for a replay in the
    intended order.
    """

    name: str
    streams: Mapping[str, DataFrame]
    on: str
    time: str | None = None
    windows: Mapping[str, str] = field(default_factory=dict)
    batch: str | None = BATCH


def cache_folder() -> Path:
    """Where generated data stays: ``$BRAID_CACHE``, or the user's cache as the platform has it."""
    return Path(os.environ.get("BRAID_CACHE") or user_cache_path("braid", appauthor=False))
