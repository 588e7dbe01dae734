"""Apply the renames of names.csv to the code: definitions, imports, attributes, keywords, texts.

Temporary: this script goes once the names are in place. mypy's types decide to which class an
attribute or a keyword belongs. Nothing is guessed: a use that mypy calls Any and that carries an
old name is listed in ``unresolved.txt``, to be looked at by hand.

    python tools/rename.py names.csv [--only braid.core] [--kinds function,class] [--write]
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.metadata import (
    MetadataWrapper,
    ParentNodeProvider,
    PositionProvider,
    QualifiedNameProvider,
    QualifiedNameSource,
)
from mypy import build, nodes, types
from mypy.main import process_options
from mypy.modulefinder import BuildSource

ROOT = Path(__file__).resolve().parent.parent
CODE_KINDS = {"class", "function", "method", "field", "event", "event field", "constant"}


@dataclass(frozen=True, order=True)
class Edit:
    """Replace ``old`` at a place by ``new``. ``line`` counts from 1, ``column`` from 0."""

    line: int
    column: int
    old: str
    new: str


@dataclass
class Renames:
    """The rows of names.csv: new simple names by full old name; new modules by old module."""

    names: dict[str, str] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, paths: list[Path], only: str, kinds: set[str]) -> Renames:
        found = cls()
        for path in paths:
            with open(path, newline="", encoding="utf-8") as file:
                found._add(list(csv.DictReader(file)), only, kinds)
        return found

    def _add(self, rows: list[dict[str, str]], only: str, kinds: set[str]) -> None:
        for row in rows:
            kind, old, new = row["kind"], row["old"], row["new"]
            if kind == "module" and "module" in kinds:
                self.modules[old] = new
            elif kind == "helper" and "helper" in kinds and ":" in old:
                module, _, name = old.partition(":")
                full = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                self.names[f"{full}.{name}"] = new
            elif kind in kinds & CODE_KINDS and old.startswith(only):
                self.names[old] = new

    def inherit(self) -> None:
        """Add a row for each override in a class that names.csv does not name, as those of
        tests.
        """
        for info in INFOS.values():
            for name in info.names:
                rows = (self.names.get(f"{base.fullname}.{name}") for base in info.mro[1:])
                if (new := next(filter(None, rows), None)) is not None:
                    self.names.setdefault(f"{info.fullname}.{name}", new)
        skipped = ("braid.setup.Replay", "braid.local.probe.Comparisons")
        protocols = [i for i in INFOS.values() if i.is_protocol and i.fullname not in skipped]
        for protocol in protocols:
            self._implement(protocol)

    def _implement(self, protocol: nodes.TypeInfo) -> None:
        """Add the rows of a protocol of the project to the classes that have all its members."""
        members = protocol.protocol_members
        rows = {name: self._row(protocol, name) for name in members}
        if not any(rows.values()):
            return
        for info in INFOS.values():
            if not _is_own(info) or info is protocol:
                continue
            owners = [next((c for c in info.mro if name in c.names), None) for name in members]
            if not all(owners):
                continue
            for (name, new), owner in zip(rows.items(), owners, strict=True):
                if new and owner is not None and _is_own(owner):
                    self.names.setdefault(f"{owner.fullname}.{name}", new)

    def _row(self, info: nodes.TypeInfo, name: str) -> str | None:
        return next((n for c in info.mro if (n := self.names.get(f"{c.fullname}.{name}"))), None)

    @property
    def old_words(self) -> set[str]:
        return {full.rpartition(".")[2] for full in self.names}


def _is_own(info: nodes.TypeInfo) -> bool:
    """Return whether a class is of the project."""
    heads = ("braid", "braid_widgets", "tests", "world", "fuzz", "unit", "spark")
    return info.module_name.partition(".")[0] in heads or info.module_name in OWN_MODULES


OWN_MODULES = set[str]()
"""Modules whose files are in this folder."""


def build_types(root: Path) -> build.BuildResult:
    """Type all of the project's Python with mypy, trees kept."""
    docs_root = Path(tempfile.mkdtemp())
    (docs_root / "docs").symlink_to(root / "docs")
    arguments = ["--config-file", str(root / "pyproject.toml"), "--no-incremental"]
    _, options = process_options([*arguments, str(root / "toolkit/braid")])
    options.export_types = options.preserve_asts = True
    options.namespace_packages = options.explicit_package_bases = True
    options.check_untyped_defs = True
    options.ignore_errors = False
    options.cache_dir = "/dev/null"
    options.mypy_path = [
        *(str(root / p) for p in ("toolkit", "widgets", "tests", "benchmarks")),
        str(docs_root),
    ]
    for pattern in ("pandas", "numpy", "pyarrow", "duckdb", "plotly", "pyspark", "scipy", "polars"):
        options.per_module_options[f"{pattern}.*"] = {"follow_imports": "skip"}
        options.per_module_options[pattern] = {"follow_imports": "skip"}
    bases = (
        ("toolkit/braid", "toolkit"),
        ("toolkit/braid_lab", "toolkit"),
        ("widgets/braid_widgets", "widgets"),
        ("widgets/js", "widgets/js"),
        ("tests", "tests"),
        ("benchmarks", "benchmarks"),
    )
    sources, seen = [], set[str]()
    for folder, base in bases:
        for path in sorted((root / folder).rglob("*.py")):
            if "node_modules" in path.parts or "corpus" in path.parts:
                continue
            parts = path.relative_to(root / base).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            if module in seen:
                continue
            seen.add(module)
            OWN_MODULES.add(module)
            sources.append(BuildSource(str(path), module, None))
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        script = docs_root / f"notebook_{path.stem}.py"
        script.write_text(notebook_script(path), encoding="utf-8")
        NOTEBOOKS[str(script.resolve())] = path
        sources.append(BuildSource(str(script), script.stem, None))
    for path in sorted((root / "docs").glob("*.py")):
        sources.append(BuildSource(str(docs_root / "docs" / path.name), f"docs.{path.stem}", None))
    return build.build(sources, options)


