"""Measure the words of the code: names of modules, functions and fields, docstrings, and pages.

``python tests/words.py`` (``make words``) prints the figures, and the lines of ``toolkit/braid``.
``tests/unit/test_names.py`` compares them with the limits in ``tests/unit/names_ratchet.toml``.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from line_origins import print_package_lines
from structure_figures import print_structure

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("toolkit/braid", "toolkit/braid_lab", "widgets/braid_widgets")
"""The folders whose names count together, as those of ``packages``."""
AREAS = (*PACKAGES, "benchmarks", "docs", "tests")
"""All folders whose names count."""
_HELPER_RULES = ("stop list: function", "ends in _of")
"""Rules of names that count in tests, too."""
_SAYS_NOTHING = """
    told tells telling found kept made came come whole known asked asking said says mine ours own
    again anew beside apart abreast twin somebody weakly did owed reign reaper things nobody
    blueprint carriage coin echo ghost seal
"""
STOP_LIST = frozenset(_SAYS_NOTHING.split())
"""Words that tell nothing to a reader who does not know the code yet."""
BOOLEAN_PREFIXES = ("is", "has", "can", "may", "needs", "should", "checks", "are", "was", "would")
STATE_PREFIXES = tuple(p for p in BOOLEAN_PREFIXES if p not in ("checks", "needs"))
"""Prefixes after which a name cannot hold anything but a boolean; others can be verbs."""
_BOOLEAN_TYPE = re.compile(r"bool( \| None)?|NotRequired\[bool\]|Callable\[.*, bool\]")
GIVEN_NAMES = frozenset({"main", "awaitTermination", "writable", "partitions", "read"})
"""Names of functions that are given by convention, by Spark or by Python."""
_OPENINGS = re.compile(r"(What|Who|Whom|Of|By|That|Where|Those|So)\b")
_PHRASES = re.compile(
    r"\bso many\b[^.]*\bas\b|\b(is|are) told\b|\bas far as it\b|\bthere is none of\b|\bwho does\b"
    r"|\bwhoever\b|\bof which\b|\blies\b|\blie\b"
)
_PAGE_OPENINGS = re.compile(_OPENINGS.pattern[:-2] + r"(ever)?\b")
_PAGE_PHRASES = re.compile(
    _PHRASES.pattern
    + r"|\b(told|nobody|somebody|whatever|whichever)\b|\b(is|are|was|by|than) what\b"
)
"""Phrases that pages avoid; docstrings avoid some of them."""
PAGES = {
    "docs": "docs/*.md",
    "docs/papers": "docs/papers/*.md",
    "docs/teaching": "docs/teaching/*.md",
    "root pages": "*.md",
    "notebooks": "notebooks/**/*.ipynb",
}
"""The folders in which sentences of pages are counted, by name, with a pattern of their files."""
_LONGEST_SENTENCE = 30
"""Maximum number of words of a sentence of a page, or of a docstring's first paragraph."""


@dataclass(frozen=True, order=True)
class Finding:
    """A name or a sentence that breaks a rule."""

    rule: str
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


@dataclass
class Words:
    """Names and findings of some source files."""

    functions: dict[str, list[str]] = field(default_factory=dict)
    docstrings: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def one_word_share(self, area: str) -> float:
        """Return the share of an area's function names that have one word."""
        return fmean(len(split_words(f)) == 1 for f in self.functions[area])

    def mean_words(self, area: str) -> float:
        """Return the mean number of words of an area's function names."""
        return fmean(len(split_words(f)) for f in self.functions[area])

    def count(self, rule: str) -> int:
        """Return how often a rule is broken."""
        return sum(f.rule == rule for f in self.findings)

    def prose_share(self, folder: str) -> float:
        """Return the share of a folder's docstrings that break a rule of prose."""
        broken = {
            (f.path, f.line)
            for f in self.findings
            if f.rule.startswith("prose") and find_folder(f.path) == folder
        }
        return len(broken) / max(1, self.docstrings.get(folder, 0))


