"""Run a batch of a hub through all operators and commit it."""

from __future__ import annotations

import time as clock
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from braid.core.clock_events import ClockJumped
from braid.core.irregular_rows import (
    EARLY,
    LATE,
    UNTIMED,
    IrregularFile,
    IrregularRowsWritten,
)
from braid.core.reserved_columns import TIME
from braid.core.stream_clocks import IrregularCounts, StreamClock, advance_clock, needs_spread
from braid.errors import ExpressionError
from braid.hub.delivery import deliver_batch
from braid.hub.hub_settings import HubSettings
from braid.hub.hub_state import HubState
from braid.hub.network_flows import count_flows
from braid.hub.operator_instance import HubBatch
from braid.hub.query_registry import QueryRegistry
from braid.hub.recent_tuples import trim_backfill
from braid.kernels.block_builder import describe_times
from braid.papers.reuse import deployment_changes as pure
from braid.papers.reuse.deployment import remove_queries
from braid.papers.reuse.hub_events import HubBatchCommitted, QueryEnded
from braid.papers.reuse.query_definition import UNBOUNDED
from braid.storage.irregular_files import make_irregular_rows
from braid.util.batch_numbers import display_batch
from braid.util.durations import format_duration
from braid.util.error_summary import take_first_line


def run_batch(registry: QueryRegistry, source: Any, micro_batch: int) -> None:
    """Run a micro-batch through all operators unless it is committed already.

    A query whose expressions fail on the batch is ended; the others continue.
    """
    began = clock.perf_counter()
    if micro_batch > registry.ledger.micro_batch:
        _run_through(registry, source, HubBatch(registry.ledger.epoch + 1, micro_batch))
    _end_expired_queries(registry)
    registry.reoptimizer.review_next(clock.perf_counter() - began)


def run_empty_batch(registry: QueryRegistry, is_last: bool = False) -> None:
    """Run a batch without tuples, which answers those that wait.

    ``is_last``: all streams end before it, and the hub is closed.
    """
    _run_through(registry, None, HubBatch(registry.ledger.epoch + 1, is_last=is_last))


def answer_rest(registry: QueryRegistry) -> None:
    """Run batches without tuples until none waits, after the end of all streams.

    Raises CoverageError if plans are checked, and some tuples are not answered.
    """
    while registry.works.needs_closing_batch():
        run_empty_batch(registry)
    for instance in registry.works.instances.values():
        instance.engine.drain(dict, lambda: False)  # nothing but the check


def _run_through(registry: QueryRegistry, source: Any, batch: HubBatch) -> None:
    while batch.epoch > registry.ledger.epoch:
        try:
            _join_and_commit(registry, source, batch)
        except ExpressionError as fault:
            _end_failed_queries(registry, fault, batch.epoch)


def _end_failed_queries(registry: QueryRegistry, fault: ExpressionError, epoch: int) -> None:
    if fault.query:
        names = [fault.query]
    elif fault.bit is None:
        names = pure.queries_reading(registry.current_deployment, [fault.operator])
    else:
        names = pure.queries_using_demand(registry.current_deployment, fault.operator, fault.bit)
    reason = f"it failed in batch {display_batch(epoch)}: {take_first_line(fault.error)}"
    after = remove_queries(registry.current_deployment, *names)
    ended = [QueryEnded(registry.ledger.epoch, name, reason) for name in names]
    registry.switch_deployment(after, [*ended], reasons=dict.fromkeys(names, reason))


