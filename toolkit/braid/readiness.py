"""Whether a folder holds the run of a query, and is ready for it to go on; how a new one is made
ready.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from braid.core.codec import typed
from braid.core.placement import Placement
from braid.engine.check import advice
from braid.engine.durable import Damaged
from braid.engine.store import Store
from braid.papers.shedding.shed import Shed
from braid.run_file import read_settings
from braid.setup import Replay, Setup


def adopted(setup: Setup, store: Store) -> Setup:
    """A placement that nobody named stays what it was chosen to be, on whatever machine."""
    if setup.chosen is None or (known := read_settings(store)) is None:
        return setup
    return replace(setup, placement=Placement.by_name(known["placement"]).of(known["settings"]))


def query_of(store: Store, query: Mapping[str, Any]) -> dict[str, Any] | None:
    """The settings of the run that the folder holds; None when none has been made ready. Raises
    ValueError for the run of another ``query``.
    """
    if (known := read_settings(store)) is None:
        return None
    differ = [k for k in query if k != "partitions" and known.get(k) != query[k]]
    if differ == ["keys"]:
        raise ValueError(
            f"{store.where} holds a run for which another version of Braid computed the keys of "
            "the condition in another way; use a new folder"
        )
    if differ:
        there, here = _apart(known.get(differ[0]), query[differ[0]])
        raise ValueError(
            f"{store.where} holds a run of another query: {differ[0]} is {there!r} there and "
            f"{here!r} here; use a new folder, or StreamJoin.resume to go on with that run"
        )
    return known if known.get("ready") else None


def prepared(
    store: Store,
    query: Mapping[str, Any],
    setup: Setup,
    replay: Replay | None,
    batches: int | str,
) -> dict[str, Any]:
    """Make the folder of a new run, with a copy of what is static; its settings. A folder is taken
    over first, so that a driver that began the same run, and sleeps, writes nothing over this.
    """
    if store.query() is None or store.url:
        store.create({**query, "ready": False})
    if not store.url:
        store.take_over()
    count = None if replay is None else replay.write(store.input, store.check_driver)
    ends = len(setup.static) == len(setup.streams)
    settings = {**query, "batches": count if ends else None, "ready": True}
    settings |= setup.remember() | {"cut": batches if replay is not None else None}
    if (chosen := setup.chosen) is not None:
        settings["chosen"] = {"why": chosen.why, "costs": chosen.costs}
    store.copied.seal(store.force)
    if store.url:  # it is given files of micro-batches, under a name of this driver's
        store.copied.complete(store.force)
    store.create(settings)
    return settings


def check_whole(store: Store, setup: Setup) -> None:
    """Raise Damaged unless the run can go on where its last commit was."""
    try:
        _verify(store, setup)
    except Damaged as damaged:
        if store.url:
            raise
        raise Damaged(f"{damaged}; {advice(store)}") from None
    store.copied.check()


def _verify(store: Store, setup: Setup) -> None:
    """Raise Damaged for what is damaged also when all is read anew: before this driver takes the
    run over, another one may have gone on, and removed what it names no more.
    """
    said = ""
    while True:
        try:
            store.verify()
            setup.check_source(store)
            return
        except Damaged as damaged:
            if store.log.is_mine or str(damaged) == said:
                raise
            said = str(damaged)
            store.log.reset()


def _apart(there: Any, here: Any) -> tuple[Any, Any]:
    """Two settings, without what they have in common."""
    if not isinstance(there, Mapping) or not isinstance(here, Mapping):
        return there, here
    differ = [k for k in {**there, **here} if there.get(k) != here.get(k)]
    return {k: there.get(k) for k in differ}, {k: here.get(k) for k in differ}


def shed_of(query: Mapping[str, Any]) -> Shed | None:
    """How the run of a folder sheds load, by its settings; None when it does not."""
    known = query.get("shed")
    return None if known is None else typed(known, Shed, "the stored shed")
