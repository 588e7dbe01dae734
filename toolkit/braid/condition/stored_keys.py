"""The computed columns of blocks, to detect that another version computed them differently."""

from __future__ import annotations

from braid.condition.predicate import Predicate


def computed_columns(predicate: Predicate) -> list[dict[str, str]]:
    """Return the computed columns of each stream's blocks: keys and inputs of residuals."""
    return [
        {**k, **c} for k, c in zip(predicate.key_columns, predicate.computed_columns, strict=True)
    ]
