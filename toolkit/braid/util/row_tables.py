"""Tables of rows for users: pandas DataFrames, or Arrow tables where pandas is not installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from typing import TypeAlias

    import pandas as pd

    RowTable: TypeAlias = pd.DataFrame  # or pa.Table, without pandas


def make_row_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> RowTable:
    """Return a table of rows.

    ``columns``: its columns, if there may be no row. Otherwise those of the rows, where a row
    without a column has NULL in it.
    """
    names = list(columns) or list(dict.fromkeys(name for row in rows for name in row))
    if has_pandas():
        import pandas as pd

        return pd.DataFrame(rows, columns=names)
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})


def to_row_table(table: pa.Table) -> RowTable:
    """Return an Arrow table as a pandas DataFrame, or as it is without pandas."""
    return table.to_pandas() if has_pandas() else table


def has_pandas() -> bool:
    """Return whether pandas is installed."""
    try:
        import pandas  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "pandas":  # pandas is installed, and lacks what it needs
            raise
        return False
    return True
