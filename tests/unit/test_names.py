"""Names and prose follow the rules of docs/style.md; the number of violations may only fall."""

from __future__ import annotations

import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest
from words import PAGES, ROOT, Words, check_subject, find_folder, measure_pages, measure_words

LIMITS = tomllib.loads((Path(__file__).parent / "names_ratchet.toml").read_text())


MOST_LINES = 400
SHORT_FOLDERS = ("toolkit", "widgets/braid_widgets", "benchmarks", "docs")
SHORT_FOLDERS += tuple(
    f"tests/{name}" for name in ("browser", "connect", "models", "notebooks", "world")
)


@pytest.mark.parametrize("folder", SHORT_FOLDERS)
def test_modules_have_at_most_400_lines(folder: str) -> None:
    modules = [*(ROOT / folder).rglob("*.py")]
    lines = {str(path.relative_to(ROOT)): path.read_bytes().count(b"\n") for path in modules}
    assert lines and {name: n for name, n in lines.items() if n > MOST_LINES} == {}


@cache
def measured() -> Words:
    return measure_words()


@pytest.mark.parametrize("area", measured().functions)
def test_function_names_have_more_than_one_word(area: str) -> None:
    words, limits = measured(), LIMITS["words"][area]
    assert words.one_word_share(area) <= limits["one_word_share"]
    assert words.mean_words(area) >= limits["mean_words"]


@pytest.mark.parametrize("rule", LIMITS["names"])
def test_names_that_break_a_rule_only_become_fewer(rule: str) -> None:
    broken = [f for f in measured().findings if f.rule == rule]
    assert len(broken) <= LIMITS["names"][rule], "\n".join(map(str, broken))


def test_every_rule_has_a_limit() -> None:
    rules = {f.rule for f in measured().findings if not f.rule.startswith("prose")}
    assert rules <= set(LIMITS["names"])


@pytest.mark.parametrize("folder", sorted(measured().docstrings))
def test_docstrings_that_break_a_rule_only_become_fewer(folder: str) -> None:
    words, most = measured(), LIMITS["prose"].get(folder, LIMITS["prose"]["new folder"])
    broken = [
        f for f in words.findings if f.rule.startswith("prose") and find_folder(f.path) == folder
    ]
    assert words.prose_share(folder) <= most, "\n".join(map(str, broken))


@pytest.mark.parametrize("folder", PAGES)
def test_few_sentences_of_pages_break_a_rule(folder: str) -> None:
    prose = measure_pages(PAGES[folder])
    assert prose.sentences > 100
    assert prose.broken_share <= LIMITS["pages"], "\n".join(map(str, prose.findings))


def test_sentences_of_a_page_are_counted_outside_code(tmp_path: Path) -> None:
    text = (
        "# What a heading says\n\nWhat came of it is here. It depends on\nwhat is held, see Fig. A.\n"
        "What is held?\n\n```text\nWhat a program prints.\n```\n\n- A block lies in it.\n"
        "- The `told` of *somebody's* host.\n\n| a | **What** it was |\n|---|---|\n\n"
        f"It is {'very ' * 29}long.\n"
    )
    (tmp_path / "page.md").write_text(text)
    prose = measure_pages("*.md", tmp_path)
    assert [(f.rule, f.line) for f in prose.findings] == [
        ("page: opening 'What'", 3),
        ("page: phrase 'lies'", 11),
        ("page: phrase 'somebody'", 12),
        ("page: opening 'What'", 14),
        ("page: long sentence", 17),
    ]
    assert prose.sentences == 7


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("def told(): ...", "stop list: function"),
        ("class Told: ...", "stop list: class"),
        ("def f():\n    found = 1", "stop list: assigned name"),
        ("try: ...\nexcept ValueError as found: ...", "stop list: assigned name"),
        ("def f(_found: int): ...", "stop list: parameter"),
        ("def f(*, own: int): ...", "stop list: parameter"),
        ("f = lambda asked: 1", "stop list: parameter"),
        ("def f(self):\n    self._came = 1", "stop list: attribute"),
        ("def f(self):\n    self.rows, self.kept = 1, 2", "stop list: attribute"),
        ("def ready() -> bool: ...", "boolean asks no question"),
        ("def seal_of(): ...", "ends in _of"),
        ("class A:\n    is_strict: tuple[bool, bool]", "boolean name of no boolean"),
        (
            "class A:\n    @property\n    def has_rest(self) -> int: ...",
            "boolean name of no boolean",
        ),
        ("def read_rows(can_fail: str) -> int: ...", "boolean name of no boolean"),
        ("def f(self):\n    self._may_stop: int = 1", "boolean name of no boolean"),
        ('"""What came of it."""', "prose: opening"),
        ('"""Return it; the user is told."""', "prose: phrase"),
        (f'"""Return {"very " * 30}much."""', "prose: long sentence"),
    ],
)
def test_one_broken_rule_is_found_with_file_and_line(
    source: str, rule: str, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/papers.toml").write_text("")
    folder = tmp_path / "toolkit/braid"
    folder.mkdir(parents=True)
    (folder / "module.py").write_text(source)
    found = measure_words(tmp_path).findings
    assert [f.rule for f in found] == [rule]
    assert str(found[0]).startswith("toolkit/braid/module.py:")


def test_a_module_of_the_stop_list_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/papers.toml").write_text('[gu]\nfolders = ["theta"]\nvocabulary = ["kept"]')
    for name in ("told", "papers/theta/kept", "papers/psp/kept"):
        path = tmp_path / f"toolkit/braid/{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    found = {f.path for f in measure_words(tmp_path).findings}
    assert found == {"toolkit/braid/told.py", "toolkit/braid/papers/psp/kept.py"}


def test_subjects_of_commits_are_short_and_say_what_they_do() -> None:
    """All commits since the rule exists are checked; a copy of the sources without git has none."""
    git = ["git", "-C", str(ROOT), "log", "--format=%H"]
    added = subprocess.run(
        [*git, "--diff-filter=A", "--", "tests/words.py"], capture_output=True, text=True
    )
    if added.returncode or not added.stdout.strip():
        return
    since = added.stdout.split()[-1]
    subjects = subprocess.run(
        ["git", "-C", str(ROOT), "log", "--format=%s", f"{since}^..HEAD"],
        capture_output=True,
        text=True,
    )
    checked = subjects.stdout.splitlines()
    faults = {s: fault for s in checked if (fault := check_subject(s))}
    assert not faults