def nodes_to_instance(info: nodes.TypeInfo) -> types.Type:
    return types.Instance(info, [])


class TypedUses:
    """Collects, from mypy's tree of one file, the edits of attributes, keywords and texts that name
    an attribute.
    """

    def __init__(self, lines: list[str], exprs: Any, renames: Renames) -> None:
        self.lines, self.types, self.renames = lines, exprs, renames
        self.words = renames.old_words
        self.edits = set[Edit]()
        self.unresolved = list[tuple[int, str]]()
        self.seen = set[int]()
        self.owners = list[nodes.TypeInfo]()

    def walk(self, o: Any) -> None:
        """Visit a node and all below it."""
        if isinstance(o, (list, tuple)):
            for each in o:
                self.walk(each)
        elif isinstance(o, dict):
            for each in o.values():
                self.walk(each)
        elif isinstance(o, (nodes.Node, nodes.Argument)) and id(o) not in self.seen:
            self.seen.add(id(o))
            if isinstance(o, nodes.MemberExpr):
                self._use_member(o)
            elif isinstance(o, nodes.CallExpr):
                self._use_call(o)
            elif isinstance(o, nodes.SuperExpr):
                self._use_super(o)
            elif isinstance(o, nodes.DictExpr):
                self._use_dict(o)
            elif isinstance(o, nodes.IndexExpr) and isinstance(o.index, nodes.StrExpr):
                self._use_key(self.types.get(o.base), o.index)
            is_class = isinstance(o, nodes.ClassDef)
            if is_class:
                self.owners.append(o.info)
            for name in children(type(o)):
                self.walk(getattr(o, name, None))
            if is_class:
                self.owners.pop()

    def _use_member(self, o: nodes.MemberExpr) -> None:
        if o.name not in self.words:
            return
        line = o.end_line or o.line
        end = self._characters(line, o.end_column or 0)
        column = end - len(o.name)
        if column < 0 or self.lines[line - 1][column:end] != o.name:
            place = self._find_in_text(o)
            if place is None:
                if self._targets(o) and any(
                    t in self.renames.names for t in self._targets(o) or ()
                ):
                    self.unresolved.append((line, f".{o.name} stands in a text"))
                return
            line, column = place
        targets = self._targets(o)
        if targets is None:
            self.unresolved.append((line, f".{o.name}"))
            return
        news = {self.renames.names.get(t) for t in targets}
        if len(news) > 1:
            self.unresolved.append((line, f".{o.name}: {sorted(targets)}"))
        elif (new := news.pop() if news else None) is not None:
            self.edits.add(Edit(line, column, o.name, new))

    def _find_in_text(self, o: nodes.MemberExpr) -> tuple[int, int] | None:
        """Find an attribute in an f-string, whose columns Python 3.11 does not know."""
        near = range(max(0, o.line - 1), min(len(self.lines), (o.end_line or o.line) + 8))
        for numbers in (near[:1], near):
            hits = [
                (n + 1, hit.start() + 1)
                for n in numbers
                for hit in re.finditer(rf"\.{re.escape(o.name)}\b", self.lines[n])
            ]
            if len(hits) == 1:
                return hits[0]
        return None

    def _use_super(self, o: nodes.SuperExpr) -> None:
        if o.name not in self.words or o.info is None:
            return
        owner = next((c for c in o.info.mro[1:] if o.name in c.names), None)
        new = owner and self.renames.names.get(f"{owner.fullname}.{o.name}")
        line = o.end_line or o.line
        end = self._characters(line, o.end_column or 0)
        if new and self.lines[line - 1][end - len(o.name) : end] == o.name:
            self.edits.add(Edit(line, end - len(o.name), o.name, new))

    def _use_dict(self, o: nodes.DictExpr) -> None:
        """Keys of a display whose type is a TypedDict."""
        kind = self.types.get(o)
        for key, _ in o.items:
            if isinstance(key, nodes.StrExpr):
                self._use_key(kind, key)

    def _use_key(self, kind: types.Type | None, key: nodes.StrExpr) -> None:
        if kind is None or key.value not in self.words:
            return
        for part in parts_of(kind):
            if isinstance(part, types.TypedDictType) and part.fallback.type:
                new = self._dict_key_new(part.fallback.type, key.value)
                column = self._characters(key.line, key.column) + 1
                if new and self.lines[key.line - 1][column:].startswith(key.value):
                    self.edits.add(Edit(key.line, column, key.value, new))
                    return

    def _dict_key_new(self, info: nodes.TypeInfo, name: str) -> str | None:
        """The class of the hierarchy that declares a key is not known to mypy: look at all."""
        for base in info.mro:
            if new := self.renames.names.get(f"{base.fullname}.{name}"):
                return new
        return next(
            (n for b in TYPED_BASES.get(info.fullname, ()) if (n := self._dict_key_new(b, name))),
            None,
        )

    def _characters(self, line: int, column: int) -> int:
        """A column of mypy's, which counts bytes, in characters."""
        return len(self.lines[line - 1].encode()[:column].decode(errors="replace"))

    def _targets(self, o: nodes.MemberExpr) -> set[str] | None:
        """The full names that an attribute may mean; None if it is Any."""
        if o.fullname and not o.fullname.startswith("."):
            node = o.node
            if isinstance(node, (nodes.Var, nodes.FuncDef)) and node.info and node.info.fullname:
                return self._owner(node.info, o.name)
            return {o.fullname}
        found = self._type_of(o.expr)
        if found is None:
            return None
        return self._attribute(found, o.name)

    def _type_of(self, o: nodes.Expression) -> types.Type | None:
        """The type of an expression; in code that mypy takes for unreachable, that declared."""
        if (found := self.types.get(o)) is not None:
            return found
        if isinstance(o, nodes.NameExpr):
            if o.name == "self" and self.owners:
                return nodes_to_instance(self.owners[-1])
            return o.node.type if isinstance(o.node, nodes.Var) else None
        if isinstance(o, nodes.MemberExpr) and (owner := self._type_of(o.expr)) is not None:
            for part in parts_of(owner):
                for info in infos_of(part):
                    symbol = info.get(o.name)
                    if symbol is not None and isinstance(symbol.node, nodes.Var):
                        return symbol.node.type
        return None

    def _owner(self, info: nodes.TypeInfo, name: str) -> set[str]:
        owner = next((c for c in info.mro if name in c.names), None)
        return {f"{owner.fullname}.{name}"} if owner else set()

    def _attribute(self, kind: types.Type, name: str) -> set[str] | None:
        found = set[str]()
        for part in parts_of(kind):
            if isinstance(part, types.AnyType):
                return None
            for info in infos_of(part):
                if isinstance(part, types.Instance) and info.fullname == "types.ModuleType":
                    return None
                owned = self._owner(info, name)
                if not owned and (below := self._below(info, name)):
                    if len({self.renames.names.get(t) for t in below}) > 1:
                        return None
                    owned = below
                found |= owned
        return found

    def _below(self, info: nodes.TypeInfo, name: str) -> set[str]:
        """Where the static type is a base only: its subclasses that have the attribute."""
        return {f"{i.fullname}.{name}" for i in INFOS.values() if info in i.mro and name in i.names}

    # Keywords.

    def _use_call(self, o: nodes.CallExpr) -> None:
        self._dynamic(o)
        for arg, name in zip(o.args, o.arg_names, strict=True):
            if name is None or name not in self.words:
                continue
            owners = self._keyword_owners(o)
            if owners is None:
                self.unresolved.append((arg.line, f"{name}= of an untyped call"))
                continue
            news = {n for owner in owners if (n := self._field_new(owner, name))}
            if len(news) == 1:
                self._edit_keyword(o, arg, name, news.pop())
            elif len(news) > 1:
                self.unresolved.append((arg.line, f"{name}= {sorted(news)}"))

    def _field_new(self, owner: str, name: str) -> str | None:
        info = INFOS.get(owner)
        if info is None:
            return self.renames.names.get(f"{owner}.{name}")
        if info.typeddict_type is not None:
            return self._dict_key_new(info, name)
        for base in info.mro:
            if name in base.names:
                return self.renames.names.get(f"{base.fullname}.{name}")
        return None

    def _keyword_owners(self, o: nodes.CallExpr) -> set[str] | None:
        """The classes whose fields a call's keywords may be."""
        callee = o.callee
        if isinstance(callee, nodes.MemberExpr) and callee.name in ("_replace", "evolve"):
            kind = self.types.get(callee.expr)
            return None if kind is None else classes_of(kind)
        full = getattr(callee, "fullname", "") or ""
        if full in ("dataclasses.replace", "msgspec.structs.replace", "copy.replace") and o.args:
            kind = self.types.get(o.args[0])
            return None if kind is None else classes_of(kind)
        node = getattr(callee, "node", None)
        if isinstance(node, nodes.TypeInfo):
            return {node.fullname, *(b.fullname for b in TYPED_BASES.get(node.fullname, ()))}
        kind = self.types.get(callee)
        if kind is None:
            return set()
        proper = types.get_proper_type(kind)
        if isinstance(proper, types.AnyType):
            return None
        if isinstance(proper, types.TypeType):
            return classes_of(proper.item)
        if isinstance(proper, (types.CallableType, types.Overloaded)) and proper.is_type_obj():
            return {proper.type_object().fullname}
        return set()

    def _edit_keyword(self, o: nodes.CallExpr, arg: Any, name: str, new: str) -> None:
        """``name=`` stands before an argument, possibly behind parentheses or on a line before."""
        here = "\n".join([*self.lines[o.line - 1 : arg.line - 1], ""])
        here += self.lines[arg.line - 1][: self._characters(arg.line, arg.column)]
        found = re.search(rf"\b({re.escape(name)})\s*=\s*[(\s]*$", here)
        if found is None:
            self.unresolved.append((arg.line, f"{name}= not found"))
            return
        before = here[: found.start(1)]
        line = o.line + before.count("\n")
        self.edits.add(Edit(line, len(before.rpartition("\n")[2]), name, new))

    def _dynamic(self, o: nodes.CallExpr) -> None:
        """getattr, setattr and pytest's patch.setattr with a constant name."""
        name = getattr(o.callee, "name", "")
        if name not in ("getattr", "setattr", "hasattr", "delattr", "object") or len(o.args) < 2:
            return
        text = o.args[1]
        if not isinstance(text, nodes.StrExpr) or text.value not in self.words:
            return
        kind = self.types.get(o.args[0])
        node = getattr(o.args[0], "node", None)
        targets: set[str] | None = None
        if isinstance(node, nodes.TypeInfo):
            targets = self._owner(node, text.value)
        elif isinstance(node, nodes.MypyFile):
            targets = {f"{node.fullname}.{text.value}"}
        elif kind is not None:
            targets = self._attribute(kind, text.value)
        if targets is None:
            self.unresolved.append((text.line, f"{name}(..., {text.value!r})"))
            return
        news = {n for t in targets if (n := self.renames.names.get(t))}
        if len(news) == 1:
            column = self._characters(text.line, text.column) + 1
            self.edits.add(Edit(text.line, column, text.value, news.pop()))


