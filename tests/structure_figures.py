"""Print whether the code keeps the structure of the design; ``make words`` calls it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_COUNT_LAB = (
    "import sys, braid; print(sum(m.partition('.')[0] == 'braid_lab' for m in sys.modules))"
)


def list_classes(folder: Path) -> Iterator[ast.ClassDef]:
    """Yield the classes of a folder."""
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        yield from (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def count_public_methods(owner: ast.ClassDef) -> int:
    """Return the number of public methods and properties of a class."""
    return sum(isinstance(n, ast.FunctionDef) and n.name[0] != "_" for n in owner.body)


def count_loaded_lab_modules(root: Path) -> int:
    """Return the number of modules of ``braid_lab`` that ``import braid`` loads."""
    command = [sys.executable, "-c", _COUNT_LAB]
    loaded = subprocess.run(command, cwd=root / "toolkit", check=True, capture_output=True)
    return int(loaded.stdout)


def print_structure(root: Path) -> None:
    """Print the figures of storage, of imports and of the guesses in ``docs/style.md``."""
    owners = [*list_classes(root / "toolkit/braid/storage")]
    largest = max(owners, key=count_public_methods)
    most = count_public_methods(largest)
    print(f"public methods of a class of storage: at most {most} ({largest.name})")
    names = {owner.name for owner in owners}
    bases = [ast.unparse(base) for owner in owners for base in owner.bases]
    print(
        f"classes of storage that inherit from another one there: {sum(b in names for b in bases)}"
    )
    print(f"modules of braid_lab that import braid loads: {count_loaded_lab_modules(root)}")
    style = " ".join((root / "docs/style.md").read_text(encoding="utf-8").split())
    guesses = re.search(r"guesses were right for ([^.]+)\.", style)
    print(f"modules guessed from their names: {guesses[1] if guesses else 'not tried'}")
