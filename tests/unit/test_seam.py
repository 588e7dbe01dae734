"""The engine and the hub access files, threads and time through one module each.

A simulated world can replace all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import braid
import pytest

ROOT = Path(braid.__file__).parent
SEAM = ROOT / "util" / "file_system.py"
FOLDERS = ("execution", "hub", "sources", "storage")
MODULES = {"fcntl", "mmap", "random", "shutil", "socket", "tempfile", "time", "uuid"}
FILES = {
    *("exists", "glob", "hardlink_to", "is_dir", "is_file", "iterdir", "lstat", "mkdir", "open"),
    *("read_bytes", "read_text", "rename", "rglob", "rmdir", "samefile", "stat", "symlink_to"),
    *("touch", "unlink", "write_bytes", "write_text"),
}
"""Methods of Path and of its replacement."""
ARROW = {
    *("memory_map", "new_file", "new_stream", "open_file", "OSFile", "ParquetFile"),
    *("ParquetWriter", "read_metadata", "read_schema", "read_table", "write_table"),
}
"""The functions of pyarrow that take a path or an open file."""
OPEN = {"source", "sink"}
"""The names of pyarrow's open files."""
OS = {"cpu_count", "environ", "name", "sysconf"}
"""Names of os that do not access files."""
ALLOWED = {
    "sources/input_fingerprints.py": "looks at the user's own files",
    "sources/landing_function.py": "runs on a server of Spark Connect, which need not have Braid",
    "storage/source_files.py": "looks at the user's own files",
    "util/machine.py": "reads what the system says of this machine's memory and cores",
    "hub/hub_batches.py": "measures seconds by a clock that tests replace where it is",
    "hub/query_registry.py": "measures seconds by a clock that tests replace where it is",
    "hub/reoptimizer.py": "measures seconds by a clock that tests replace where it is",
}


def faults(source: str) -> Iterator[str]:
    """Return, by line, the calls of a module that bypass these modules."""
    for node in ast.walk(ast.parse(source)):
        if said := _fault(node):
            yield f"line {getattr(node, 'lineno', 0)}: {said}"


def _fault(node: ast.AST) -> str:
    if isinstance(node, ast.Import):
        return ", ".join(n.name for n in node.names if n.name.partition(".")[0] in MODULES)
    if isinstance(node, ast.ImportFrom):
        names = {n.name for n in node.names}
        threads = names & {"Thread", "Timer", "ThreadPoolExecutor", "ProcessPoolExecutor"}
        return (node.module or "") if node.module in MODULES else ", ".join(threads)
    if isinstance(node, ast.Attribute) and _is_name(node.value, "os") and node.attr not in OS:
        return f"os.{node.attr}"
    if isinstance(node, ast.Attribute) and _is_name(node.value, "threading"):
        return f"threading.{node.attr}" if node.attr in ("Thread", "Timer") else ""
    return _call(node) if isinstance(node, ast.Call) else ""


def _call(node: ast.Call) -> str:
    if isinstance(node.func, ast.Name) and node.func.id == "open":
        return "open()"
    if not isinstance(node.func, ast.Attribute) or _is_seam(node.func.value):
        return ""
    name, given = node.func.attr, [*node.args, *(k.value for k in node.keywords)]
    if name == "replace" and len(given) == 1 and not _is_name(node.func.value, "column"):
        return "Path.replace"
    if name == "rename" and not node.args:  # columns of a frame
        return ""
    if name in FILES and not _is_name(node.func.value, "works"):
        return f"{name}()"
    if name in ARROW:
        at = 1 if name == "write_table" else 0
        is_pq = _is_name(node.func.value, "pq") or name not in ("write_table",)
        return f"{name}()" if is_pq and len(given) > at and not _is_open(given[at]) else ""
    return ""


def _is_name(node: ast.AST, name: str) -> bool:
    return getattr(node, "id", getattr(node, "attr", "")) == name


def _is_seam(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _is_name(node.func, "current_file_system")


def _is_open(node: ast.AST) -> bool:
    """Return whether it is an open file, by its name, an object of the seam, or bytes."""
    if isinstance(node, ast.Subscript):  # self.sinks[-1]
        return _is_name(node.value, "sinks")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        called = node.func
        return (
            _is_seam(called.value)
            or called.attr.startswith(("Buffer", "read_buffer"))
            or (called.attr == "py_buffer")
        )
    return any(_is_name(node, name) for name in (*OPEN, "empty", "written"))


def modules() -> list[str]:
    found = [f for folder in FOLDERS for f in (ROOT / folder).glob("*.py")]
    return sorted(f.relative_to(ROOT).as_posix() for f in found if f != SEAM)


@pytest.mark.parametrize("name", modules())
def test_files_threads_and_time_are_reached_through_the_seam(name: str) -> None:
    found = [*faults((ROOT / name).read_text())]
    assert name in ALLOWED or found == []


@pytest.mark.parametrize(
    "line",
    [
        "import shutil",
        "from uuid import uuid4",
        "from concurrent.futures import ThreadPoolExecutor",
        "threading.Thread(target=f)",
        "os.replace(a, b)",
        "open(path)",
        "path.unlink()",
        "path.replace(other)",
        "(folder / name).read_bytes()",
        "pq.read_table(path)",
        "pq.write_table(rows, path)",
        "pa.ipc.new_file(str(path), schema)",
        "pa.memory_map(path)",
        "time.time()\nimport time",
    ],
)
def test_a_way_around_the_seam_is_found(line: str) -> None:
    assert [*faults(line)]
