"""Start a driver in a separate process, and kill it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import driver
import msgspec
from oracle import wait_until


def list_parents() -> dict[int, int]:
    """Return the parent of every live process, from /proc, without zombies."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = entry.read_text().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            found[int(entry.parent.name)] = int(parent)
    return found


def list_descendants(pid: int) -> set[int]:
    tree, family = list_parents(), {pid}
    while more := {p for p, parent in tree.items() if parent in family} - family:
        family |= more
    return family - {pid}


def launch_driver(log: Path, *runs: driver.Run, master: str = "") -> subprocess.Popen[bytes]:
    """Start a driver of these runs in a separate process, with its output in a file."""
    program = Path(driver.__file__)
    root = program.parent.parent
    paths = os.pathsep.join(map(str, (program.parent, root, root / "toolkit", root / "widgets")))
    with open(log, "ab") as out:
        return subprocess.Popen(
            [sys.executable, str(program), msgspec.json.encode(runs).decode(), master],
            env=os.environ | {"PYTHONPATH": paths},
            stdout=out,
            stderr=out,
        )


def kill_driver(process: subprocess.Popen[bytes], log: Path) -> None:
    """Kill the driver with signal 9; its JVM and workers then end by themselves."""
    family = list_descendants(process.pid)
    assert process.poll() is None, f"the driver ended before it could be killed: {log.read_text()}"
    process.kill()
    process.wait()
    assert len(family) >= 2
    wait_until(lambda: not family & list_parents().keys(), "end of the JVM that lost its driver")
