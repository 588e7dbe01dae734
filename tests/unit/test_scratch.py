"""Temporary folders."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import braid
import pytest
from braid.util import temp_dirs

PROGRAM = """
import os, sys, tempfile
tempfile.tempdir = sys.argv[1]
from braid.util import temp_dirs
print(temp_dirs.make_temp_dir("runs"), flush=True)
if len(sys.argv) > 2:
    os.kill(os.getpid(), 9)
"""


def run_program(root: Path, *more: str) -> tuple[Path, int]:
    home = str(Path(braid.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(root), *more],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": home},
    )
    return Path(done.stdout.strip()), done.returncode


def test_a_folder_goes_with_its_process_or_with_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "braid-mine").mkdir()
    left, code = run_program(tmp_path, "killed")
    assert code == -signal.SIGKILL and left.is_dir() and left.parent == tmp_path
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    here = temp_dirs.make_temp_dir("runs")
    assert not left.exists(), "of a process that was killed"
    gone, code = run_program(tmp_path)
    assert code == 0 and not gone.exists(), "of a process that has ended"
    assert here.is_dir() and (tmp_path / "braid-mine").is_dir(), "in use, and not ours"
    assert here.stat().st_mode & 0o777 == 0o700


def test_a_folder_is_never_there_with_a_lock_that_nobody_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process sweeps between any two steps of the creation of a folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    steps = 0

    def swept(frame: Any, event: str, arg: Any) -> None:
        nonlocal steps
        if event in ("c_call", "c_return") and (found := [*tmp_path.iterdir()]):
            sys.setprofile(None)
            steps += 1
            temp_dirs._remove_if_unlocked(found[0])
            sys.setprofile(swept)

    sys.setprofile(swept)
    try:
        here = temp_dirs.make_temp_dir("runs")
    finally:
        sys.setprofile(None)
    assert here.is_dir() and steps > 5
    temp_dirs.remove_temp_dir(here)
    assert not here.exists()
