"""Rename, in texts, what names.csv renames: dotted names, and classes and members in backticks.

Texts are docstrings and comments of Python, Markdown, TOML, and the prose of notebooks. Temporary,
as rename.py.

    python tools/rename_texts.py names.csv [--modules] [--write]
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import tokenize
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_DOTTED = re.compile(r"(?<![\w./-])((?:braid|braid_widgets)(?:\.[A-Za-z_]\w*)+)")
_SHORT = re.compile(r"(?<=`)((?:[a-z_]\w*\.)+[A-Za-z_]\w*)(?=`)")
_TICKS = re.compile(r"(``?)([^`\n]+)\1")


class Texts:
    """The renames as texts need them."""

    def __init__(self, paths: list[Path], with_modules: bool) -> None:
        self.full, self.modules = dict[str, str](), dict[str, str]()
        self.by_class = defaultdict[str, set[str]](set)
        self.members = defaultdict[str, set[str]](set)
        rows = list[dict[str, str]]()
        for path in paths:
            with open(path, newline="", encoding="utf-8") as file:
                rows += csv.DictReader(file)
        for row in rows:
            kind, old, new = row.get("kind", "module"), row["old"], row["new"]
            owner, _, name = old.rpartition(".")
            if kind == "module":
                if with_modules:
                    self.modules[old] = new
            elif kind in ("class", "event"):
                self.full[old] = new
                self.by_class[name].add(new)
            elif kind in ("function", "constant"):
                self.full[old] = new
            elif kind in ("method", "field", "event field"):
                self.full[old] = new
                self.members[f"{owner.rpartition('.')[2]}.{name}"].add(new)
        kept = class_names()
        self.classes = {
            old: next(iter(new))
            for old, new in self.by_class.items()
            if len(new) == 1 and not (kept[old] - 1)
        }

    def dotted(self, text: str) -> str | None:
        """Return the new form of a full dotted name; None if it stays."""
        parts = text.split(".")
        for size in range(len(parts), 1, -1):
            head = ".".join(parts[:size])
            if head in self.modules:
                return ".".join([self.modules[head], *parts[size:]])
            if head in self.full:
                renamed = [*parts[: size - 1], self.full[head], *parts[size:]]
                rest = self.dotted(".".join(renamed[: size - 1])) if size > 2 else None
                return ".".join(
                    [*(rest or ".".join(renamed[: size - 1])).split("."), *renamed[size - 1 :]]
                )
        return None

    def rename(self, text: str) -> str:
        """Return a text with its names renamed."""
        text = _DOTTED.sub(lambda m: self.dotted(m[1]) or m[1], text)
        text = _SHORT.sub(self._short, text)
        return _TICKS.sub(lambda m: f"{m[1]}{self._code(m[2])}{m[1]}", text)

    def _short(self, found: re.Match[str]) -> str:
        new = self.dotted(f"braid.{found[1]}")
        return new.removeprefix("braid.") if new else found[1]

    def _code(self, code: str) -> str:
        """Classes and members of classes in a piece of code."""

        def member(found: re.Match[str]) -> str:
            new = self.members.get(found[0], set())
            owner = self.classes.get(found[1], found[1])
            return f"{owner}.{next(iter(new))}" if len(new) == 1 else f"{owner}.{found[2]}"

        code = re.sub(r"\b([A-Z]\w+)\.([a-z_]\w*)\b", member, code)
        return re.sub(r"(?<![\w.])[A-Z][A-Za-z]+\b", lambda m: self.classes.get(m[0], m[0]), code)


def class_names() -> dict[str, int]:
    """Return how many classes of each name there are."""
    counts = defaultdict[str, int](int)
    for base in ("toolkit", "widgets"):
        for path in (ROOT / base).rglob("*.py"):
            for name in re.findall(r"(?m)^\s*class (\w+)", path.read_text(encoding="utf-8")):
                counts[name] += 1
    return counts


def rename_python(text: str, texts: Texts) -> str:
    """Rename in the strings and comments of a Python source."""
    lines = text.splitlines(keepends=True)
    done = list[str]()
    row, column = 1, 0

    def take(until_row: int, until_column: int) -> str:
        nonlocal row, column
        if row == until_row:
            part = lines[row - 1][column:until_column] if row <= len(lines) else ""
        else:
            part = lines[row - 1][column:] + "".join(lines[row : until_row - 1])
            part += lines[until_row - 1][:until_column] if until_row <= len(lines) else ""
        row, column = until_row, until_column
        return part

    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            done.append(take(*token.start))
            done.append(texts.rename(take(*token.end)))
    done.append(take(len(lines) + 1, 0))
    return "".join(done)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", type=Path, nargs="+")
    parser.add_argument("--modules", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    texts, changed = Texts(options.names, options.modules), 0
    paths = [
        *(
            p
            for b in ("toolkit", "widgets", "tests", "benchmarks", "docs")
            for p in (ROOT / b).rglob("*.py")
        ),
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "docs/papers.toml",
        ROOT / "pyproject.toml",
        *(ROOT / "notebooks").glob("*.ipynb"),
    ]
    for path in paths:
        if "node_modules" in path.parts:
            continue
        old = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            new = rename_python(old, texts)
        elif path.suffix == ".ipynb":
            notebook = json.loads(old)
            for cell in notebook["cells"]:
                source = texts.rename("".join(cell["source"]))
                cell["source"] = source.splitlines(keepends=True)
            new = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        else:
            new = texts.rename(old)
        if new != old:
            changed += 1
            if options.write:
                path.write_text(new, encoding="utf-8")
    print(f"{changed} files")


if __name__ == "__main__":
    main()
