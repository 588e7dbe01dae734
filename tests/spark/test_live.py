"""Launches from notebooks can be prepared in advance."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from braid.core.run_events import RunEnded
from braid_lab.launches import live_runs
from pyspark.sql import SparkSession


@pytest.mark.usefixtures("spark")
def test_what_launches_need_is_made_ready_by_a_small_join(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, launched = [], live_runs._launch_in_new_folder

    def launch_and_note(*given: Any) -> Any:
        runs.append(launched(*given))
        return runs[-1]

    monkeypatch.setattr(live_runs, "_launch_in_new_folder", launch_and_note)
    monkeypatch.setattr(live_runs, "new_run_folder", lambda name: tmp_path / name)
    live_runs.warm_up(SimpleNamespace(can_launch=lambda: False))  # a run was launched meanwhile
    (run,) = runs
    end = run.events()[-1]
    assert isinstance(end, RunEnded) and end.outcome == "completed"
    assert SparkSession.getActiveSession() is not None and [*tmp_path.iterdir()] == [
        tmp_path / "warm"
    ]
