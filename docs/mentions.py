"""Where the project mentions what the papers number: in docstrings, comments and texts, in names of
tests, in cells of notebooks. ``papers.toml`` lists what there is to mention.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent
FOLDERS = ("toolkit/braid", "widgets/braid_widgets", "tests", "benchmarks")
KINDS = ("Figure", "Table", "Theorem", "Lemma", "Algorithm", "Definition", "Equation")

_SHORT = {"Fig": "Figure", "Eq": "Equation", "Alg": "Algorithm", "Th": "Theorem"}
_KIND = r"(Fig|Table|Alg|Th|Definition|Eq|[Ff]igure|[Tt]heorem|[Ll]emma|[Aa]lgorithm|[Ee]quation)s?"
_NUMBER = r"\d+(?:\.\d+)?(?!\w*-)"
_PANEL = r"(?:\s?\([a-z]\)(?:[, ]+\([a-z]\))*|[a-z]\b)?"
_ASIDE = r"(?:\s\([^()]*\))?"
_AND = r"(?:,? and |, | to | or )"
_MENTION = re.compile(
    rf"\b{_KIND}\.?[ _]({_NUMBER}{_PANEL}{_ASIDE}(?:{_AND}{_NUMBER}{_PANEL}{_ASIDE})*)"
)
_NAMED = re.compile(
    r"(?:^|_)(figure|table|theorem|lemma|algorithm|equation)_(\d+)(?:_(\d+))?(?=_|$)"
)
_PERHAPS = re.compile(rf"(?:{_KIND}|table)\.?[\s#_]+\d")
"""In every file that mentions something, in a text that may go over lines or in a name."""


class Item(NamedTuple):
    """A numbered part of a paper: ``paper`` as papers.toml calls it, ``kind`` one of KINDS."""

    paper: str
    kind: str
    number: str


class Place(NamedTuple):
    """Where something is mentioned: a part of the page's table, and the words for the place."""

    column: str
    text: str


@dataclass(frozen=True)
class Paper:
    """A paper and what it numbers: captions by kind and number, in the paper's order.

    ``names`` are what authors are called in the text, ``folders`` what the code of this paper is
    filed under, ``words`` what says what a thing is and leaves nothing to check, ``printed`` by
    figure which numbers of its curves the text states, ``found`` by title ("Equation 13.1") what is
    wrong or left open in what is tried by tests alone.
    """

    cite: str
    names: tuple[str, ...]
    folders: tuple[str, ...]
    words: tuple[str, ...]
    printed: Mapping[str, str]
    found: Mapping[str, str]
    numbered: Mapping[str, Mapping[str, str]]


class Unknown(ValueError):
    """A mention that no paper has, or that two papers have and nothing says which is meant."""


def papers(file: Path = HERE / "papers.toml") -> dict[str, Paper]:
    """The papers by their names in the file."""
    return {
        name: Paper(
            data["cite"],
            tuple(data["names"]),
            tuple(data["folders"]),
            tuple(data.get("words", ())),
            data.get("Printed", {}),
            data.get("Found", {}),
            {kind: data[kind] for kind in KINDS if kind in data},
        )
        for name, data in tomllib.loads(file.read_text()).items()
    }


@dataclass
class Finder:
    """Finds mentions in the texts of one file. ``hints`` are names of papers, likeliest first, for
    numbers that several papers have and texts that name none.
    """

    papers: Mapping[str, Paper]
    hints: tuple[str, ...] = ()

    def items(self, text: str) -> Iterator[Item]:
        """The items that a text mentions. Raises Unknown."""
        for found in _MENTION.finditer(text):
            kind = _SHORT.get(found[1], found[1].capitalize())
            numbers = re.sub(r"\([^()]*\)", "", found[2])
            yield from self._spread(kind, numbers, text, found.start())

    def named(self, name: str) -> Iterator[Item]:
        """The items that the name of a test mentions, such as test_lemma_4_4_holds."""
        for found in _NAMED.finditer(name):
            for number in (f"{found[2]}.{found[3]}", found[2]):
                if self._having(kind := found[1].capitalize(), number):
                    yield self._item(kind, number, name, 0)
                    break

    def _spread(self, kind: str, numbers: str, text: str, at: int) -> Iterator[Item]:
        """A list of numbers such as "5.8 to 5.10, 8.1": ranges in the order of the paper."""
        for k, part in enumerate(re.split(r",? and |, | or ", numbers)):
            try:
                ends = [self._item(kind, n, text, at) for n in re.findall(r"\d+(?:\.\d+)?", part)]
            except Unknown:
                if k == 0:
                    raise
                return  # "Fig. 14.1, 3 to 5 nodes" goes on about something else
            yield from ends[:1]
            for first, last in pairwise(ends):
                order = list(self.papers[first.paper].numbered[kind])
                lo, hi = order.index(first.number), order.index(last.number)
                yield from (Item(first.paper, kind, n) for n in order[lo + 1 : hi + 1])

    def _having(self, kind: str, number: str) -> list[str]:
        return [p for p, paper in self.papers.items() if number in paper.numbered.get(kind, ())]

    def _item(self, kind: str, number: str, text: str, at: int) -> Item:
        having = self._having(kind, number)
        if len(having) > 1:
            having = [p for p in self._meant(text, at) if p in having][:1]
        if not having:
            raise Unknown(f"{kind} {number}: of which paper? In: {' '.join(text.split())[:120]!r}")
        return Item(having[0], kind, number)

    def _meant(self, text: str, at: int) -> list[str]:
        """Papers in the order in which they are likely meant at a place of a text."""
        distance = {}
        for name, paper in self.papers.items():
            for author in paper.names:
                for found in re.finditer(rf"\b{author}\b", text):
                    away = at - found.start()
                    distance[name] = min(
                        distance.get(name, sys.maxsize), away if away > 0 else 1000 - away
                    )
        return [*sorted(distance, key=distance.__getitem__), *self.hints]


