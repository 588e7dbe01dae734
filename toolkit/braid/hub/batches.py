"""A batch of a hub: through all operators, and committed."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from braid.core.clocks import Clock, Irregular, advance, needs_spread
from braid.core.columns import TIME
from braid.core.events import ClockJumped
from braid.core.spans import text
from braid.hub.delivering import delivered
from braid.hub.desk import Desk, said
from braid.hub.flows import counted
from braid.hub.history import trim
from braid.hub.ledger import HistoryFile, Ledger
from braid.hub.settings import Settings
from braid.hub.works import Fault
from braid.local.spread import describe_times
from braid.papers.reuse import changes as pure
from braid.papers.reuse.definition import UNBOUNDED
from braid.papers.reuse.deployment import withdrawn
from braid.papers.reuse.events import HubCommitted, QueryEnded


def batch(desk: Desk, source: Any, epoch: int) -> None:
    """Have a batch go through all operators, unless it has. A query whose expressions fail on
    it ends, and the others go on.
    """
    began = clock.perf_counter()
    while epoch > desk.ledger.epoch:
        try:
            _batch(desk, source, epoch)
        except Fault as fault:
            _failed(desk, fault, epoch)
    _expire(desk)
    desk.resting.look_again(clock.perf_counter() - began)


def _failed(desk: Desk, fault: Fault, epoch: int) -> None:
    if fault.query:
        names = [fault.query]
    elif fault.bit is None:
        names = pure.reading(desk.deployment, [fault.operator])
    else:
        names = pure.using(desk.deployment, fault.operator, fault.bit)
    reason = f"it failed in batch {epoch}: {said(fault.error)}"
    after = withdrawn(desk.deployment, *names)
    ended = [QueryEnded(desk.ledger.epoch, name, reason) for name in names]
    desk.switch(after, [*ended], reasons=dict.fromkeys(names, reason))


def _batch(desk: Desk, source: Any, epoch: int) -> None:
    began = clock.perf_counter()
    usage = _usage(desk)
    after, deployment = desk.ledger.copy(), desk.deployment
    tables, names = desk.works.arrivals(source, deployment)
    writing = desk.works.write_history(epoch, tables)
    noted: dict[str, _Noted] = {}
    for stream, rows in tables.items():
        noted[stream] = _advanced(after, stream, epoch, rows, desk.settings)
        _received(after, stream, rows, list(desk.reader.schemas[stream]))
    irregular = _count_irregular(noted)
    after.irregular = after.irregular.plus(irregular)
    came = desk.works.join(tables, names, epoch, after.clocks, deployment)
    several = desk.settings.network is not None
    told = [desk.asking.told(q) for q in after.served]
    looked = told if several else [t for t in told if desk.asking.may_fail(t)]
    matches = dict(delivered(desk.works, looked, epoch))
    flows = counted(desk.works, deployment, came, matches) if several else ()
    after.epoch = epoch
    for stream, seal in writing.finish().items():
        latest = pc.max(tables[stream][TIME]).as_py()
        after.history.setdefault(stream, []).append(HistoryFile(epoch, latest, seal))
    _trim(desk, after)
    committed = HubCommitted(
        epoch,
        {s: t.num_rows for s, t in tables.items()},
        after.clocks,
        tuple(desk.works.instances[id].did() for id in deployment.operators),
        tuple(flows),
        usage,
        clock.perf_counter() - began,
        irregular.late,
        irregular.untimed,
        irregular.ahead,
        after.irregular,
    )
    jumps = [each.jump for each in noted.values() if each.jump is not None]
    desk.commit(after, [*jumps, committed])
    desk.works.history.tidy(after)


def _usage(desk: Desk) -> float:
    if desk.settings.network is None:
        return 0.0
    return desk.model().network_usage(desk.deployment)


def _trim(desk: Desk, ledger: Ledger) -> None:
    """Have history reach back as long as it should, and as long as some query needs."""
    settings = desk.settings
    need: dict[str, int | None] = {
        s: None if t is None else t - settings.slack[s] - settings.history
        for s, t in ledger.clocks.items()
    }
    for q in desk.deployment.queries.values():
        progress = ledger.progress(q.definition.streams, settings.slack)
        for stream, window in zip(q.definition.streams, q.definition.windows, strict=True):
            since = need[stream]
            if since is None or progress is None or window >= UNBOUNDED:
                need[stream] = None
            else:
                need[stream] = min(since, progress - window)
    trim(ledger, need)


def _expire(desk: Desk) -> None:
    """End the queries whose lifetimes are over; one that came before its streams lives from
    their beginning on.
    """
    for q in desk.ledger.served:
        streams = desk.asking.of(q).definition.streams
        progress = desk.progress(streams)
        if q.lifetime is None or progress is None:
            continue
        since = q.since
        if since is None:
            began = [desk.ledger.first.get(s) for s in streams]
            since = max(t for t in began if t is not None)
        if progress >= since + q.lifetime:
            desk.withdraw(q.name, f"its lifetime of {text(q.lifetime)} is over")


class _Noted(NamedTuple):
    """How many of a stream's tuples did not come at their time, and how its clock jumped by them;
    see ``core.clocks.Irregular``.
    """

    late: int
    untimed: int
    ahead: int
    jump: ClockJumped | None = None


def _count_irregular(noted: Mapping[str, _Noted]) -> Irregular:
    """Return the counts of a batch, by stream in the order of their names."""
    each = [noted[stream] for stream in sorted(noted)]
    return Irregular(
        tuple(n.late for n in each),
        tuple(n.untimed for n in each),
        tuple(n.ahead for n in each),
        tuple(int(n.jump is not None) for n in each),
    )


def _advanced(
    ledger: Ledger, stream: str, epoch: int, rows: pa.Table, settings: Settings
) -> _Noted:
    """Move the clock of a stream by what came, and return what is noted of that."""
    times, ahead = rows[TIME].drop_null().to_numpy(), settings.ahead
    before, untimed = ledger.clocks.setdefault(stream, None), rows.num_rows - len(times)
    if not len(times):
        return _Noted(0, untimed, 0)
    late = 0 if before is None else int((times < before - settings.slack[stream]).sum())
    span = int(times.min()), int(times.max())
    spread = describe_times(times, before, ahead) if needs_spread(span, before, ahead) else None
    old = Clock(before, tuple(ledger.pending.get(stream, ())))
    (after, pending), early, support = advance(old, [(len(times), span[1], spread)], ahead)
    ledger.clocks[stream], ledger.pending[stream] = after, pending
    if not support or after is None:
        return _Noted(late, untimed, early)
    return _Noted(late, untimed, early, ClockJumped(epoch, stream, before, after, support))


def _received(ledger: Ledger, stream: str, rows: pa.Table, columns: list[str]) -> None:
    """Note what came of a stream."""
    ends = pc.min_max(rows[TIME]).as_py()
    if ledger.first.get(stream) is None:
        ledger.first[stream] = ends["min"]
    tuples, size = ledger.counted.get(stream, (0, 0))
    more = int(rows.select(columns).nbytes)
    ledger.counted[stream] = tuples + rows.num_rows, size + more
