"""Cells that wait for a button, in a separate kernel."""

from __future__ import annotations

import ast
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from braid_lab.reports.notebook_runner import NOTEBOOKS
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
    """Runs cells as JupyterLab does; ``told`` has the output of each, by request id."""

    client: Any
    told: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def run(self, code: str, asks: bool = True) -> str:
        """Run a cell, wait for the kernel and return the request's id."""
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
    asker.run("then.run_cells(); then.wait_for_cells()")
    assert asker.told[one][-1] == "one" and asker.told[two][-1] == "two half way"
    again = asker.run("tell(then.state, first.state, then.button.disabled)")
    assert asker.told[again] == ["done done True"]
    assert asker.told[asker.run(ONE)] == ["half way", "one"], (
        "by hand, once the chapter has been run"
    )


def test_a_cell_that_waits_for_a_button_above_says_so(asker: Asker):
    asker.run(ONE)
    later = asker.run("if first.should_run():\n    print('three')")
    assert "Waits for “Make one” above (a second)." in asker.told[later][0]
    asker.run("first.run_cells(); first.wait_for_cells()")
    assert asker.told[later][-1] == "three"


def test_where_nobody_can_press_a_button_cells_run_as_they_stand(asker: Asker):
    assert asker.told[asker.run(ONE, asks=False)][-1] == "one"
    assert asker.told[asker.run("import os; os.environ['BRAID_HEADLESS'] = '1'")] == []
    assert asker.told[asker.run(TWO)] == ["two"]
    asker.run("del os.environ['BRAID_HEADLESS']")


def test_a_cell_that_fails_says_why_where_it_stands_and_ends_its_chapter(asker: Asker):
    wrong, one, two = asker.run(WRONG), asker.run(ONE), asker.run(TWO)
    asker.run("then.run_cells(); then.wait_for_cells()")
    assert asker.told[wrong][-1] == "ZeroDivisionError"
    assert "one" not in asker.told[one] and len(asker.told[two]) == 1
    told = asker.run("tell(first.state, '·', then.state, '·', then.status.value)")
    assert asker.told[told] == ["failed · waiting · “Make one” did not come to its end"]


def test_stop_ends_a_chapter_when_something_is_told_next(asker: Asker):
    asker.run(ENDLESS)
    asker.run("first.run_cells(); first.stop_cells(); first.wait_for_cells(60)")
    told = asker.run("tell(first.state, first.status.value)")
    assert asker.told[told] == ["waiting stopped"]


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
    told = asker.run("tell(first.state, first.status.value)")
    assert asker.told[told] == ["waiting stopped"]


def test_a_chapter_that_is_made_again_ends_the_one_before_and_begins_after_it(asker: Asker):
    asker.run("from threading import Event\nheld, at = Event(), Event()")
    asker.run(
        "if first.should_run():\n    at.set()\n    held.wait()\n    print_progress('left')\n    print('?')"
    )
    asker.run("first.run_cells(); at.wait(); old = first")
    asker.run(MADE)
    one = asker.run(ONE)
    told = asker.run("first.run_cells(); print(says(first, 'after what was begun before'))")
    assert asker.told[told] == ["True"]
    told = asker.run("tell(old.status.value, first.status.value)")
    assert asker.told[told] == ["stopping… after what was begun before"]
    asker.run("held.set(); first.wait_for_cells(60)")
    told = asker.run("tell(old.state, old.status.value, first.state)")
    assert asker.told[told] == ["waiting stopped done"] and asker.told[one][-1] == "one"


def test_stop_ends_a_chapter_that_waits_for_another_and_leaves_that_alone(asker: Asker):
    asker.run(ENDLESS)
    asker.run(TWO)
    told = asker.run("then.run_cells(); print(says(then, 'after “Make one”'))")
    assert asker.told[told] == ["True"]
    asker.run("then.stop_cells(); then.wait_for_cells(60)")
    told = asker.run("tell(then.state, then.status.value, first.state)")
    assert asker.told[told] == ["waiting stopped running"]
    asker.run("first.stop_cells(); first.wait_for_cells(60)")


def test_where_nobody_can_press_a_button_nothing_is_made_ready_for_it(asker: Asker):
    code = "from braid_widgets.base.interactivity import execute_request\nprint(execute_request() is None)"
    assert asker.told[asker.run(code)] == ["False"]
    assert asker.told[asker.run(code, asks=False)] == ["True"]
    code = (
        f"import os; os.environ['BRAID_HEADLESS'] = '1'\n{code}\ndel os.environ['BRAID_HEADLESS']"
    )
    assert asker.told[asker.run(code)] == ["True"]


def test_a_notebook_drives_itself_where_a_program_runs_it_unless_it_is_told_not_to(asker: Asker):
    code = "from braid_widgets.base.interactivity import is_headless\nprint(is_headless())"
    assert asker.told[asker.run(code)] == ["False"]
    assert asker.told[asker.run(code, asks=False)] == ["True"]
    threaded = (
        "from threading import Thread\n(t := Thread(target=lambda: print(is_headless()))).start()"
    )
    assert asker.told[asker.run(f"{threaded}\nt.join()", asks=False)] == ["True"]
    told = asker.run(f"import os; os.environ['BRAID_HEADLESS'] = '0'\n{code}", asks=False)
    assert asker.told[told] == ["False"]
    assert asker.told[asker.run("os.environ['BRAID_HEADLESS'] = ''", asks=False)] == []


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_chapters_that_do_not_wait_for_each_other_assign_no_common_name(path: Path):
    """They run at the same time and share one namespace."""
    names, after = chapters(path)
    for one, other in combinations(names, 2):
        if other not in waited(one, after) and one not in waited(other, after):
            assert names[one].isdisjoint(names[other]), (one, other)


def test_names_that_two_chapters_share_are_seen(tmp_path: Path):
    path = tmp_path / "one.ipynb"
    for after in ("", ", first"):
        cells = [
            f"first = DeferredCells('a', 'b')\nthen = DeferredCells('c', 'd'{after})",
            "if first.should_run():\n    n = [m for m in 'x']",
            "if then.should_run():\n    for n in 'x':\n        m = n",
        ]
        made = [{"cell_type": "code", "source": [cell]} for cell in cells]
        path.write_text(json.dumps({"cells": made}), encoding="utf-8")
        names, before = chapters(path)
        assert names["first"] & names["then"] == {"n"}
        assert waited("then", before) == ({"first"} if after else set())


def chapters(path: Path) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the names that each chapter of a notebook assigns, and the chapters it waits for."""
    names, after = defaultdict[str, set[str]](set), dict[str, set[str]]()
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"]) if cell["cell_type"] == "code" else ""
        for line in ast.parse(source).body:
            match line:
                case ast.Assign(
                    [ast.Name(name)], ast.Call(ast.Name("DeferredCells"), [_, _, *others])
                ):
                    after[name] = {other.id for other in others if isinstance(other, ast.Name)}
                case ast.If(ast.Call(ast.Attribute(ast.Name(name), "should_run"))):
                    names[name] |= assigned(line)
    return names, after


def assigned(node: ast.AST) -> set[str]:
    """Return the names that code assigns in the kernel."""
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)):
        return set()
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    mine = {node.id} if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else set()
    if isinstance(node, ast.alias):
        mine = {(node.asname or node.name).partition(".")[0]}
    return mine.union(*map(assigned, ast.iter_child_nodes(node)))


def waited(chapter: str, after: dict[str, set[str]]) -> set[str]:
    """Return all chapters that run before this one."""
    mine = after.get(chapter, set())
    return mine.union(*(waited(other, after) for other in mine))
