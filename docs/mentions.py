"""Find where the project mentions numbered items of the papers.

Mentions are in docstrings, comments and texts, in names of tests, and in cells of notebooks.
``papers.toml`` lists the items.
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
    """A place of a mention: a column of the page's table, and the text for the place."""

    column: str
    text: str


@dataclass(frozen=True)
class Paper:
    """A paper and its numbered items: captions by kind and number, in the paper's order.

    - ``names``: the authors, as texts name them.
    - ``folders``: folders of this paper's code.
    - ``words``: items that state only what something is, with nothing to check.
    - ``printed``: by figure, the numbers of its curves that the text states.
    - ``remarks``: by title ("Equation 13.1"), faults and open points of what only tests cover.
    """

    cite: str
    names: tuple[str, ...]
    folders: tuple[str, ...]
    words: tuple[str, ...]
    printed: Mapping[str, str]
    remarks: Mapping[str, str]
    numbered: Mapping[str, Mapping[str, str]]


class UnknownItemError(ValueError):
    """Raised for a mention of an item that no paper has, or that two papers have."""


def read_papers(file: Path = HERE / "papers.toml") -> dict[str, Paper]:
    """Return the papers by their names in the file."""
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
    """A finder of mentions in the texts of one file.

    ``hints`` are names of papers, likeliest first, for numbers that several papers have and texts
    that name none.
    """

    papers: Mapping[str, Paper]
    hints: tuple[str, ...] = ()

    def find_items(self, text: str) -> Iterator[Item]:
        """Yield the items that a text mentions. Raises UnknownItemError."""
        for match in _MENTION.finditer(text):
            kind = _SHORT.get(match[1], match[1].capitalize())
            numbers = re.sub(r"\([^()]*\)", "", match[2])
            yield from self._expand_numbers(kind, numbers, text, match.start())

    def find_named(self, name: str) -> Iterator[Item]:
        """Yield the items that the name of a test mentions, such as test_lemma_4_4_holds."""
        for match in _NAMED.finditer(name):
            for number in (f"{match[2]}.{match[3]}", match[2]):
                if self._list_having(kind := match[1].capitalize(), number):
                    yield self._make_item(kind, number, name, 0)
                    break

    def _expand_numbers(self, kind: str, numbers: str, text: str, at: int) -> Iterator[Item]:
        """Yield the items of numbers such as "5.8 to 5.10, 8.1", ranges in the paper's order."""
        for k, part in enumerate(re.split(r",? and |, | or ", numbers)):
            try:
                ends = [
                    self._make_item(kind, n, text, at) for n in re.findall(r"\d+(?:\.\d+)?", part)
                ]
            except UnknownItemError:
                if k == 0:
                    raise
                return  # "Fig. 14.1, 3 to 5 nodes" goes on about something else
            yield from ends[:1]
            for first, last in pairwise(ends):
                order = list(self.papers[first.paper].numbered[kind])
                lo, hi = order.index(first.number), order.index(last.number)
                yield from (Item(first.paper, kind, n) for n in order[lo + 1 : hi + 1])

    def _list_having(self, kind: str, number: str) -> list[str]:
        return [p for p, paper in self.papers.items() if number in paper.numbered.get(kind, ())]

    def _make_item(self, kind: str, number: str, text: str, at: int) -> Item:
        having = self._list_having(kind, number)
        if len(having) > 1:
            having = [p for p in self._rank_meant(text, at) if p in having][:1]
        if not having:
            raise UnknownItemError(
                f"{kind} {number} names no paper, in: {' '.join(text.split())[:120]!r}"
            )
        return Item(having[0], kind, number)

    def _rank_meant(self, text: str, at: int) -> list[str]:
        """Return the papers by how likely they are meant at a place of a text."""
        distance = {}
        for name, paper in self.papers.items():
            for author in paper.names:
                for match in re.finditer(rf"\b{author}\b", text):
                    away = at - match.start()
                    distance[name] = min(
                        distance.get(name, sys.maxsize), away if away > 0 else 1000 - away
                    )
        return [*sorted(distance, key=distance.__getitem__), *self.hints]


