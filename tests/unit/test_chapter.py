"""Cells that wait for a button, in a separate kernel."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

SOON = 60
MADE = """from braid_widgets.base.deferred_cells import DeferredCells
from braid_widgets.base.progress_line import print_progress
first = DeferredCells("Make one", "a second")
then = DeferredCells("Make two", "a second", first)
said = []
def tell(*words):
    print(" ".join(map(str, words)))  # at once, else a line comes in parts
def says(chapter, text):
    from threading import Event
    now = Event()
    look = lambda *_: now.set() if chapter.status.value == text else None
    chapter.status.observe(look, "value")
    look()
    return now.wait(60)"""
ONE = """if first.should_run():
    print_progress("half way")
    said.append(first.status.value)
    print("one")"""
TWO = """if then.should_run():
    tell("two", *said)"""
ENDLESS = """if first.should_run():
    while True:
        print_progress("still at it")"""
WRONG = """if first.should_run():
    1 / 0"""


@dataclass
class Asker:
    """Runs cells as JupyterLab does; ``outputs`` has the output of each, by request id."""

    client: Any
    outputs: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def run(self, code: str, asks: bool = True) -> str:
        """Run a cell, wait for the kernel and return the request's id."""
        request = self.client.execute(code, allow_stdin=asks)
        while True:
            message = self.client.get_iopub_msg(timeout=SOON)
            kind, about = message["msg_type"], message["parent_header"].get("msg_id")
            if kind == "stream" and (text := message["content"]["text"].strip()):
                self.outputs[about].append(text)
            elif kind == "error":
                self.outputs[about].append(message["content"]["ename"])
            elif kind == "display_data" and "text/html" in message["content"]["data"]:
                self.outputs[about].append(message["content"]["data"]["text/html"])
            if (kind, about) == ("status", request) and message["content"][
                "execution_state"
            ] == "idle":
                return str(request)


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    manager, client = start_new_kernel(env={**os.environ, "BRAID_HEADLESS": ""})
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.fixture
def asker(kernel: Any) -> Asker:
    asker = Asker(kernel)
    asker.run(MADE)
    return asker


def test_cells_wait_for_the_button_and_then_tell_what_they_did_where_they_stand(asker: Asker):
    one, two = asker.run(ONE), asker.run(TWO)
    assert "one" not in asker.outputs[one] and "two half way" not in asker.outputs[two]
    asker.run("then.run_cells(); then.wait_for_cells()")
    assert asker.outputs[one][-1] == "one" and asker.outputs[two][-1] == "two half way"
    again = asker.run("tell(then.state, first.state, then.button.disabled)")
    assert asker.outputs[again] == ["done done True"]
    assert asker.outputs[asker.run(ONE)] == ["half way", "one"], (
        "by hand, once the chapter has been run"
    )


def test_a_cell_that_waits_for_a_button_above_says_so(asker: Asker):
    asker.run(ONE)
    later = asker.run("if first.should_run():\n    print('three')")
    assert "Waits for “Make one” above (a second)." in asker.outputs[later][0]
    asker.run("first.run_cells(); first.wait_for_cells()")
    assert asker.outputs[later][-1] == "three"


def test_where_nobody_can_press_a_button_cells_run_as_they_stand(asker: Asker):
    assert asker.outputs[asker.run(ONE, asks=False)][-1] == "one"
    assert asker.outputs[asker.run("import os; os.environ['BRAID_HEADLESS'] = '1'")] == []
    assert asker.outputs[asker.run(TWO)] == ["two"]
    asker.run("del os.environ['BRAID_HEADLESS']")


def test_a_cell_that_fails_says_why_where_it_stands_and_ends_its_chapter(asker: Asker):
    wrong, one, two = asker.run(WRONG), asker.run(ONE), asker.run(TWO)
    asker.run("then.run_cells(); then.wait_for_cells()")
    assert asker.outputs[wrong][-1] == "ZeroDivisionError"
    assert "one" not in asker.outputs[one] and len(asker.outputs[two]) == 1
    request = asker.run("tell(first.state, '·', then.state, '·', then.status.value)")
    assert asker.outputs[request] == ["failed · waiting · “Make one” did not come to its end"]


def test_stop_ends_a_chapter_when_something_is_told_next(asker: Asker):
    asker.run(ENDLESS)
    asker.run("first.run_cells(); first.stop_cells(); first.wait_for_cells(60)")
    request = asker.run("tell(first.state, first.status.value)")
    assert asker.outputs[request] == ["waiting stopped"]


