"""Slow cells of a notebook: in JupyterLab they wait until one button is pressed."""

from __future__ import annotations

import threading
from contextvars import Context, ContextVar, copy_context
from time import perf_counter
from typing import Any, Literal

import ipywidgets as W
from braid.errors import BraidError
from braid.util.cancellation import cancellable
from IPython import get_ipython
from IPython.display import HTML, display

from braid_widgets.base.interactivity import execute_request
from braid_widgets.base.launcher import ACTS
from braid_widgets.base.progress_line import redirect_progress
from braid_widgets.base.static_fallback import StaticFallback

_AT_WORK: ContextVar[bool] = ContextVar("braid-chapter", default=False)
"""Whether the current cell was started by its chapter."""


_LOOK = 0.2
"""Seconds between two checks of another chapter."""
_newest: dict[str, DeferredCells] = {}
"""The latest chapters of this kernel, by name."""
_workers: dict[str, threading.Thread] = {}
"""The thread started last, by name of the chapter."""
State = Literal["waiting", "running", "done", "failed"]


class _Left(BraidError):
    """Raised in a worker after Stop was pressed."""


class DeferredCells:
    """Cells that run together, in a background thread, when a button is pressed.

    The kernel stays free, and the output of each cell appears below that cell. Each cell begins
    with ``if chapter.should_run():``; the first one shows the button.

    If nobody can press the button, as in a report, ``should_run`` returns True at once. It also
    returns True after the chapter has run, so that a single cell can be run again by hand. A new
    chapter with the same name replaces and stops the previous one, for example if its notebook is
    run again.

    - ``name``: what the chapter makes, as the label of the button.
    - ``takes``: approximate duration, in words.
    - ``after``: chapters that must run first; they are run if needed.
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
        """Return whether the calling cell runs now; if not, it runs when the button is pressed."""
        request = execute_request()
        if request is None or _AT_WORK.get():
            return True
        with self._lock:
            if self.state == "done":
                return True
            self._defer_cell(request)
        return False

    def run_cells(self) -> None:
        """Start the waiting cells, unless they are running already."""
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
        """Stop the running cells after the current batch of their run or simulation."""
        with self._lock:
            if self.state == "running":
                self._leaving = True
                self.status.value = "stopping…"

    def wait_for_cells(self, timeout: float | None = None) -> None:
        """Wait until the started cells have finished."""
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
        """Wait until the other chapter has finished, or Stop is pressed here."""
        while worker is not None and worker.is_alive():
            self._show_status(text)
            worker.join(_LOOK)

    def _run_pending_cells(self, began: float) -> bool:
        """Run cells, including those added meanwhile, until none is left or one fails."""
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
        """Return the next cell; None if none is left, and then mark the chapter as done."""
        with self._lock:
            key = next(iter(self._todo), None)
            if key is None:
                self._finish_run("done", f"{perf_counter() - began:.0f} s")
            else:
                del self._todo[key]
            return key

    def _run_cell(self, code: str) -> bool:
        """Run a cell in its own context, so that its output appears below it."""
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
