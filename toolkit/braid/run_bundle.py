"""Write what others need to understand a run into one file: ``braid bundle``."""

from __future__ import annotations

import platform
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from braid.bundle_redaction import hide_texts, name_error, redact_event, redact_settings
from braid.bundled_events import select_events
from braid.core import bundle_parts
from braid.core.block_history_index import EventIndex
from braid.core.bundle_parts import is_bundle
from braid.core.event_jsonl import event_from_dict
from braid.core.narrative import describe_run
from braid.core.run_record import RunRecord
from braid.health import RunHealth, read_health
from braid.run_doctor import diagnose_record, encode_record, read_record
from braid.storage.integrity import check_run
from braid.storage.remote_medium import is_object_store_url
from braid.storage.run_store import RunStore
from braid.util.batch_numbers import display_batch_range
from braid.util.machine import available_cores, format_bytes, machine_memory
from braid.util.package_versions import find_braid_version, list_versions
from braid.util.validation import check_ending, check_int

_ENDING = ".braid.zip"


@dataclass(frozen=True)
class Bundle:
    """A file that describes a run.

    - ``file``: its path, and ``size_bytes``, its length.
    - ``has_data``: whether it holds the rows of the run, so that the run can be resumed elsewhere.
    - ``first_batch``: first batch with events in it.
    - ``damaged_lines``: lines of the run's events that were left out, as they cannot be read.
    """

    file: Path
    size_bytes: int
    has_data: bool
    first_batch: int
    damaged_lines: int

    def __str__(self) -> str:
        left_out = (
            "all data of the run are in it"
            if self.has_data
            else "rows, texts in conditions, messages of errors, secrets and paths are left out"
        )
        notes = [f"wrote {self.file} ({format_bytes(self.size_bytes)}); {left_out}"]
        if self.first_batch > 0:
            notes.append(f"{display_batch_range(0, self.first_batch - 1)} are not in it")
        if self.damaged_lines:
            notes.append(f"{self.damaged_lines} damaged lines of events.jsonl are not in it")
        return "; ".join(notes)


def bundle(
    path: str | Path,
    file: str | Path | None = None,
    data: bool = False,
    last: int | None = None,
    overwrite: bool = False,
) -> Bundle:
    """Write what others need to understand a run into one file.

    ``braid inspect``, ``replay``, ``watch``, ``doctor`` and ``health`` open it.

    Parameters
    ----------
    path
        Folder of a run, running or ended, also of a damaged one.
    file
        The file, which ends in ".zip". Default: the folder's name and ".braid.zip".
    data
        Whether to add all data, for ``unbundle`` and ``StreamJoin.resume``. Without, no row is in
        it. Only for runs of tables that are not running.
    last
        Number of last batches with events in it. Default: all, up to 50 MB.
    overwrite
        Whether to replace the file if it exists.

    Raises ValueError for a bucket, a folder without a run, a file that does not end in .zip, and
    ``data`` of a run of Spark,
    FileExistsError if the file exists, and RuntimeError for ``data`` of a run that is active.
    """
    if last is not None:
        check_int(last, "last", 1)
        if data:
            raise ValueError("last is for a bundle without data, which has events only")
    store = _open_run(path, data)
    target = Path(file) if file is not None else Path(f"{store.path.name}{_ENDING}")
    check_ending(target, ".zip")
    if target.exists() and not overwrite:
        raise FileExistsError(f"{target} exists")
    events = select_events(store.path / "events.jsonl", last)
    with _hold_run(store, data):
        parts = _make_parts(store, events.lines, data)
        files = [*_list_files(store.path)] if data else []
        _write_bundle(target, parts, {f"run/{name}": store.path / name for name in files})
    size = target.stat().st_size
    return Bundle(target, size, data, events.first_batch, events.damaged_lines)


def _open_run(path: str | Path, data: bool) -> RunStore:
    """Return the store of a run. Raises ValueError if it cannot be bundled."""
    if is_object_store_url(path):
        raise ValueError(f"{path} is a bucket; copy the run to a folder to bundle it")
    store = RunStore(path)
    if not (store.path / "run.json").exists() or not (store.path / "events.jsonl").exists():
        raise ValueError(f"{path} holds no run that has begun")
    settings = store.read_settings() if data else None
    if settings is not None and ("" not in settings.get("schemas", {}) or settings.get("sources")):
        raise ValueError(
            f"{path} holds a run of Spark, whose checkpoint names folders of this machine; only "
            "a run of tables can be bundled with its data"
        )
    return store