def test_stop_ends_a_cell_that_only_models(asker: Asker):
    """A simulation of minutes ends with its current batch."""
    asker.run(
        "if first.should_run():\n    from braid import Centralized\n"
        "    from braid.simulation.simulator import simulate\n"
        "    simulate(Centralized(), [(9, 9)] * 10**6)"
    )
    asker.run(
        "import time\nfirst.run_cells(); time.sleep(0.5); first.stop_cells(); first.wait_for_cells(60)"
    )
    request = asker.run("tell(first.state, first.status.value)")
    assert asker.outputs[request] == ["waiting stopped"]


def test_a_chapter_that_is_made_again_ends_the_one_before_and_begins_after_it(asker: Asker):
    asker.run("from threading import Event\nheld, at = Event(), Event()")
    asker.run(
        "if first.should_run():\n    at.set()\n    held.wait()\n    print_progress('left')\n    print('?')"
    )
    asker.run("first.run_cells(); at.wait(); old = first")
    asker.run(MADE)
    one = asker.run(ONE)
    request = asker.run("first.run_cells(); print(says(first, 'after what was begun before'))")
    assert asker.outputs[request] == ["True"]
    request = asker.run("tell(old.status.value, first.status.value)")
    assert asker.outputs[request] == ["stopping… after what was begun before"]
    asker.run("held.set(); first.wait_for_cells(60)")
    request = asker.run("tell(old.state, old.status.value, first.state)")
    assert asker.outputs[request] == ["waiting stopped done"] and asker.outputs[one][-1] == "one"


def test_stop_ends_a_chapter_with_what_it_runs_first_and_leaves_what_ran_before(asker: Asker):
    asker.run(ENDLESS)
    asker.run(TWO)
    request = asker.run("then.run_cells(); print(says(first, 'still at it'))")
    assert asker.outputs[request] == ["True"]
    request = asker.run("then.stop_cells(); then.wait_for_cells(60); tell(first.state, then.state)")
    assert asker.outputs[request] == ["waiting waiting"]
    asker.run("first.run_cells(); says(first, 'still at it'); then.run_cells()")
    request = asker.run("print(says(then, 'after what was begun before')); then.stop_cells()")
    assert asker.outputs[request] == ["True"]
    request = asker.run("then.wait_for_cells(60); tell(then.state, then.status.value, first.state)")
    assert asker.outputs[request] == ["waiting stopped running"]
    asker.run("first.stop_cells(); first.wait_for_cells(60)")
    asker.run("then.run_cells(); says(first, 'still at it'); first.stop_cells()")
    request = asker.run("then.wait_for_cells(60); tell(first.state, then.state)")
    assert asker.outputs[request] == ["waiting waiting"]
    request = asker.run("then.run_cells(); print(says(first, 'still at it')); then.stop_cells()")
    assert asker.outputs[request] == ["True"], "one that was stopped runs when it is needed again"
    asker.run("then.wait_for_cells(60)")


def test_where_nobody_can_press_a_button_nothing_is_made_ready_for_it(asker: Asker):
    code = "from braid_widgets.base.interactivity import execute_request\nprint(execute_request() is None)"
    assert asker.outputs[asker.run(code)] == ["False"]
    assert asker.outputs[asker.run(code, asks=False)] == ["True"]
    code = (
        f"import os; os.environ['BRAID_HEADLESS'] = '1'\n{code}\ndel os.environ['BRAID_HEADLESS']"
    )
    assert asker.outputs[asker.run(code)] == ["True"]


def test_a_notebook_drives_itself_where_a_program_runs_it_unless_it_is_told_not_to(asker: Asker):
    code = "from braid_widgets.base.interactivity import is_headless\nprint(is_headless())"
    assert asker.outputs[asker.run(code)] == ["False"]
    assert asker.outputs[asker.run(code, asks=False)] == ["True"]
    threaded = (
        "from threading import Thread\n(t := Thread(target=lambda: print(is_headless()))).start()"
    )
    assert asker.outputs[asker.run(f"{threaded}\nt.join()", asks=False)] == ["True"]
    request = asker.run(f"import os; os.environ['BRAID_HEADLESS'] = '0'\n{code}", asks=False)
    assert asker.outputs[request] == ["False"]
    assert asker.outputs[asker.run("os.environ['BRAID_HEADLESS'] = ''", asks=False)] == []