_SKIPPED = {
    "node",
    "info",
    "type",
    "unanalyzed_type",
    "analyzed",
    "names",
    "original_def",
    "var",
    "unanalyzed_items",
    "impl",
    "def_var",
    "metaclass",
    "type_vars",
    "type_args",
    "typeddict",
    "assignments",
    "original_decorators",
    "removed_statements",
    "removed_base_type_exprs",
    "index_type",
    "inferred_item_type",
    "imports",
    "plugin_deps",
    "future_import_flags",
    "alias_deps",
    "ignored_lines",
    "unreachable_lines",
    "line_to_type",
    "method_types",
    "inferred_type",
    "unanalyzed_index_type",
    "inferred_iterator_type",
    "type_guard",
    "type_is",
}


@cache
def children(kind: type) -> tuple[str, ...]:
    """The attributes of a node that may hold nodes."""
    found = dict[str, None]()
    for base in kind.__mro__:
        found |= dict.fromkeys(getattr(base, "__mypyc_attrs__", ()))
    return tuple(n for n in found if n not in _SKIPPED and not n.startswith("_"))


class ScopedNames(cst.CSTVisitor):
    """Collects, by libcst's scopes, the edits of names: definitions, imports, uses."""

    METADATA_DEPENDENCIES = (QualifiedNameProvider, PositionProvider, ParentNodeProvider)

    def __init__(self, module: str, renames: Renames) -> None:
        super().__init__()
        self.module, self.renames = module, renames
        self.edits = set[Edit]()

    def visit_Name(self, node: cst.Name) -> None:
        parent = self.get_metadata(ParentNodeProvider, node)
        if isinstance(parent, cst.Attribute) and parent.attr is node:
            return
        if isinstance(parent, cst.Arg) and parent.keyword is node:
            return
        if isinstance(parent, cst.ImportAlias):
            self._imported(node, parent)
            return
        if isinstance(parent, cst.AsName):
            self._aliased(node, self.get_metadata(ParentNodeProvider, parent))
            return
        self._edit(node, self._new(node, node.value))

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self._edit(node.attr, self._new(node, node.attr.value))

    def visit_Annotation(self, node: cst.Annotation) -> None:
        self._texts(node.annotation)

    def _texts(self, node: cst.CSTNode) -> None:
        """Names in quoted annotations."""
        if isinstance(node, cst.Subscript) and dotted(node.value).endswith("Literal"):
            return
        if isinstance(node, cst.SimpleString):
            start = self.get_metadata(PositionProvider, node).start
            for hit in re.finditer(r"[A-Za-z_]\w*", node.value):
                if new := self.renames.names.get(f"{self.module}.{hit[0]}"):
                    self.edits.add(Edit(start.line, start.column + hit.start(), hit[0], new))
        for child in node.children:
            self._texts(child)

    def _imported(self, node: cst.Name, alias: cst.ImportAlias) -> None:
        statement = self.get_metadata(ParentNodeProvider, alias)
        if isinstance(statement, cst.ImportFrom) and statement.module is not None:
            module = dotted(statement.module)
            self._edit(node, self.renames.names.get(f"{module}.{node.value}"))

    def _aliased(self, node: cst.Name, alias: cst.CSTNode) -> None:
        """Rename ``X as X``."""
        if isinstance(alias, cst.ImportAlias) and alias.evaluated_name == node.value:
            self._imported(node, alias)

    def _new(self, node: cst.CSTNode, name: str) -> str | None:
        news = set[str | None]()
        places = self.get_metadata(QualifiedNameProvider, node, set())
        if not places and isinstance(node, cst.Name):  # a class that comes later
            return self.renames.names.get(f"{self.module}.{name}") if name[0].isupper() else None
        for found in places:
            full = found.name
            if found.source is QualifiedNameSource.BUILTIN:
                continue
            if found.source is QualifiedNameSource.LOCAL:
                if "<locals>" in full:
                    continue
                full = f"{self.module}.{full}"
            if full.rpartition(".")[2] == name:
                news.add(self.renames.names.get(full))
        return news.pop() if len(news) == 1 else None

    def _edit(self, node: cst.Name, new: str | None) -> None:
        if new is not None:
            start = self.get_metadata(PositionProvider, node).start
            self.edits.add(Edit(start.line, start.column, node.value, new))