def _hints(path: Path, source: str, all_papers: Mapping[str, Paper]) -> tuple[str, ...]:
    """Papers by what a file is filed under, by whom it names first, and by what it imports."""
    filed = [
        p for p, paper in all_papers.items() if {*path.parts, path.stem}.intersection(paper.folders)
    ]
    named = {p: min(map(source.find, paper.names)) for p, paper in all_papers.items()}
    used = [
        p
        for p, paper in all_papers.items()
        if any(re.search(rf"\b(papers|braid_widgets)\.{f}\b", source) for f in paper.folders)
    ]
    present = sorted((p for p, at in named.items() if at >= 0), key=named.__getitem__)
    return (*filed, *present, *used)


def in_python(path: Path, all_papers: Mapping[str, Paper]) -> Iterator[tuple[Item, Place]]:
    """Mentions in a Python file. Raises Unknown with file and line."""
    source = path.read_text()
    if not _PERHAPS.search(source):
        return
    where = path.relative_to(ROOT)
    column = "tests" if where.parts[0] == "tests" else "code"
    owners = _owners(ast.parse(source))
    finder = Finder(all_papers, _hints(where, source, all_papers))
    for line, text in _texts(source):
        try:
            for item in finder.items(text):
                owner = max((o for o in owners if o[0] <= line <= o[1]), default=(0, 0, ""))[2]
                yield item, Place(column, _place(where, owner))
        except Unknown as error:
            raise Unknown(f"{where}:{line}: {error}") from None
    for _, _, owner in owners:
        for item in finder.named(owner.rpartition(".")[2]):
            yield item, Place(column, _place(where, owner))


def _place(where: Path, owner: str) -> str:
    inside = ("toolkit", "widgets", "tests")
    short = Path(*where.parts[1:]) if where.parts[0] in inside else where
    return f"{short}" + (f" `{owner}`" if owner else "")


def _owners(tree: ast.Module) -> list[tuple[int, int, str]]:
    """(first line, last line, qualified name) of every function, class and documented constant."""
    found: list[tuple[int, int, str]] = []

    def visit(node: ast.AST, prefix: str) -> None:
        body = getattr(node, "body", [])
        for child, follower in zip_longest(body, body[1:]):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                found.append((child.lineno, child.end_lineno or 0, prefix + child.name))
                visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.Assign | ast.AnnAssign):
                target = child.targets[0] if isinstance(child, ast.Assign) else child.target
                last = follower if isinstance(follower, ast.Expr) else child
                if isinstance(target, ast.Name):
                    found.append((child.lineno, last.end_lineno or 0, prefix + target.id))

    visit(tree, "")
    return found


def _texts(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of every comment and string. Comments on adjoining lines are one text."""
    comment: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            if comment and line != last + 1:
                yield start, " ".join(comment)
                comment = []
            start, last = (start if comment else line), line
            comment.append(token.string.lstrip("# "))
        elif tokenize.tok_name[token.type] in ("STRING", "FSTRING_MIDDLE"):
            yield line, " ".join(token.string.split())
    if comment:
        yield start, " ".join(comment)


def in_notebook(path: Path, all_papers: Mapping[str, Paper]) -> Iterator[tuple[Item, Place]]:
    """Mentions in the cells of a notebook, by its heading and number (the first cell is 1)."""
    cells = ["".join(c["source"]) for c in json.loads(path.read_text())["cells"]]
    finder = Finder(all_papers, _hints(path, "\n".join(cells), all_papers))
    for number, text in enumerate(cells, 1):
        for item in finder.items(" ".join(text.split())):
            yield item, Place("notebooks", f"{path.stem} [{number}]")


@cache
def index() -> dict[Item, dict[str, list[str]]]:
    """For every item of every paper: places by column ("code", "tests", "notebooks")."""
    known = papers()
    found = {
        Item(p, kind, number): {"code": [], "tests": [], "notebooks": []}
        for p, paper in known.items()
        for kind, numbers in paper.numbered.items()
        for number in numbers
    }
    for item, place in _everywhere(known):
        places: list[str] = found[item][place.column]
        if place.text not in places:
            places.append(place.text)
    return found


def _everywhere(known: Mapping[str, Paper]) -> Iterator[tuple[Item, Place]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.name != "test_docs.py":  # its mentions are examples
                yield from in_python(path, known)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        yield from in_notebook(path, known)