def _join_and_commit(registry: QueryRegistry, source: Any, batch: HubBatch) -> None:
    began, epoch = clock.perf_counter(), batch.epoch
    usage = _network_usage(registry)
    after, deployment = registry.ledger.copy_mutable(), registry.current_deployment
    tables: dict[str, pa.Table] = {}
    names: dict[str, dict[str, str]] = {}
    if batch.micro_batch is not None:
        after.micro_batch = batch.micro_batch
        tables, names = registry.works.read_arrivals(source, deployment)
    writing = registry.works.write_history(epoch, tables)
    noted: dict[str, _IrregularBatch] = {}
    for stream, rows in tables.items():
        noted[stream] = _advance_clocks(after, stream, epoch, rows, registry.settings)
        _record_arrivals(after, stream, rows, list(registry.reader.schemas[stream]))
    irregular = _count_irregular(noted)
    after.irregular_counts = after.irregular_counts.add(irregular)
    batch = batch._replace(clocks=_advance_hub(registry, after, batch.is_last))
    arrived = registry.works.run_batch(tables, names, batch, deployment)
    several = registry.settings.network is not None
    rules = [registry.query_reader.delivery_rule(q) for q in after.serving_queries]
    looked = rules if several else [t for t in rules if registry.query_reader.may_fail(t)]
    matches = dict(deliver_batch(registry.works, looked, epoch))
    flows = count_flows(registry.works, deployment, arrived, matches) if several else ()
    after.epoch = epoch
    for stream, file in writing.finish_write().items():
        after.backfill_batches.setdefault(stream, []).append(file)
    _trim_history(registry, after)
    after.set_pins(registry.works.pin_operators())
    committed = HubBatchCommitted(
        epoch,
        {s: tables[s].num_rows if s in tables else 0 for s in registry.reader.schemas},
        after.clocks,
        tuple(registry.works.instances[id].last_metrics() for id in deployment.operators),
        tuple(flows),
        usage,
        clock.perf_counter() - began,
        irregular.late,
        irregular.untimed,
        irregular.ahead,
        after.irregular_counts,
        after.passed_times,
        registry.count_waiting(after.serving_queries),
        batch.micro_batch,
    )
    jumps = [each.jump for each in noted.values() if each.jump is not None]
    registry.commit_change(
        after, [*jumps, *_write_irregular_rows(registry, after, tables), committed]
    )


def _write_irregular_rows(
    registry: QueryRegistry, after: HubState, tables: Mapping[str, pa.Table]
) -> Iterator[IrregularRowsWritten]:
    """Write the irregular rows of a batch, and yield the event that names their files."""
    files, store = list[IrregularFile](), registry.log.store
    batch = store.log.batch_count
    for number, stream in enumerate(registry.reader.schemas):
        if stream in tables:
            passed, clock = registry.ledger.passed_times.get(stream), after.clocks[stream]
            latest = None if clock is None else clock + registry.settings.ahead
            columns = [*registry.reader.schemas[stream]]
            parts = [*_find_irregular_rows(tables[stream], columns, after.epoch, passed, latest)]
            if parts:
                files.append(store.irregular.write_rows(batch, number, parts))
    if files:
        yield IrregularRowsWritten(batch, tuple(files))


def _find_irregular_rows(
    rows: pa.Table, columns: list[str], epoch: int, passed: int | None, latest: int | None
) -> Iterator[pa.RecordBatch]:
    """Yield the irregular rows of a stream in a batch, as they are stored.

    ``passed``: event time before which a tuple is late. ``latest``: after which it is early.
    """
    times = rows[TIME]
    behind = pc.subtract(passed, times)
    for reason, chosen in (
        (LATE, None if passed is None else pc.greater(behind, 0)),
        (UNTIMED, times.is_null()),
        (EARLY, None if latest is None else pc.greater(times, latest)),
    ):
        some = None if chosen is None else rows.filter(chosen).select(columns).combine_chunks()
        if some is not None and some.num_rows:
            far = behind.filter(chosen).to_numpy() if reason == LATE else None
            yield make_irregular_rows(some.to_batches()[0], epoch, reason, far)


def _advance_hub(registry: QueryRegistry, after: HubState, is_last: bool) -> dict[str, int | None]:
    """Record which streams have ended and what the others have passed. Return the clocks."""
    after.is_closed |= is_last
    ended = registry.reader.list_ended(after.micro_batch)
    ended = {*registry.reader.schemas} if after.is_closed else ended
    after.passed_times = registry.settings.find_passed_times(after.clocks, ended)
    return registry.settings.advance_clocks(after.clocks, ended)


