"""A PostgreSQL server of this machine for tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def _find_programs() -> Path | None:
    """Return the folder of PostgreSQL's programs; None: it is not installed."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = [*debian[-1:], shutil.which("initdb")]
    return next((Path(file).resolve().parent for file in found if file), None)


@contextmanager
def run_postgres() -> Iterator[str]:
    """Yield the address of an empty database, which nobody else reaches. Skip if there is none."""
    programs = _find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    home = Path(tempfile.mkdtemp(prefix="braid-postgres-", dir="/tmp"))
    user = "postgres" if os.getuid() == 0 else None  # it refuses to run as root
    if user:
        shutil.chown(home, user)

    def call_program(program: str, *arguments: str) -> None:
        subprocess.run(
            [programs / program, "-D", home / "data", *arguments],
            user=user, cwd=home, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip

    try:
        call_program("initdb", "-U", "braid", "-A", "trust", "--no-sync", "--no-instructions", "-N")
        options = f"-k {home} -c listen_addresses='' -c fsync=off"
        call_program("pg_ctl", "start", "-w", "-s", "-o", options, "-l", str(home / "log"))
        yield f"host={home} user=braid dbname=postgres"
        call_program("pg_ctl", "stop", "-s", "-m", "immediate")
    finally:
        shutil.rmtree(home, ignore_errors=True)
