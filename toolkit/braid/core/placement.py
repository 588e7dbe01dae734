"""What a placement policy is, and the one list of those that there are.

A placement is a frozen dataclass: its fields are its settings. A subclass of ``Placement`` needs
``hosts`` and ``plan``; all else has a default. Defining it registers it under its class name, and
whatever runs placements by name, or all of them, looks here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import fields
from importlib import import_module
from inspect import isabstract
from pkgutil import walk_packages
from typing import TYPE_CHECKING, Any, ClassVar, Self

from braid.core.facts import Facts
from braid.core.plan import Coverage, Keying, KeySpace, Plan
from braid.util.html_table import render_html_table
from braid.util.json_codec import from_plain
from braid.util.validation import check_int, checks_field_types

MOST_HOSTS = 100_000
"""Of one join; a plan of so many takes seconds."""
MOST_KEYS = 1 << 24
"""Routing keys: parts that a stream's batch can be cut in."""

_registered: dict[str, type[Placement]] = {}


class Placement(ABC):
    """A placement policy: settings (the fields of a frozen dataclass) and pure functions.

    ``start`` and ``plan`` see no clock and no tuple, and return the same for the same arguments.
    """

    if TYPE_CHECKING:  # a field with no default in a dataclass would take a property for one

        @property
        def hosts(self) -> int:
            """J, the number of logical hosts at the start."""

    State: ClassVar[type] = type(None)
    """What ``start`` returns and plans carry: a frozen dataclass, or None where there is none."""
    routing_key_source: ClassVar[Keying] = "tuple"
    """What the routing key hashes."""
    delivery_guarantee: ClassVar[Coverage] = "exactly once"
    """What the cover rule is to hold of its plans."""
    label: ClassVar[str]
    """A plain name for people; the class name unless given."""
    shares_queries: ClassVar[bool] = False
    """Whether it serves the queries of a shared join, and so needs ``Facts.queries``."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "label" not in vars(cls):
            cls.label = cls.__name__
        setattr(cls, "__post_init__", checks_field_types(cls.__post_init__))  # noqa: B010 (for mypy)
        if not cls.__name__.startswith("_"):
            _register_placement(cls)

    def __post_init__(self) -> None:  # noqa: B027 (settings may be any)
        """Raises ValueError, with one sentence, for settings that cannot be; that each is of its
        type is checked for all placements.
        """

    def _repr_html_(self) -> str:
        """A small table of the settings, for notebooks."""
        rows = [(name, repr(getattr(self, name))) for name in self.setting_names()]
        return render_html_table(f"{type(self).__name__} ({self.label})", rows)

    @property
    def max_hosts(self) -> int:
        """The most hosts that it may ever use."""
        return self.hosts

    @property
    def key_space_size(self) -> int:
        """The size of the routing-key space: how many parts a stream's batch can be cut in."""
        return 1

    def initial_state(self, streams: int) -> Any:
        """The first state. Raises ValueError when it cannot serve that many streams."""
        return None

    @abstractmethod
    def plan_batch(self, facts: Facts, state: Any) -> Plan:
        """The plan of one micro-batch; ``state`` is that of the plan before."""

    def has_pending_pairs(self, state: Any) -> bool:
        """Whether batches without tuples must follow because results are owed."""
        return False

    def merge_boundaries(self, state: Any) -> tuple[tuple[int, ...], ...]:
        """By stream the ages (microseconds, rising) across which blocks must not be merged."""
        return ()

    def key_space(self, state: Any) -> KeySpace:
        """The routing keys of the batch whose plan leaves this state."""
        return KeySpace(self.routing_key_source, self.key_space_size)

    def supports_streams(self, streams: int) -> bool:
        """Whether it joins that many streams."""
        try:
            self.initial_state(streams)
        except ValueError:
            return False
        return True

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        """The names of its settings."""
        return tuple(f.name for f in fields(cls) if f.init)  # type: ignore[arg-type]

    @classmethod
    def example_instances(cls) -> Iterable[Self]:
        """Small instances, which the generic checks try."""
        return (cls(hosts=4) if "hosts" in cls.setting_names() else cls(),)  # type: ignore[call-arg]

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The placement of these settings, as ``codec.plain`` gives them. Raises ValueError."""
        if unknown := [name for name in settings if name not in cls.setting_names()]:
            raise ValueError(
                f"{cls.__name__} takes no {' and no '.join(unknown)}; "
                f"it takes: {', '.join(cls.setting_names()) or 'nothing'}"
            )
        return from_plain(settings, cls, f"a setting of {cls.__name__}")

    @staticmethod
    def class_by_name(name: str) -> type[Placement]:
        """A placement class by its name. Raises ValueError when there is none."""
        known = registered_placements()
        if name not in known:
            raise ValueError(f"no placement is named {name!r}; there are: {', '.join(known)}")
        return known[name]


def _register_placement(cls: type[Placement]) -> None:
    """A class that is defined again in the same place, as in a notebook, replaces its elder."""
    other = _registered.get(cls.__name__, cls)
    if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
        raise TypeError(
            f"a placement named {cls.__name__} is defined in {other.__module__} and again in "
            f"{cls.__module__}; the name must be new"
        )
    _registered[cls.__name__] = cls


def registered_placements() -> dict[str, type[Placement]]:
    """All placements by name, sorted: those of every paper, the one that changes among them, and
    those that were defined since.
    """
    import_module("braid.simulation.auto_placement")
    papers = import_module("braid.papers")
    for module in walk_packages(papers.__path__, "braid.papers."):
        import_module(module.name)
    return {name: c for name, c in sorted(_registered.items()) if not isabstract(c)}


def placements_for(streams: int, equality: bool = True) -> dict[str, type[Placement]]:
    """By name, the placements that join so many streams, for one query; those that route by the
    value of an equality only where there is one.
    """
    return {
        name: kind
        for name, kind in registered_placements().items()
        if not kind.shares_queries
        and (equality or kind.routing_key_source == "tuple")
        and any(p.supports_streams(streams) for p in kind.example_instances())
    }


def check_hosts(hosts: int) -> None:
    """Raises ValueError unless the number of hosts is a whole number from 1 to MOST_HOSTS."""
    check_int(hosts, "hosts", 1, MOST_HOSTS)
