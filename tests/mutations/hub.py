"""Faults of the log of a hub, each detected by one test. They are of no paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from braid.core.run_state import FileChecksum
from braid.storage.hub_files import OperatorPin
from braid.storage.run_store import RunStore
from braid.util.file_system import current_file_system

from mutations import Broken

LOG = "unit.test_hub_log."


def unchecked(check: Any) -> Any:
    """Read the log of an operator, but do not compare it with the pin."""

    def fault(store: RunStore, pin: OperatorPin) -> None:
        store.log.read_new_entries()

    return fault


def not_forced(checksum_file: Any) -> Any:
    """Compute the checksum of a file without forcing the file to disk."""

    def fault(path: Path, force: bool) -> FileChecksum:
        checksum: FileChecksum = checksum_file(path, force and path.parent.name != "history")
        return checksum

    return fault


def swept_first(open_log: Any) -> Any:
    """Remove the files that no state names before a state is read."""

    def fault(log: Any) -> Any:
        for path in log._list_unnamed_files(set()):
            if path.parent.name == "operators":
                current_file_system().remove_folder(path)
        return open_log(log)

    return fault


BROKEN = [
    Broken(
        "an answer is read from any log of an operator",
        "braid.hub.query_answers.check_pin",
        unchecked,
        LOG + "test_an_operator_of_another_hub_is_not_taken_for_the_one_that_a_pin_names",
        "",
    ),
    Broken(
        "a hub goes on with any log of an operator",
        "braid.hub.running_operators.check_pin",
        unchecked,
        LOG + "test_an_operator_of_another_hub_is_not_taken_for_the_one_that_a_pin_names",
        "",
    ),
    Broken(
        "files of the backfill buffer are not forced",
        "braid.storage.durable_files.checksum_file",
        not_forced,
        LOG + "test_files_of_the_backfill_buffer_are_on_disk_before_the_entry_that_names_them",
        "",
    ),
    Broken(
        "a hub removes files before it has read its last entry",
        "braid.hub.hub_log.HubLog.open_log",
        swept_first,
        LOG + "test_nothing_is_removed_unless_the_last_entry_verifies",
        "",
    ),
]
