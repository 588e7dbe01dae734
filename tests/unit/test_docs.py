"""The documentation: the concordance, and broken links that fail the build."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any, get_args

import pytest
from braid.core.placement import PLACEMENTS, registered_placements
from braid_lab.common.claims import Verdict
from braid_lab.common.printed_numbers import PrintedFigure
from braid_lab.reports.notebook_runner import NotebookRun
from mutations import mutations
from placement_checks import check_placement

from docs import concordance, mentions, prose, verdicts

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "in_turn.py"

MENTIONS = [
    ("Wang 2008, Fig. 5.8 to 5.10, 6.4 and 6.7.", "Figure 5.8 5.9 5.10 6.4 6.7"),
    ("Gu 2007, Fig. 7 (W = 60) and 8 (W = 120): results", "Figure 7 8"),
    ("Fig. 16.2 (a), (c), (e): join", "Figure 16.2"),
    ("Eq. 4.1 (selection pull-up), 4.2 (partition), 5.1", "Equation 4.1 4.2 5.1"),
    ("Elseidy 2014, Algorithms 1 to 3 and section 4.2.2", "Algorithm 1 2 3"),
    ("Theorem 5, on 4 nodes", "Theorem 5"),
    ("Elseidy 2014, Th. 4.1, Fig. 5a, 5b", "Theorem Figure 4.1 5 5"),
    ("Fig. 14.1, 3 to 5 nodes", "Figure 14.1"),
    ("as in lemma 4.4, and equations 13.1 and 13.2", "Lemma Equation 4.4 13.1 13.2"),
    ("Elseidy 2014: Figure 4b shows", "Figure 4"),
    ("a table 4.1 of nothing, and configuration 5", ""),
]


@pytest.mark.parametrize(("text", "wanted"), MENTIONS)
def test_mentions_are_found(text: str, wanted: str) -> None:
    found = list(mentions.Finder(mentions.read_papers()).find_items(text))
    kinds = dict.fromkeys(item.kind for item in found)
    assert " ".join([*kinds, *(item.number for item in found)]) == wanted


@pytest.mark.parametrize(
    ("text", "hints", "wanted"),
    [
        ("Gu 2007, Fig. 5", (), "gu"),
        ("Figure 5 of Elseidy 2014", (), "elseidy"),
        ("As Gu says, but in Elseidy 2014, Fig. 3", (), "elseidy"),
        ("Fig. 3", ("wang", "gu"), "gu"),
    ],
)
def test_a_number_of_two_papers_is_of_the_one_that_is_named(
    text: str, hints: tuple[str, ...], wanted: str
) -> None:
    (item,) = mentions.Finder(mentions.read_papers(), hints).find_items(text)
    assert item.paper == wanted


@pytest.mark.parametrize("text", ["Fig. 5", "Wang 2008, Theorem 99"])
def test_a_mention_that_no_paper_has_is_refused(text: str) -> None:
    with pytest.raises(
        mentions.UnknownItemError, match=r"(Figure 5|Theorem 99) names no paper, in:"
    ):
        list(mentions.Finder(mentions.read_papers()).find_items(text))


def test_names_of_tests_count() -> None:
    finder = mentions.Finder(mentions.read_papers(), ("wang",))
    named = [
        *finder.find_named("test_lemma_4_4_partners_exchange"),
        *finder.find_named("test_theorem_5_holds"),
    ]
    assert named == [("elseidy", "Lemma", "4.4"), ("wang", "Theorem", "5")]


def test_a_file_that_mentions_something_in_a_name_alone_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mentions, "ROOT", tmp_path)
    file = tmp_path / "tests" / "test_wang.py"
    file.parent.mkdir()
    file.write_text('"""Wang 2008."""\n\n\ndef test_table_5_1_holds():\n    pass\n')
    ((item, _),) = mentions.find_in_python(file, mentions.read_papers())
    assert item == ("wang", "Table", "5.1")


def test_every_mention_in_the_project_is_of_something_that_a_paper_has() -> None:
    found = mentions.index_mentions()
    lemma = found[mentions.Item("elseidy", "Lemma", "4.4")]
    assert any("test_lemma_4_4" in place for place in lemma["tests"])
    assert any(place.startswith("braid/papers/theta/") for place in lemma["code"])
    assert found[mentions.Item("wang", "Table", "5.1")]["notebooks"]
    for paper in mentions.read_papers().values():
        titles = {f"{kind} {n}" for kind, numbers in paper.numbered.items() for n in numbers}
        assert titles.issuperset(paper.words)


def test_every_claim_that_was_tried_is_on_the_page() -> None:
    known = mentions.read_papers()
    claims = concordance.read_verdicts(known)
    assert all(claims.values()), "each paper has a study with claims"
    page = concordance.render_page()
    for paper, tried in claims.items():
        for items, claim in tried:
            assert claim["holds"] in get_args(Verdict)
            assert claim["reason"] or claim["holds"] in ("yes", "no")
            assert claim["statement"].replace("|", "\\|") in page
            assert all(item.paper == paper for item in items)
    items, claim = next((i, c) for i, c in claims["gu"] if i)
    (row,) = (
        line
        for line in page[page.index("## Gu") :].split("\n## ")[0].splitlines()
        if line.startswith(f"| {items[0].kind} {items[0].number} |")
    )
    assert claim["holds"] in row.split("|")[-3]


def reported(holds: str, says: str = "all is well") -> dict[str, str]:
    same = {"paper": "Gu 2007", "source": "5", "reason": "", "setting": "ATR"}
    return {**same, "statement": says, "holds": holds}


@pytest.mark.parametrize(
    ("came", "kept"),
    [
        (["yes", "yes"], ["yes"]),
        (["not tried", "yes"], ["yes"]),
        (["yes", "not tried"], ["yes"]),
        (["not tried"], ["not tried"]),
    ],
)
def test_verdicts_are_of_the_run_of_a_notebook_that_could_tell(
    came: list[str], kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs the notebook's own file; a claim has the verdict of the run that tested it."""

    def run(path: Path, values: object, say: object, environment: dict[str, str]) -> Any:
        assert path.is_file() and path.stem == "02_load_diffusion"
        lines = [json.dumps(reported(holds)) for holds in came]
        Path(environment["BRAID_CLAIMS"]).write_text("\n".join(lines))
        return NotebookRun(None)

    monkeypatch.setattr(verdicts.notebook_runner, "run_notebook", run)
    tested = verdicts.run_claims("02_load_diffusion", {})
    assert ([c["holds"] for c in tested.claims], tested.failure) == (kept, "")


