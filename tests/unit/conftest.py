"""Fixtures shared by several test files."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pytest
from braid.storage import log_checkpointer


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Roll up after three batches, and merge their results."""
    monkeypatch.setattr(log_checkpointer, "_EVERY", 3)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of twelve batches with nine of them merged."""
    from merged_runs import whole_run

    return whole_run(tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy of that run."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


@pytest.fixture
def url() -> str:
    """A bucket in this process's memory."""
    return f"memory:///{uuid.uuid4().hex}"
