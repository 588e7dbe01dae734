"""Power failures before each change of a simulated machine's files."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from world.files import Files
from world.machine import Machine

CHANGES = {
    *("append", "close", "create", "force", "link", "mkdir", "replace", "rmtree", "sync"),
    *("truncate", "unlink", "write"),
}


class PowerCut(random.Random):
    """The draws of a power failure that keeps the last synced content of files.

    Of the names that were not synced, it keeps all or none.
    """

    def __init__(self, keeps_names: bool) -> None:
        super().__init__(0)
        self._keeps_names = keeps_names

    def randint(self, a: int, b: int) -> int:
        return b if self._keeps_names else a

    def choice(self, seq: Any) -> Any:
        return "old"


CUTS = {
    "all names": lambda: PowerCut(True),
    "no names": lambda: PowerCut(False),
    "some names": lambda: random.Random(7),
}
"""What a power failure leaves of data that was not synced: names of files without content, neither,
or some of both.
"""


class Cuts:
    """The distinct machines after power failures. ``how`` is a key of CUTS."""

    def __init__(self, machine: Machine, how: str) -> None:
        self.machine, self.how = machine, how
        self.left: dict[tuple[Any, ...], Files] = {}

    def cut(self, operation: str = "sync", path: str = "") -> None:
        """Record what a power failure leaves now, if a change is about to be made."""
        if operation in CHANGES:
            left = self.machine.files.copy_after_cut(CUTS[self.how]())
            content = ((path, node.content) for path, node in left.walk())
            self.left.setdefault((*left.root.names, *content), left)

    def machines(self, most: int = 1000) -> Iterator[Machine]:
        """Run the engine on one machine after another: all, or ``most`` evenly spread ones."""
        left = [*self.left.values()]
        for number in sorted({n * (len(left) - 1) // (most - 1) for n in range(most)}):
            machine = Machine(left[number])
            with machine.simulated():
                yield machine
