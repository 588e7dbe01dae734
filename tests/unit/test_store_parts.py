"""A run's store is composed of parts: none inherits from another, and each works alone."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import braid.storage
import pytest
from braid.core.run_state import RunState
from braid.errors import DamagedRunError, FencedError
from braid.storage.committed_events import EventArchive
from braid.storage.log_entries import CommitRecord, DriverIdentity
from braid.storage.manifest_log import ManifestLog
from braid.storage.run_medium import LocalMedium
from braid.storage.run_settings import SettingsFile
from braid.storage.run_store import RunStore
from braid.storage.sink_progress import SinkProgress
from braid.storage.state_files import BlockFolder, StateFiles

MOST_METHODS = 20
CLASSES = [
    owner
    for module in pkgutil.iter_modules(braid.storage.__path__)
    for _, owner in inspect.getmembers(
        importlib.import_module(f"braid.storage.{module.name}"), inspect.isclass
    )
    if owner.__module__ == f"braid.storage.{module.name}"
]


@pytest.fixture
def medium(tmp_path: Path) -> LocalMedium:
    """Return the medium of a folder with the folders of a run."""
    for name in ("commits", "blocks"):
        (tmp_path / name).mkdir()
    return LocalMedium(tmp_path, "process")


@pytest.mark.parametrize("owner", CLASSES, ids=lambda owner: owner.__name__)
def test_a_class_of_storage_inherits_from_none_there_and_is_small(owner: type) -> None:
    assert not [base for base in owner.__mro__[1:] if base.__module__.startswith("braid.storage")]
    public = [
        name
        for name, value in vars(owner).items()
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    ]
    assert len(public) <= MOST_METHODS, public


def test_no_part_of_a_store_refers_to_the_store(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    parts = [part for part in vars(store).values() if type(part) in CLASSES]
    assert len(parts) >= 14
    for part in parts:
        held = [getattr(value, "__self__", value) for value in vars(part).values()]
        assert not any(isinstance(value, RunStore) for value in held), type(part).__name__


def test_settings_alone(medium: LocalMedium) -> None:
    for name in ("commits", "blocks"):
        (medium.folder / name).rmdir()
    settings = SettingsFile(medium)
    assert settings.read_settings() is None
    settings.write_settings({"on": "a.k = b.k"})
    settings.write_settings({"on": "a.k < b.k"})
    assert SettingsFile(medium).read_settings() == {"on": "a.k < b.k"}
    settings.path.write_bytes(settings.path.read_bytes()[:-3])
    with pytest.raises(DamagedRunError, match=r"run\.json is damaged"):
        settings.read_settings()


def test_settings_that_another_driver_writes_first_are_not_overwritten(
    medium: LocalMedium, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = LocalMedium(medium.folder, "process")
    monkeypatch.setattr(
        medium, "fence", lambda: SettingsFile(other).write_settings({"on": "a.k = b.k"})
    )
    with pytest.raises(RuntimeError, match="another driver has begun the run in"):
        SettingsFile(medium).write_settings({"on": "a.k < b.k"})
    assert SettingsFile(medium).read_settings() == {"on": "a.k = b.k"}


def test_states_alone(medium: LocalMedium) -> None:
    states, kept = StateFiles(medium), list[CommitRecord]()
    for batch in range(3):
        named = states.write_state(RunState(batch))
        kept.append(CommitRecord(batch, batch, named, ()))
        states.remove_states(states.retain_state(named.name, [f"{batch}.arrow"]))
    assert states.list_live_blocks() == {"1.arrow", "2.arrow"}
    assert states.read_state(kept[2]) == RunState(2)
    with pytest.raises(DamagedRunError, match="is missing"):
        states.read_state(kept[0])
    again = StateFiles(medium)
    again.load_retained(kept)
    assert [*again.block_files] == [named.state.name for named in kept[1:] if named.state]


def test_blocks_alone(medium: LocalMedium) -> None:
    blocks, names = BlockFolder(medium), [f"{n:06d}-0-0000cafe-0.arrow" for n in range(3)]
    for name in (*names, "thesis.tex"):
        (blocks.folder / name).touch()
    blocks.start_removing(blocks.list_unnamed({names[1]}))
    blocks.wait_for_removals()
    assert sorted(f.name for f in blocks.folder.iterdir()) == [names[1], "thesis.tex"]


def test_events_alone(medium: LocalMedium) -> None:
    log = ManifestLog(medium)
    archive = EventArchive(log)
    archive.begin_log()
    log.append_entry(driver=DriverIdentity.from_environment())
    assert archive.has_begun and archive.committed_events() == []
    assert archive.file.path.read_bytes() == b""


def test_sink_progress_alone(medium: LocalMedium) -> None:
    progress = SinkProgress(medium)
    assert progress.last_batch == -1 and not progress.has_file()
    progress.mark_delivered(4)
    progress.truncate(7)
    assert SinkProgress(medium).last_batch == 4 and progress.has_file()
    progress.truncate(2)
    assert SinkProgress(medium).last_batch == 2


def test_a_folder_is_not_changed_by_a_driver_that_has_lost_it(medium: LocalMedium) -> None:
    def lost() -> None:
        raise FencedError("lost")

    medium.put_file("some", b"1")
    medium.put_new("other", b"1")
    with pytest.raises(FileExistsError):
        medium.put_new("other", b"2")
    medium.fence = lost
    with pytest.raises(FencedError):
        medium.put_file("some", b"2")
    assert medium.fetch_file("some").read_bytes() == b"1" and medium.has_file("other")
    assert not medium.has_file("another")
