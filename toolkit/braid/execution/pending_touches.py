"""Changes of a run that its user has asked for: they act, and are reported, with the next batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from braid.core.answers import list_block_births
from braid.core.batch_report import BatchReport, HostMetrics, TaskReport, merge_reports
from braid.core.batch_step import BatchStep
from braid.core.host_recovery import list_remaining_replicas, make_loss_events, plan_recovery
from braid.core.placement import Placement
from braid.core.plan import KeySpace, Plan
from braid.core.run_events import Event
from braid.core.run_state import RunState
from braid.core.touch_events import SettingChanged
from braid.kernels.join_spec import BatchSpec, JoinSpec


class TouchedState(NamedTuple):
    """The state before a batch, after what the user has asked for.

    - ``state``: the state; lost hosts have new replicas.
    - ``events``: what has been done, for the batch.
    - ``report``: the work of recovering lost hosts.
    """

    state: RunState
    events: tuple[Event, ...]
    report: BatchReport

    def add_work(self, outcome: BatchReport) -> None:
        """Add the work of a recovery to the report of the batch that it precedes."""
        outcome.kernel_seconds += self.report.kernel_seconds
        for host, metrics in self.report.hosts.items():
            outcome.hosts.setdefault(host, HostMetrics()).add_counts(metrics)

    def add_events(self, step: BatchStep) -> BatchStep:
        """Return the outcome of the batch with these events before its own."""
        return step._replace(events=(*self.events, *step.events))


class PendingTouches:
    """What the user has asked for since the last batch.

    - ``lost_hosts``: hosts that lose their state.
    - ``changed_settings``: settings that are changed already, to be reported.
    """

    def __init__(self) -> None:
        self.lost_hosts: frozenset[int] = frozenset()
        self.changed_settings: tuple[SettingChanged, ...] = ()

    def apply_to_state(
        self,
        spec: JoinSpec,
        placement: Placement,
        state: RunState,
        execute: Callable[[BatchSpec], Sequence[TaskReport]],
    ) -> TouchedState:
        """Return the state of the next batch, and forget what was asked for.

        The replicas of lost hosts are made again in tasks that ``execute`` runs.
        """
        batch = state.batch + 1
        events: tuple[Event, ...] = tuple(replace(e, batch=batch) for e in self.changed_settings)
        lost, self.lost_hosts, self.changed_settings = self.lost_hosts, frozenset(), ()
        if not lost:
            return TouchedState(state, events, BatchReport())
        keys = placement.key_space(state.placement_state)
        work = make_recovery_batch(spec, state, lost, keys)
        reports = execute(work) if work.derivations else ()
        report = merge_reports(reports, len(spec.columns))
        restored = replace(
            state,
            replica_addresses={**state.replica_addresses, **report.replica_addresses},
            block_files={**state.block_files, **report.files},
        )
        losses = make_loss_events(batch, lost, work.derivations)
        return TouchedState(restored, (*events, *losses), report)


def make_recovery_batch(
    spec: JoinSpec, state: RunState, lost: Collection[int], keys: KeySpace
) -> BatchSpec:
    """Return the work that makes the replicas of lost hosts again. It needs no tuples.

    It has no address of a replica of a lost host.
    """
    copies = plan_recovery(state.blocks.values(), lost)
    return BatchSpec(
        spec=spec,
        batch=state.batch + 1,
        key_space=keys,
        routes=(),
        derivations=copies,
        replica_addresses=list_remaining_replicas(state, lost, copies),
        horizons=(None,) * len(spec.columns),
        block_ages={},
        block_sizes={copy.block.id: copy.block.size_bytes for copy in copies},
        files=state.block_files,
        births={} if spec.kind.is_inner else list_block_births(state.answers, Plan()),
    )
