"""Settings of a run as stored in run.json, with types and bounds.

A checksum proves that a file was written completely, not that its values are valid. So each field
is checked before anything starts.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from braid.core.query import MOST
from braid.storage.run_store import RunStore
from braid.util.json_codec import from_plain

_Natural = Annotated[int, Meta(ge=0)]
_Sum = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
_Text = Annotated[str, Meta(min_length=1)]


class ChosenPlacement(msgspec.Struct, forbid_unknown_fields=True):
    """Why a placement was chosen, and the modelled costs of the alternatives."""

    reason: str
    relative_costs: dict[str, float]


class RunSettings(msgspec.Struct, forbid_unknown_fields=True):
    """Content of run.json for a StreamJoin or a SharedJoin.

    - ``batches``: number of micro-batches; None: the input does not end.
    - ``cut``: the argument ``batches=``.
    - ``ready``: whether the copy of static streams is complete.
    - ``input``: prefix of that copy in a bucket.
    - ``fingerprints``, ``files``, ``sources``: see ``input_fingerprints``.
    """

    on: _Text
    streams: Annotated[list[_Text], Meta(min_length=2)]
    schemas: dict[str, str]
    windows: dict[str, _Text]
    time: _Text | dict[str, _Text] | None
    lateness: _Text | dict[str, _Text]
    ahead: _Text
    placement: _Text
    settings: dict[str, Any]
    partitions: Annotated[int, Meta(ge=1, le=10_000)] | None
    seed: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
    check: bool
    shed: dict[str, Any] | None
    keys: list[dict[str, str]]
    ready: bool
    batches: Annotated[int, Meta(ge=0, le=1 << 31)] | None = None
    cut: Annotated[int, Meta(ge=1, le=100_000)] | _Text | None = None
    chosen_placement: ChosenPlacement | None = None
    shedding_budget: dict[str, Any] | None = None
    input: str = ""
    fingerprints: dict[str, tuple[_Natural, _Sum]] = {}
    files: dict[str, _Text] = {}
    sources: dict[str, dict[str, str]] = {}
    chain: str | list[str] = ""
    queries: list[
        tuple[
            _Text,
            list[Annotated[int, Meta(ge=1)]],
            list[str | None],
            Annotated[int, Meta(ge=0, lt=MOST)],
            list[int | None],
        ]
    ] = []


def read_settings(store: RunStore) -> dict[str, Any] | None:
    """Return the settings of the run in a folder; None for an empty or new folder.

    Raises ValueError if a field has another type or is out of bounds.
    """
    settings = store.read_settings()
    if settings is not None and "hub" not in settings:
        from_plain(settings, RunSettings, f"run.json of the run in {store.where}")
    return settings
