"""Whether blocks that another version wrote hold what a condition reads of them now."""

from __future__ import annotations

from braid.condition.predicate import Predicate


def computed_columns(predicate: Predicate) -> list[dict[str, str]]:
    """What blocks hold besides a stream's columns: keys, and what residuals read."""
    return [
        {**k, **c} for k, c in zip(predicate.key_columns, predicate.computed_columns, strict=True)
    ]
