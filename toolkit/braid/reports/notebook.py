"""Run a notebook from start to end without a person.

A notebook's parameters are the literals of its cell tagged ``parameters`` (``name: type = value  #
help``). A notebook that runs here finds ``BRAID_HEADLESS=1`` in its environment: it drives itself
and waits for no button.
"""

from __future__ import annotations

import ast
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from braid.core.extras import Needs

if TYPE_CHECKING:
    from nbformat import NotebookNode

_PACKAGED = Path(__file__).parent / "notebooks"
NOTEBOOKS = _PACKAGED if _PACKAGED.exists() else Path(__file__).parents[3] / "notebooks"
"""The project's own: in an installed package beside this file, else those of the checkout."""
ENVIRONMENT = {"BRAID_HEADLESS": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
Say = Callable[[str], None]


class NotebookError(Exception):
    """A notebook that cannot be run or whose run failed; the message says why, for a person."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One literal of the parameters cell; ``help`` is the comment behind it."""

    name: str
    default: Any
    help: str

    def parse(self, text: str) -> Any:
        """The value that ``text`` stands for, of the default's type. Raises NotebookError when it
        stands for none.
        """
        kind = type(self.default)
        try:
            if kind is bool:
                return {"true": True, "false": False}[text.lower()]
            return kind(text) if kind in (int, float, str) else ast.literal_eval(text)
        except (ValueError, KeyError, SyntaxError):
            wanted = "true or false" if kind is bool else f"a value of type {kind.__name__}"
            raise NotebookError(
                f"{self.name} is {text!r}; it takes {wanted}, such as {self.default!r}"
            ) from None

    def __str__(self) -> str:
        return f"{self.name} = {self.default!r}" + (f"  {self.help}" if self.help else "")


def names(folder: Path = NOTEBOOKS) -> list[str]:
    """The notebooks under ``folder`` by name: the path without the ending, such as
    "reports/weekly".
    """
    found = (p.relative_to(folder).with_suffix("") for p in folder.rglob("*.ipynb"))
    return sorted(
        p.as_posix() for p in found if not p.as_posix().startswith(".") and "/." not in p.as_posix()
    )


def find(name: str, folder: Path = NOTEBOOKS) -> Path:
    """The file of a notebook. Raises NotebookError, with the names there are, when there is none of
    that name.
    """
    if name not in (known := names(folder)):
        raise NotebookError(
            f"no notebook is named {name!r}; there are: {', '.join(known) or 'none'} (in {folder})"
        )
    return folder / f"{name}.ipynb"


def parameters(notebook: Path) -> dict[str, Parameter]:
    """The parameters of a notebook by name, in order; none when no cell is tagged
    ``parameters``.
    """
    with Needs("notebooks"):
        import nbformat
        from papermill.translators import PythonTranslator

    content = nbformat.reads(notebook.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    tagged = [c for c in content.cells if "parameters" in c.metadata.get("tags", [])]
    found = PythonTranslator.inspect(tagged[0]) if tagged else []
    return {p.name: Parameter(p.name, _literal(p.name, p.default), p.help.strip()) for p in found}


def _literal(name: str, text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise NotebookError(
            f"the parameters cell sets {name} = {text}; it may hold literals only"
        ) from None


def parse(settings: Mapping[str, str], accepted: Mapping[str, Parameter]) -> dict[str, Any]:
    """Values for the texts of ``settings``. Raises NotebookError for an unknown name or a text of
    the wrong type.
    """
    if unknown := [name for name in settings if name not in accepted]:
        listed = "".join(f"\n  {p}" for p in accepted.values()) or " none"
        raise NotebookError(
            f"no parameter is named {' or '.join(map(repr, unknown))}; accepted are:{listed}"
        )
    return {name: accepted[name].parse(text) for name, text in settings.items()}


def run(notebook: Path, values: Mapping[str, Any], say: Say) -> NotebookNode:
    """Run all cells in the notebook's own folder and return the notebook with its outputs.

    ``say`` is told which cell of how many starts, and everything that the cells print. Raises
    NotebookError when a cell raises or the kernel dies.
    """
    with Needs("notebooks"):
        from nbclient.exceptions import CellExecutionError, DeadKernelError
        from papermill import execute_notebook

    ready: NotebookNode = execute_notebook(
        notebook, None, dict(values), prepare_only=True, kernel_name="python3", language="python"
    )
    progress = _Progress(len(_code(ready)), say)
    # The kernel of this Python, also where it is not the one on the PATH.
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    try:
        _client(ready, notebook.parent, progress).execute(env={**os.environ, **ENVIRONMENT})
    except CellExecutionError as error:
        raise NotebookError(
            f"cell {progress.cell} of {progress.cells} failed.\n{_brief(error)}"
        ) from error
    except DeadKernelError as error:
        raise NotebookError(
            f"the kernel died in cell {progress.cell} of {progress.cells}"
        ) from error
    return ready


@dataclass
class _Progress:
    """Tells which code cell of how many starts, and after how many seconds."""

    cells: int
    say: Say
    cell: int = 0
    began: float = field(default_factory=time.monotonic)

    def starts(self, cell: NotebookNode, cell_index: int) -> None:
        self.cell += 1
        self.say(
            f"[{self.cell}/{self.cells}, {time.monotonic() - self.began:.0f} s] "
            f"{_title(cell.source)}\n"
        )


def _client(notebook: NotebookNode, folder: Path, progress: _Progress) -> Any:
    from nbclient import NotebookClient
    from traitlets.config import Config

    class Client(NotebookClient):
        def process_message(self, msg: Any, cell: NotebookNode, cell_index: int) -> Any:
            if msg["msg_type"] == "stream":
                progress.say(msg["content"]["text"])
            return super().process_message(msg, cell, cell_index)

    return Client(
        notebook,
        kernel_name="python3",
        timeout=None,
        resources={"metadata": {"path": str(folder)}},
        on_cell_execute=progress.starts,
        config=Config({"KernelManager": {"transport_encryption": "auto"}}),
    )


def _code(notebook: NotebookNode) -> list[NotebookNode]:
    return [c for c in notebook.cells if c.cell_type == "code" and c.source.strip()]


def _title(source: str) -> str:
    first = source.strip().splitlines()[0].lstrip("# ")
    return first if len(first) <= 70 else first[:69] + "…"


def _brief(error: Any) -> str:
    """The lines of the traceback that raised, and the exception."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", error.traceback)
    raised = [line for line in plain.splitlines() if re.match(r"-+> *\d", line)]
    return "\n".join([*raised, f"{error.ename}: {error.evalue}"])
