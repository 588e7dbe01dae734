"""Types of settings are checked, also where a type next to them is known to type checkers alone."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pytest
from braid.core.accept import check_settings
from braid.core.plan import Route

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

Colour = Literal["red", "blue"]


@dataclass(frozen=True)
class Priced(Route):
    """A route, whose types only its own module knows, with a price."""

    price: Decimal | None = None
    colour: Colour = "red"


@dataclass(frozen=True)
class Dear(Priced):
    fresh: Decimal | None = None  # type: ignore[assignment]


@contextmanager
def painted(price: Decimal, colour: Colour = "red") -> Iterator[None]:
    """Wrapped by a function of a module that knows no colour."""
    yield


@pytest.mark.parametrize(
    ("of", "setting", "refused"),
    [
        (Priced, {"colour": "green"}, "^colour is 'green'; it must be of type Colour$"),
        (Priced, {"fresh": "yes"}, "^fresh is 'yes'; it must be True or False$"),
        (Priced, {"paths": 3}, r"^paths is 3; it must be of type tuple\[Path, ...\]$"),
        (painted, {"colour": "green"}, "^colour is 'green'; it must be of type Colour$"),
    ],
)
def test_types_next_to_an_unknown_one_are_checked(
    of: Any, setting: dict[str, Any], refused: str
) -> None:
    with pytest.raises(ValueError, match=refused):
        check_settings(of, setting)


def test_an_unknown_type_says_nothing() -> None:
    for of in (Priced, painted):
        check_settings(of, {"price": "3", "colour": "blue"})
    check_settings(Dear, {"fresh": "yes"})
