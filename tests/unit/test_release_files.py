"""Files that a public project has: they are read by programs, and agree with the project."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import braid
import pytest
import yaml
from braid.cli import main

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def read_yaml(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_citation_names_this_version_and_all_papers() -> None:
    citation = read_yaml("CITATION.cff")
    assert citation["version"] == braid.__version__ and citation["license"] == PROJECT["license"]
    papers = tomllib.loads((ROOT / "docs/papers.toml").read_text())
    cited = {paper["cite"].partition(" (")[0] for paper in papers.values()}
    assert len(citation["references"]) == len(cited)
    for reference in citation["references"]:
        title, year = reference["title"], str(reference["year"])
        assert any(title in cite and year in cite for cite in cited), title


def test_a_forge_calls_the_commands_of_this_project() -> None:
    [job] = read_yaml(".github/workflows/test.yml")["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands == ["make test"]
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert job["strategy"]["matrix"]["python"][0] == oldest


def test_the_form_for_problems_asks_for_commands_that_exist(
    capsys: pytest.CaptureFixture[str],
) -> None:
    form = read_yaml(".github/ISSUE_TEMPLATE/bug.yml")
    texts = " ".join(field["attributes"]["description"] for field in form["body"])
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = capsys.readouterr().out
    words = re.findall(r"`braid ([\w-]+)", texts)
    assert words == ["--versions", "why", "bundle"]
    assert all(word in listed for word in words)


def test_versions_of_packages_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--versions"])
    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code in (0, None)
    assert lines[0].startswith(f"braid {braid.__version__}") and lines[-1].startswith("Python 3.")
    assert any(re.fullmatch(r"duckdb \d+\.\d+.*", line) for line in lines)
