"""The folders of runs that a notebook or a panel starts."""

from __future__ import annotations

from functools import cache
from itertools import count
from pathlib import Path

from braid.util import temp_dirs

_numbers = count()


@cache
def _make_runs_folder() -> Path:
    return temp_dirs.make_temp_dir("runs")


def new_run_folder(name: str) -> Path:
    """Return a new folder path for a run, in a temporary folder of this process."""
    return _make_runs_folder() / f"{name}-{next(_numbers)}"
