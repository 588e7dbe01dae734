"""Cells of a notebook that take long: in JupyterLab they wait for one button."""

from __future__ import annotations

import threading
from contextvars import Context, ContextVar, copy_context
from time import perf_counter
from typing import Any, Literal

import ipywidgets as W
from braid.util.cancellation import cancellable
from IPython import get_ipython
from IPython.display import HTML, display

from braid_widgets.base.interactivity import execute_request
from braid_widgets.base.launcher import ACTS
from braid_widgets.base.progress_line import redirect_progress
from braid_widgets.base.static_fallback import StaticFallback

_AT_WORK: ContextVar[bool] = ContextVar("braid-chapter", default=False)
"""Whether this is a cell that its chapter runs."""


_LOOK = 0.2
"""Seconds between two looks at another chapter."""
_newest: dict[str, DeferredCells] = {}
"""The chapters of this kernel, by name."""
_workers: dict[str, threading.Thread] = {}
"""What was begun last under a name."""
State = Literal["waiting", "running", "done", "failed"]


class _Left(Exception):
    """Somebody pressed Stop."""


class DeferredCells:
    """Cells that are run together when a button is pressed, in a thread of their own: the kernel
    stays free, and each cell's pictures come where the cell stands. The cells begin with
    ``if chapter.open():``, and the first of them has the button.

    Where nobody can press it, as in a report, ``open`` is true at once; and it is once the chapter
    has been run, so that one of its cells can be run again by hand. ``name`` says what is made,
    ``takes`` about how long that takes; the chapters ``after`` are run first, if need be. A chapter
    that is made again, as when its notebook is run once more, takes the place of the one before,
    which is left.
    """

    def __init__(self, name: str, takes: str, *after: DeferredCells) -> None:
        self.name, self.after = name, after
        self.state: State = "waiting"
        self.button = W.Button(
            description=f"{name} ({takes})", icon="play", layout=W.Layout(width="auto")
        )
        self.button.add_class(ACTS)
        self.status = W.Label()
        self.button.on_click(self._handle_click)
        self._takes, self._leaving = takes, False
        self._cells: dict[str, tuple[str, Context, Any]] = {}
        self._todo: dict[str, None] = {}
        self._lock = threading.RLock()
        self._worker: threading.Thread | None = None
        if (elder := _newest.get(name)) is not None:
            elder.stop_cells()
        _newest[name] = self

    def should_run(self) -> bool:
        """Whether the cell that asks is to go on; if not, it is run when the button is pressed."""
        request = execute_request()
        if request is None or _AT_WORK.get():
            return True
        with self._lock:
            if self.state == "done":
                return True
            self._defer_cell(request)
        return False

    def run_cells(self) -> None:
        """Run the cells that wait, unless that goes on already."""
        with self._lock:
            if self.state in ("running", "done"):
                return
            self._leaving = False
            self._set_state("running", "Stop", "stop")
            before = _workers.get(self.name)
            self._worker = _workers[self.name] = threading.Thread(
                target=self._run_with_prerequisites,
                args=(before,),
                name="braid-chapter",
                daemon=True,
            )
            self._worker.start()

    def stop_cells(self) -> None:
        """Stop what was pressed, after the batch, of a run or a model, that is being done now."""
        with self._lock:
            if self.state == "running":
                self._leaving = True
                self.status.value = "stopping…"

    def wait_for_cells(self, timeout: float | None = None) -> None:
        """Wait until what was pressed is done."""
        if self._worker is not None:
            self._worker.join(timeout)

    def _handle_click(self, button: Any) -> None:
        if self.state == "running":
            self.stop_cells()
        else:
            self.run_cells()

    def _defer_cell(self, request: dict[str, Any]) -> None:
        key = str(request["metadata"].get("cellId") or request["content"]["code"])
        first = not self._cells or next(iter(self._cells)) == key
        note = None if first else display(HTML(self._render_waiting_note()), display_id=True)  # type: ignore[no-untyped-call]
        self._cells[key] = (request["content"]["code"], copy_context(), note)
        self._todo[key] = None
        if first:
            box = W.HBox([self.button, self.status])
            box.add_class("braid-live")
            StaticFallback(
                box, lambda: f"<p>{self.name}: run the notebook to have a button here.</p>"
            )

    def _render_waiting_note(self) -> str:
        return f'<p style="opacity:0.7">Waits for “{self.name}” above ({self._takes}).</p>'

    def _set_state(self, state: State, button: str, icon: str) -> None:
        self.state, self.button.description, self.button.icon = state, button, icon

    def _run_with_prerequisites(self, before: threading.Thread | None) -> None:
        began = perf_counter()
        try:
            self._wait_for(before, "after what was begun before")
            for other in self.after:
                other.run_cells()
                self._wait_for(other._worker, f"after “{other.name}”")
                if other.state != "done":
                    raise _Left(f"“{other.name}” did not come to its end")
            done = self._run_pending_cells(began)
        except _Left as reason:
            self._finish_run("waiting", str(reason) or "stopped")
        except BaseException as error:
            self._finish_run("failed", f"failed with {type(error).__name__}")
            raise
        else:
            if not done:
                self._finish_run("failed", f"failed after {perf_counter() - began:.0f} s")

    def _wait_for(self, worker: threading.Thread | None, text: str) -> None:
        """Until the other has ended, or somebody presses Stop here."""
        while worker is not None and worker.is_alive():
            self._show_status(text)
            worker.join(_LOOK)

    def _run_pending_cells(self, began: float) -> bool:
        """Run the cells, those that come meanwhile too, until none is left or one fails."""
        self._todo = dict.fromkeys(self._cells)
        while (key := self._take_next_cell(began)) is not None:
            code, context, note = self._cells[key]
            self._show_status(f"cell {len(self._cells) - len(self._todo)} of {len(self._cells)}")
            if note is not None:
                note.update(HTML(""))  # type: ignore[no-untyped-call]
            if not context.copy().run(self._run_cell, code):
                return False
        return True

    def _take_next_cell(self, began: float) -> str | None:
        """The next cell; None, and done, when none is left."""
        with self._lock:
            key = next(iter(self._todo), None)
            if key is None:
                self._finish_run("done", f"{perf_counter() - began:.0f} s")
            else:
                del self._todo[key]
            return key

    def _run_cell(self, code: str) -> bool:
        """In the context of its own cell, where its output goes."""
        _AT_WORK.set(True)
        shell: Any = get_ipython()
        try:
            with redirect_progress(self._show_status), cancellable(self._raise_if_stopping):
                exec(compile(code, f"<{self.name}>", "exec"), shell.user_ns)
        except _Left:
            raise
        except Exception:
            shell.showtraceback()
            return False
        return True

    def _raise_if_stopping(self) -> None:
        if self._leaving:
            raise _Left

    def _show_status(self, text: str) -> None:
        self._raise_if_stopping()
        self.status.value = text.strip()

    def _finish_run(self, state: State, text: str) -> None:
        with self._lock:
            self._set_state(
                state, f"{self.name} ({self._takes})", "check" if state == "done" else "play"
            )
            self.button.disabled = state == "done"
            self.status.value = text
