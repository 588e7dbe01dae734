"""The dashboards: their selections exist, they rank differently on each stream, and streams are
optional.
"""

from __future__ import annotations

import duckdb
import pytest
from braid_lab.workloads.dashboards import CONDITIONS, DASHBOARDS, flight_dashboards
from braid_lab.workloads.dashboards import DASHBOARD_STREAMS as ORDER
from braid_lab.workloads.flights import STREAMS, ensure_dataset


@pytest.fixture(scope="module")
def february() -> duckdb.DuckDBPyConnection:
    """Return the three streams in the first days of February 2013."""
    connection = duckdb.connect(config={"threads": 1})
    for alias, name in STREAMS.items():
        days = "ts >= TIMESTAMPTZ '2013-02-01 00:00-05' AND ts < TIMESTAMPTZ '2013-02-04 00:00-05'"
        connection.execute(
            f"CREATE TABLE {alias} AS SELECT * FROM '{ensure_dataset()}/{name}.parquet' WHERE {days}"
        )
    yield connection
    connection.close()


def test_there_are_twelve_under_names_and_windows_of_their_own():
    assert len(DASHBOARDS) == len({q.name for q in DASHBOARDS}) == 12
    assert len({q.windows for q in DASHBOARDS}) == 12
    assert set(ORDER) == set(STREAMS)
    assert all(len(q.windows) == len(q.selections) == len(STREAMS) for q in DASHBOARDS)


def test_windows_rank_the_dashboards_differently_on_each_stream():
    """Two of them rank in opposite order on two streams, so intermediate results need bitmaps."""
    hours = {a: [q.windows[s] for q in DASHBOARDS] for s, a in enumerate(ORDER)}
    for a, b in (("a", "d"), ("a", "w"), ("d", "w")):
        pairs = [(i, j) for i in range(12) for j in range(12)]
        assert any(hours[a][i] < hours[a][j] and hours[b][i] > hours[b][j] for i, j in pairs)


@pytest.mark.parametrize("query", DASHBOARDS, ids=lambda q: q.name)
def test_each_selects_something_but_not_all(query, february):
    for alias, condition in query.selections_by_alias(ORDER).items():
        chosen, rows = february.sql(
            f"SELECT count(*) FILTER ({condition}), count(*) FROM {alias}"
        ).fetchall()[0]
        assert 0 < chosen < rows


@pytest.mark.parametrize("streams", [("a", "d", "w"), ("d", "w"), ("a", "d")])
def test_each_finds_something_whatever_it_joins(streams, february):
    on = " AND ".join(text for pair, text in CONDITIONS.items() if set(pair) <= set(streams))
    for query in (q.restrict_to([ORDER.index(a) for a in streams]) for q in DASHBOARDS):
        now = f"greatest({', '.join(f'{a}.ts' for a in streams)})"
        terms = [
            on,
            *filter(None, query.selections),
            *(
                f"{now} - {a}.ts < to_microseconds({w})"
                for a, w in zip(streams, query.windows, strict=True)
            ),
        ]
        assert (
            february.sql(
                f"SELECT count(*) FROM {', '.join(streams)} WHERE {' AND '.join(terms)}"
            ).fetchall()[0][0]
            > 0
        )


@pytest.mark.parametrize("streams", [("a", "w"), ("d",), ("d", "x"), ()])
def test_streams_that_do_not_join_are_refused(streams):
    with pytest.raises(ValueError, match="they must be d with a, w or both"):
        flight_dashboards(None, streams)  # type: ignore[arg-type]
