"""A world with a hub: queries are added and removed while disks fail and drivers are killed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from braid.errors import DamagedRunError
from braid.hub import hub, hub_batches, query_registry, reoptimizer
from braid.hub.hub_run import HubRun
from braid.hub.hub_state import HubState
from braid.papers.reuse.hub_events import HistoryLost, HubBatchCommitted, QuerySubmitted
from braid.storage.hub_files import HISTORY, OPERATORS
from hub_cases import stored_state

from world import invariants
from world.hub_scenario import Bag, HubScenario, Serving, Statement, hub_scenario
from world.sink import Wrong
from world.source import offered
from world.world import RUN, World


class HubWorld(World):
    """A hub in a world. Its drivers may overtake each other."""

    scenario: HubScenario

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.acts: dict[tuple[str, str], int] = {}
        """The actions on queries, with the batch from which on a client knows that they hold."""

    def _draw_scenario(self, seed: int) -> HubScenario:
        return hub_scenario(seed)

    @contextmanager
    def _simulated(self) -> Iterator[None]:
        clock = SimpleNamespace(perf_counter=self.environment.read_clock)
        with ExitStack() as stack:
            stack.enter_context(super()._simulated())
            for module in (hub_batches, query_registry, reoptimizer):
                stack.enter_context(patch.object(module, "clock", clock))
            stack.enter_context(patch.object(hub, "HubRun", self._acting()))
            yield

    def _equip(self, draw: random.Random) -> None:
        self.source, self.hub = draw, self.scenario.hub()

    def _drive(self) -> HubRun:
        s = self.scenario
        asked = {n: {"sql": q.sql, **s.place_of_answers} for n, q in s.statements.items()}
        begun = {n: asked[n] for n, q in s.statements.items() if q.first == 0}
        run = self.hub.start(RUN, "batch", begun)
        run.awaitTermination()
        return run

    def _acting(self) -> type[HubRun]:
        """Return a kind of hub to which batches are offered repeatedly, with actions before
        them.
        """
        world = self

        class ActingRun(HubRun):
            def _run_next_batch(self, source: Any, number: int) -> None:
                for again in offered(world.source, number):
                    super()._run_next_batch(again, again)

            def _join_batch(self, source: Any, epoch: int) -> None:
                if epoch > self.state.epoch:
                    world.act(self, epoch)
                super()._join_batch(source, epoch)
                world._tell(epoch)

        return ActingRun

    # What is done with the hub

    def act(self, run: HubRun, batch: int) -> None:
        """Perform the actions that are due before a batch and not done yet."""
        for name, query in self.scenario.statements.items():
            is_there = any(q.name == name for q in run.state.queries)
            if query.first <= batch and not is_there:
                self._try(run, "submit", name)
            if query.end is not None and query.end <= batch and run.state.find_serving(name):
                self._try(run, "withdraw", name)
        self._act_on_nodes(run, batch)

    def _try(self, run: HubRun, act: str, name: str) -> None:
        try:
            if act == "submit":
                run.submit(
                    self.scenario.statements[name].sql, name, **self.scenario.place_of_answers
                )
            else:
                run.withdraw(name)
        except OSError:
            if not self.scenario.is_patient:
                raise
            return
        self.acts[act, name] = run.state.epoch + 1

    def _act_on_nodes(self, run: HubRun, batch: int) -> None:
        """Perform the network actions that are due; an operator may need a node, which is no
        fault.
        """
        try:
            if self.scenario.down is not None:
                node, first, end = self.scenario.down
                is_down = node in run.state.failed_nodes
                if first <= batch < end and not is_down:
                    run.fail_node(node)
                elif batch >= end and is_down:
                    run.restore_node(node)
            turn = self.scenario.turns.get(batch)
            if turn == "plan":
                run.replan()
            elif turn == "move" and run.operators:
                run.move_operator(max(run.operators), "M")
        except DamagedRunError:
            raise
        except ValueError as refused:
            self.trace.append(f"refused: {refused}")

    # What must hold

    def _check_promise(self) -> None:
        """Check that a power failure lost nothing that a client knows of."""
        if "flip done" in self.happened or self.announced < 0:
            return
        try:
            ledger = stored_state(Path(RUN))
        except (DamagedRunError, OSError) as error:
            raise Wrong(f"after a power cut: {error}") from error
        if ledger is None or ledger.epoch < self.announced:
            there = None if ledger is None else ledger.epoch
            raise Wrong(f"batch {self.announced} was told, and a power cut left {there}")
        self._check_acts(ledger)

    def _recompute_answers(self) -> str:
        """Return "": the answers of a hub cannot be recomputed."""
        return ""

    def _check_left(self) -> None:
        """Do nothing: answers are read through the hub, not from its files."""

    def _check_acts(self, ledger: HubState) -> None:
        """Check that every action on a query that a client knows of holds."""
        for (act, name), batch in self.acts.items():
            there = [q for q in ledger.queries if q.name == name]
            if len(there) != 1:
                raise Wrong(f"{name} was submitted, and is there {len(there)} times")
            found = (
                there[0].serving_intervals[0].first_epoch if act == "submit" else there[0].end_epoch
            )
            if found != batch:
                raise Wrong(f"{act} of {name} held from batch {batch} on, and now from {found}")

    def check_all(self, run: HubRun) -> None:
        self._check_acts(run.state)
        if run.state.micro_batch != self.scenario.batches - 1:
            raise Wrong(f"the hub has ended after batch {run.state.micro_batch}")
        for served in run.state.queries:
            statement = self.scenario.statements[served.name]
            serving = Serving(
                served.serving_intervals[0].first_epoch, served.end_epoch, served.complete_since
            )
            self._check_answer(run, served.name, statement, serving)
        self._check_events(run)
        self._check_folder(run._registry.log.states)

    def _check_answer(self, run: HubRun, name: str, statement: Statement, serving: Serving) -> None:
        found = _counted(run.query(name).results())
        whole = self.scenario.answer(statement, serving, False)
        sure = self.scenario.answer(statement, serving, True)
        if serving.is_complete:
            sure = whole
        elif statement.how != "inner":
            pass  # what was final before the query is not answered
        elif self.scenario.history == "1 hour" and "flip done" not in self.happened:
            raise Wrong(f"{name} lacks tuples: {serving.complete}")
        elif statement.tells != "matches":
            return  # of an aggregate that lacks tuples nothing is promised
        if found - whole or sure - found:
            raise Wrong(
                f"{name}, {serving}: {sum((sure - found).values())} of {sum(whole.values())} are "
                f"missing, as {min(sure - found, key=str, default=())}, and "
                f"{sum((found - whole).values())} are wrong, as "
                f"{min(found - whole, key=str, default=())}: {statement.sql}"
            )

    def _check_events(self, run: HubRun) -> None:
        happened = run.events()
        epochs = [e.epoch for e in happened if isinstance(e, HubBatchCommitted)]
        if epochs != [*range(max(len(epochs), self.scenario.batches))]:
            raise Wrong(f"the batches of the events are {epochs}")
        names = sorted(e.name for e in happened if isinstance(e, QuerySubmitted))
        if names != sorted(q.name for q in run.state.queries):
            raise Wrong(f"the queries of the events are {names}")
        if any(isinstance(e, HistoryLost) for e in happened) and "flip done" not in self.happened:
            raise Wrong("history was lost without a fault")

    def _check_folder(self, states: list[HubState]) -> None:
        """Check that the files are those that the last two states name."""
        operators, history = Path(RUN) / OPERATORS, Path(RUN) / HISTORY
        pins = [pin for state in states for pin in state.operators.values()]
        there = {*self.disk.list_names(operators)} if self.disk.exists(operators) else set()
        invariants.check_same("operators/", there, {pin.folder for pin in pins})
        with_state = {n for n in there if self.disk.exists(operators / n / "blocks")}
        running = {pin.folder for pin in pins if pin.is_running}
        invariants.check_same("operators with state", with_state, running)
        named = [files for state in states for files in state.backfill_batches.values()]
        files = {file.name for some in named for file in some}
        invariants.check_same("history/", {*self.disk.list_names(history)}, files)
        invariants.check_no_temporaries(self)


def _counted(rows: pa.Table) -> Bag:
    """Return the rows of an answer; a tick is in microseconds."""
    columns = [
        (column.cast(pa.int64()) if name == "tick" else column).to_pylist()
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    ]
    return Bag(zip(*columns, strict=True))
