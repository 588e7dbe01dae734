"""Faults that must be detected.

Each fault is put into a policy, a reference model or a cost model. The claims or the test that it
names hold without it and must fail with it.

Every module of this folder has the faults of one paper's studies in a list MUTATIONS, or in a list
BROKEN faults that a test detects, of a paper (``tested``) or of none. The concordance names the
faults beside the items that they break.
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
"""Functions that test one claim or several; their figures are computed when first read."""


@dataclass(frozen=True)
class Mutation:
    """A fault, and the claims that it breaks.

    - ``name``: the fault in plain words.
    - ``at``: dotted name of the replaced object, as it is looked up.
    - ``fault``: returns the replacement, given the original.
    - ``claims``: tests the claims again; it caches nothing between calls but known runs.
    - ``breaks``: unique prefixes of the sentences (``Claim.statement``) that must fail.
    - ``runs``: placements, by class, whose runs the fault changes; None: all. If empty, the fault
      changes only which placements are run, or the figures computed from their runs.
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

    - ``name``, ``at``, ``fault``: as of a Mutation.
    - ``test``: the test's dotted name.
    - ``items``: the items that the test covers, in the words of the concordance ("Wang 2008,
      Theorems 1 and 2"); empty: none of a paper.
    - ``given``: the test's parameters.
    """

    name: str
    at: str
    fault: Callable[[Any], Any]
    test: str
    items: str
    given: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Faulty:
    """An active fault.

    - ``touched``: the placements whose runs the fault changes (None: all).
    - ``runs``: those runs.
    - ``taken``: for each other placement, its fastest run among those reused from outcomes without
      the fault, and how to make it again.
    """

    touched: Collection[str] | None = ()
    runs: dict[Hashable, Any] = field(default_factory=dict)
    taken: dict[str, tuple[Hashable, Callable[[], Any]]] = field(default_factory=dict)


KNOWN: dict[Hashable, Any] = {}
"""The outcomes of runs without a fault."""
SECONDS: dict[Hashable, float] = {}
"""The seconds in which they were computed."""
faulty = Faulty()
"""The current fault."""


def cached_run(run: tuple[Any, ...], made: Callable[[], T]) -> T:
    """Return the outcome of a run, computed once; the placement is the first part of its key."""
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
    """Return the placements with a reused run whose outcome is different now."""
    return [k for k, (run, made) in fault.taken.items() if not is_same_outcome(made(), KNOWN[run])]


def is_same_outcome(a: Any, b: Any) -> bool:
    """Return whether two runs have the same outcome."""
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(is_same_outcome(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(is_same_outcome, a, b))
    if is_dataclass(a):
        return all(is_same_outcome(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return bool(a == b or (a != a and b != b))


def run_in_process(
    reported: Callable[[Any], T],
    tables: Mapping[str, Any],
    on: str,
    placement: Any,
    windows: Mapping[str, str] | None = None,
    **more: Any,
) -> T:
    """Return what ``reported`` computes from a run in this process, without Spark.

    Tables have a column "batch", and event times "ts" if there are windows. Without a placement the
    run has one host.
    """
    from braid.papers.baselines.centralized import Centralized
    from braid.stream_join import StreamJoin

    join = StreamJoin(
        dict(tables), on, placement or Centralized(), windows, windows and "ts", **more
    )
    with TemporaryDirectory() as folder:
        run = join.start(f"{folder}/run", batches="batch")
        run.awaitTermination()
        return reported(run)


@contextmanager
def unchecked() -> Iterator[None]:
    """Run plans that break the cover rule too, so that a fault loses results instead."""
    with (
        patch("braid.core.batch_step._check_work", lambda rules, state, work: work),
        patch("braid.simulation.simulator.check_all_answered", lambda *given: None),
    ):
        yield


@contextmanager
def call_counting_clock(clock: str, each: float = 6e-7) -> Iterator[None]:
    """Replace a clock, by its dotted name, by one that advances with every Python call in its
    thread.

    Times measured with it are the same on any machine, however busy.
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
    """Return figures for claims, each table computed when a claim first reads it."""

    class Later(kind):  # type: ignore[misc, valid-type]
        def __init__(self) -> None: ...

        def __getattr__(self, name: str) -> Any:
            if name not in made:
                raise AttributeError(name)
            self.__dict__[name] = made[name]()
            return self.__dict__[name]

    return Later()


def mutations() -> list[Mutation]:
    """Return the mutations of all papers."""
    return _collect("MUTATIONS")


def broken() -> list[Broken]:
    """Return the faults that tests detect."""
    return _collect("BROKEN")


def _collect(name: str) -> list[Any]:
    """Return the faults in the lists of this name in all modules of this folder."""
    modules = sorted(module.name for module in iter_modules(__path__, f"{__name__}."))
    return [fault for each in modules for fault in getattr(import_module(each), name, ())]
