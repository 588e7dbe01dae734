"""The git checkout of this package."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git_commit() -> str:
    """Return the commit of this package's checkout, with "+" if files are changed.

    Empty for an installed package.
    """
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return ""
    lines = [
        subprocess.run(["git", "-C", str(root), *args], capture_output=True, text=True).stdout
        for args in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "-uno"))
    ]
    return lines[0].strip() + ("+" if lines[1].strip() else "")
