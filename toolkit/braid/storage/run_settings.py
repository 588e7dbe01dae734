"""Settings of a run as stored in run.json, with types and bounds.

A checksum proves that a file was written completely, not that its values are valid. So each field
is checked before anything starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from braid.core.query import MOST
from braid.core.run_state import VERSION
from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.run_medium import RunMedium, make_lost_start_error
from braid.util.file_system import current_file_system
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
    - ``last_batches``: by static stream, the micro-batch with its last tuple; -1: it has none.
    - ``how``: kind of the join, or the kept streams.
    - ``emit``: when a tuple without a partner is a result; see ``core.join_kinds``.
    - ``expires``: whether tuples expire by their event time, so that late ones may miss results.
    - ``cut``: the argument ``batches=``.
    - ``ready``: whether the copy of static streams is complete.
    - ``input``: prefix of that copy in a bucket.
    - ``match``: arguments of an as-of join.
    - ``fingerprints``, ``files``, ``sources``: see ``input_fingerprints``.
    - ``versions``: of Braid and its packages when the run was started.
    - ``zone``: the time zone in which Spark read times without one.
    - ``source_files``: by static stream of Spark, its local files; see ``storage.source_files``.
    """

    on: _Text
    streams: Annotated[list[_Text], Meta(min_length=2)]
    schemas: dict[str, str]
    windows: dict[str, _Text]
    time: _Text | dict[str, _Text] | None
    lateness: _Text | dict[str, _Text]
    ahead: _Text
    idle: _Text | None
    where: dict[str, _Text] | None
    how: _Text | dict[str, _Text]
    emit: Literal["final", "early"]
    placement: _Text
    settings: dict[str, Any]
    partitions: Annotated[int, Meta(ge=1, le=10_000)] | None
    seed: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
    check: bool
    shed: dict[str, Any] | None
    changes: dict[str, _Text] | None
    keys: list[dict[str, str]]
    ready: bool
    batches: Annotated[int, Meta(ge=0, le=1 << 31)] | None = None
    cut: Annotated[int, Meta(ge=1, le=100_000)] | _Text | None = None
    last_batches: dict[str, Annotated[int, Meta(ge=-1, le=1 << 31)]] = {}
    expires: bool = False
    chosen_placement: ChosenPlacement | None = None
    shedding_budget: dict[str, Any] | None = None
    changed_placement: dict[str, Any] | None = None
    changed_interval: Annotated[float, Meta(ge=0)] | None = None
    match: dict[str, Any] | None = None
    input: str = ""
    fingerprints: dict[str, tuple[_Natural, _Sum]] = {}
    files: dict[str, _Text] = {}
    sources: dict[str, dict[str, str]] = {}
    versions: dict[str, str] = {}
    zone: _Text = "UTC"
    source_files: dict[str, dict[str, tuple[int, int]]] = {}
    generated: dict[str, dict[str, Any]] = {}
    chain: str | list[str] = ""
    queries: list[
        tuple[
            _Text,
            list[Annotated[int, Meta(ge=1)]],
            list[str | None],
            Annotated[int, Meta(ge=0, lt=MOST)],
            list[int | None],
            _Text | dict[str, _Text],
            dict[str, Any] | None,
        ]
    ] = []

    def find_missing_field(self) -> str:
        """Return what a run that is ready lacks, such as "batches"; "": nothing."""
        if not self.ready:
            return ""
        if self.batches is None and not self.sources:
            return "batches"
        tables = self.streams if "" in self.schemas else []
        recorded = {*self.fingerprints, *self.sources, *self.generated}
        without = [alias for alias in tables if alias not in recorded]
        return f"the fingerprint of stream {without[0]}" if without else ""


class SettingsFile:
    """File ``run.json`` of a run."""

    def __init__(self, medium: RunMedium) -> None:
        self._medium, self.path = medium, medium.folder / "run.json"

    def read_settings(self) -> dict[str, Any] | None:
        """Return the settings of the run; None if its folder or bucket is empty or new.

        Raises ValueError if it holds something else, so that nothing is overwritten.
        """
        if not self._exists():
            return None
        body = durable_files.read_checksummed(self.path, f"the run in {self._medium.where}")
        decoded = msgspec.json.decode(body, type=dict[str, Any])
        return {k: v for k, v in decoded.items() if k not in ("format_version", "crc")}

    def _exists(self) -> bool:
        if current_file_system().exists(self.path) or self._medium.has_file(self.path.name):
            return True
        if (other := self._medium.find_foreign_file()) is None:
            return False
        if self._medium.has_file(self.path.name):  # another driver has just created the run
            return True
        raise ValueError(
            f"{self._medium.where} holds files but no run of Braid, as {other}; a new run needs a "
            "new or empty folder or bucket prefix"
        )

    def write_settings(self, settings: Mapping[str, Any]) -> None:
        """Write the settings to the folder.

        Raises RuntimeError if another driver has created the run since ``read``.
        """
        body = durable_files.encode_checksummed({"format_version": VERSION, **settings})
        new = not current_file_system().exists(self.path)
        try:
            durable_files.write_atomically(
                self.path, body, self._medium.force, new, self._medium.check_driver
            )
        except OSError:  # a driver that takes over removes temporary files
            if not new or not current_file_system().exists(self.path):
                raise
            raise make_lost_start_error(self._medium.where) from None


def check_settings(settings: dict[str, Any] | None, where: str) -> dict[str, Any] | None:
    """Return the settings of a run. ``where``: its folder or URL.

    Raises ValueError if a field has another type or is out of bounds, DamagedRunError if one is
    missing that a run with its input has.
    """
    if settings is not None and "hub" not in settings:
        what = f"run.json of the run in {where}"
        checked = from_plain(settings, RunSettings, what)
        if missing := checked.find_missing_field():
            raise DamagedRunError(f"{what} is not accepted: {missing} is missing")
    return settings
