"""Make the concordance: each numbered item of the papers, and its places in this project.

Items are figures, tables, theorems, lemmas, algorithms, definitions and numbered equations.

``papers.toml`` lists what the papers number. The rest is read from the project: docstrings,
comments and texts of the library, the studies, the tests and the benchmarks, names of tests such
as ``test_lemma_4_4_...``, and the cells of the notebooks. Which claims hold is what the notebooks
found when ``verdicts.py`` last ran them; what has no claim holds by tests of it that a fault
breaks, but for what ``papers.toml`` says of it. The faults are in ``tests/mutations``.

    .venv/bin/python -m docs.concordance    # the page, on standard output
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from docs.mentions import Finder, Item, Paper, UnknownItemError, index_mentions, read_papers

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests"
NOTHING, REFUTED = "*in words*", "*does not hold*"
"""The claims that no fault can break."""
READ_ANEW = (
    "On 28 November 2026 every quotation was searched in the text of its paper, which found all "
    "but two transcribed formulas (Gu 2007, Eq. 3; Wang 2008, 15.1). Since then eight readers have "
    "each compared 20 random claims with the passages of the papers. The first three found three "
    "wrong verdicts, two incomplete settings and a wrong percentage. The fourth called 8 of its 20 "
    "rows wrong and 4 partly right: settings that name another run than the one that is judged, "
    "verdicts that depend on a constant of ours, ranges that are judged in part, and statements "
    "that stand elsewhere in the paper. The fifth (seed 48) called 12 rows right and 8 partly "
    "right, the sixth (seed 53) 9 right, 10 partly right and one wrong. On 29 November all rows "
    "were read beside the papers and the code that judges them. Causes that no run computes were "
    "deleted, tolerances of ours are printed, random runs are judged by three seeds, and settings "
    "name only what ran. The seventh reader (seed 61, 20 of 205 claims) called 15 rows right, 4 "
    "partly right and one wrong. The eighth (seed 67) called 16 right and 4 partly right; every "
    "statement and verdict of its 20 rows was right. For the next three, a row is right only if "
    "its setting names all that decides, too. The ninth (seed 71) found no wrong verdict, but "
    "something omitted or a wrong word in 18 rows, the tenth (seed 73) in 8, the eleventh (seed "
    "79) in 7, one of them a wrong number. Then every row was read anew, by four readers, for what "
    "decides its verdict. The twelfth reader (seed 83) found every statement, figure and verdict "
    "of its 20 rows true, and 3 settings that omit something that decides. The thirteenth (seed "
    "89) found every verdict right, a phrase that was not exact, and one such omission. All that "
    "they found is mended, in the other rows of the same kind too.\n"
)


def read_verdicts(
    papers: Mapping[str, Paper],
) -> dict[str, list[tuple[list[Item], dict[str, str]]]]:
    """Return the claims of each paper in order, each with its items (none for a section's).

    Raises UnknownItemError for a claim of no paper, or of something that the paper does not have.
    """
    claims: dict[str, list[tuple[list[Item], dict[str, str]]]] = {name: [] for name in papers}
    for claim in json.loads((HERE / "verdicts.json").read_text(encoding="utf-8")):
        of = [n for n, paper in papers.items() if any(a in claim["paper"] for a in paper.names)]
        if not of:
            raise UnknownItemError(f"a claim of {claim['paper']}: there is no such paper")
        items = list(Finder(papers, (of[0],)).find_items(claim["source"]))
        claims[of[0]].append((items, claim))
    return claims


def list_faults() -> dict[str, list[str]]:
    """Return the names of faults by the beginning of the claims that they break."""
    if str(TESTS) not in sys.path:
        sys.path.append(str(TESTS))
    from mutations import mutations

    by_claim: dict[str, list[str]] = {}
    for m in mutations():
        for begins in m.breaks:
            by_claim.setdefault(begins, []).append(m.name)
    return by_claim


def list_broken_tests(papers: Mapping[str, Paper]) -> dict[Item, list[str]]:
    """Return, by item, the names of the faults that break a test of it."""
    if str(TESTS) not in sys.path:
        sys.path.append(str(TESTS))
    from mutations import broken

    by_item: dict[Item, list[str]] = {}
    for b in broken():
        for item in Finder(papers).find_items(b.items):
            by_item.setdefault(item, []).append(b.name)
    return by_item


def describe_verdict(
    item: Item,
    paper: Paper,
    places: Mapping[str, list[str]],
    claims: list[dict[str, str]],
    breaking: list[str],
) -> str:
    """Return whether an item holds, by its claims or by its tests, and the remarks on it.

    A test that names it is no proof. ``breaking`` are the faults that break a test of it.
    """
    title = f"{item.kind} {item.number}"
    if title in paper.words:
        return ""
    counts = Counter(claim["holds"] for claim in claims)
    by = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
    named = "yes, by its tests" if breaking else "named by a test" if places["tests"] else ""
    tested = "" if title in paper.remarks else named
    return "<br>".join(filter(None, (by or tested, paper.remarks.get(title, ""))))


def render_page() -> str:
    """Return the concordance as Markdown."""
    papers, places = read_papers(), index_mentions()
    broken, tests = list_faults(), list_broken_tests(papers)
    claims = read_verdicts(papers)
    lines = [
        "---\nhide: [navigation, toc]\n---\n# Concordance\n",
        "This page shows, for every figure, table, theorem, lemma, algorithm and numbered equation "
        "of the papers, where Braid implements and tests it and whether it holds. Use it to find "
        "the code of an item, or to see what is not confirmed. It is generated from docstrings, "
        "comments, names of tests and notebook cells; do not edit it.\n",
        "- **notebooks**: the number in square brackets is that of the notebook's cell.\n"
        "- **holds**: the verdict on the claims about the item. A claim is a statement of a paper "
        "that Braid tests: it holds, does not hold, or holds under an interpretation that the "
        "reason names. *Not tried* has a reason why the run cannot decide. Without a claim, an "
        "item holds *by its tests* if a fault breaks one of them; *named by a test* is no proof.\n"
        "- **setting**: the policies that ran, on what and for how long; *computed* where the "
        "paper itself computes. Seeds and lengths are those of the run behind this page.\n"
        "- **broken by**: faults. A test puts each fault into the policies or models and sees the "
        "claim, or the test of the item, fail. For claims about runs on Spark, or about long "
        "cached runs, the fault acts on a short run in this process with the same check, and says "
        "so. A claim that does not hold has no fault, unless it holds in that short run.\n"
        "- *Numbers in the text* are values that the paper's text states for a figure's curves; "
        "*drawn* means that they are drawn below Braid's. *In words* marks a caption with nothing "
        "to compute or check.\n",
        READ_ANEW,
    ]
    for name, paper in papers.items():
        lines += [f"\n## {paper.cite}\n", _render_count(name, paper, places)]
        for kind, captions in paper.numbered.items():
            lines += [f"\n### {kind}s\n", *_HEAD]
            lines += [
                _render_row(
                    Item(name, kind, n),
                    about,
                    paper,
                    places[Item(name, kind, n)],
                    [claim for items, claim in claims[name] if Item(name, kind, n) in items],
                    broken,
                    tests.get(Item(name, kind, n), []),
                )
                for n, about in captions.items()
            ]
        lines += [
            "\n### Claims\n",
            "| where | what the paper says | holds | reason | setting | broken by |",
            "|---|---|---|---|---|---|",
        ]
        lines += [_render_claim(claim, broken) for _, claim in claims[name]]
    return "\n".join(lines) + "\n"


_HEAD = (
    "| | what | code | tests | notebooks | holds | broken by |",
    "|---|---|---|---|---|---|---|",
)


def _render_row(
    item: Item,
    about: str,
    paper: Paper,
    places: Mapping[str, list[str]],
    claims: list[dict[str, str]],
    broken: Mapping[str, list[str]],
    tests: list[str],
) -> str:
    title = f"{item.kind} {item.number}"
    stated = paper.printed.get(item.number) if item.kind == "Figure" else None
    about += f"<br>*numbers in the text:* {stated}" if stated else ""
    cells = ["<br>".join(places[c]) for c in ("code", "tests", "notebooks")]
    if not any(cells):
        cells[0] = "*in words*" if title in paper.words else "*not covered yet*"
    cells.append(describe_verdict(item, paper, places, claims, tests))
    by = [name for claim in claims for name in _list_breaking(claim, broken)]
    cells.append(
        "; ".join(dict.fromkeys([*by, *tests])) or (NOTHING if title in paper.words else "")
    )
    return f"| {title} | {about} | {' | '.join(cells)} |"


def _list_breaking(claim: Mapping[str, str], broken: Mapping[str, list[str]]) -> list[str]:
    """Return the faults that break a claim."""
    return [
        n
        for begins, names in broken.items()
        if claim["statement"].startswith(begins)
        for n in names
    ]


def _render_claim(claim: Mapping[str, str], broken: Mapping[str, list[str]]) -> str:
    by = "; ".join(_list_breaking(claim, broken))
    cells = {**claim, "broken": by or (REFUTED if claim["holds"] == "no" else "")}
    names = ("source", "statement", "holds", "reason", "setting", "broken")
    return f"| {' | '.join(cells[name].replace('|', chr(92) + '|') for name in names)} |"


def _render_count(name: str, paper: Paper, places: Mapping[Item, Mapping[str, list[str]]]) -> str:
    own_items = [(i, p) for i, p in places.items() if i.paper == name]
    covered = sum(any(p.values()) for _, p in own_items)
    tested = sum(bool(p["tests"]) for _, p in own_items)
    return f"{len(own_items)} items, {covered} covered, {tested} of them named by a test.\n"


if __name__ == "__main__":
    print(render_page())
