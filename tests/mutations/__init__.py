"""Faults that must be noticed. Each is put into a policy, a reference model or a cost model; the
claims or the test that it names hold without it, and must fail with it.

Every module of this folder has the faults of one paper's studies, in a list MUTATIONS, but for
``tested``, whose list BROKEN has those that a test notices. The concordance names them beside what
they break.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class Broken:
    """A fault, and the test that it breaks.

    ``name``, ``at`` and ``fault`` as of a Mutation; ``test`` is the test's dotted name, ``items``
    what it is of, in words that the concordance reads ("Wang 2008, Theorems 1 and 2"), ``given``
    the test's parameters.
    """

    name: str
    at: str
    fault: Callable[[Any], Any]
    test: str
    items: str
    given: Mapping[str, Any] = field(default_factory=dict)


def mutations() -> list[Mutation]:
    """Those of all papers."""
    names = sorted(module.name for module in iter_modules(__path__, f"{__name__}."))
    return [m for name in names for m in getattr(import_module(name), "MUTATIONS", ())]


def broken() -> list[Broken]:
    """Those that tests notice."""
    from mutations.tested import BROKEN

    return BROKEN