def test_no_verdicts_are_kept_of_a_notebook_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        verdicts.notebook_runner,
        "run_notebook",
        lambda *a, **b: NotebookRun(None, error="cell 3 failed"),
    )
    with pytest.raises(RuntimeError, match="02_load_diffusion: cell 3 failed"):
        verdicts.run_claims("02_load_diffusion", {})


def test_every_fault_is_named_beside_a_claim_that_it_breaks() -> None:
    """For all papers; otherwise docs/verdicts.json, which docs/verdicts.py writes, lacks the
    claim.
    """
    page = concordance.render_page()
    assert [m.name for m in mutations() if m.name not in page] == []


def test_no_row_of_the_page_lacks_what_breaks_it() -> None:
    """Except for items in words alone, and for claims that do not hold or are not tried."""
    rows = [line for line in concordance.render_page().splitlines() if line.startswith("| ")]
    headings = ("| where |", "| | what |")
    reported = [
        line for line in rows if not line.startswith(headings) and " | not tried | " not in line
    ]
    assert (
        len(reported) > 300
        and [line for line in reported if not line.split(" | ")[-1].strip(" |")] == []
    )


def test_every_item_of_the_papers_has_a_test_a_verdict_and_a_fault() -> None:
    """All numbered items, except those in words alone."""
    known, found = mentions.read_papers(), mentions.index_mentions()
    claims, by_claim = concordance.read_verdicts(known), concordance.list_faults()
    by_test = concordance.list_broken_tests(known)
    lacking: dict[str, list[str]] = {"test": [], "verdict": [], "fault": []}
    for item, places in found.items():
        paper, title = known[item.paper], f"{item.kind} {item.number}"
        if title in paper.words:
            continue
        mine = [claim for items, claim in claims[item.paper] if item in items]
        lacking["test"] += [] if places["tests"] else [f"{item.paper} {title}"]
        verdict = concordance.describe_verdict(item, paper, places, mine, by_test.get(item, []))
        lacking["verdict"] += [] if verdict else [f"{item.paper} {title}"]
        named = any(concordance._list_breaking(c, by_claim) for c in mine) or item in by_test
        lacking["fault"] += [] if named else [f"{item.paper} {title}"]
    assert lacking == {"test": [], "verdict": [], "fault": []}


def test_an_item_that_a_test_names_holds_by_tests_only_if_a_fault_breaks_one() -> None:
    paper = mentions.read_papers()["wang"]
    places = {"tests": ["tests/unit/test_x.py"]}
    item = mentions.Item("wang", "Table", "0")
    assert concordance.describe_verdict(item, paper, places, [], []) == "named by a test"
    assert concordance.describe_verdict(item, paper, places, [], ["a fault"]) == "yes, by its tests"
    assert concordance.describe_verdict(item, paper, {"tests": []}, [], []) == ""


