"""Check whether a folder holds the run of a query and can be resumed; prepare a new one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from braid.core.placement import Placement
from braid.errors import DamagedRunError
from braid.join_config import JoinConfig, ReplaySource
from braid.papers.shedding.shed import Shed
from braid.storage.integrity import repair_hint
from braid.storage.run_settings import check_settings
from braid.storage.run_store import RunStore
from braid.util.json_codec import from_plain


def with_stored_placement(setup: JoinConfig, store: RunStore) -> JoinConfig:
    """Return the settings with the stored placement if it was chosen automatically.

    A resumed run thus keeps its placement on any machine.
    """
    if setup.chosen is None or (settings := _read_settings(store)) is None:
        return setup
    return replace(
        setup,
        placement=Placement.class_by_name(settings["placement"]).from_settings(
            settings["settings"]
        ),
    )


def _read_settings(store: RunStore) -> dict[str, Any] | None:
    return check_settings(store.read_settings(), store.where)


def stored_settings(store: RunStore, query: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the settings of the run in the folder; None if no run is ready.

    Raises ValueError if it is the run of another ``query``.
    """
    if (settings := _read_settings(store)) is None:
        return None
    differ = [k for k in query if k != "partitions" and settings.get(k) != query[k]]
    if differ == ["keys"]:
        raise ValueError(
            f"{store.where} holds a run for which another version of Braid computed the keys of "
            "the condition in another way; use a new folder"
        )
    if differ:
        there, here = _find_differences(settings.get(differ[0]), query[differ[0]])
        raise ValueError(
            f"{store.where} holds a run of another query: {differ[0]} is {there!r} there and "
            f"{here!r} here; use a new folder, or StreamJoin.resume to go on with that run"
        )
    return settings if settings.get("ready") else None


def take_over_unready(store: RunStore, query: Mapping[str, Any]) -> dict[str, Any] | None:
    """Create the folder of a run that is not ready, and take it over.

    A suspended driver that began the same run can then no longer overwrite it.

    Return the settings that such a driver has made ready until then; None if it has not.
    """
    if store.read_settings() is None or store.url:
        store.create_run({**query, "ready": False})
    if store.url:
        return None
    store.take_over()
    return stored_settings(store, query)


def prepare_run(
    store: RunStore,
    query: Mapping[str, Any],
    setup: JoinConfig,
    replay: ReplaySource | None,
    batches: int | str,
) -> dict[str, Any]:
    """Copy the static input of a run that has begun, make it ready, and return its settings."""
    count = None if replay is None else replay.write_input(store.input.folder, store.check_driver)
    ends = len(setup.static_streams) == len(setup.streams)
    settings = {**query, "batches": count if ends else None, "ready": True}
    settings |= setup.record_fingerprints() | {"cut": batches if replay is not None else None}
    if (chosen := setup.chosen) is not None:
        settings["chosen_placement"] = {
            "reason": chosen.reason,
            "relative_costs": chosen.relative_costs,
        }
    store.input.write_checksums(store.force)
    if store.url:  # a bucket gets files of micro-batches, named after this driver
        store.input.split_all(store.force)
    store.create_run(settings)
    return settings


def check_resumable(store: RunStore, setup: JoinConfig) -> None:
    """Raise DamagedRunError unless the run can continue from its last commit."""
    try:
        _verify_run(store, setup)
    except DamagedRunError as damaged:
        if store.url:
            raise
        raise DamagedRunError(f"{damaged}; {repair_hint(store)}") from None
    store.input.check_files()


def _verify_run(store: RunStore, setup: JoinConfig) -> None:
    """Raise DamagedRunError for damage that remains after the log is read again.

    Before this driver has taken the run over, another one may continue it and remove files.
    """
    damage = ""
    while True:
        try:
            store.verify_files()
            setup.check_source_position(store)
            return
        except DamagedRunError as damaged:
            if store.log.is_mine or str(damaged) == damage:
                raise
            damage = str(damaged)
            store.log.reset_log()


def _find_differences(there: Any, here: Any) -> tuple[Any, Any]:
    """Return two settings without the entries they have in common."""
    if not isinstance(there, Mapping) or not isinstance(here, Mapping):
        return there, here
    differ = [k for k in {**there, **here} if there.get(k) != here.get(k)]
    return {k: there.get(k) for k in differ}, {k: here.get(k) for k in differ}


def stored_shedder(query: Mapping[str, Any]) -> Shed | None:
    """Return the load shedder in a run's settings; None: no load is shed."""
    stored = query.get("shed")
    return None if stored is None else from_plain(stored, Shed, "the stored shed")
