"""Stored tuples that the next batch answers, and whether a batch without tuples is needed for them.

The functions are pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from braid.core.asof_releases import AFTER_ALL, plan_releases
from braid.core.batch_work import RunRules
from braid.core.plan import Release, Settle
from braid.core.query_answers import find_findings, find_settles
from braid.core.query_releases import plan_query_releases
from braid.core.run_state import RunState


def find_due_answers(rules: RunRules, state: RunState) -> Sequence[Settle | Release]:
    """Return the stored tuples that are final after a batch. In an as-of join, releases answer."""
    retention = rules.find_retention(state)
    if rules.match is not None:
        return plan_releases(rules.make_release_facts(state, retention))
    settles = find_settles(rules, state, retention.horizons)
    return (*settles, *plan_query_releases(rules, state))


def has_due_answers(rules: RunRules, state: RunState) -> bool:
    """Return whether a batch without tuples would answer some of those that wait."""
    due = find_due_answers(rules, state)
    if any(each.since is None or each.since < each.until for each in due):
        return True
    return bool(find_findings(rules, state))


def needs_closing_batch(rules: RunRules, state: RunState) -> bool:
    """Return whether a batch without tuples is needed at the end of the input.

    It completes a migration, or answers all that waits once all streams have ended.
    """
    if rules.placement.has_pending_pairs(state.placement_state):
        return True
    is_due = any(each.until >= AFTER_ALL for each in find_due_answers(rules, state))
    return is_due or bool(find_findings(rules, state))
