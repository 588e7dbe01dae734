"""Faults that claims must notice. Each is put into a policy or a cost model; the claims that it
names hold without it, and must fail with it.

Every module of this folder has the faults of one paper's studies, in a list MUTATIONS. The
concordance names them beside the claims that they break.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from braid.studies.claim import Claim


@dataclass(frozen=True)
class Mutation:
    """A fault, and what it breaks.

    ``name`` in plain words; ``at`` the dotted name of what is replaced, where it is looked up, and
    ``fault`` what takes its place, given what was there; ``claims`` tries the claims anew, by a
    function that keeps nothing from one call to the next; ``breaks`` has how the sentences
    (``Claim.says``) of those begin that must fail, each as much as tells it from others.
    """

    name: str
    at: str
    fault: Callable[[Any], Any]
    claims: Callable[[], Iterable[Claim]]
    breaks: tuple[str, ...]


def mutations() -> list[Mutation]:
    """Those of all papers."""
    names = sorted(module.name for module in iter_modules(__path__, f"{__name__}."))
    return [m for name in names for m in import_module(name).MUTATIONS]