BROKEN = ("[gone](gone.md)", "[gone](index.md#missing)", "[gone](/lost.md)", "[x][braid.gone]")


def test_a_broken_link_of_any_kind_fails_the_build(tmp_path: Path) -> None:
    """Each kind has its own warning, and one warning is enough."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# A page\n\n" + "\n\n".join(BROKEN) + "\n")
    config = f"INHERIT: {ROOT / 'mkdocs.yml'}\nhooks: []\nextra_css: []\nnav: [index.md]\n"
    config += f"theme: {{custom_dir: {ROOT / 'docs' / 'theme'}}}\n"
    (tmp_path / "mkdocs.yml").write_text(config)
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=tmp_path,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert built.returncode != 0
    assert f"Aborted with {len(BROKEN)} warnings" in built.stdout
    for target in ("gone.md", "#missing", "/lost.md", "braid.gone"):
        assert any("WARNING" in line and target in line for line in built.stderr.splitlines())


def test_the_readme_is_short_and_compares_as_the_front_page_does() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 150
    assert (ROOT / "docs" / "comparison-table.md").read_text(encoding="utf-8") in readme
    front = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    promise = "Join streams on any condition, and watch every row find its place."
    assert promise in readme and promise in front


def test_each_cell_of_the_comparison_has_a_source_or_is_unknown() -> None:
    page = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    titles = ("Braid, Spark and Flink, with sources", "Nine others")
    for title, sizes in zip(titles, ([(12, 3)], [(9, 6), (9, 7)]), strict=True):
        section = page.split(f"\n## {title}\n")[1].split("\n## ")[0]
        assert re.search(r"[Rr]ead on 20\d\d-\d\d-\d\d", section)
        tables = re.findall(r"(?:^\|.*\n)+", section, re.M)
        for table, (height, width) in zip(tables, sizes, strict=True):
            rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
            assert len(rows) == height and {len(row) for row in rows} == {width + 1}
            choices = {row.pop() for row in rows} if width == 6 else set()
            cells = [cell for name, *cells in rows for cell in cells]
            assert all(choices) and len(set(next(zip(*rows, strict=True)))) == height
            unsourced = [
                cell for cell in cells if not re.search(r"\]\((https://|[\w/-]+\.md)", cell)
            ]
            assert set(unsourced) <= {"unknown"}, title


def test_prose_after_parameters_goes_before_them() -> None:
    parameters = "Parameters\n----------\na\n    The first.\n\n    More.\nb, c : int\n    Others."
    text = f"What.\n\n{parameters}\n\nRaises ValueError.\n"
    assert (
        prose.move_parameters_last(text).strip() == f"What.\n\nRaises ValueError.\n\n\n{parameters}"
    )
    assert prose.move_parameters_last(parameters) == parameters
    assert prose.move_parameters_last("What. No parameters here.") == "What. No parameters here."


def test_the_example_of_the_documentation_works_as_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """add-a-placement.md shows this very file."""
    assert f'--8<-- "{EXAMPLE.relative_to(ROOT)}"' in (ROOT / "docs/add-a-placement.md").read_text()
    monkeypatch.setattr(PLACEMENTS, "classes", dict(PLACEMENTS.classes))
    in_turn = run_path(str(EXAMPLE))["InTurn"]
    assert registered_placements()["InTurn"] is in_turn
    check_placement(in_turn)  # every generic check
    with pytest.raises(ValueError, match="hosts is 0"):
        in_turn(hosts=0)


def test_what_a_paper_prints_of_a_figure_is_drawn_or_said_to_be_none() -> None:
    for name, paper in mentions.read_papers().items():
        assert set(paper.printed) <= set(paper.numbered["Figure"]), name
        said = {n for n, text in paper.printed.items() if text.startswith("drawn")}
        kept = {
            number
            for folder in paper.folders
            for one in _printed(folder)
            for number in re.findall(r"\d+(?:\.\d+)?", one.where.split(", section")[0])
        }
        assert kept == said, name


def _printed(folder: str) -> list[PrintedFigure]:
    """Return all printed values of a paper's figures."""
    if find_spec(f"braid_lab.{folder}.printed") is None:
        return []
    module = import_module(f"braid_lab.{folder}.printed")
    groups = (v for v in vars(module).values() if isinstance(v, tuple))
    return [one for group in groups for one in group]
