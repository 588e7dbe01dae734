"""Run a notebook from start to end without a user.

A notebook finds ``BRAID_HEADLESS=1`` in its environment: it then drives itself and waits for no
button.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from braid.util.optional_imports import OptionalImport

from braid_lab.reports.notebook_parameters import NotebookError

if TYPE_CHECKING:
    from nbformat import NotebookNode

_PACKAGED = Path(__file__).parent / "notebooks"
NOTEBOOKS = _PACKAGED if _PACKAGED.exists() else Path(__file__).parents[3] / "notebooks"
"""The project's notebooks: in an installed package beside this file, else those of the checkout."""
ENVIRONMENT = {"BRAID_HEADLESS": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
Say = Callable[[str], None]


@dataclass
class NotebookRun:
    """A notebook with the outputs of a run.

    ``cells`` are the first lines of the executed code cells and the seconds that each took.
    ``error`` is the reason why it stopped; "": it completed. ``was_interrupted``: by a signal.
    """

    notebook: NotebookNode
    cells: list[tuple[str, float]] = field(default_factory=list)
    error: str = ""
    was_interrupted: bool = False

    @property
    def total_seconds(self) -> float:
        """The seconds of all cells."""
        return sum(took for _, took in self.cells)


def list_notebooks(folder: Path = NOTEBOOKS) -> list[str]:
    """Return the names of notebooks under ``folder``: paths without suffix, as "reports/weekly"."""
    paths = (p.relative_to(folder).with_suffix("") for p in folder.rglob("*.ipynb"))
    return sorted(
        p.as_posix() for p in paths if not p.as_posix().startswith(".") and "/." not in p.as_posix()
    )


def find_notebook(name: str, folder: Path = NOTEBOOKS) -> str:
    """Return the name of the notebook with a prefix, such as "01", with or without folders.

    Raises NotebookError, listing the names, if there is none or more than one.
    """
    names = list_notebooks(folder)
    begins = [k for k in names if k.startswith(name) or k.rpartition("/")[2].startswith(name)]
    if name in names or len(begins) == 1:
        return name if name in names else begins[0]
    which = f"; {name!r} may be {' or '.join(begins)}" if begins and name else ""
    raise NotebookError(
        f"no notebook is named {name!r}; there are: {', '.join(names) or 'none'} (in {folder})"
        if not which
        else f"several notebooks begin so{which}"
    )


@dataclass(frozen=True)
class NotebookInfo:
    """The description of a notebook.

    It has its first heading and, from its metadata under "braid", a sentence "about" it and the
    "minutes" that its report takes.
    """

    title: str
    text: str = ""
    expected_minutes: float | None = None

    def __str__(self) -> str:
        summary = " · ".join(filter(None, (self.title, self.text)))
        took = "" if self.expected_minutes is None else f" (about {self.expected_minutes:g} min)"
        return f"{summary}{took}"


def read_notebook_info(notebook: Path) -> NotebookInfo:
    """Return the description of the notebook in a file."""
    with OptionalImport("notebooks"):
        import nbformat

    written = notebook.read_text(encoding="utf-8")
    content: Any = nbformat.reads(written, as_version=4)  # type: ignore[no-untyped-call]
    texts = (c.source for c in content.cells if c.cell_type == "markdown")
    lines = (line for text in texts for line in text.splitlines())
    title = next((line.lstrip("# ").strip() for line in lines if line.startswith("#")), "")
    braid_metadata = content.metadata.get("braid", {})
    return NotebookInfo(title, braid_metadata.get("about", ""), braid_metadata.get("minutes"))


def run_notebook(
    notebook: Path,
    values: Mapping[str, Any],
    say: Say,
    chat: Say = lambda text: None,
    before: Mapping[str, float] | None = None,
    environment: Mapping[str, str] | None = None,
    expected: float | None = None,
) -> NotebookRun:
    """Run all cells in the notebook's own folder, until one raises or the kernel dies.

    ``say`` receives a line when a cell starts, ``chat`` everything that the cells print. ``before``
    are the seconds of each cell in an earlier run, by first line; the remaining time is estimated
    from them, else from ``expected``, the total in seconds. ``environment`` is added to this
    process's for the kernel.
    """
    with OptionalImport("notebooks"):
        from nbclient.exceptions import CellExecutionError, DeadKernelError
        from papermill import execute_notebook

    ready: NotebookNode = execute_notebook(
        notebook, None, dict(values), prepare_only=True, kernel_name="python3", language="python"
    )
    titles = [_make_cell_title(c.source) for c in _select_code_cells(ready)]
    progress = CellProgress(titles, say, chat, before or {}, expected)
    # Use the kernel of this Python, even if another Python is first on the PATH.
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    ran = NotebookRun(ready, progress.done)
    variables = {**os.environ, **ENVIRONMENT, **(environment or {})}
    with tempfile.TemporaryFile("w+") as noise:
        client = _make_client(ready, notebook.parent, progress)
        try:
            client.execute(env=variables, stderr=noise)
        except CellExecutionError as error:
            ran.error = f"{progress} failed.\n{_shorten_traceback(error)}"
        except DeadKernelError:
            noise.seek(0)
            last = "\n".join(noise.read().strip().splitlines()[-5:])
            ran.error = f"the kernel died in {progress}" + (f"\n{last}" if last else "")
        except Exception:  # the kernel was still starting
            if not client.by_signal:
                raise
        finally:
            if client.by_signal:
                where = f"in {progress}" if progress.cell else "before the first cell"
                ran.error, ran.was_interrupted = f"a signal ended it {where}", True
            progress.end_cell()
    return ran


@dataclass
class CellProgress:
    """The progress of a run: the current cell, the elapsed and the estimated remaining time.

    The estimate needs an earlier run of the same cells, or an expected total.
    """

    titles: list[str]
    say: Say
    chat: Say
    before: Mapping[str, float]
    expected: float | None = None
    done: list[tuple[str, float]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    since: float = 0.0
    cell: int = 0

    def start_cell(self, cell: NotebookNode, cell_index: int) -> None:
        """Report that the next cell starts."""
        self.end_cell()
        self.since, self.cell = time.monotonic(), self.cell + 1
        gone = f"{self.since - self.began:.0f} s"
        left = "" if (n := self.seconds_left()) is None else f", about {n:.0f} s left"
        title = self.titles[self.cell - 1]
        self.say(f"[{self.cell}/{len(self.titles)}, {gone}{left}] {title}\n")

    def end_cell(self) -> None:
        """Record how long the cell has taken."""
        if len(self.done) < self.cell:
            self.done.append((self.titles[self.cell - 1], time.monotonic() - self.since))

    def seconds_left(self) -> float | None:
        """Return the remaining seconds, at the speed so far relative to the earlier run.

        Without an earlier run: the expected total minus the elapsed time.
        """
        if any(title not in self.before for title in self.titles):
            gone = self.since - self.began
            return None if self.expected is None or gone > self.expected else self.expected - gone
        past = sum(self.before[title] for title, _ in self.done)
        pace = sum(took for _, took in self.done) / past if past else 1.0
        return pace * sum(self.before[title] for title in self.titles[self.cell - 1 :])

    def __str__(self) -> str:
        return f"cell {self.cell} of {len(self.titles)}"


def _make_client(notebook: NotebookNode, folder: Path, progress: CellProgress) -> Any:
    from nbclient import NotebookClient
    from nbclient.util import ensure_async
    from traitlets.config import Config

    class Client(NotebookClient):
        @property
        def by_signal(self) -> asyncio.Future[None] | None:
            """The task that ends the kernel after SIGTERM or SIGINT; None: no signal."""
            return getattr(self, "_async_cleanup_kernel_future", None)

        async def _async_cleanup_kernel(self) -> None:
            """Shut the kernel down after a signal in the middle of a cell.

            The cell then fails, and the rest is cleaned up afterwards: cleaning up at once would
            remove objects that nbclient still needs.
            """
            if self.by_signal is asyncio.current_task():
                if self.km is not None:
                    await ensure_async(self.km.shutdown_kernel())
                return
            if self.by_signal:
                await self.by_signal
            await super()._async_cleanup_kernel()

        def process_message(self, msg: Any, cell: NotebookNode, cell_index: int) -> Any:
            if msg["msg_type"] == "stream":
                progress.chat(msg["content"]["text"])
            return super().process_message(msg, cell, cell_index)

    return Client(
        notebook,
        kernel_name="python3",
        timeout=None,
        resources={"metadata": {"path": str(folder)}},
        on_cell_execute=progress.start_cell,
        config=Config({"KernelManager": {"transport_encryption": "auto"}}),
    )


def _select_code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [c for c in notebook.cells if c.cell_type == "code" and c.source.strip()]


def _make_cell_title(source: str) -> str:
    first = source.strip().splitlines()[0].lstrip("# ")
    return first if len(first) <= 70 else first[:69] + "…"


def _shorten_traceback(error: Any) -> str:
    """Return the lines of the traceback that raised, and the exception."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", error.traceback)
    raised = [line for line in plain.splitlines() if re.match(r"-+> *\d", line)]
    return "\n".join([*raised, f"{error.ename}: {error.evalue}"])
