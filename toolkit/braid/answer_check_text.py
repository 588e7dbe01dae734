"""Text of DuckDB SQL for the check of a run's answers: names, lists, time zones, signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from braid.core.change_types import SIGNS
from braid.util.time_zones import name_duckdb_zone


def set_session_zone(database: Any, settings: Mapping[str, Any]) -> None:
    """Let DuckDB read times without a time zone as Spark did in the run of these settings."""
    zone = name_duckdb_zone(settings.get("zone", "UTC"))
    database.execute(f"SET TimeZone = {quote_literal(zone)}")


def quote_text(name: str) -> str:
    """Return a name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def format_text_list(texts: Sequence[str]) -> str:
    """Return texts as a list of SQL."""
    return "[" + ", ".join(map(quote_literal, texts)) + "]"


def make_sign_sql(changes: Mapping[str, str]) -> str:
    """Return SQL for the sign of a combination: 1, and -1 if it is a deletion.

    ``changes``: the column of the change, by alias.
    """
    words = format_text_list(["1", *(word for word, sign in SIGNS.items() if sign > 0)])
    signs = (
        f"CASE WHEN {quote_text(a)}.{quote_text(c)}::VARCHAR IN {words} THEN 1 ELSE -1 END"
        for a, c in changes.items()
    )
    return " * ".join(signs)
