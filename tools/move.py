"""Move modules as names.csv says, and rewrite imports and references. Temporary, as rename.py.

Where names.csv sends several old modules to one new one, ``parts.csv`` (old,new) names a module for
each: none are merged.

    python tools/move.py names.csv tools/names_more.csv tools/parts.csv [--write]
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
from collections import defaultdict
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, QualifiedNameProvider, QualifiedNameSource

ROOT = Path(__file__).resolve().parent.parent
BASES = {"braid": "toolkit", "braid_lab": "toolkit", "braid_widgets": "widgets"}


def read_moves(paths: list[Path]) -> dict[str, str]:
    """Return the new module by the old one."""
    moves = dict[str, str]()
    for path in paths:
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row.get("kind", "module") == "module":
                    moves[row["old"]] = row["new"]
    return {old: new for old, new in moves.items() if old != new}


def path_of(module: str) -> Path:
    base = ROOT / BASES[module.partition(".")[0]]
    folder = base / module.replace(".", "/")
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


_CELL = "# %% next cell"
_GENERIC = {
    "experiments",
    "claims",
    "figures",
    "runs",
    "rivals",
    "comparison",
    "counting",
    "report",
}
"""Names of modules that several packages have: they are imported under a longer name."""


def local_name(module: str) -> str:
    """Return the name under which a module is imported."""
    package, _, name = module.rpartition(".")
    return f"{package.rpartition('.')[2]}_{name}" if name in _GENERIC else name


class Rewriter(cst.CSTTransformer):
    """Rewrites imports of moved modules, and names by which a moved module is used."""

    METADATA_DEPENDENCIES = (QualifiedNameProvider,)

    def __init__(self, moves: dict[str, str]) -> None:
        super().__init__()
        self.moves = moves
        self.packages = {m.rpartition(".")[0] for m in moves}

    def leave_ImportFrom(
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.BaseSmallStatement | cst.FlattenSentinel[cst.BaseSmallStatement]:
        if original_node.module is None or isinstance(original_node.names, cst.ImportStar):
            return updated_node
        module = dotted(original_node.module)
        if module in self.moves:
            return updated_node.with_changes(module=expression(self.moves[module]))
        if not any(f"{module}.{a.evaluated_name}" in self.moves for a in original_node.names):
            return updated_node
        groups = defaultdict[str, list[cst.ImportAlias]](list)
        for alias in original_node.names:
            old = f"{module}.{alias.evaluated_name}"
            package, _, name = self.moves.get(old, old).rpartition(".")
            bare = alias.with_changes(name=cst.Name(name), comma=cst.MaybeSentinel.DEFAULT)
            shown = local_name(self.moves[old]) if old in self.moves else name
            if shown != name and alias.asname is None:
                bare = bare.with_changes(asname=cst.AsName(cst.Name(shown)))
            groups[package].append(bare)
        statements = [
            cst.ImportFrom(module=expression(package), names=aliases)
            for package, aliases in groups.items()
        ]
        return cst.FlattenSentinel(statements)

    def leave_Import(self, original_node: cst.Import, updated_node: cst.Import) -> cst.Import:
        aliases = [
            a.with_changes(name=expression(self.moves[dotted(a.name)]))
            if dotted(a.name) in self.moves
            else a
            for a in updated_node.names
        ]
        return updated_node.with_changes(names=aliases)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        for found in self.get_metadata(QualifiedNameProvider, original_node, set()):
            is_import = found.source is QualifiedNameSource.IMPORT and found.name in self.moves
            if is_import and found.name.rpartition(".")[2] == original_node.value:
                return cst.Name(local_name(self.moves[found.name]))
        return updated_node


def dotted(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        return f"{dotted(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""


def expression(name: str) -> cst.Attribute | cst.Name:
    found = cst.parse_expression(name)
    assert isinstance(found, cst.Attribute | cst.Name)
    return found


def rewrite(text: str, moves: dict[str, str]) -> str:
    """Return a source with imports of moved modules rewritten."""
    if "braid" not in text:
        return text
    wrapper = MetadataWrapper(cst.parse_module(text))
    return wrapper.visit(Rewriter(moves)).code


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", type=Path, nargs="+")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    moves = read_moves(options.names)
    targets = defaultdict[str, list[str]](list)
    for old, new in moves.items():
        targets[new].append(old)
    merged = {
        n: o for n, o in targets.items() if len(o) > 1 or (path_of(n).is_file() and n not in moves)
    }
    print(f"{len(moves)} moves, {len(merged)} merges")
    for new, olds in sorted(merged.items()):
        print("  merge", new, olds)
    if not options.write:
        return
    for base in ("toolkit", "widgets", "tests", "benchmarks", "docs"):
        for path in (ROOT / base).rglob("*.py"):
            if "node_modules" not in path.parts:
                old_text = path.read_text(encoding="utf-8")
                new_text = rewrite(old_text, moves)
                if new_text != old_text:
                    path.write_text(new_text, encoding="utf-8")
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        script = "".join(f"{_CELL}\n{''.join(cell['source'])}\n" for cell in cells)
        sources = rewrite(script, moves).split(f"{_CELL}\n")[1:]
        for cell, source in zip(cells, sources, strict=True):
            cell["source"] = source.removesuffix("\n").splitlines(keepends=True)
        path.write_text(
            json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n",
            encoding="utf-8",
        )
    for new, olds in targets.items():
        source, target = path_of(olds[0]), new_path(new)
        if source.name == "__init__.py":
            target = target.with_suffix("") / "__init__.py"
        target.parent.mkdir(parents=True, exist_ok=True)
        ensure_packages(target)
        subprocess.run(["git", "mv", str(source), str(target)], check=True, cwd=ROOT)


def new_path(module: str) -> Path:
    base = ROOT / BASES[module.partition(".")[0]]
    return (base / module.replace(".", "/")).with_suffix(".py")


def ensure_packages(target: Path) -> None:
    for folder in target.parents:
        if folder.name in ("toolkit", "widgets"):
            return
        init = folder / "__init__.py"
        if not init.exists():
            init.write_text("", encoding="utf-8")


if __name__ == "__main__":
    main()
