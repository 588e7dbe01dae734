"""Check whether a folder holds the run of a query and can be resumed; prepare a new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from braid.core.horizon import is_timed
from braid.errors import DamagedRunError
from braid.sources.stream_source import AnalyzedJoin, ReplaySource
from braid.storage.integrity import repair_hint
from braid.storage.result_retention import parse_retention
from braid.storage.run_settings import check_settings
from braid.storage.run_store import RunStore
from braid.util.batch_numbers import display_batch
from braid.util.package_versions import list_present_versions


def read_settings(store: RunStore) -> dict[str, Any] | None:
    """Return the settings of the run in a folder; None: there is none.

    Raises ValueError if they are invalid.
    """
    return check_settings(store.read_settings(), store.where)


def stored_settings(store: RunStore, query: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the settings of the run in the folder; None if no run is ready.

    Raises ValueError if it is the run of another ``query``.
    """
    if (settings := read_settings(store)) is None:
        return None
    differ = [k for k in query if k != "partitions" and settings.get(k) != query[k]]
    if differ == ["keys"]:
        raise ValueError(
            f"{store.where} holds a run for which another version of Braid computed the keys of "
            "the condition in another way; use a new folder"
        )
    if differ == ["schemas"] or differ == ["schemas", "keys"]:
        there, here = _find_differences(settings.get("schemas"), query["schemas"])
        alias = next(iter(here))
        raise ValueError(
            f"{store.where} holds a run whose stream {alias} has the columns {there[alias]}; it "
            f"was given {here[alias]}; a run keeps its columns, so give those, or use a new folder"
        )
    if differ:
        there, here = _find_differences(settings.get(differ[0]), query[differ[0]])
        raise ValueError(
            f"{store.where} holds a run of another query: {differ[0]} is {there!r} there and "
            f"{here!r} here; use a new folder, or StreamJoin.resume to go on with that run"
        )
    return settings if settings.get("ready") else None


def set_limits(store: RunStore, keep: Any, trace: Any, is_delivered_afar: bool) -> None:
    """Set the limits of retained results and of the trace.

    Raises ValueError if one is invalid, and for arguments that a run in a bucket does not take.

    ``is_delivered_afar``: whether results go to ``foreachBatch`` and tasks run on other machines.
    """
    if store.url and keep is not None:
        raise ValueError(f"keep is {keep!r}, but {store.url} is a bucket; leave it out there")
    if store.url and is_delivered_afar:
        raise ValueError(
            "foreachBatch gives results of a run in a bucket on this machine, and Spark's workers "
            "are on others; read the bucket there, or ask a session whose master is local[*]"
        )
    store.checkpointer.keep = parse_retention(keep)
    store.trace.limit = parse_retention(trace, "trace")


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
    join: AnalyzedJoin,
    replay: ReplaySource | None,
    batches: int | str,
) -> dict[str, Any]:
    """Copy the static input of a run that has begun, make it ready, and return its settings."""
    written = None if replay is None else replay.write_input(store.input.folder, store.check_driver)
    ends = len(join.static_streams) == len(join.config.streams)
    settings = {**query, "batches": written.batches if written and ends else None, "ready": True}
    settings["last_batches"] = written.last_batches if written else {}
    settings["expires"] = any(
        is_timed(join.expiry_bounds, s) for s in range(len(join.expiry_bounds))
    )
    settings |= join.source.record_fingerprints() | {"cut": batches if replay is not None else None}
    settings["versions"] = list_present_versions()
    if (chosen := join.config.chosen) is not None:
        settings["chosen_placement"] = {
            "reason": chosen.reason,
            "relative_costs": chosen.relative_costs,
        }
    generated = (written.generated, written.generated_files) if written else ()
    named = () if replay is None else join.static_streams
    store.input.write_checksums(store.force, named, *generated)
    if store.url:  # a bucket gets files of micro-batches, named after this driver
        store.input.split_all(store.force)
    store.create_run(settings)
    return settings


def check_resumable(store: RunStore, join: AnalyzedJoin) -> None:
    """Raise DamagedRunError unless the run can continue from its last commit."""
    try:
        _verify_run(store, join)
    except DamagedRunError as damaged:
        if store.url:
            raise
        raise DamagedRunError(f"{damaged}; {repair_hint(store)}") from None
    store.input.check_files()


def refuse_closed_run(store: RunStore, is_delivered: bool) -> None:
    """Raise ValueError if the run was closed, unless some of its batches are to be delivered yet.

    The state of the last commit is only certain to exist once this driver has taken the run over.
    ``is_delivered``: whether the run is resumed with ``foreachBatch``.
    """
    if (state := store.last_state()) is None or not state.is_closed:
        return
    if not is_delivered or store.sink_progress.last_batch >= state.batch:
        raise ValueError(
            f"the run in {store.where} was closed after batch {display_batch(state.batch)}, so it "
            "takes no more tuples; read its results from the folder, or start another run in a new "
            "one"
        )


def _verify_run(store: RunStore, join: AnalyzedJoin) -> None:
    """Raise DamagedRunError for damage that remains after the log is read again.

    Before this driver has taken the run over, another one may continue it and remove files.
    """
    damage = ""
    while True:
        try:
            store.verify_files()
            join.source.check_source_position(store)
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
