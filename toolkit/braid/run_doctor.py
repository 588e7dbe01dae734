"""Diagnose a run from its folder: ``braid.doctor``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from braid.answer_check_kinds import read_checkable_settings
from braid.core.batch_symptoms import FrequentValue
from braid.core.bundle_parts import DIAGNOSIS, is_bundle, read_bundle_part
from braid.core.event_jsonl import read_events
from braid.core.plan import Block
from braid.core.run_diagnosis import RULES, diagnose_run
from braid.core.run_events import BatchCommitted, Event, RunStarted
from braid.core.run_record import BATCHES, Finding, RunRecord
from braid.core.run_state import RunState
from braid.core.touch_events import apply_changes
from braid.join_config import placement_from_json
from braid.recent_events import read_recent_events
from braid.storage.block_readers import read_replica_tuples
from braid.storage.remote_medium import is_object_store_url
from braid.storage.run_store import RunStore
from braid.storage.source_files import count_changes
from braid.stored_tuples import read_last_state
from braid.util.batch_numbers import display_batch_range
from braid.util.html_table import render_html_table
from braid.util.machine import available_cores
from braid.util.package_versions import list_present_versions


@dataclass(frozen=True)
class Diagnosis:
    """The symptoms of a run.

    - ``run``: its folder.
    - ``findings``: symptoms, the worst first.
    - ``batches``: first and last batch that were looked at; empty: too few to judge from.
    - ``seconds``: what these batches took.
    - ``rules``: number of rules that were applied.
    - ``is_static``: whether all of its input was copied when it started.
    """

    run: str
    findings: tuple[Finding, ...]
    batches: tuple[int, ...]
    seconds: float
    rules: int
    is_static: bool = False

    @property
    def is_sound(self) -> bool:
        """Whether no rule has found a fault or a warning."""
        return all(finding.level == "advice" for finding in self.findings)

    def __str__(self) -> str:
        if not self.batches:
            few = "too few batches to judge from; a run needs seven"
            return f"{self.run}: {few}, while `braid health` counts late tuples from the first on"
        counts = [f"{n} {level}" for level, n in self._count_levels() if n]
        head = f"{self.run}: {', '.join(counts) or 'sound'} in "
        head += f"{display_batch_range(*self.batches)} ({self.seconds:.1f} s)"
        head += ", of streams as they were at the start" if self.is_static else ""
        lines = [line for finding in self.findings for line in _describe_finding(finding)]
        silent = self.rules - len({finding.rule for finding in self.findings})
        return "\n".join([head, *lines, f"{silent} rules found nothing"])

    def _count_levels(self) -> Iterator[tuple[str, int]]:
        for level in ("fault", "warning", "advice"):
            yield level, sum(finding.level == level for finding in self.findings)

    def to_json(self) -> str:
        """Return the symptoms as a JSON object."""
        return json.dumps(asdict(self) | {"is_sound": self.is_sound}, ensure_ascii=False)

    def _repr_html_(self) -> str:
        title, *lines = str(self).splitlines()
        return render_html_table(title, ([line] for line in lines))


def _describe_finding(finding: Finding) -> Iterator[str]:
    cost = f" ({finding.seconds:.1f} s)" if finding.seconds else ""
    yield f"{finding.level:<8} {finding.rule:<10} {finding.sentence}{cost}"
    yield f"{'':<8} {'do':<10} {finding.remedy}"


def doctor(path: str | Path, rules: Sequence[str] | None = None) -> Diagnosis:
    """Return what is wrong with the run in a folder, measured in its last batches.

    It needs no Spark, and reads held tuples only to name the value that makes a host slow.

    Parameters
    ----------
    path
        Folder of the run of a StreamJoin, running or ended, or a bundle of it.
    rules
        Names of the rules to apply (see ``braid.core.run_diagnosis``). Default: all.

    Raises ValueError for an unknown rule, a bucket, a folder without a run, shared runs and hubs.
    """
    if is_object_store_url(path):
        raise ValueError(f"{path} is a bucket; copy the run to a folder to diagnose it")
    if is_bundle(path):
        return diagnose_record(str(path), _read_bundled_record(path), rules)
    record = read_record(store := RunStore(path))
    diagnosis = diagnose_record(str(path), record, rules)
    if all(finding.rule != "skew" for finding in diagnosis.findings):
        return diagnosis
    record = replace(record, frequent_value=name_frequent_value(store, record))
    return diagnose_record(str(path), record, rules)


def diagnose_record(run: str, record: RunRecord, rules: Sequence[str] | None = None) -> Diagnosis:
    """Return what is wrong with a ``run`` by its record."""
    findings = diagnose_run(record, rules)
    numbers = [commit.batch for commit in record.batches]
    ends = (numbers[0], numbers[-1]) if record.can_be_judged else ()
    applied = len(RULES) if rules is None else len({*rules})
    static = not record.is_endless
    return Diagnosis(run, tuple(findings), ends, record.seconds, applied, static)


def read_record(store: RunStore) -> RunRecord:
    """Return the record of a run. Raises ValueError if no run has begun in the folder."""
    settings, file = read_checkable_settings(store), store.path / "events.jsonl"
    if not file.exists():
        raise ValueError(f"{store.where} holds no run that has begun")
    start, recent, _ = read_recent_events(file, BATCHES + 1)
    assert isinstance(start, RunStarted)
    # The events between the first and the last ones are not read.
    start = replace(
        start, interval_seconds=settings.get("changed_interval", start.interval_seconds)
    )
    start = apply_changes(start, recent)
    record = RunRecord.from_events(start, [e for e in recent if isinstance(e, BatchCommitted)])
    store.log.read_new_entries()
    present = list_present_versions()
    return replace(
        record,
        result_files={commit.batch: len(commit.results) for commit in store.log.commits},
        source_files=_count_source_files(store, record),
        cores=record.cores or available_cores(),
        disk_free=store.blocks.measure_free_share(),
        versions={
            package: (version, present[package])
            for package, version in settings.get("versions", {}).items()
            if package in present
        },
        changed_files={
            alias: count_changes(files) for alias, files in settings.get("source_files", {}).items()
        },
    )


def _count_source_files(store: RunStore, record: RunRecord) -> dict[int, tuple[int, int]]:
    """Return the number and bytes of the local files that Spark read for a batch, by batch."""
    counts = {}
    for commit in record.batches if record.is_endless else ():
        if commit.micro_batch is not None:
            files = store.checkpoint.source_files(commit.micro_batch)
            sizes = [file.stat().st_size for file in files if file.exists()]
            counts[commit.batch] = len(sizes), sum(sizes)
    return {batch: read for batch, read in counts.items() if read[0]}


def name_frequent_value(store: RunStore, record: RunRecord) -> str:
    """Return the most frequent join value that the placement counts, such as "a.k = 42".

    It is that of most tuples in the blocks of its hash. Empty: no placement counts it, or no tuple
    of it is held.
    """
    frequent = record.batches[-1].symptoms.frequent if record.can_be_judged else None
    if frequent is None:
        return ""
    settings = read_checkable_settings(store)
    read = partial(_find_frequent_value, store, settings, frequent)
    return read_last_state(store, read) or ""


def _find_frequent_value(
    store: RunStore, settings: Mapping[str, Any], frequent: FrequentValue, state: RunState
) -> str:
    width = placement_from_json(settings).keys_per_value
    keys = frequent.value * width, (frequent.value + 1) * width
    held = [
        address
        for (id, _), address in state.replica_addresses.items()
        if _has_keys(state.blocks[id], frequent.stream, keys)
    ]
    alias = settings["streams"][frequent.stream]
    columns = re.findall(r"`((?:[^`]|``)+)`", settings["keys"][frequent.stream]["__k0"])
    parts = read_replica_tuples(store.blocks.folder, held, state.block_files).values()
    if not parts or len(columns) != 1 or columns[0] not in next(iter(parts)).schema.names:
        return ""
    counted = pc.value_counts(pa.chunked_array([rows.column(columns[0]) for rows in parts]))
    most = max(counted.to_pylist(), key=lambda each: each["counts"])
    return f"{alias}.{columns[0]} = {most['values']}"


def _has_keys(block: Block, stream: int, keys: tuple[int, int]) -> bool:
    first, end = block.key_range
    return block.stream == stream and first < keys[1] and keys[0] < end


def diagnose_events(run: str, events: Iterable[Event]) -> Diagnosis | None:
    """Return what is wrong with a ``run`` by its events alone; None: they have no start."""
    start, commits = None, []
    for event in events:
        if isinstance(event, RunStarted):
            start = event
        elif isinstance(event, BatchCommitted):
            commits.append(event)
        elif start is not None:
            start = apply_changes(start, [event])
    if start is None:
        return None
    return diagnose_record(run, RunRecord.from_events(start, commits))


class _StoredRecord(msgspec.Struct):
    """The facts that a diagnosis needs besides events; see ``RunRecord``."""

    windows: list[int | None]
    result_files: dict[int, int]
    cores: int
    disk_free: float | None
    versions: dict[str, tuple[str, str]]
    changed_files: dict[str, int] = {}
    source_files: dict[int, tuple[int, int]] = {}


def encode_record(record: RunRecord) -> bytes:
    """Return as JSON what a diagnosis needs besides events."""
    values = {name: getattr(record, name) for name in _StoredRecord.__struct_fields__}
    return msgspec.json.encode(values)


def _read_bundled_record(path: str | Path) -> RunRecord:
    """Return the record of the run in a bundle. Raises ValueError if it has none."""
    body = read_bundle_part(path, DIAGNOSIS)
    stored = msgspec.json.decode(body, type=_StoredRecord, strict=False)
    events = read_events(path)
    start = next(event for event in events if isinstance(event, RunStarted))
    start = apply_changes(start, events)
    commits = [event for event in events if isinstance(event, BatchCommitted)][-BATCHES - 1 :]
    values = {name: getattr(stored, name) for name in stored.__struct_fields__}
    return RunRecord(start, commits, **values)
