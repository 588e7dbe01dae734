"""Streams that are generated while a join reads them, in this process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from braid.sources.arrow_streams import ArrowStreams
from braid.storage import durable_files
from braid.storage.generated_stream import GeneratedStream
from braid.storage.micro_batch_files import MicroBatches
from braid.storage.run_store import RunStore
from braid.util.file_system import current_file_system
from braid.util.json_codec import to_plain

SAMPLED = 20
"""Micro-batches from which the size and the keys of a stream are estimated."""


class GeneratedReplay(NamedTuple):
    """Generated streams of a run with so many ``batches``, ready to be recorded."""

    generated: Mapping[str, GeneratedStream]
    batches: int

    def write_input(
        self, folder: Path, check: Callable[[], None] = durable_files.skip_check
    ) -> MicroBatches:
        """Make the folder of the input. Return the extent of the streams, which have no files."""
        current_file_system().make_folder(folder)
        last = dict.fromkeys(self.generated, self.batches - 1)
        return MicroBatches(self.batches, last, self.generated)


class GeneratedStreams(ArrowStreams):
    """Generated streams by alias.

    - ``streams``: their first tuples, from which the join is planned.
    """

    def __init__(self, generated: Mapping[str, GeneratedStream]) -> None:
        super().__init__({a: each.make_batches(SAMPLED) for a, each in generated.items()})
        self._generated = dict(generated)

    def describe_schemas(self) -> dict[str, str]:
        """Return the columns as for tables, and that they are generated."""
        return {
            a: f"{text}{', generated' if a else ''}"
            for a, text in super().describe_schemas().items()
        }

    def make_replay(  # type: ignore[override]
        self,
        batches: int | str,
        times: Mapping[str, str],
        memory: int,
        undivided: Collection[str] = (),
    ) -> GeneratedReplay:
        return make_generated_replay(self._generated, batches)

    def record_fingerprints(self) -> dict[str, Any]:
        return record_generated(self._generated)

    def check_input(self, store: RunStore, stored: Mapping[str, Any], resumed: bool) -> None:
        check_generated({} if resumed else self._generated, stored, store.where)


def make_generated_replay(
    generated: Mapping[str, GeneratedStream], batches: int | str
) -> GeneratedReplay:
    """Return generated streams, ready to be recorded. Raises ValueError for a column."""
    if isinstance(batches, str):
        raise ValueError(
            f"batches is {batches!r}, but the streams are generated; give their number of "
            "micro-batches"
        )
    return GeneratedReplay(generated, batches)


def record_generated(generated: Mapping[str, GeneratedStream]) -> dict[str, Any]:
    """Return the settings by which generated streams are recognized."""
    return {"generated": {alias: to_plain(each) for alias, each in generated.items()}}


def check_generated(
    generated: Mapping[str, GeneratedStream], stored: Mapping[str, Any], where: str
) -> None:
    """Raise ValueError unless streams have the settings with which the run began."""
    for alias, each in generated.items():
        before, now = stored["generated"][alias], to_plain(each)
        for name in (name for name in now if now[name] != before[name]):
            raise ValueError(
                f"stream {alias} is generated with {name} {now[name]!r} where the run in {where} "
                f"began with {before[name]!r}; use a new folder"
            )


def select_generated(streams: Mapping[str, Any]) -> dict[str, GeneratedStream]:
    """Return the streams that are generated; empty if none is.

    Raises ValueError if only some are.
    """
    generated = {a: s for a, s in streams.items() if isinstance(s, GeneratedStream)}
    if generated and (others := [a for a in streams if a not in generated]):
        raise ValueError(
            f"stream {next(iter(generated))} is generated, but {others[0]} is not; all streams of "
            "a join must be"
        )
    return generated