def split_words(name: str) -> list[str]:
    """Return the words of a name.

    >>> split_words("_read_manifest"), split_words("awaitTermination")
    (['read', 'manifest'], ['await', 'termination'])
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [w.lower() for w in spaced.split("_") if w]


def find_folder(path: str) -> str:
    """Return the folder for which prose is counted, as ``toolkit/braid/core``."""
    parts = Path(path).parts
    return "/".join(parts[:-1][:3])


def measure_words(root: Path = ROOT) -> Words:
    """Return the names and findings of all Python sources of the project."""
    found = Words()
    allowed = paper_words(root)
    for folder in AREAS:
        for path in sorted((root / folder).rglob("*.py")):
            if "node_modules" not in path.parts:
                _measure_file(path, root, found, allowed)
    return found


def paper_words(root: Path) -> dict[str, frozenset[str]]:
    """Return, by folder of a paper, the words of that paper that its code may use."""
    papers = tomllib.loads((root / "docs/papers.toml").read_text())
    return {
        folder: frozenset(paper["vocabulary"])
        for paper in papers.values()
        if isinstance(paper, dict) and "vocabulary" in paper
        for folder in paper["folders"]
    }


def _measure_file(path: Path, root: Path, found: Words, allowed: dict[str, frozenset[str]]) -> None:
    name = str(path.relative_to(root))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    area = "packages" if name.startswith(PACKAGES) else Path(name).parts[0]
    words = next((w for f, w in allowed.items() if f"/{f}/" in name), frozenset[str]())
    found.functions.setdefault(area, []).extend(n.name for n in _functions(tree) if _is_chosen(n))
    broken = _check_names(tree, name, STOP_LIST - words)
    if area == "tests":  # where only helpers count
        broken = (replace(f, rule=f"tests: {f.rule}") for f in broken if f.rule in _HELPER_RULES)
    found.findings += broken
    found.findings += _check_questions(tree, name)
    found.findings += _check_prose(tree, name, found.docstrings)


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_special(node.name):
            yield node


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_chosen(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a name is free to choose: not given, not that of a test or of a fixture."""
    is_fixture = any("fixture" in ast.unparse(each) for each in node.decorator_list)
    return not (is_fixture or node.name.startswith("test_") or node.name in GIVEN_NAMES)


def _check_names(tree: ast.Module, path: str, stops: frozenset[str]) -> Iterator[Finding]:
    stem = Path(path).stem
    if stem in stops:
        yield Finding("stop list: module", path, 1, stem)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _check_function(node, path, stops)
        elif isinstance(node, ast.ClassDef) and {*split_words(node.name)} & stops:
            yield Finding("stop list: class", path, node.lineno, node.name)
        elif (named := _find_given_name(node)) and named[1].strip("_") in stops:
            yield Finding(f"stop list: {named[0]}", path, node.lineno, named[1])
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name | ast.Attribute):
            yield from _check_boolean(node.target, node.annotation, path)
        elif isinstance(node, ast.arg) and node.annotation is not None:
            yield from _check_boolean(node, node.annotation, path)


def _find_given_name(node: ast.AST) -> tuple[str, str] | None:
    """Return the kind and the name that a node gives to a value; None: it gives none."""
    if isinstance(node, ast.arg):
        return "parameter", node.arg
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return "assigned name", node.id
    if isinstance(node, ast.ExceptHandler) and node.name:
        return "assigned name", node.name
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return "attribute", node.attr
    return None


def _check_function(
    node: ast.FunctionDef | ast.AsyncFunctionDef, path: str, stops: frozenset[str]
) -> Iterator[Finding]:
    words = split_words(node.name)
    if node.returns is not None:
        yield from _check_boolean(node, node.returns, path)
    if node.name.strip("_") in stops:
        yield Finding("stop list: function", path, node.lineno, node.name)
    if len(words) > 1 and words[-1] == "of":
        yield Finding("ends in _of", path, node.lineno, node.name)


def _check_questions(tree: ast.Module, path: str) -> Iterator[Finding]:
    """Yield a finding for each public boolean function whose name asks no question."""
    for node in _functions(tree):
        is_boolean = isinstance(node.returns, ast.Name) and node.returns.id == "bool"
        if is_boolean and not node.name.startswith(("_", "pytest_")) and not _asks(node.name):
            yield Finding("boolean asks no question", path, node.lineno, node.name)


def _check_boolean(
    named: ast.Name | ast.Attribute | ast.arg | ast.FunctionDef | ast.AsyncFunctionDef,
    annotation: ast.expr,
    path: str,
) -> Iterator[Finding]:
    """Yield a finding if a name reads like a boolean and its annotation is another type."""
    name = next(n for f in ("id", "attr", "arg", "name") if (n := getattr(named, f, None)))
    prefix = "".join(split_words(name)[:1])
    if prefix in STATE_PREFIXES and not _BOOLEAN_TYPE.fullmatch(ast.unparse(annotation)):
        yield Finding("boolean name of no boolean", path, named.lineno, name)


def _asks(name: str) -> bool:
    """Return whether a name is a question, or that of an action that may fail (``try_``)."""
    first = split_words(name)[0]
    return first in (*BOOLEAN_PREFIXES, "try") or first.endswith("s") or name in GIVEN_NAMES


def _check_prose(tree: ast.Module, path: str, counts: dict[str, int]) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if not (text := ast.get_docstring(node)):
            continue
        folder = find_folder(path)
        counts[folder] = counts.get(folder, 0) + 1
        line = node.body[0].lineno
        for rule in broken_prose_rules(text):
            yield Finding(f"prose: {rule}", path, line, text.splitlines()[0][:80])


def broken_prose_rules(text: str) -> Iterator[str]:
    """Yield the rules that a docstring breaks.

    >>> [*broken_prose_rules("What came of it is told.")]
    ['opening', 'phrase']
    """
    first = text.split("\n\n")[0].replace("\n", " ")
    if _OPENINGS.match(first):
        yield "opening"
    if _PHRASES.search(text.replace("\n", " ")):
        yield "phrase"
    sentences = re.split(r"(?<=[.;:!?])\s", first)
    if any(len(s.split()) > _LONGEST_SENTENCE for s in sentences):
        yield "long sentence"


