"""Types of Spark SQL by name, without Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class SqlType:
    """A type by Spark's name, as "bigint"; decimals have digits in all (``precision``) and after
    the point (``scale``).
    """

    name: str
    precision: int = 0
    scale: int = 0

    @classmethod
    def of(cls, text: str) -> SqlType:
        """From Spark's simple string, as "decimal(10,2)" or "string collate X"."""
        name = re.match(r"\w+", text)
        digits = re.fullmatch(r"decimal\((\d+), ?(\d+)\)", text)
        assert name is not None
        return cls(name[0], *(map(int, digits.groups()) if digits else ()))

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name


INTEGRAL = ("tinyint", "smallint", "int", "bigint")
REAL = ("float", "double")
NUMERIC = (*INTEGRAL, *REAL, "decimal")
