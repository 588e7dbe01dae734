"""Cells of a notebook that take long: in JupyterLab they wait for one button."""

from __future__ import annotations

import threading
from contextvars import Context, ContextVar, copy_context
from time import perf_counter
from typing import Any, Literal

import ipywidgets as W
from braid.core.leaving import asking
from IPython import get_ipython
from IPython.display import HTML, display

from braid_widgets.base.follow import telling
from braid_widgets.base.launcher import ACTS
from braid_widgets.base.somebody import asked
from braid_widgets.base.twin import Twin

_AT_WORK: ContextVar[bool] = ContextVar("braid-chapter", default=False)
"""Whether this is a cell that its chapter runs."""


_LOOK = 0.2
"""Seconds between two looks at another chapter."""
_newest: dict[str, Chapter] = {}
"""The chapters of this kernel, by name."""
_workers: dict[str, threading.Thread] = {}
"""What was begun last under a name."""
State = Literal["waiting", "running", "done", "failed"]


class _Left(Exception):
    """Somebody pressed Stop."""


class Chapter:
    """Cells that are run together when a button is pressed, in a thread of their own: the kernel
    stays free, and each cell's pictures come where the cell stands. The cells begin with
    ``if chapter.open():``, and the first of them has the button.

    Where nobody can press it, as in a report, ``open`` is true at once; and it is once the chapter
    has been run, so that one of its cells can be run again by hand. ``name`` says what is made,
    ``takes`` about how long that takes; the chapters ``after`` are run first, if need be. A chapter
    that is made again, as when its notebook is run once more, takes the place of the one before,
    which is left.
    """

    def __init__(self, name: str, takes: str, *after: Chapter) -> None:
        self.name, self.after = name, after
        self.state: State = "waiting"
        self.button = W.Button(
            description=f"{name} ({takes})", icon="play", layout=W.Layout(width="auto")
        )
        self.button.add_class(ACTS)
        self.status = W.Label()
        self.button.on_click(self._clicked)
        self._takes, self._leaving = takes, False
        self._cells: dict[str, tuple[str, Context, Any]] = {}
        self._todo: dict[str, None] = {}
        self._lock = threading.RLock()
        self._worker: threading.Thread | None = None
        if (elder := _newest.get(name)) is not None:
            elder.leave()
        _newest[name] = self

    def open(self) -> bool:
        """Whether the cell that asks is to go on; if not, it is run when the button is pressed."""
        request = asked()
        if request is None or _AT_WORK.get():
            return True
        with self._lock:
            if self.state == "done":
                return True
            self._hold(request)
        return False

    def press(self) -> None:
        """Run the cells that wait, unless that goes on already."""
        with self._lock:
            if self.state in ("running", "done"):
                return
            self._leaving = False
            self._become("running", "Stop", "stop")
            before = _workers.get(self.name)
            self._worker = _workers[self.name] = threading.Thread(
                target=self._run, args=(before,), name="braid-chapter", daemon=True
            )
            self._worker.start()

    def leave(self) -> None:
        """Stop what was pressed, after the batch, of a run or a model, that is being done now."""
        with self._lock:
            if self.state == "running":
                self._leaving = True
                self.status.value = "stopping…"

    def wait(self, timeout: float | None = None) -> None:
        """Wait until what was pressed is done."""
        if self._worker is not None:
            self._worker.join(timeout)

    def _clicked(self, button: Any) -> None:
        if self.state == "running":
            self.leave()
        else:
            self.press()

    def _hold(self, request: dict[str, Any]) -> None:
        key = str(request["metadata"].get("cellId") or request["content"]["code"])
        first = not self._cells or next(iter(self._cells)) == key
        note = None if first else display(HTML(self._waits()), display_id=True)  # type: ignore[no-untyped-call]
        self._cells[key] = (request["content"]["code"], copy_context(), note)
        self._todo[key] = None
        if first:
            box = W.HBox([self.button, self.status])
            box.add_class("braid-live")
            Twin(box, lambda: f"<p>{self.name}: run the notebook to have a button here.</p>")

    def _waits(self) -> str:
        return f'<p style="opacity:0.7">Waits for “{self.name}” above ({self._takes}).</p>'

    def _become(self, state: State, button: str, icon: str) -> None:
        self.state, self.button.description, self.button.icon = state, button, icon

    def _run(self, before: threading.Thread | None) -> None:
        began = perf_counter()
        try:
            self._wait_for(before, "after what was begun before")
            for other in self.after:
                other.press()
                self._wait_for(other._worker, f"after “{other.name}”")
                if other.state != "done":
                    raise _Left(f"“{other.name}” did not come to its end")
            done = self._cells_in_turn(began)
        except _Left as reason:
            self._end("waiting", str(reason) or "stopped")
        except BaseException as error:
            self._end("failed", f"failed with {type(error).__name__}")
            raise
        else:
            if not done:
                self._end("failed", f"failed after {perf_counter() - began:.0f} s")

    def _wait_for(self, worker: threading.Thread | None, text: str) -> None:
        """Until the other has ended, or somebody presses Stop here."""
        while worker is not None and worker.is_alive():
            self._say(text)
            worker.join(_LOOK)

    def _cells_in_turn(self, began: float) -> bool:
        """Run the cells, those that come meanwhile too, until none is left or one fails."""
        self._todo = dict.fromkeys(self._cells)
        while (key := self._next(began)) is not None:
            code, context, note = self._cells[key]
            self._say(f"cell {len(self._cells) - len(self._todo)} of {len(self._cells)}")
            if note is not None:
                note.update(HTML(""))  # type: ignore[no-untyped-call]
            if not context.copy().run(self._cell, code):
                return False
        return True

    def _next(self, began: float) -> str | None:
        """The next cell; None, and done, when none is left."""
        with self._lock:
            key = next(iter(self._todo), None)
            if key is None:
                self._end("done", f"{perf_counter() - began:.0f} s")
            else:
                del self._todo[key]
            return key

    def _cell(self, code: str) -> bool:
        """In the context of its own cell, where its output goes."""
        _AT_WORK.set(True)
        shell: Any = get_ipython()
        try:
            with telling(self._say), asking(self._stay):
                exec(compile(code, f"<{self.name}>", "exec"), shell.user_ns)
        except _Left:
            raise
        except Exception:
            shell.showtraceback()
            return False
        return True

    def _stay(self) -> None:
        if self._leaving:
            raise _Left

    def _say(self, text: str) -> None:
        self._stay()
        self.status.value = text.strip()

    def _end(self, state: State, text: str) -> None:
        with self._lock:
            self._become(
                state, f"{self.name} ({self._takes})", "check" if state == "done" else "play"
            )
            self.button.disabled = state == "done"
            self.status.value = text