@dataclass
class PageProse:
    """Sentences of some pages.

    - ``sentences``: number of sentences of paragraphs, lists and cells of tables.
    - ``findings``: sentences that are long, or have an opening or a phrase that the style avoids.
    """

    sentences: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def broken_share(self) -> float:
        """Return the share of sentences that break a rule."""
        return len(self.findings) / max(1, self.sentences)


def measure_pages(pattern: str, root: Path = ROOT) -> PageProse:
    """Return the sentences of all pages whose path matches a pattern."""
    prose = PageProse()
    for path in sorted(root.glob(pattern)):
        for line, sentence in _split_sentences(_read_markdown(path)):
            prose.sentences += 1
            if rule := _find_page_fault(sentence):
                name = str(path.relative_to(root))
                prose.findings.append(Finding(f"page: {rule}", name, line, sentence[:80]))
    return prose


def _read_markdown(path: Path) -> str:
    """Return the text of a page, or of the Markdown cells of a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    cells = (c for c in json.loads(text)["cells"] if c["cell_type"] == "markdown")
    return "\n\n".join("".join(c["source"]) for c in cells)


def _split_sentences(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a page, each with the line at which its paragraph begins."""
    for line, paragraph in _split_paragraphs(markdown):
        plain = re.sub(r"<!--.*?-->", " ", paragraph)
        plain = re.sub(r"`[^`]*`", "x", re.sub(r"\](\([^)]*\)|\[[^]]*\])", "]", plain))
        for sentence in re.split(r"(?<!\bFig\.)(?<!\bEq\.)(?<=[.;:!?])[*_\")]*\s+", plain):
            if len(sentence.split()) > 2:
                yield line, sentence.strip().lstrip('*_"([')


def _split_paragraphs(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield paragraphs, items of lists and cells of tables with their first line; no code."""
    first, words, is_code = 0, list[str](), False
    for number, line in enumerate([*markdown.splitlines(), ""], 1):
        text = line.strip()
        is_fence = text.startswith("```")
        is_code = is_code != is_fence
        item = re.match(r"([-*+]|\d+\.|>) +", text)
        if words and (not text or item or is_fence or is_code or text[0] in "#|<"):
            yield first, " ".join(words)
            words = []
        if text.startswith("|") and not is_code:
            yield from ((number, cell) for cell in text.strip("|").split(" | "))
        elif text and not is_code and not is_fence and text[0] not in "#|":
            first = first if words else number
            words.append(text[item.end() :] if item else text)


def _find_page_fault(sentence: str) -> str:
    """Return the rule that a sentence breaks; empty if it breaks none. A question breaks none."""
    if not sentence.endswith("?") and (opening := _PAGE_OPENINGS.match(sentence)):
        return f"opening {opening[0]!r}"
    if phrase := _PAGE_PHRASES.search(sentence):
        return f"phrase {phrase[0]!r}"
    return "long sentence" if len(sentence.split()) > _LONGEST_SENTENCE else ""


def check_subject(subject: str) -> str:
    """Return what is wrong with the subject of a commit; empty if nothing is.

    >>> check_subject("Refuse arguments that no rule reads")
    ''
    >>> check_subject("What a zone means.")
    'it ends with a full stop; it begins with What, a question word'
    """
    faults = []
    if len(subject.split()) < 2:
        faults.append(f"it is {subject!r}, at least two words are expected")
    if len(subject) > 72:
        faults.append(f"it has {len(subject)} characters, at most 72 are accepted")
    if subject.endswith("."):
        faults.append("it ends with a full stop")
    if opening := _OPENINGS.match(subject):
        faults.append(f"it begins with {opening[0]}, a question word")
    return "; ".join(faults)


def main() -> None:
    """Print the figures."""
    words = measure_words()
    for area, names in words.functions.items():
        share, mean = words.one_word_share(area), words.mean_words(area)
        print(f"{area}: {len(names)} functions, {share:.3f} of one word, mean words {mean:.2f}")
    limits = tomllib.loads((ROOT / "tests/unit/names_ratchet.toml").read_text(encoding="utf-8"))
    for rule in sorted({*limits["names"], *(f.rule for f in words.findings)}):
        print(f"{rule}: {words.count(rule)}")
    for folder in sorted(words.docstrings):
        print(f"prose {folder}: {words.prose_share(folder):.3f} of {words.docstrings[folder]}")
    for folder, pattern in PAGES.items():
        prose = measure_pages(pattern)
        print(f"pages {folder}: {prose.broken_share:.4f} of {prose.sentences} sentences")
    print_structure(ROOT)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    print(f"CHANGELOG bullets {sum(line.startswith('- ') for line in changes)}")
    print(f"README lines {len((ROOT / 'README.md').read_text(encoding='utf-8').splitlines())}")
    print_package_lines(ROOT)


if __name__ == "__main__":
    main()
