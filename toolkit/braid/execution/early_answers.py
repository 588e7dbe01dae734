"""Work that writes early answers: unmatched tuples of a batch, and older ones that now match."""

from __future__ import annotations

from braid.core.answers import (
    find_retractions,
    find_unmatched_arrivals,
    list_block_births,
    list_needed_births,
)
from braid.core.plan import KeySpace, Plan
from braid.core.run_state import RunState
from braid.kernels.join_spec import BatchSpec, JoinSpec


def make_early_batch(spec: JoinSpec, after: RunState, keys: KeySpace) -> BatchSpec | None:
    """Return the work that writes the early answers of a batch; None: it has none.

    It reads stored blocks only, so it needs no tuples.

    Parameters
    ----------
    spec
        The settings of the join.
    after
        The state after the batch, which is not committed yet.
    keys
        Routing keys of the batch.
    """
    arrivals, findings = (
        find_unmatched_arrivals(spec.kind, after),
        find_retractions(spec.kind, after),
    )
    if not arrivals and not findings:
        return None
    births, matched = list_block_births(after.answers, Plan()), after.answers.matched
    needed = list_needed_births(births, (*arrivals, *findings), Plan())
    return BatchSpec(
        spec=spec,
        batch=after.batch,
        key_space=keys,
        routes=(),
        derivations=(),
        replica_addresses=after.replica_addresses,
        horizons=(None,) * len(spec.columns),
        block_ages={},
        files=after.block_files,
        findings=findings,
        arrivals=arrivals,
        births=births,
        matched={birth: matched[birth] for birth in needed & matched.keys()},
    )