@contextmanager
def _hold_run(store: RunStore, data: bool) -> Iterator[None]:
    """Keep others from resuming the run while its ``data`` are copied."""
    if not data:
        yield
        return
    store.acquire_run()
    try:
        yield
    finally:
        store.release_run()


def _list_files(folder: Path) -> Iterator[str]:
    """Yield the names of the files of a run, without its lock and temporary files."""
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.name.startswith("."):
            yield file.relative_to(folder).as_posix()


def _make_parts(store: RunStore, lines: Sequence[bytes], data: bool) -> dict[str, bytes]:
    """Return the parts of a bundle besides data."""
    sizes = {name: (store.path / name).stat().st_size for name in _list_files(store.path)}
    parts = {
        bundle_parts.VERSIONS: _encode(_list_versions()),
        bundle_parts.FILES: _encode(sizes),
    }
    events = [redact_event(msgspec.json.decode(line)) for line in lines]
    if not data:
        parts[bundle_parts.EVENTS] = b"".join(msgspec.json.encode(e) + b"\n" for e in events)
        settings = _try_to(lambda: redact_settings(store.read_settings() or {}))
        parts[bundle_parts.SETTINGS] = _encode(settings)
    return parts | _describe_run(store, events)


def _describe_run(store: RunStore, events: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    """Return the parts that describe a run: its health, its diagnosis and a report."""
    parts = {}
    health = _try_to(lambda: _redact_health(read_health(store.path)))
    run = _try_to(lambda: EventIndex.from_events([event_from_dict(event) for event in events]))
    record = _try_to(lambda: replace(read_record(store), start=run.start))
    if isinstance(health, RunHealth):
        parts[bundle_parts.HEALTH] = _encode(asdict(health))
    if isinstance(record, RunRecord):
        parts[bundle_parts.DIAGNOSIS] = encode_record(record)
        record = diagnose_record("RUN", record)
    summary = describe_run(run) if isinstance(run, EventIndex) else run
    texts = map(str, (health, record, summary, _describe_damage(store)))
    report = "\n\n".join(texts).replace(str(store.path), "RUN")
    return {**parts, bundle_parts.REPORT: report.encode() + b"\n"}


def _encode(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value))


def _try_to(describe: Callable[[], Any]) -> Any:
    """Return a part of a bundle, or why a damaged run has none."""
    try:
        return describe()
    except ValueError as error:
        return f"not available: {hide_texts(str(error))}"


def _redact_health(health: RunHealth) -> RunHealth:
    comparisons = hide_texts(health.comparisons)
    return replace(health, error=name_error(health.error), comparisons=comparisons)


def _describe_damage(store: RunStore) -> str:
    """Return the damage of a run in words."""
    outcome = _try_to(lambda: check_run(store.path))
    if isinstance(outcome, str):
        return outcome
    faults, summary = outcome
    return "\n".join([*map(hide_texts, faults), summary if faults else f"{summary}: all whole"])


def _list_versions() -> dict[str, Any]:
    machine = {"cores": available_cores(), "memory": machine_memory()}
    python = {"python": platform.python_version(), "system": platform.platform()}
    return {"braid": find_braid_version(), **list_versions(), **python, **machine}


def _write_bundle(target: Path, parts: Mapping[str, bytes], files: Mapping[str, Path]) -> None:
    """Write a bundle; a file of that name is replaced once the new one is complete."""
    temporary = target.with_name(f".{target.name}.new")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, body in parts.items():
                archive.writestr(name, body)
            for name, file in files.items():
                archive.write(file, name)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def unbundle(file: str | Path, folder: str | Path) -> Path:
    """Make a run's folder of a bundle with data, for ``StreamJoin.resume``. Return the folder.

    Raises ValueError if the file is no bundle or has no data, FileExistsError if the folder exists.
    """
    target = Path(folder)
    if not is_bundle(file):
        raise ValueError(f"{file} is no bundle; `braid bundle RUN --data` writes one")
    with zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if name.startswith("run/")]
        if not any(name.startswith("run/commits/") for name in names):
            raise ValueError(f"{file} has no data; `braid bundle RUN --data` adds them")
        if target.exists():
            raise FileExistsError(f"{target} exists; give a new folder")
        temporary = target.with_name(f".{target.name}.new")
        try:
            archive.extractall(temporary, names)
            (temporary / "run").chmod(0o700)
            (temporary / "run").rename(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return target
