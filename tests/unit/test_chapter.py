"""Cells that wait for a button, in a kernel of their own."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

SOON = 60
MADE = """from braid_widgets.base.chapter import Chapter
from braid_widgets.base.follow import console
first = Chapter("Make one", "a second")
then = Chapter("Make two", "a second", first)
said = []"""
ONE = """if first.open():
    console("half way")
    said.append(first.status.value)
    print("one")"""
TWO = """if then.open():
    print("two", *said)"""
ENDLESS = """if first.open():
    while True:
        console("still at it")"""
WRONG = """if first.open():
    1 / 0"""


@dataclass
class Asker:
    """Runs cells as JupyterLab does; ``told`` is what came under each, by the request's id."""

    client: Any
    told: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def run(self, code: str, asks: bool = True) -> str:
        """The id of the request, once the kernel is done with it."""
        told = self.client.execute(code, allow_stdin=asks)
        while True:
            message = self.client.get_iopub_msg(timeout=SOON)
            kind, about = message["msg_type"], message["parent_header"].get("msg_id")
            if kind == "stream" and (text := message["content"]["text"].strip()):
                self.told[about].append(text)
            elif kind == "error":
                self.told[about].append(message["content"]["ename"])
            elif kind == "display_data" and "text/html" in message["content"]["data"]:
                self.told[about].append(message["content"]["data"]["text/html"])
            if (kind, about) == ("status", told) and message["content"][
                "execution_state"
            ] == "idle":
                return str(told)


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
    assert "one" not in asker.told[one] and "two half way" not in asker.told[two]
    asker.run("then.press(); then.wait()")
    assert asker.told[one][-1] == "one" and asker.told[two][-1] == "two half way"
    again = asker.run("print(then.state, first.state, then.button.disabled)")
    assert asker.told[again] == ["done done True"]
    assert asker.told[asker.run(ONE)] == ["half way", "one"], (
        "by hand, once the chapter has been run"
    )


def test_a_cell_that_waits_for_a_button_above_says_so(asker: Asker):
    asker.run(ONE)
    later = asker.run("if first.open():\n    print('three')")
    assert "Waits for “Make one” above (a second)." in asker.told[later][0]
    asker.run("first.press(); first.wait()")
    assert asker.told[later][-1] == "three"


def test_where_nobody_can_press_a_button_cells_run_as_they_stand(asker: Asker):
    assert asker.told[asker.run(ONE, asks=False)][-1] == "one"
    assert asker.told[asker.run("import os; os.environ['BRAID_HEADLESS'] = '1'")] == []
    assert asker.told[asker.run(TWO)] == ["two"]
    asker.run("del os.environ['BRAID_HEADLESS']")


def test_a_cell_that_fails_says_why_where_it_stands_and_ends_its_chapter(asker: Asker):
    wrong, one, two = asker.run(WRONG), asker.run(ONE), asker.run(TWO)
    asker.run("then.press(); then.wait()")
    assert asker.told[wrong][-1] == "ZeroDivisionError"
    assert "one" not in asker.told[one] and len(asker.told[two]) == 1
    told = asker.run("print(first.state, '·', then.state, '·', then.status.value)")
    assert asker.told[told] == ["failed · waiting · “Make one” did not come to its end"]


def test_stop_ends_a_chapter_when_something_is_told_next(asker: Asker):
    asker.run(ENDLESS)
    asker.run("first.press(); first.leave(); first.wait(20)")
    told = asker.run("print(first.state, first.status.value)")
    assert asker.told[told] == ["waiting stopped"]


def test_a_chapter_that_is_made_again_ends_the_one_before_and_begins_after_it(asker: Asker):
    asker.run("from threading import Event\nheld, at = Event(), Event()")
    asker.run(
        "if first.open():\n    at.set()\n    held.wait()\n    console('left')\n    print('?')"
    )
    asker.run("first.press(); at.wait(); old = first")
    asker.run(MADE)
    one = asker.run(ONE)
    asker.run("first.press(); first.wait(0.5)")
    told = asker.run("print(old.status.value, first.status.value)")
    assert asker.told[told] == ["stopping… after what was begun before"]
    asker.run("held.set(); first.wait(20)")
    told = asker.run("print(old.state, old.status.value, first.state)")
    assert asker.told[told] == ["waiting stopped done"] and asker.told[one][-1] == "one"


def test_stop_ends_a_chapter_that_waits_for_another_and_leaves_that_alone(asker: Asker):
    asker.run(ENDLESS)
    asker.run(TWO)
    asker.run("then.press(); then.wait(0.5); then.leave(); then.wait(20)")
    told = asker.run("print(then.state, then.status.value, first.state)")
    assert asker.told[told] == ["waiting stopped running"]
    asker.run("first.leave(); first.wait(20)")
