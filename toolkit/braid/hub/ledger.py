"""What a hub remembers, in one file that is replaced whole: its operators, its queries, how far it
is. The file is the truth: what it does not name does not exist.
"""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from braid.core.state import check_version

VERSION = 1


@dataclass
class Served:
    """A query that is or was served. Of the operator's batches its own are those from ``first`` up
    to, not with, ``end``; those that its ticks may look back at begin with ``back``.

    ``bit`` is the demand's in the hub, ``mark`` the same demand's in the engine. ``since`` and
    ``until`` are event times (microseconds) between which its ticks are. ``complete`` says by
    stream from which event time on all tuples that it can use were held; None: all.
    """

    name: str
    sql: str
    windows: Any
    every: Any
    operator: int
    bit: int
    mark: int
    first: int
    back: int
    complete: dict[str, int | None]
    match: str
    since: int | None = None
    until: int | None = None
    end: int | None = None


@dataclass
class Kept:
    """An operator: what it joins, the bits of its demands, and its next bit."""

    id: int
    streams: list[str]
    on: str
    demands: list[int]
    next_bit: int = 1


@dataclass
class Ledger:
    """All that a hub remembers. ``epoch`` is the last batch of Spark that all operators have."""

    epoch: int = -1
    latest: dict[str, int | None] = field(default_factory=dict)
    next_id: int = 0
    operators: list[Kept] = field(default_factory=list)
    queries: list[Served] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """From its file; a new one if there is none. Raises ValueError for another version's."""
        if not path.exists():
            return cls()
        found = json.loads(path.read_text())
        if found.pop("v", None) != VERSION:
            check_version(None, f"the hub in {path.parent}")
        found["operators"] = [Kept(**o) for o in found["operators"]]
        found["queries"] = [Served(**q) for q in found["queries"]]
        return cls(**found)

    def write(self, path: Path) -> None:
        """Replace the file: that is the commit of whatever changed."""
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
        with open(temporary, "w") as file:
            file.write(json.dumps({"v": VERSION, **asdict(self)}))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)

    def serving(self, name: str) -> Served | None:
        """The query of that name that is served now."""
        return next((q for q in self.queries if q.name == name and q.end is None), None)
