"""The signs of changes, in Spark SQL over a change column. See ``braid.core.change_types``."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from braid.core.change_types import ACCEPTED, SIGNS
from braid.core.reserved_columns import SIGN
from braid.util.batch_numbers import display_batch
from braid.util.validation import format_value


def make_sign_sql(column: str, kind: str, otherwise: str = "NULL") -> str:
    """Return Spark SQL for the sign of a row.

    ``kind``: Spark's name of the column's type. ``otherwise``: Spark SQL for another value.
    """
    values = {repr(word): sign for word, sign in SIGNS.items()}
    if kind != "string":
        values = {"1": 1, "-1": -1}
    cases = " ".join(f"WHEN {value} THEN {sign}" for value, sign in values.items())
    return f"cast(CASE `{column}` {cases} ELSE {otherwise} END AS tinyint)"


def make_raising_sign_sql(column: str, kind: str, alias: str) -> str:
    """Return the same, which fails in Spark for another value and names the row."""
    text = f"concat('{_describe(alias, column)} in the row ', to_json(struct(*)), '; {_remedy()}')"
    return make_sign_sql(column, kind, f"raise_error({text})")


def check_signs(rows: pa.Table, computed: pa.Table, alias: str, column: str, number: int) -> None:
    """Raise ValueError for the first row whose sign is NULL.

    ``number``: the micro-batch of the rows.
    """
    if computed[SIGN].null_count:
        first = pc.index(pc.is_null(computed[SIGN]), True).as_py()
        row = rows.slice(first, 1).to_pylist()[0]
        shown = ", ".join(f"{name}={format_value(value)}" for name, value in row.items())
        raise ValueError(
            f"{_describe(alias, column)} in the row ({shown}) of batch {display_batch(number)}; "
            f"{_remedy()}"
        )


def _describe(alias: str, column: str) -> str:
    return f"the change column {alias}.{column} has another value"


def _remedy() -> str:
    return f"it must be one of {ACCEPTED}".replace("'", "")
