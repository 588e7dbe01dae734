"""What a join of another kind, of changes or as of a time cannot do is said in one clear sentence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.errors import QueryError
from braid.hub.hub import QueryHub
from braid.hub.query_parser import parse_stream_query
from braid.shared.shared_join import SharedJoin
from braid.stream_join import StreamJoin
from hub_cases import SCHEMAS

pytestmark = pytest.mark.unit

TS = pa.array([0, 1], pa.timestamp("us", "UTC"))
A = pa.table({"k": [1, 2], "none": pa.nulls(2), "ts": TS, "c": ["insert", "delete"]})
B = pa.table({"k": [1, 2], "ts": TS})
STREAMS = {"a": A, "b": B}
UNITS = "weeks, days, hours, minutes, seconds, milliseconds, microseconds"
OF_NULLS = (
    "column 'a.none' in the join condition is of type null, as all of its values are NULL; cast"
)


@pytest.mark.parametrize(
    ("on", "given", "said"),
    [
        ("a.none = b.k", {}, OF_NULLS),
        ("a.none = b.k", {"how": "left"}, OF_NULLS),
        ("a.k = b.k AND a.none > b.k", {"how": "full"}, OF_NULLS),
        (
            "a.k = b.k AND A.C = 'insert'",
            {"changes": {"a": "c"}},
            "column 'A.C' in the join condition is a change column, which says how a row changes",
        ),
        (
            "a.k = b.k",
            {"changes": {"a": "c"}, "time": "ts", "windows": "1 minute"},
            "rows of a expire by windows or by the condition, so that a deletion may come after",
        ),
        (
            "a.k = b.k AND b.ts <= a.ts + INTERVAL 1 MINUTE",
            {"changes": {"a": "c"}, "time": "ts"},
            "forgotten; give windows='unbounded', which keeps the full history",
        ),
        *(
            (
                "a.k = b.k",
                {"match": "latest", "time": "ts", "tolerance": given},
                f"tolerance is {given!r}; it must be a span of 0 or more, each number with a unit "
                f"of {UNITS}, such as '1 hour 30 minutes'",
            )
            for given in ("5", "1 month", "-1 second", "")
        ),
        (
            "a.k = b.k",
            {"match": "latest", "time": "ts", "tolerance": 5},
            "tolerance is 5, but times are compared; it must be a span such as '5 seconds'",
        ),
    ],
)
def test_a_join_is_refused_with_a_sentence(on: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        StreamJoin(STREAMS, on, **given)


def test_shared_joins_and_hubs_refuse_changes() -> None:
    said = "changes are given, but the queries of a {} have windows, after which a deletion would"
    with pytest.raises(ValueError, match=said.format("shared join")):
        SharedJoin(STREAMS, "a.k = b.k", "ts", changes={"a": "c"})
    with pytest.raises(ValueError, match=said.format("hub")):
        QueryHub(STREAMS, "ts", changes={"a": "c"})


F, C = "flights [RANGE 9 SECONDS] f", "checkins [RANGE 9 SECONDS] c"
SUBQUERY = f"EXISTS (SELECT 1 FROM {C} WHERE f.num = c.flight)"
BY_ITSELF = "is not by itself a condition of WHERE, or under one NOT; write WHERE [NOT] EXISTS"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (f"SELECT f.id FROM {F} WHERE f.num > 1 OR NOT {SUBQUERY}", BY_ITSELF),
        (f"SELECT f.id FROM {F} WHERE NOT NOT {SUBQUERY}", BY_ITSELF),
        (f"SELECT f.id FROM {F} WHERE {SUBQUERY} = false", BY_ITSELF),
        (f"SELECT f.id, NOT {SUBQUERY} AS e FROM {F}", BY_ITSELF),
        (f"SELECT f.id FROM {F} WHERE NOT ({SUBQUERY} AND f.num > 1)", BY_ITSELF),
        (f"SELECT f.num IN (SELECT c.flight FROM {C}) AS e FROM {F}", BY_ITSELF),
        (
            f"SELECT id FROM {F} JOIN {C} USING (id)",
            "column 'id' of USING may be f.id or c.id; write f.id",
        ),
        (
            f"SELECT id FROM {F} RIGHT JOIN {C} USING (id)",
            "may be f.id or c.id, one of which is NULL where a row has no partner; write c.id",
        ),
        (f"SELECT id FROM {F} LEFT JOIN {C} USING (id)", "has no partner; write f.id"),
        (f"SELECT id FROM {F} FULL JOIN {C} USING (id)", "write coalesce(f.id, c.id)"),
        (
            f"SELECT f.id FROM {F} LEFT JOIN {C} ON f.num = c.flight WHERE c.seats IS NULL",
            "or write f LEFT ANTI JOIN c for the rows of f without a match",
        ),
        (
            f"SELECT f.id FROM {C} RIGHT JOIN {F} ON f.num = c.flight WHERE c.flight IS NULL",
            "or write f LEFT ANTI JOIN c for the rows of f without a match",
        ),
        (
            f"SELECT f.id FROM {F} LEFT JOIN {C} ON f.num = c.flight WHERE c.seats > 1",
            "write the condition into ON, or write JOIN",
        ),
    ],
)
def test_a_query_of_a_hub_is_refused_with_a_sentence(sql: str, said: str) -> None:
    with pytest.raises(QueryError, match=re.escape(said)):
        parse_stream_query(sql, SCHEMAS, "ts")


def test_the_clock_of_streams_that_have_ended_is_shown_as_ended(tmp_path: Path) -> None:
    run = StreamJoin(STREAMS, "a.k = b.k", windows="1 minute", time="ts").start(tmp_path)
    assert run.awaitTermination()
    shown = run._repr_html_()
    assert "a: ended, b: ended" in shown and "9999" not in shown