def _network_usage(registry: QueryRegistry) -> float:
    if registry.settings.network is None:
        return 0.0
    return registry.cost_model().network_usage(registry.current_deployment)


def _trim_history(registry: QueryRegistry, ledger: HubState) -> None:
    """Trim history to the retention of the hub and the needs of its queries."""
    settings = registry.settings
    need: dict[str, int | None] = {
        s: None if t is None else t - settings.lateness[s] - settings.history
        for s, t in ledger.clocks.items()
    }
    for q in registry.current_deployment.queries.values():
        progress = ledger.event_time_progress(q.definition.streams)
        for stream, span in zip(q.definition.streams, q.definition.history_spans, strict=True):
            since = need[stream]
            if since is None or progress is None or span >= UNBOUNDED:
                need[stream] = None
            else:
                need[stream] = min(since, progress - span)
    trim_backfill(ledger, need)


def _end_expired_queries(registry: QueryRegistry) -> None:
    """End the queries whose lifetimes are over.

    The lifetime of a query that was submitted before its streams began starts with them.
    """
    for q in registry.ledger.serving_queries:
        streams = registry.query_reader.restore_query(q).definition.streams
        progress = registry.event_time_progress(streams)
        if q.lifetime is None or progress is None:
            continue
        since = q.start_time
        if since is None:
            began = [registry.ledger.first_event_times.get(s) for s in streams]
            since = max(t for t in began if t is not None)
        if progress >= since + q.lifetime:
            registry.withdraw_query(
                q.name, f"its lifetime of {format_duration(q.lifetime)} is over"
            )


class _IrregularBatch(NamedTuple):
    """Counts of a stream's irregular tuples in a batch, and the clock jump they caused.

    See ``core.stream_clocks.IrregularCounts``.
    """

    late: int
    untimed: int
    ahead: int
    jump: ClockJumped | None = None


def _count_irregular(noted: Mapping[str, _IrregularBatch]) -> IrregularCounts:
    """Return the counts of a batch, with streams in the order of their names."""
    each = [noted[stream] for stream in sorted(noted)]
    return IrregularCounts(
        tuple(n.late for n in each),
        tuple(n.untimed for n in each),
        tuple(n.ahead for n in each),
        tuple(int(n.jump is not None) for n in each),
    )


def _advance_clocks(
    ledger: HubState, stream: str, epoch: int, rows: pa.Table, settings: HubSettings
) -> _IrregularBatch:
    """Advance the clock of a stream by the rows of a batch. Return its irregular tuples."""
    times, ahead = rows[TIME].drop_null().to_numpy(), settings.ahead
    before, untimed = ledger.clocks.setdefault(stream, None), rows.num_rows - len(times)
    passed = ledger.passed_times.get(stream)
    if not len(times):
        return _IrregularBatch(0, untimed, 0)
    late = 0 if passed is None else int((times < passed).sum())
    span = int(times.min()), int(times.max())
    spread = describe_times(times, before, ahead) if needs_spread(span, before, ahead) else None
    old = StreamClock(before, tuple(ledger.pending.get(stream, ())))
    (after, pending), early, support = advance_clock(old, [(len(times), span[1], spread)], ahead)
    ledger.clocks[stream], ledger.pending[stream] = after, pending
    if not support or after is None:
        return _IrregularBatch(late, untimed, early)
    return _IrregularBatch(late, untimed, early, ClockJumped(epoch, stream, before, after, support))


def _record_arrivals(ledger: HubState, stream: str, rows: pa.Table, columns: list[str]) -> None:
    """Record the first event time, tuples and bytes of a stream's batch."""
    ends = pc.min_max(rows[TIME]).as_py()
    if ledger.first_event_times.get(stream) is None:
        ledger.first_event_times[stream] = ends["min"]
    tuples, size = ledger.received_counts.get(stream, (0, 0))
    more = int(rows.select(columns).nbytes)
    ledger.received_counts[stream] = tuples + rows.num_rows, size + more
