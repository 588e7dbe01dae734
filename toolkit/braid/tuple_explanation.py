"""Explain why tuples are joined, or are not, in a run or for a query of a hub: ``braid.why``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from braid.hub.hub_explanation import explain_hub_rows
from braid.result_explanation import Why, explain_rows
from braid.row_selectors import Selector
from braid.storage.run_store import open_store


def why(
    path: str | Path,
    rows: Mapping[str, Selector],
    limit: int = 20,
    query: str | None = None,
    blocks: bool = False,
) -> Why:
    """Return why tuples of the run at ``path`` are joined, or are not.

    Parameters
    ----------
    path
        Folder or bucket of a run, running or ended.
    rows
        By alias, a condition in Spark SQL over the columns of that stream, or values by column, as
        ``{"o": "id = 7", "p": {"order_id": 7}}``. Any tuple of a stream that is left out will do.
    limit
        Greatest number of tuples of each stream, in order of arrival. Default: 20.
    query
        Name of the query whose results are meant, of a shared run or a hub; of others there is
        none. The rows of a hub's query are by alias of that query, or by stream.
    blocks
        Whether to say which blocks hold the tuples of the nearest combination, on which hosts, and
        where they met; of a hub, which operators have answered the query, after which filters.

    Raises ValueError for an unknown alias, column or query, a condition over several streams,
    invalid SQL, and a folder without a committed batch.
    """
    store = open_store(path)
    settings = store.read_settings()
    if settings is not None and "hub" in settings:
        return explain_hub_rows(store, settings, rows, limit, query, blocks)
    return explain_rows(path, rows, limit, query=query, blocks=blocks)
