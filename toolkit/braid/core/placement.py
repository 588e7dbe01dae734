"""The base classes of placements and shedders, and the placements by name.

A placement decides where tuples meet; a *shedder* decides how many of them probe. It adds a
``SheddingPlan`` to a plan and leaves routes and the cover rule unchanged (Gedik 2007).

A placement is a frozen dataclass whose fields are its settings. A subclass of ``Placement`` defines
``hosts`` and ``plan_batch``; everything else has a default. Defining a subclass registers it under
its class name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from inspect import isabstract
from typing import TYPE_CHECKING, Any, ClassVar, Self

from braid.core.facts import Facts
from braid.core.key_boxes import KeyBoxes
from braid.core.plan import Coverage, Keying, KeySpace, Plan
from braid.core.plugin_provider import current_provider
from braid.core.registry import ClassRegistry
from braid.core.shedding_plan import SheddingOutcome
from braid.errors import PluginError
from braid.util.html_table import render_html_table
from braid.util.json_codec import from_plain
from braid.util.validation import check_int, checks_field_types

MOST_HOSTS = 100_000
"""Maximum number of hosts of a join. A plan for this many takes seconds."""
MOST_KEYS = 1 << 24
"""Maximum number of routing keys, the parts into which a stream's batch can be divided."""

PLACEMENTS: ClassRegistry[Placement] = ClassRegistry("placement")
"""The placements that are defined so far, by name."""


