"""The rows that outer, semi and anti joins have besides pairs, in SQL, for the check of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from braid.answer_check_partners import NUMBER
from braid.answer_check_queries import ServedQuery
from braid.core.join_kinds import JoinKind
from braid.join_config import placement_from_json
from braid.storage.run_store import RunStore


def list_numbers(kind: JoinKind, aliases: Sequence[str]) -> str:
    """Return SQL for the numbers of the preserved members of a pair, as further columns.

    ``aliases``: those of the streams, quoted.
    """
    columns = (f", {aliases[stream]}.{NUMBER} AS number_{stream}" for stream in kind.preserved)
    return "".join(columns)


def replace_pairs(
    database: duckdb.DuckDBPyConnection,
    kind: JoinKind,
    structs: Sequence[str],
    is_complete: bool,
    served: ServedQuery | None = None,
) -> None:
    """Add the answers of preserved tuples to the table ``expected``, and remove what is none.

    A tuple whose pairs may all be missing, as a member was late, may be unmatched.

    Parameters
    ----------
    database
        Its table has the pairs, with the numbers of their preserved members.
    kind
        The kind of the join.
    structs
        Columns of the streams.
    is_complete
        Whether all tuples are answered. If not, those without a pair may not be yet.
    served
        The query of a shared run; None: the run serves none.
    """
    for stream in kind.preserved:
        members = ["__struct" if s == stream else "NULL" for s in range(len(structs))]
        lacking_sql, where = "false", ""
        if served is not None:
            lacking_sql, where = served.make_floor_sql(stream), f" WHERE __batch >= {served.first}"
        database.execute(
            f"CREATE TEMP TABLE answers_{stream} AS SELECT {', '.join(members)}, __batch, "
            f"number_{stream} IS NOT NULL AS is_matched, "
            f"coalesce(is_optional, false) OR {lacking_sql} AS is_optional "
            f"FROM __stream_{stream} LEFT JOIN (SELECT number_{stream}, bool_and(is_late) AS "
            f"is_optional FROM expected GROUP BY number_{stream}) "
            f"ON number_{stream} = {NUMBER}{where}"
        )
    if not kind.writes_pairs:
        database.execute("DELETE FROM expected")
    for stream in kind.preserved:
        wanted = "is_matched" if kind.writes_matched else "NOT is_matched OR is_optional"
        numbers = "".join(", NULL" for _ in kind.preserved)
        database.execute(
            f"INSERT INTO expected SELECT * EXCLUDE (__batch, is_matched, is_optional){numbers}, "
            f"__batch, is_optional OR {not is_complete} FROM answers_{stream} WHERE {wanted}"
        )


def read_checkable_settings(store: RunStore) -> dict[str, Any]:
    """Return the settings of a run whose answers can be recomputed.

    Raises ValueError for a folder without a run, and for a hub.
    """
    query = store.read_settings()
    if query is None:
        raise ValueError(f"{store.where} holds no run")
    if "hub" in query:
        raise ValueError(
            f"{store.where} holds a hub, whose answers are made of the results of operators that "
            "come and go with its queries; braid check --answers recomputes them by query"
        )
    return query


def has_pending_pairs(store: RunStore, query: Mapping[str, Any], kind: JoinKind) -> bool:
    """Return whether pairs are pending because a change of placement is in progress.

    ``query``: the settings of the run.
    """
    if query["check"] or not kind.is_inner:  # only these runs keep the pairs themselves
        state = store.last_state()
        return state is not None and bool(state.pending_pairs)
    placement = placement_from_json(query)
    state = store.last_state(placement.State)
    return state is not None and placement.has_pending_pairs(state.placement_state)
