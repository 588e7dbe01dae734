"""Streams that are generated while a join reads them, in this process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from braid.sources.arrow_streams import ArrowStreams
from braid.storage import durable_files
from braid.storage.generated_stream import GeneratedFrame, GeneratedStream
from braid.storage.micro_batch_files import MicroBatches
from braid.storage.run_store import RunStore
from braid.util.file_system import current_file_system
from braid.util.json_codec import to_plain

SAMPLED = 20
"""Micro-batches from which the size and the keys of a stream are estimated."""


class GeneratedReplay(NamedTuple):
    """Generated streams of a run, ready to be recorded, with its number of ``batches``.

    ``has_files``: whether each micro-batch gets a file, for Spark.
    """

    generated: Mapping[str, GeneratedStream]
    batches: int
    has_files: bool = False

    def write_input(
        self, folder: Path, check: Callable[[], None] = durable_files.skip_check
    ) -> MicroBatches:
        """Make the folder of the input. Return the extent of the streams, without files yet."""
        current_file_system().make_folder(folder)
        last = dict.fromkeys(self.generated, self.batches - 1)
        return MicroBatches(self.batches, last, self.generated, self.batches * self.has_files)


class GeneratedStreams(ArrowStreams):
    """Generated streams by alias.

    - ``streams``: their first tuples, from which the join is planned.
    """

    has_generated_rows = True

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
    generated: Mapping[str, GeneratedStream], batches: int | str, has_files: bool = False
) -> GeneratedReplay:
    """Return generated streams, ready to be recorded. Raises ValueError for a column."""
    if isinstance(batches, str):
        raise ValueError(
            f"batches is {batches!r}, but the streams are generated; give their number of "
            "micro-batches"
        )
    return GeneratedReplay(generated, batches, has_files)


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


def is_generated(streams: Mapping[str, Any]) -> bool:
    """Return whether the streams are generated.

    Raises ValueError if only some are, or if only some are for Spark.
    """
    kinds = {alias: type(stream) for alias, stream in streams.items()}
    given = [a for a, kind in kinds.items() if kind in (GeneratedStream, GeneratedFrame)]
    if given and (others := [a for a, kind in kinds.items() if kind is not kinds[given[0]]]):
        raise ValueError(
            f"stream {given[0]} is generated, but {others[0]} is not in the same way; all streams "
            "of a join must be, each with on_spark or none"
        )
    return bool(given)
