"""What tests of several files begin with."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pytest
from braid.storage import log_checkpointer


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three batches are rolled up at once, and their results merged."""
    monkeypatch.setattr(log_checkpointer, "_EVERY", 3)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of twelve batches, of which nine are merged."""
    from merged_runs import whole_run

    return whole_run(tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


@pytest.fixture
def url() -> str:
    """A bucket of this process's memory."""
    return f"memory:///{uuid.uuid4().hex}"
