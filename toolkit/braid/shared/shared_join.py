"""SharedJoin: one join state for many queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from braid.batch_sink import Give
from braid.core.change_types import refuse_changes
from braid.core.query import unite_kinds
from braid.join_config import AHEAD
from braid.papers.shedding.shed import Shed
from braid.papers.slices.chain import MODES, Chain, Mode
from braid.run_folder_setup import read_settings
from braid.shared.calibrate import measure_slice_overhead
from braid.shared.query_changes import Queries, add_query, remove_query
from braid.shared.shared_config import SharedJoinConfig, make_query, selection_analyzers
from braid.shared.shared_run import SharedRun
from braid.sources.stream_arguments import check_streams
from braid.storage.durable_files import Durability
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from braid.time_arguments import Time
from braid.util.durations import Span, parse_duration
from braid.util.validation import check_choice, check_folder, format_value


class SharedJoin(StreamJoin):
    """One join shared by many queries. Each query has its own windows and selections.

    Parameters
    ----------
    streams, on, time, lateness, ahead, idle, partitions, check, executor, shed, driver_memory
        See StreamJoin. ``time`` is required. A result that serves several queries counts once for
        each of them in load shedding statistics.
    chain
        How state is sliced (Wang 2008, chapter 7).
        "memory": the least state.
        "cpu": the fewest comparisons, by measured costs.
        "auto": "cpu" if it needs at most a tenth more state, else "memory". Default.
        A list of ages: slices end at these ages, as in ``["1 minute", "10 minutes"]``.
    hosts
        Number of logical hosts. 1: a chain of slices; more: a ring (chapters 19 to 21).
    overhead
        C_sys of section 7.2. Default: measured on this machine if the chain depends on it.
    changes
        Not supported: a ValueError says why.

    Raises ValueError for invalid arguments, PredicateError for an unsupported condition. Nothing is
    started or written before that.
    """

    run_class = SharedRun
    config_class = SharedJoinConfig
    config: SharedJoinConfig
    _overhead: float | None = None

    def __init__(
        self,
        streams: Mapping[str, DataFrame],
        on: str,
        time: Time,
        chain: str | Sequence[Span] = "auto",
        hosts: int = 1,
        lateness: Span | Mapping[str, Span] | None = None,
        partitions: int | None = None,
        check: bool = False,
        overhead: float | None = None,
        executor: str = "auto",
        shed: Shed | None = None,
        driver_memory: str | int | None = None,
        ahead: Span = AHEAD,
        idle: Span | None = None,
        changes: Mapping[str, str] | None = None,
    ) -> None:
        refuse_changes(changes, "a shared join")
        streams = check_streams(streams)
        self._overhead = overhead
        if time is None:
            raise ValueError(
                "a shared join has no event-time column; its queries have windows, so name it with "
                "time="
            )
        cost = 1.0 if overhead is None else overhead
        placement = Chain(_parse_mode(chain), _parse_ends(chain, len(streams)), hosts, cost)
        super().__init__(
            streams,
            on,
            placement,
            None,
            time,
            lateness,
            partitions,
            0,
            check,
            executor,
            shed,
            driver_memory,
            ahead,
            idle,
        )

        self._amend(chain=chain if isinstance(chain, str) else tuple(chain))

    @property
    def chain(self) -> str | tuple[str, ...]:
        """The chain as it was given."""
        return self.config.chain

    def add(
        self,
        name: str,
        windows: Span | Mapping[str, Span] | None = None,
        where: Mapping[str, str] | None = None,
        on: str | None = None,
        streams: Sequence[str] | None = None,
        how: Any = "inner",
        match: Any = None,
        tolerance: Any = None,
        strict: bool = False,
        ties: Any = None,
        order: Any = None,
    ) -> None:
        """Add a query that is served from the start of the run.

        See ``SharedRun.add`` for the parameters and for adding a query to a running join.
        """
        asof = {"match": match, "tolerance": tolerance, "strict": strict}
        asof |= {"ties": ties, "order": order}
        new = make_query(self._join, name, windows, where, on, streams, how=how, **asof)
        self._set_queries(add_query(self.queries, new))

    def add_all(self, queries: Iterable[Mapping[str, Any]]) -> None:
        """Add several queries, each given as the arguments of ``add``: all of them, or none.

        Spark checks all selections at once, which takes hardly longer than checking one.
        """
        added, all_queries = list(queries), self.queries
        judges = selection_analyzers(self._join, added)
        for each in added:
            all_queries = add_query(all_queries, make_query(self._join, **each, judges=judges))
        self._set_queries(all_queries)

    def remove(self, name: str) -> None:
        """Remove a query that was added. Raises ValueError if there is no query of that name."""
        self._set_queries(remove_query(self.queries, name))

    @property
    def queries(self) -> Queries:
        """Queries that were added."""
        return self.config.queries

    def _set_queries(self, queries: Queries) -> None:
        self._amend(queries=queries, kind=unite_kinds(queries))

    def start(
        self,
        path: str | Path,
        batches: int | str | None = None,
        pace: float = 0.0,
        durability: Durability = "power",
        foreachBatch: Give | None = None,
        keep: Span | None = None,
        landing: str | None = None,
        trace: Span | None = None,
        **trigger: Any,
    ) -> SharedRun:
        """Start a shared run in the folder ``path``, or continue the one in it.

        See StreamJoin.start for the parameters. A run that is continued has the queries and chains
        of its last commit, whatever was added here. ``foreachBatch`` receives the results of a
        batch as a mapping by query name, with those queries only that have some.

        Raises ValueError if there is no query.
        """
        if not self.queries:
            raise ValueError(
                "no query has been added; a shared join serves one or more: add(name, windows, "
                "where)"
            )
        settings = read_settings(RunStore(check_folder(path)))
        if settings is not None and self._overhead is None:
            self._set_slice_overhead(settings.get("settings", {}).get("slice_overhead", 1.0))
        elif self.chain in ("cpu", "auto"):
            self._set_slice_overhead(
                measure_slice_overhead() if self._overhead is None else self._overhead
            )
        given = durability, foreachBatch, keep, landing, trace
        run = super().start(path, batches, pace, *given, **trigger)
        assert isinstance(run, SharedRun)
        return run

    def _set_slice_overhead(self, overhead: float) -> None:
        placement = self.placement
        assert isinstance(placement, Chain)
        self._amend(placement=replace(placement, slice_overhead=overhead))

    @classmethod
    def resume(
        cls, path: str | Path, streams: Mapping[str, Any], *options: Any, **named: Any
    ) -> SharedRun:
        """Continue the shared run in ``path``, as StreamJoin.resume does.

        It has the queries and chains of its last commit.
        """
        run = super().resume(path, streams, *options, **named)
        assert isinstance(run, SharedRun)
        return run


def _parse_mode(chain: Any) -> Mode:
    if isinstance(chain, str):
        check_choice(chain, "chain", MODES, ", or ages as ['10 minutes']")
        return chain  # type: ignore[return-value]
    if not isinstance(chain, list | tuple):
        raise ValueError(
            f"chain is {format_value(chain)}; it must be one of {', '.join(MODES)}, or "
            "ages as ['10 minutes']"
        )
    return "given"


def _parse_ends(chain: str | Sequence[Span], streams: int) -> tuple[tuple[int, ...], ...]:
    if isinstance(chain, str):
        return ()
    return (tuple(sorted({parse_duration(age, "end of a slice") for age in chain})),) * streams