class Placement(ABC):
    """A placement policy: settings (the fields of a frozen dataclass) and pure functions.

    ``initial_state`` and ``plan_batch`` read no clock and no tuple. They return the same for the
    same arguments.
    """

    if TYPE_CHECKING:  # a dataclass would take the property for the field's default

        @property
        def hosts(self) -> int:
            """J, the number of logical hosts at the start."""

    State: ClassVar[type] = type(None)
    """Type of the state that ``initial_state`` returns and plans carry: a frozen dataclass, or
    None.
    """
    routing_key_source: ClassVar[Keying] = "tuple"
    """Input of the routing key's hash."""
    delivery_guarantee: ClassVar[Coverage] = "exactly once"
    """The form of the cover rule that its plans obey."""
    label: ClassVar[str]
    """Display name. Default: the class name."""
    adjustable_settings: ClassVar[tuple[str, ...]] = ()
    """Settings that ``change_setting`` changes in an active run."""
    fixed_hosts_reason: ClassVar[str] = "its paper has no way to change them between batches"
    """Why an active run keeps its hosts, unless they are among the settings above."""
    shares_queries: ClassVar[bool] = False
    """Whether it serves the queries of a shared join, and so reads ``Facts.queries``."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "label" not in vars(cls):
            cls.label = cls.__name__
        setattr(cls, "__post_init__", checks_field_types(cls.__post_init__))  # noqa: B010 (for mypy)
        if not cls.__name__.startswith("_"):
            PLACEMENTS.register_class(cls)

    def __post_init__(self) -> None:  # noqa: B027 (optional to override)
        """Check the settings. The type of each is checked for all placements beforehand.

        Raises ValueError for invalid settings.
        """

    def _repr_html_(self) -> str:
        """Return a small table of the settings, for notebooks."""
        rows = [(name, repr(getattr(self, name))) for name in self.setting_names()]
        return render_html_table(f"{type(self).__name__} ({self.label})", rows)

    @property
    def max_hosts(self) -> int:
        """The maximum number of hosts that it may use."""
        return self.hosts

    @property
    def key_space_size(self) -> int:
        """The number of routing keys, the parts into which a stream's batch can be divided."""
        return 1

    @property
    def keys_per_value(self) -> int:
        """The number of routing keys of one join value, which tell its tuples apart.

        If there are several, core counts the tuples of frequent values (``Facts.key_counts``).
        """
        return 1

    def bind_dimensions(self, dimensions: tuple[tuple[int, ...], ...]) -> Placement:
        """Return the placement for a condition with these equalities. Default: the placement.

        ``dimensions``: by class of columns that the condition makes equal, its streams, ascending.

        Raises ValueError if it does not support the condition.
        """
        return self

    def change_setting(self, name: str, value: Any, batch: int) -> Placement:
        """Return the placement that an active run has from ``batch`` on, with another setting.

        Raises ValueError for a setting that stays the same in a run, or an invalid value.
        """
        if name not in self.adjustable_settings:
            others = ", ".join(self.adjustable_settings)
            raise ValueError(
                f"{type(self).__name__} keeps its {name} in an active run"
                + (f"; it changes {others}" if others else "")
            )
        return self._replace_setting(name, value, batch)

    def _replace_setting(self, name: str, value: Any, batch: int) -> Placement:
        return replace(self, **{name: value})  # type: ignore[type-var]

    def read_setting(self, name: str, state: Any) -> Any:
        """Return the value of an adjustable setting. ``state`` is that of the last plan."""
        return getattr(self, name)

    def initial_state(self, streams: int) -> Any:
        """Return the state before the first batch.

        Raises ValueError if it does not support this number of streams.
        """
        return None

    @abstractmethod
    def plan_batch(self, facts: Facts, state: Any) -> Plan:
        """Return the plan of one micro-batch. ``state`` is the state of the previous plan."""

    def has_pending_pairs(self, state: Any) -> bool:
        """Return whether batches without tuples must follow to settle pending pairs."""
        return False

    def merge_boundaries(self, state: Any) -> tuple[tuple[int, ...], ...]:
        """Return, by stream, the ages across which blocks must not be merged.

        Ages are in microseconds, ascending.
        """
        return ()

    def key_space(self, state: Any) -> KeySpace:
        """Return the routing keys of the batch whose plan carries this state."""
        return KeySpace(
            self.routing_key_source, self.key_space_size, keys_per_value=self.keys_per_value
        )

    def find_recorded_boxes(
        self, streams: int, events: Iterable[Any], batch: int
    ) -> KeyBoxes | None:
        """Return the meaning of a batch's routing keys, by the events of a run; None: numbers.

        Layouts whose choice is not among the events are empty.
        """
        return None

    def supports_streams(self, streams: int) -> bool:
        """Return whether it joins this number of streams."""
        try:
            self.initial_state(streams)
        except ValueError:
            return False
        return True

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        """Return the names of its settings."""
        return tuple(f.name for f in fields(cls) if f.init)  # type: ignore[arg-type]

    @classmethod
    def example_instances(cls) -> Iterable[Self]:
        """Return small instances for the generic checks."""
        return (cls(hosts=4) if "hosts" in cls.setting_names() else cls(),)  # type: ignore[call-arg]

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Return the placement with these settings, as plain values (``json_codec.to_plain``).

        Raises ValueError for unknown or invalid settings.
        """
        if unknown := [name for name in settings if name not in cls.setting_names()]:
            raise ValueError(
                f"{cls.__name__} takes no {' and no '.join(unknown)}; "
                f"it takes: {', '.join(cls.setting_names()) or 'nothing'}"
            )
        return from_plain(settings, cls, f"a setting of {cls.__name__}")

    @staticmethod
    def class_by_name(name: str) -> type[Placement]:
        """Return a placement class by its name; it is imported on first use.

        Raises ValueError if there is none, and PluginError if its package cannot be imported.
        """
        kind = _defined_placements().get(name) or current_provider().load_placement(name)
        if kind is None:
            raise ValueError(
                f"no placement is named {name!r}; there are: {', '.join(placement_names())}"
            )
        return kind


def _defined_placements() -> dict[str, type[Placement]]:
    return {name: c for name, c in PLACEMENTS.classes.items() if not isabstract(c)}


def placement_names() -> tuple[str, ...]:
    """Return the names of all placements, sorted: built-in, installed and user-defined ones.

    Imports no placement.
    """
    return tuple(sorted({*_defined_placements(), *current_provider().placement_names()}))


def registered_placements() -> dict[str, type[Placement]]:
    """Return all placements by name, sorted. Imports them.

    An installed one that cannot be imported is left out; the log has the reason.
    """
    placements = {}
    for name in placement_names():
        try:
            placements[name] = Placement.class_by_name(name)
        except PluginError:
            continue  # the provider has logged it
    return placements


def placements_for(streams: int, equality: bool = True) -> dict[str, type[Placement]]:
    """Return, by name, the placements that join this number of streams for one query.

    Without an equality, placements that route by its value are excluded.
    """
    return {
        name: kind
        for name, kind in registered_placements().items()
        if not kind.shares_queries
        and (equality or kind.routing_key_source == "tuple")
        and any(p.supports_streams(streams) for p in kind.example_instances())
    }


def check_hosts(hosts: int) -> None:
    """Raise ValueError unless the number of hosts is a whole number from 1 to MOST_HOSTS."""
    check_int(hosts, "hosts", 1, MOST_HOSTS)


class Shedder(ABC):
    """A load shedding policy: settings (the fields of a frozen dataclass) and pure functions.

    The functions read no clock and no tuple.
    """

    State: ClassVar[type] = type(None)
    """Type of the state that ``initial_state`` and ``plan_shedding`` return: a frozen dataclass."""

    @abstractmethod
    def initial_state(self, streams: int) -> Any:
        """Return the state before the first batch."""

    @abstractmethod
    def plan_shedding(
        self, facts: Facts, plan: Plan, state: Any, last: SheddingOutcome | None
    ) -> tuple[Plan, Any]:
        """Return the plan with a shedding plan, and the next state.

        ``last`` is the outcome of the last batch; None: there is none.
        """

    def merge_boundaries(self, windows: Sequence[int | None]) -> tuple[tuple[int, ...], ...]:
        """Return, by stream, the ages across which blocks must not be merged.

        Ages are in microseconds, ascending.
        """
        return ()