def dotted(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        return f"{dotted(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""


NOTEBOOKS: dict[str, Path] = {}
"""By script that mypy reads, the notebook that it stands for."""
_CELL = "# %% cell "


def notebook_script(path: Path) -> str:
    """Return the code of a notebook, cell after cell."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = []
    for n, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            parts.append(f"{_CELL}{n}\n{''.join(cell['source'])}\n")
    return "".join(parts)


def write_notebook(path: Path, script: str) -> None:
    """Put the code of a script back into the cells of its notebook."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for part in script.split(_CELL)[1:]:
        number, _, source = part.partition("\n")
        lines = source.removesuffix("\n").splitlines(keepends=True)
        notebook["cells"][int(number)]["source"] = lines
    body = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    path.write_text(body, encoding="utf-8")


INFOS: dict[str, nodes.TypeInfo] = {}
TYPED_BASES: dict[str, list[nodes.TypeInfo]] = {}
"""By TypedDict, those that it inherits from, which mypy folds into it."""


def parts_of(kind: types.Type) -> Iterator[types.Type]:
    """The members of a union, proper."""
    proper = types.get_proper_type(kind)
    if isinstance(proper, types.UnionType):
        for item in proper.items:
            yield from parts_of(item)
    elif isinstance(proper, types.TypeVarType):
        yield from parts_of(proper.upper_bound)
    elif not isinstance(proper, types.NoneType):
        yield proper


def infos_of(kind: types.Type) -> list[nodes.TypeInfo]:
    if isinstance(kind, types.Instance):
        return [kind.type]
    if isinstance(kind, types.TupleType):
        return [kind.partial_fallback.type]
    if isinstance(kind, types.LiteralType):
        return [kind.fallback.type]
    if isinstance(kind, types.TypeType):
        return [i for part in parts_of(kind.item) for i in infos_of(part)]
    if isinstance(kind, (types.CallableType, types.Overloaded)) and kind.is_type_obj():
        return [kind.type_object()]
    return []


def classes_of(kind: types.Type) -> set[str] | None:
    found = set[str]()
    for part in parts_of(kind):
        if isinstance(part, types.AnyType):
            return None
        found |= {i.fullname for i in infos_of(part)}
    return found


def apply(lines: list[str], edits: set[Edit]) -> list[str]:
    """Return the lines with all edits made, the last of a line first."""
    by_line = defaultdict(list)
    for edit in edits:
        by_line[edit.line].append(edit)
    done = [*lines]
    for number, several in by_line.items():
        line = done[number - 1]
        for edit in sorted(several, key=lambda e: -e.column):
            end = edit.column + len(edit.old)
            if line[edit.column : end] != edit.old:
                print(f"skipped {edit} in {done[number - 1]!r}", file=sys.stderr)
                continue
            line = line[: edit.column] + edit.new + line[end:]
        done[number - 1] = line
    return done


def collect_infos(result: build.BuildResult) -> None:
    for tree in result.files.values():
        for symbol in tree.names.values():
            if isinstance(symbol.node, nodes.TypeInfo):
                INFOS[symbol.node.fullname] = symbol.node
                _collect_inner(symbol.node)
    for info in INFOS.values():
        if info.typeddict_type is not None and info.defn is not None:
            bases = [getattr(b, "node", None) for b in info.defn.base_type_exprs]
            bases += [getattr(b, "node", None) for b in info.defn.removed_base_type_exprs]
            TYPED_BASES[info.fullname] = [b for b in bases if isinstance(b, nodes.TypeInfo)]


def _collect_inner(info: nodes.TypeInfo) -> None:
    for symbol in info.names.values():
        if isinstance(symbol.node, nodes.TypeInfo) and symbol.node.fullname not in INFOS:
            INFOS[symbol.node.fullname] = symbol.node
            _collect_inner(symbol.node)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", type=Path, nargs="+")
    parser.add_argument("--only", default="")
    parser.add_argument("--kinds", default=",".join(sorted(CODE_KINDS)))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", type=Path, default=Path("unresolved.txt"))
    options = parser.parse_args()
    renames = Renames.read(options.names, options.only, set(options.kinds.split(",")))
    result = build_types(ROOT)
    collect_infos(result)
    renames.inherit()
    total, listed = 0, list[str]()
    for module, tree in sorted(result.files.items()):
        path = Path(tree.path).resolve()
        notebook = NOTEBOOKS.get(str(path))
        if notebook is None and (
            not path.is_file() or ROOT not in path.parents or ".venv" in path.parts
        ):
            continue
        text = path.read_text(encoding="utf-8")
        lines = text.split("\n")
        uses = TypedUses(lines, result.types, renames)
        uses.walk(tree.defs)
        names = ScopedNames(module, renames)
        MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True).visit(names)
        edits = uses.edits | names.edits
        shown = (notebook or path).relative_to(ROOT)
        listed += [f"{shown}:{n}: {what}" for n, what in uses.unresolved]
        total += len(edits)
        if options.write and edits:
            changed = "\n".join(apply(lines, edits))
            if notebook is None:
                path.write_text(changed, encoding="utf-8")
            else:
                write_notebook(notebook, changed)
    options.list.write_text("\n".join(listed) + "\n")
    print(f"{total} edits, {len(listed)} unresolved, {len(result.errors)} errors of mypy")
    if options.list:
        options.list.with_suffix(".errors").write_text("\n".join(result.errors))


if __name__ == "__main__":
    main()
