"""A driver in a process of its own, and how it is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import driver
from oracle import until


def parents() -> dict[int, int]:
    """The parent of every live process, from /proc; what has ended but not been reaped does not
    count.
    """
    found = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = entry.read_text().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            found[int(entry.parent.name)] = int(parent)
    return found


def descendants(pid: int) -> set[int]:
    tree, family = parents(), {pid}
    while more := {p for p, parent in tree.items() if parent in family} - family:
        family |= more
    return family - {pid}


def launch(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """The driver in a process of its own. Its output goes to a file beside the folder."""
    program = Path(driver.__file__)
    root = program.parent.parent
    paths = os.pathsep.join(map(str, (program.parent, root, root / "toolkit", root / "widgets")))
    with open(f"{folder}.log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, str(program), str(folder), *arguments],
            env=os.environ | {"PYTHONPATH": paths},
            stdout=log,
            stderr=log,
        )


def kill(process: subprocess.Popen[bytes], log: Path, least: int = 2) -> None:
    """kill -9 the driver; its JVM and workers, at ``least`` so many, then end by themselves."""
    family = descendants(process.pid)
    assert process.poll() is None, f"the driver ended before it could be killed: {log.read_text()}"
    process.kill()
    process.wait()
    assert len(family) >= least
    until(lambda: not family & parents().keys(), "end of the JVM that lost its driver")
