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


_TURN = threading.Lock()
"""Held by the chapter that runs: chapters share one namespace, and the machine."""
_LOOK = 0.2
"""Seconds between two checks whether it is the chapter's turn."""
_newest: dict[str, DeferredCells] = {}
"""The latest chapters of this kernel, by name."""
State = Literal["waiting", "running", "done", "failed"]


class _Left(BraidError):
    """Raised in a worker after Stop was pressed."""


class DeferredCells:
    """Cells that run together, in a background thread, when a button is pressed.

    The kernel stays free, and the output of each cell appears below that cell. Each cell begins
    with ``if chapter.should_run():``; the first one shows the button. Chapters run one at a time.

    If nobody can press the button, as in a report, ``should_run`` returns True at once. It also
    returns True after the chapter has run, so that a single cell can be run again by hand. A new
    chapter with the same name replaces and stops the previous one, for example if its notebook is
    run again.

    - ``name``: what the chapter makes, as the label of the button.
    - ``takes``: approximate duration, in words.
    - ``after``: chapters that must run first; they are run if needed.
    """

    state: State

    def __init__(self, name: str, takes: str, *after: DeferredCells) -> None:
        self.name, self.after = name, after
        self.button = W.Button(layout=W.Layout(width="auto"))
        self.button.add_class(ACTS)
        self.button.on_click(
            lambda _: self.stop_cells() if self.state == "running" else self.run_cells()
        )
        self.status = W.Label()
        self._takes, self._is_leaving = takes, False
        self._cells: dict[str, tuple[str, Context, Any]] = {}
        self._todo: dict[str, None] = {}
        self._lock = threading.RLock()
        self._starter: DeferredCells | None = None
        self._worker: threading.Thread | None = None
        self._set_state("waiting", "")
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
            self._is_leaving = False
            self._set_state("running", "")
            self._worker = threading.Thread(
                target=self._wait_and_run, name="braid-chapter", daemon=True
            )
            self._worker.start()

    def stop_cells(self) -> None:
        """Stop the running cells after the current batch of their run or simulation."""
        with self._lock:
            if self.state == "running":
                self._is_leaving = True
                self.status.value = "stopping…"

    def wait_for_cells(self, timeout: float | None = None) -> None:
        """Wait until the started cells have finished."""
        if self._worker is not None:
            self._worker.join(timeout)

    def _defer_cell(self, request: dict[str, Any]) -> None:
        key = str(request["metadata"].get("cellId") or request["content"]["code"])
        is_first = not self._cells or next(iter(self._cells)) == key
        waits = f'<p style="opacity:0.7">Waits for “{self.name}” above ({self._takes}).</p>'
        note = None if is_first else display(HTML(waits), display_id=True)  # type: ignore[no-untyped-call]
        self._cells[key] = (request["content"]["code"], copy_context(), note)
        self._todo[key] = None
        if is_first:
            box = W.HBox([self.button, self.status])
            box.add_class("braid-live")
            StaticFallback(
                box, lambda: f"<p>{self.name}: run the notebook to have a button here.</p>"
            )

    def _set_state(self, state: State, text: str) -> None:
        """Show a state on the button, and its text beside it."""
        with self._lock:
            self.state, self.status.value = state, text
            is_running = state == "running"
            self.button.description = "Stop" if is_running else f"{self.name} ({self._takes})"
            self.button.icon = {"running": "stop", "done": "check"}.get(state, "play")
            self.button.disabled = state == "done"

    def _wait_and_run(self) -> None:
        """Run when it is this chapter's turn, unless another has run it until then."""
        while not _TURN.acquire(timeout=_LOOK):
            if self._is_leaving:
                return self._set_state("waiting", "stopped")
            self.status.value = "after what was begun before"
        try:
            if self.state == "running":
                self._run_turn(None)
        finally:
            _TURN.release()

    def _run_turn(self, starter: DeferredCells | None) -> None:
        """Run the chapters that must run first, and then the cells."""
        self._starter, began = starter, perf_counter()
        self._is_leaving &= starter is None  # it may have been stopped in an earlier turn
        self._set_state("running", "")
        try:
            for other in (each for each in self.after if each.state != "done"):
                self._show_status(f"after “{other.name}”")
                other._run_turn(self)
                if other.state != "done":
                    raise _Left(f"“{other.name}” did not come to its end")
            self._run_pending_cells(began)
        except _Left as reason:
            self._set_state("waiting", str(reason) or "stopped")
        except BaseException as error:
            self._set_state("failed", f"failed with {type(error).__name__}")
            raise

    def _run_pending_cells(self, began: float) -> None:
        """Run cells, including those added meanwhile, until none is left or one fails."""
        self._todo = dict.fromkeys(self._cells)
        while True:
            with self._lock:
                if not self._todo:
                    return self._set_state("done", f"{perf_counter() - began:.0f} s")
                del self._todo[(key := next(iter(self._todo)))]
            code, context, note = self._cells[key]
            self._show_status(f"cell {len(self._cells) - len(self._todo)} of {len(self._cells)}")
            if note is not None:
                note.update(HTML(""))  # type: ignore[no-untyped-call]
            if not context.copy().run(self._run_cell, code):
                return self._set_state("failed", f"failed after {perf_counter() - began:.0f} s")

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
        """Stop if this chapter was stopped, or the one that it runs for."""
        if self._is_leaving:
            raise _Left
        if self._starter is not None:
            self._starter._raise_if_stopping()

    def _show_status(self, text: str) -> None:
        self._raise_if_stopping()
        self.status.value = text.strip()
