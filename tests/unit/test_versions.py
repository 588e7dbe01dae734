"""A run with another format version, or with other keys, is refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from braid.core.run_state import VERSION
from braid.papers.baselines.centralized import Centralized
from braid.storage import durable_files
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin

ROWS = pa.table({"id": [1, 2], "k": [1, 2], "n": [3, 4]})
STREAMS = {"a": ROWS, "b": ROWS}


@pytest.mark.parametrize("version", [0, VERSION + 1, None, str(VERSION)])
def test_a_run_of_another_version_is_refused(tmp_path: Path, version: int | str | None) -> None:
    join = StreamJoin(STREAMS, "a.k = b.k", Centralized())
    assert join.start(tmp_path).awaitTermination()
    query = RunStore(tmp_path).read_settings()
    assert query is not None
    (tmp_path / "run.json").write_bytes(
        durable_files.encode_checksummed({"format_version": version, **query})
    )
    says = f"of version {version!r}; this version of Braid reads version {VERSION}"
    for go_on in (lambda: join.start(tmp_path), lambda: StreamJoin.resume(tmp_path, STREAMS)):
        with pytest.raises(ValueError, match=says):
            go_on()


def test_a_run_whose_keys_were_made_otherwise_is_refused(tmp_path: Path) -> None:
    refused = "another version of Braid computed the keys of the condition in another way"
    for on in ("a.k = b.k", "a.k - a.n < b.k"):
        folder = tmp_path / on
        assert StreamJoin(STREAMS, on, Centralized()).start(folder).awaitTermination()
        query = RunStore(folder).read_settings()
        assert query is not None
        RunStore(folder).create_run({**query, "keys": [{}, *query["keys"][1:]]})
        with pytest.raises(ValueError, match=refused):
            StreamJoin.resume(folder, STREAMS)
