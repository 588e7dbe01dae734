"""Results of a run as columns of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from braid.core.columns import WEIGHT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def flat(
    whole: DataFrame, columns: Mapping[str, Sequence[str]], times: Mapping[str, str], weighed: bool
) -> DataFrame:
    """Results, a struct for each alias with these ``columns``, as ``JoinRun.results_stream`` has
    them. Raises ValueError where two columns would have one name.
    """
    from pyspark.sql import functions as F

    names = {(a, c): f"{a}_{c}" for a, several in columns.items() for c in several}
    told = [*names.values(), *list(times.values())[:1], *([WEIGHT] if weighed else [])]
    if twice := sorted({n for n in told if [m.lower() for m in told].count(n.lower()) > 1}):
        raise ValueError(
            f"the results would have several columns {twice}; rename columns of the streams so "
            "that alias_column differs"
        )
    wanted = [F.col(f"`{a}`.`{c}`").alias(name) for (a, c), name in names.items()]
    if times:
        members = [F.col(f"`{a}`.`{t}`").cast("timestamp") for a, t in times.items()]
        wanted.append(F.greatest(*members).alias(next(iter(times.values()))))
    return whole.select(*wanted, *([F.col(WEIGHT)] if weighed else []))
