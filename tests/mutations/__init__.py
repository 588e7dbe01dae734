"""Faults that must be noticed. Each is put into a policy, a reference model or a cost model; the
claims or the test that it names hold without it, and must fail with it.

Every module of this folder has the faults of one paper's studies, in a list MUTATIONS, but for
``tested``, whose list BROKEN has those that a test notices. The concordance names them beside what
they break.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import import_module
from pkgutil import iter_modules
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from unittest.mock import patch

import numpy as np
from braid_lab.common.claims import Claim

T = TypeVar("T")
Tries = Iterable[Callable[[], Claim | Iterable[Claim]]]
"""Each tries a claim, or some; what they are about is made when the first of them looks at it."""


@dataclass(frozen=True)
class Mutation:
    """A fault, and what it breaks.

    ``name`` in plain words; ``at`` the dotted name of what is replaced, where it is looked up, and
    ``fault`` what takes its place, given what was there; ``claims`` tries the claims anew, by a
    function that keeps nothing from one call to the next but what is ``known``; ``breaks`` has how
    the sentences (``Claim.statement``) of those begin that must fail, each as much as tells it from
    others; ``runs`` are the placements, by class, whose runs come to something else by the fault,
    None for all: by a fault of none just the placements that are run are others, or what is
    reckoned of their runs.
    """

    name: str
    at: str
    fault: Callable[[Any], Any]
    claims: Callable[[], Tries]
    breaks: tuple[str, ...]
    runs: Collection[str] | None = None


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


@dataclass
class Faulty:
    """A fault that is at work: the ``touched`` placements, whose runs come to something else by it
    (None: all), and those ``runs``; of each other placement the run that was made the quickest of
    those that were ``taken`` from what runs come to without it, and how to make it again.
    """

    touched: Collection[str] | None = ()
    runs: dict[Hashable, Any] = field(default_factory=dict)
    taken: dict[str, tuple[Hashable, Callable[[], Any]]] = field(default_factory=dict)


KNOWN: dict[Hashable, Any] = {}
"""What runs come to without a fault."""
SECONDS: dict[Hashable, float] = {}
"""In which they were made."""
faulty = Faulty()
"""The present fault."""


def cached_run(run: tuple[Any, ...], made: Callable[[], T]) -> T:
    """What a run comes to, made once; the placement is the first of what tells it from others."""
    kind, fault, found = type(run[0]).__name__, faulty, KNOWN
    if fault.touched is None or kind in fault.touched:
        found = fault.runs
    elif run in KNOWN:
        before = fault.taken.get(kind)
        if before is None or SECONDS[run] < SECONDS[before[0]]:
            fault.taken[kind] = run, made
    if run not in found:
        began = time.perf_counter()
        found[run] = made()
        if found is KNOWN:
            SECONDS[run] = time.perf_counter() - began
    outcome: T = found[run]
    return outcome


def changed_placements(fault: Faulty) -> list[str]:
    """The placements of which a run that was taken comes to something else now."""
    return [k for k, (run, made) in fault.taken.items() if not same_outcome(made(), KNOWN[run])]


def same_outcome(a: Any, b: Any) -> bool:
    """Whether two runs came to the same."""
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(same_outcome(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same_outcome, a, b))
    if is_dataclass(a):
        return all(same_outcome(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return bool(a == b or (a != a and b != b))


def run_in_process(
    told: Callable[[Any], T],
    tables: Mapping[str, Any],
    on: str,
    placement: Any,
    windows: Mapping[str, str] | None = None,
    **more: Any,
) -> T:
    """What is ``told`` of a run in this process, without Spark, of tables with a column "batch",
    and event times "ts" where there are windows; on one host where no placement is given.
    """
    from braid.papers.baselines.centralized import Centralized
    from braid.stream_join import StreamJoin

    join = StreamJoin(
        dict(tables), on, placement or Centralized(), windows, windows and "ts", **more
    )
    with TemporaryDirectory() as folder:
        run = join.start(f"{folder}/run", batches="batch")
        run.awaitTermination()
        return told(run)


@contextmanager
def call_counting_clock(clock: str, each: float = 6e-7) -> Iterator[None]:
    """A clock, by its dotted name, that every call of a Python function in the thread that asks
    moves on by so many seconds: what is measured with it is the same however busy the machine is.
    """
    local = threading.local()

    def called(frame: Any, event: str, given: Any) -> None:
        local.calls = getattr(local, "calls", 0) + (event == "call")

    before = sys.getprofile()
    with patch(clock, lambda: getattr(local, "calls", 0) * each):
        threading.setprofile(called)
        sys.setprofile(called)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(None)  # type: ignore[arg-type]


def lazy_figures(kind: type[T], **made: Callable[[], Any]) -> T:
    """Figures that claims are about, each table made when a claim first looks at it."""

    class Later(kind):  # type: ignore[misc, valid-type]
        def __init__(self) -> None: ...

        def __getattr__(self, name: str) -> Any:
            if name not in made:
                raise AttributeError(name)
            self.__dict__[name] = made[name]()
            return self.__dict__[name]

    return Later()


def mutations() -> list[Mutation]:
    """Those of all papers."""
    names = sorted(module.name for module in iter_modules(__path__, f"{__name__}."))
    return [m for name in names for m in getattr(import_module(name), "MUTATIONS", ())]


def broken() -> list[Broken]:
    """Those that tests notice."""
    from mutations.tested import BROKEN

    return BROKEN