def _rank_papers(path: Path, source: str, all_papers: Mapping[str, Paper]) -> tuple[str, ...]:
    """Return the papers of a file's folder, of its names of authors, and of its imports."""
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


def find_in_python(path: Path, all_papers: Mapping[str, Paper]) -> Iterator[tuple[Item, Place]]:
    """Yield the mentions in a Python file. Raises UnknownItemError with file and line."""
    source = path.read_text()
    if not _PERHAPS.search(source):
        return
    where = path.relative_to(ROOT)
    column = "tests" if where.parts[0] == "tests" else "code"
    owners = _list_owners(ast.parse(source))
    finder = Finder(all_papers, _rank_papers(where, source, all_papers))
    for line, text in _read_texts(source):
        try:
            for item in finder.find_items(text):
                owner = max((o for o in owners if o[0] <= line <= o[1]), default=(0, 0, ""))[2]
                yield item, Place(column, _format_place(where, owner))
        except UnknownItemError as error:
            raise UnknownItemError(f"{where}:{line}: {error}") from None
    for _, _, owner in owners:
        for item in finder.find_named(owner.rpartition(".")[2]):
            yield item, Place(column, _format_place(where, owner))


def _format_place(where: Path, owner: str) -> str:
    inside = ("toolkit", "widgets", "tests")
    short = Path(*where.parts[1:]) if where.parts[0] in inside else where
    return f"{short}" + (f" `{owner}`" if owner else "")


def _list_owners(tree: ast.Module) -> list[tuple[int, int, str]]:
    """Return first line, last line and name of each function, class and documented constant."""
    owners: list[tuple[int, int, str]] = []

    def visit_body(node: ast.AST, prefix: str) -> None:
        body = getattr(node, "body", [])
        for child, follower in zip_longest(body, body[1:]):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                owners.append((child.lineno, child.end_lineno or 0, prefix + child.name))
                visit_body(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.Assign | ast.AnnAssign):
                target = child.targets[0] if isinstance(child, ast.Assign) else child.target
                last = follower if isinstance(follower, ast.Expr) else child
                if isinstance(target, ast.Name):
                    owners.append((child.lineno, last.end_lineno or 0, prefix + target.id))

    visit_body(tree, "")
    return owners


def _read_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of comments and strings. Comments on adjoining lines are one text."""
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


def find_in_notebook(path: Path, all_papers: Mapping[str, Paper]) -> Iterator[tuple[Item, Place]]:
    """Yield the mentions in the cells of a notebook; the first cell has number 1."""
    cells = ["".join(c["source"]) for c in json.loads(path.read_text())["cells"]]
    finder = Finder(all_papers, _rank_papers(path, "\n".join(cells), all_papers))
    for number, text in enumerate(cells, 1):
        for item in finder.find_items(" ".join(text.split())):
            yield item, Place("notebooks", f"{path.stem} [{number}]")


@cache
def index_mentions() -> dict[Item, dict[str, list[str]]]:
    """Return the places of each item by column ("code", "tests", "notebooks")."""
    papers = read_papers()
    places_by_item = {
        Item(p, kind, number): {"code": [], "tests": [], "notebooks": []}
        for p, paper in papers.items()
        for kind, numbers in paper.numbered.items()
        for number in numbers
    }
    for item, place in _find_everywhere(papers):
        places: list[str] = places_by_item[item][place.column]
        if place.text not in places:
            places.append(place.text)
    return places_by_item


def _find_everywhere(papers: Mapping[str, Paper]) -> Iterator[tuple[Item, Place]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.name != "test_docs.py":  # its mentions are examples
                yield from find_in_python(path, papers)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        yield from find_in_notebook(path, papers)
