"""Count the lines of ``toolkit/braid`` by the work that added them, from git's history.

``python tests/words.py`` (``make words``) prints them. A line belongs to the commit that ``git
blame -w -M`` names. Commits that only renamed or moved are looked through, and lines of commits
that belong to no feature work count as the rest; ``tests/line_origins.toml`` lists both.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

PACKAGE = "toolkit/braid"
_COMMIT_LINE = re.compile(rb"^([0-9a-f]{40}) \d+ \d+", re.MULTILINE)
"""The head of each line in the porcelain format of git blame."""


@dataclass(frozen=True)
class Origins:
    """Commits by the work that they belong to.

    - ``features``: by name of the work that added features, its commits.
    - ``renames``: commits that only renamed or moved code.
    """

    features: Mapping[str, frozenset[str]]
    renames: tuple[str, ...]

    @classmethod
    def read(cls, root: Path) -> Origins:
        """Return the hashes of the commits that ``tests/line_origins.toml`` lists.

        It lists subjects, which stay the same if commits are applied again elsewhere.
        """
        listed = tomllib.loads((root / "tests/line_origins.toml").read_text(encoding="utf-8"))
        log = _run_git(root, "log", "--reverse", "--format=%H %s").decode().splitlines()
        every = [line[:40] for line in log]
        place = {line[41:]: n for n, line in enumerate(log)}
        others = {every[place[c]] for c in listed["others"]}
        features = {
            name: frozenset(
                every[n]
                for first, last in work["ranges"]
                for n in range(place[first], place[last] + 1)
                if every[n] not in others
            ).union(every[place[c]] for c in work.get("commits", ()))
            for name, work in listed["features"].items()
        }
        return cls(features, tuple(every[place[c]] for c in listed["renames"]))


def count_package_lines(root: Path) -> int:
    """Return the lines of the Python files of ``toolkit/braid``."""
    return sum(file.read_bytes().count(b"\n") for file in (root / PACKAGE).rglob("*.py"))


def print_package_lines(root: Path) -> None:
    """Print the lines of ``toolkit/braid``, and those without what feature work has added.

    The latter are printed by two readings: lines that feature work has moved from another file
    count as its own, or (``-C``) as old ones. A copy of the sources without git has the first line
    only.
    """
    print(f"{PACKAGE}: {count_package_lines(root)} lines")
    if not (root / ".git").exists():
        return
    for option, reading in (
        ((), "moved lines count as added"),
        (("-C",), "moved lines count as old"),
    ):
        lines = count_lines_by_work(root, option)
        added = ", ".join(f"{name} {lines[name]}" for name in sorted(lines) if name)
        print(f"{PACKAGE}, {reading}: {lines['']} lines without {added}")


def count_lines_by_work(root: Path, options: Sequence[str] = ()) -> Counter[str]:
    """Return the committed lines of ``toolkit/braid`` by feature work; "": all other work.

    ``options`` are more options of git blame. Takes some 20 seconds, with ``-C`` some minutes.
    """
    origins = Origins.read(root)
    work = {commit: name for name, commits in origins.features.items() for commit in commits}
    files = _run_git(root, "ls-files", f"{PACKAGE}/*.py").decode().split()
    with tempfile.NamedTemporaryFile("w") as ignored, ThreadPoolExecutor(2) as threads:
        ignored.write("\n".join(origins.renames))
        ignored.flush()
        blame = partial(_blame_lines, root, ignored.name, options)
        lines = [commit for commits in threads.map(blame, files) for commit in commits]
    return Counter(work.get(commit, "") for commit in lines)


def _blame_lines(root: Path, ignored: str, options: Sequence[str], file: str) -> list[str]:
    """Return the commit of each line of a file."""
    command = ("blame", "-w", "-M", *options, "--porcelain", "--ignore-revs-file", ignored)
    heads = _COMMIT_LINE.findall(_run_git(root, *command, "HEAD", "--", file))
    return [commit.decode() for commit in heads]


def _run_git(root: Path, *command: str) -> bytes:
    return subprocess.run(["git", *command], cwd=root, check=True, capture_output=True).stdout
