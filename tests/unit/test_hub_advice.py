"""``braid queries FILE``: the number of joins that a file of queries needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from braid.cli import main
from braid.errors import QueryError
from braid_lab.reuse.sharing_advice import advise_sharing

pytestmark = pytest.mark.unit
FILE = """
SELECT f.num, c.status FROM flights [RANGE 5 MIN] f, checkins [RANGE 1 MIN] c WHERE f.num = c.flight AND f.carrier = 'DL';
SELECT f.num FROM flights [RANGE 2 MIN] f, checkins [RANGE 1 MIN] c WHERE c.flight = f.num AND f.carrier = 'DL' AND f.delay > 15;
SELECT f.num FROM flights [RANGE 9 MIN] f, checkins [RANGE 1 MIN] c WHERE c.flight = f.num AND f.carrier IN ('DL', 'CO');
SELECT f.num FROM flights [RANGE 9 MIN] f, weather [RANGE 1 MIN] w WHERE w.city = f.dest
"""


def test_queries_that_join_alike_share_one_join() -> None:
    found = advise_sharing(FILE)
    assert found.queries == 4
    assert found.operators == (
        ("checkins, flights", ("q1", "q2", "q3"), 2),
        ("flights, weather", ("q4",), 1),
    )
    assert found.work["relaxed"] <= found.work["contained"] < found.work["exact"] == 1
    assert "4 queries need 2 joins on a hub" in str(found)


def test_queries_end_where_a_semicolon_is_none_of_a_text_or_a_comment() -> None:
    one = FILE.replace("f.carrier = 'DL';", "f.carrier = 'D;L';").replace(
        "SELECT f.num FROM flights [RANGE 9", "-- more; of them\nSELECT f.num FROM flights [RANGE 9"
    )
    assert "'D;L'" in one and "-- more;" in one
    found = advise_sharing(f"/* all; */ ; {one}; -- the end\n")
    assert found.queries == 4 and len(found.operators) == 2
    with pytest.raises(QueryError, match="there is no query in the text"):
        advise_sharing("-- nothing;")
    with pytest.raises(QueryError, match="the query is not valid Spark SQL"):
        advise_sharing("SELECT 'open")


def test_the_command_tells_advice_or_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.sql", tmp_path / "bad.sql"
    good.write_text(FILE)
    bad.write_text(FILE + "; SELECT f.num FROM flights f, checkins c WHERE f.num = c.flight")
    assert main(["queries", str(good)]) == 0
    assert "flights, weather: q4 (all by one)" in capsys.readouterr().out
    assert main(["queries", str(bad)]) == 2
    assert capsys.readouterr().err.startswith("braid: query 5: stream 'f' has no window")
    assert main(["queries", str(tmp_path / "none.sql")]) == 2
    with pytest.raises(QueryError, match="there is no query in the text"):
        advise_sharing("  ")
