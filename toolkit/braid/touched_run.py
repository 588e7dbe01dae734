"""TouchedRun: a running join that its user changes between batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from braid.core.placement import Placement, check_hosts
from braid.core.run_events import RunStarted
from braid.core.touch_events import SettingChanged
from braid.empty_batch_run import EmptyBatchRun
from braid.execution.engine import Engine
from braid.join_config import LONGEST_PACE, JoinConfig
from braid.papers.shedding.budget import Budget
from braid.sources.stream_source import AnalyzedJoin
from braid.util.json_codec import from_plain, to_plain
from braid.util.validation import check_int, check_seconds

SOURCE_SETTINGS = ("rate", "skew")
"""Settings of a generated stream that can change while a run reads it."""


class TouchedRun(EmptyBatchRun):
    """A run whose budget, trigger and hosts change between batches. The attributes are set before
    batches start.
    """

    config: JoinConfig
    _join: AnalyzedJoin
    _engine: Engine
    _settings: Mapping[str, Any]

    def _restore_touches(self) -> None:
        """Restore the budget and the placement that an earlier process of this run was set to."""
        shed, budget = self.config.shed, self._settings.get("shedding_budget")
        if shed is not None and budget is not None:
            stored = from_plain(budget, Budget, "the stored budget")
            self._engine.amend_shedder(lambda state: shed.with_budget(state, stored))
        if (settings := self._settings.get("changed_placement")) is not None:
            before = self._engine.placement
            self._engine.set_placement(type(before).from_settings(settings))
            for name in before.adjustable_settings:
                first, after = getattr(before, name), getattr(self._engine.placement, name)
                if after != first:
                    self._report_restored(name, first, after)
        self._pace = self._settings.get("changed_interval", self._pace)
        start = self.store.events.events_of_type(RunStarted)[0]  # a checkpoint keeps the first
        self._report_restored("interval", start.interval_seconds or 0.0, self._pace)
        for alias, stream in self.store.input.generated.items():
            for name in SOURCE_SETTINGS if stream.changes else ():
                last = getattr(stream.last_settings, name)
                self._report_restored(f"{name} of {alias}", getattr(stream, name), last)

    def _report_restored(self, name: str, first: Any, now: Any) -> None:
        """Report a setting of this process that the events do not have yet.

        ``first``: its value at the start of the run.
        """
        changes = self.store.events.events_of_type(SettingChanged)
        reported = [e.after for e in changes if e.name == name] or [first]
        if now != reported[-1]:
            self._report_change(name, reported[-1], now)

    def adjust(
        self,
        fraction: float | None = None,
        pairs: float | None = None,
        seconds: float | None = None,
        speed: float | None = None,
        *,
        epsilon: float | None = None,
        hosts: int | None = None,
        interval: float | None = None,
        max_tuples_per_host: int | None = None,
        rate: float | None = None,
        skew: float | None = None,
        stream: str | None = None,
    ) -> None:
        """Change one setting from the next batch on.

        It is written to the run's folder at once and applies after a resume. ``SheddingPlanned``
        reports a change of the budget, ``SettingChanged`` any other.

        Parameters
        ----------
        fraction, pairs, seconds, speed
            The budget of load shedding, as for Shed.
        epsilon
            Growth after which an adaptive grid considers another mapping; see AdaptiveGrid.
        hosts
            Nodes of a Ring, at most its ``max_hosts``.
        max_tuples_per_host
            Capacity of a host of an adaptive grid that may grow; see AdaptiveGrid.
        interval
            Minimum seconds from the start of a batch to the start of the next.
        rate, skew
            Tuples in a batch, and Zipf parameter of the key, of a GeneratedStream.
        stream
            Alias of the stream whose rate or skew changes. Default: None, all streams.

        Raises ValueError if the run has no such setting, a value is out of range, or not exactly
        one is given. Raises RuntimeError if the run has ended.
        """
        budget = {"fraction": fraction, "pairs": pairs, "seconds": seconds, "speed": speed}
        others = {"epsilon": epsilon, "hosts": hosts, "interval": interval}
        others |= {"max_tuples_per_host": max_tuples_per_host, "rate": rate, "skew": skew}
        given = {k: v for k, v in others.items() if v is not None}
        both = [*given, *(k for k, v in budget.items() if v is not None)]
        if stream is not None and rate is None and skew is None:
            raise ValueError(f"stream is {stream!r}, which goes with rate or skew; leave it out")
        if not given:
            self._change_budget(budget)
        elif len(both) > 1:
            raise ValueError(f"adjust changes one setting at a time; got {', '.join(both)}")
        elif interval is not None:
            self._change_interval(interval)
        elif given.keys() & {*SOURCE_SETTINGS}:
            self._change_sources(next(iter(given.items())), stream)
        else:
            self._change_placement(*given.items())

    @property
    def kept_hosts(self) -> str:
        """Why the hosts of this run stay, and what to do, in a sentence; empty if they need not."""
        placement = self._engine.placement
        settings = self.adjustable_settings
        if "hosts" in settings or "max_tuples_per_host" in settings:
            return ""
        return (
            f"{type(placement).__name__} keeps its {placement.hosts} hosts in this run: "
            f"{placement.fixed_hosts_reason}. Launch again with others, or ask What if."
        )

    @property
    def reads_ahead(self) -> bool:
        """Whether the tuples of the next batch are made before it begins, as for Spark."""
        return self._join.source.is_spark

    @property
    def adjustable_settings(self) -> dict[str, float]:
        """The values of what ``adjust`` changes here, without a budget."""
        placement, state = self._engine.placement, self._engine.state.placement_state
        names = placement.adjustable_settings
        read = {name: placement.read_setting(name, state) for name in names}
        settings = {name: value for name, value in read.items() if value is not None}
        sources = self.store.input.generated
        for name in SOURCE_SETTINGS:
            for alias, stream in sources.items():
                settings[f"{name} of {alias}"] = getattr(stream.last_settings, name)
        return settings | {"interval": self._pace}

    def _change_budget(self, given: Mapping[str, float | None]) -> None:
        if (shed := self.config.shed) is None:
            raise ValueError("the run sheds no load; start it with shed=, as Shed(seconds=1)")
        if all(amount is None for amount in given.values()):
            raise ValueError("no budget is given; it is one of fraction, pairs, seconds, speed")
        budget = Budget.from_options(**given)
        if budget.kind == "speed" and not self.config.event_time_columns:
            raise ValueError("speed needs event time, and this run has none")
        with self._turn:
            self._store_change("shedding_budget", to_plain(budget))
            self._engine.amend_shedder(lambda state: shed.with_budget(state, budget))

    def _change_interval(self, interval: float) -> None:
        interval = check_seconds(interval, "interval", LONGEST_PACE)
        with self._turn:
            self._store_change("changed_interval", interval)
            self._report_change("interval", self._pace, interval)
            self._pace = interval

    def _change_sources(self, setting: tuple[str, Any], chosen: str | None) -> None:
        """Change a setting of the generated stream that is ``chosen``; None: of all."""
        name, value = setting
        with self._turn:
            sources = self.store.input.generated
            if (
                chosen is not None and not (isinstance(chosen, str) and chosen in sources)
            ) or not sources:
                accepted = f"those are {', '.join(sources)}" if sources else "the run has none"
                raise ValueError(
                    f"{name} is for a generated stream, and "
                    f"{'stream ' + repr(chosen) + ' is none; ' if chosen else ''}{accepted}"
                )
            self._check_active()
            batch = max(self._engine.state.epoch + 1, self.store.input.first_unmade_batch)
            before = {a: s for a, s in sources.items() if chosen in (None, a)}
            after = {a: s.with_settings(batch, **{name: value}) for a, s in before.items()}
            self.store.input.change_generated(after, self.store.force)
            for alias, stream in before.items():
                now = getattr(stream.settings_at(batch), name)
                self._report_change(f"{name} of {alias}", now, value)

    def _change_placement(self, setting: tuple[str, Any]) -> None:
        name, value = setting
        if name == "hosts":
            check_hosts(value)
        with self._turn:
            before = self._engine.placement
            state = self._engine.state
            placement = before.change_setting(name, value, state.batch + 1)
            self._store_change("changed_placement", _list_settings(placement))
            now = before.read_setting(name, state.placement_state)
            self._report_change(name, now, value)
            self._engine.set_placement(placement)

    def _store_change(self, name: str, value: Any) -> None:
        """Write a changed setting to the run's folder. Raises RuntimeError if the run has ended."""
        self._check_active()
        self._settings = {**self._settings, name: value}
        self.store.create_run(self._settings)

    def _check_active(self) -> None:
        if self._outcome:
            raise RuntimeError("the run has ended; its settings cannot be adjusted")

    def _report_change(self, name: str, before: Any, after: Any) -> None:
        touches = self._engine.touches
        touches.changed_settings += (SettingChanged(0, name, before, after),)

    def lose(self, host: int) -> None:
        """Let a host lose its state before the next batch, to see how a join recovers.

        A replacement takes its number and its place. It copies the blocks that other hosts hold,
        too, and reads the others from their committed files, so all results are still found exactly
        once. ``HostLost`` reports it. No process is ended. A run that ends before the next batch
        loses nothing.

        Raises ValueError for an unknown host, RuntimeError if the run has ended.
        """
        check_int(host, "host", 0, self._engine.placement.max_hosts - 1)
        with self._turn:
            if self._outcome:
                raise RuntimeError("the run has ended; its hosts hold nothing to lose")
            self._engine.touches.lost_hosts |= {host}


def _list_settings(placement: Placement) -> dict[str, Any]:
    return {name: to_plain(getattr(placement, name)) for name in placement.setting_names()}
