"""The soak's measurement of a commit's file operations alone."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

SOAK = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "_soak_disk.py"))


@pytest.mark.parametrize("sparks", [0, 3])
def test_each_folder_is_forced_once_and_has_something_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sparks: int
) -> None:
    """A folder synced a second time has nothing to write, and takes no time."""
    folder, forced, written = tmp_path / "run" / "commits", list[Path](), list[str]()
    folder.mkdir(parents=True)

    def fsync(at: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{at}"))
        if path.is_dir():
            forced.append(path)
            assert [*path.iterdir()]
        else:
            written.append(path.name)

    monkeypatch.setattr(os, "fsync", fsync)
    for _ in range(2):
        forced.clear()
        written.clear()
        assert SOAK["time_bare_commit"](folder, sparks, name_count=5) > 0
        assert len(forced) == len({*forced}) == SOAK["SYNCED_FOLDERS"] + sparks
        assert written == [".bare", *["file"] * sparks]
        left = [f for f in folder.parent.rglob("*") if f.is_file()]
        assert {f.parent.name for f in left} == {".bare-results"} and len(left) == 5, "others go"


def test_no_file_gets_more_names_than_a_file_system_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SOAK["fill_results_folder"].__globals__, "MOST_LINKS", 3)
    for names in (2, 3, 4, 10, 11):
        files = [*SOAK["fill_results_folder"](tmp_path / "commits", names).iterdir()]
        assert len(files) == names
        assert max(file.stat().st_nlink for file in files) == min(names, 3)
