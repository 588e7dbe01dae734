"""Files that a public project has: they are read by programs, and agree with the project."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from runpy import run_path
from typing import Any

import braid
import jsonschema
import pytest
import yaml
from braid.cli import main
from braid.core import event_jsonl, run_state
from braid.util import deprecation
from braid.util.deprecation import list_overdue_names, mark_deprecated
from braid_lab.reports import report_outcome
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def read_yaml(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


BOUNDS = {
    one.name: str(one.specifier)
    for extra in ("pandas", "spark")
    for one in map(Requirement, PROJECT["dependencies"] + PROJECT["optional-dependencies"][extra])
    if one.name != PROJECT["name"]
}


def read_table(page: str, title: str) -> list[list[str]]:
    """Return the cells of the first table below a title of a page, without its head."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").split(f"\n## {title}\n")[1]
    lines = [line for line in text.split("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip(" `") for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def split_bounds(text: str) -> set[str]:
    return set(text.replace(" ", "").split(","))


def check_targets(command: list[str]) -> None:
    """See that a command is ``make`` and targets of the Makefile."""
    make, *words = command
    targets = {word.replace(".venv/.ready", "$(READY)") for word in words if "=" not in word}
    rules = re.findall(r"^([^\s#].*?):(?!=)", (ROOT / "Makefile").read_text(), re.M)
    assert make == "make" and targets and targets <= set(" ".join(rules).split()), command


def test_the_citation_names_this_version_and_all_papers() -> None:
    """It is valid by the schema of its format, as `cffconvert --validate` checks it.

    That tool is not among the packages of the lock: it needs jsonschema below 4.
    """
    citation = read_yaml("CITATION.cff")
    schema = json.loads(Path(__file__).with_name("citation_schema.json").read_text())
    check = jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker())
    assert [error.message for error in check.iter_errors(citation)] == []
    assert not check.is_valid(citation | {"type": "program"})
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
    assert job["strategy"]["matrix"]["python"] == list_promised_pythons()


def list_promised_pythons() -> list[str]:
    """Return the versions of Python that the classifiers name."""
    named = [line.rpartition(" :: ") for line in PROJECT["classifiers"]]
    return [last for group, _, last in named if group == "Programming Language :: Python"]


def test_each_python_that_is_promised_has_been_tried() -> None:
    """Those of the classifiers; the page says with which tests."""
    bounds = SpecifierSet(PROJECT["requires-python"])
    pythons = list_promised_pythons()
    assert pythons == [f"3.{n}" for n in range(20) if f"3.{n}.0" in bounds]
    rows = read_table("compatibility.md", "Versions of Python")
    assert [row[0] for row in rows] == pythons and all(len(row) == 3 for row in rows)


def test_a_release_is_of_its_tag_and_signed_by_the_forge() -> None:
    work = read_yaml(".github/workflows/release.yml")
    assert work[True] == {"push": {"tags": ["v*"]}}, "YAML reads on as true"
    [job] = work["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == ["make release"]
    [signed] = [s["with"]["subject-path"] for s in job["steps"] if "/attest-" in s.get("uses", "")]
    assert signed == "dist/*" and work["permissions"]["attestations"] == "write"
    check_tags = run_path(str(ROOT / ".ci/release"))["check_tags"]
    check_tags([f"v{braid.__version__}", "vendored"])
    with pytest.raises(SystemExit, match="has the tag v9.9.9, but its version has v"):
        check_tags(["v9.9.9"])


def test_a_deprecated_function_warns_and_is_gone_in_time() -> None:
    for module in walk_packages(braid.__path__, "braid."):
        import_module(module.name)  # a function is marked when its module is imported
    assert list_overdue_names(braid.__version__) == []

    @mark_deprecated("0.1.0", "0.2.0", "other()")
    def add_one(number: int) -> int:
        return number + 1

    name = add_one.__qualname__
    try:
        with pytest.warns(
            DeprecationWarning, match=r"since Braid 0.1.0 and goes in 0.2.0; use oth"
        ):
            assert add_one(1) == 2
        assert list_overdue_names("0.1.9") == []
        assert list_overdue_names("0.2rc1") == list_overdue_names("1.0.0") == [name]
    finally:
        deprecation._GOES_IN.pop(name)
    with pytest.raises(ValueError, match=r"gone is '0.2.1'; it must be at least a minor version"):
        mark_deprecated("0.2.0", "0.2.1", "other()")
    with pytest.raises(ValueError, match=r"the version is 'two'; it must begin with two numbers"):
        mark_deprecated("0.1.0", "two", "other()")


def test_hooks_before_a_commit_are_commands_of_make_lint() -> None:
    [repository] = read_yaml(".pre-commit-config.yaml")["repos"]
    entries = [hook["entry"].removesuffix(" --fix") for hook in repository["hooks"]]
    rule = (ROOT / "Makefile").read_text().split("\nlint:")[1].split("\n\n")[0]
    commands = rule.replace("$(BIN)", ".venv/bin")
    assert len(entries) == 4 and [entry for entry in entries if entry not in commands] == []


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


def test_the_changelog_begins_with_this_version_and_is_by_topic() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+?)(?:,|$)", text, re.M)[0] == braid.__version__
    latest = text.split("\n## ")[1]
    topics = re.findall(r"^### (.+)\n\n- ", latest, re.M)
    assert len(topics) == len({*topics}) == latest.count("\n### ") > 2
    assert 0 < len(re.findall(r"^- ", latest, re.M)) <= 40


def test_files_for_contributors_name_what_is_there() -> None:
    words = {
        "SECURITY.md": ("braid --version", "Nothing in it is executed", "latest version"),
        "CONTRIBUTING.md": ("`braid bundle RUN`", "SECURITY.md", "make test"),
        "CODE_OF_CONDUCT.md": ("Contributor Covenant", "version 2.1"),
        ".github/PULL_REQUEST_TEMPLATE.md": ("CONTRIBUTING.md", "`make test`"),
    }
    for name, wanted in words.items():
        text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
        assert [each for each in wanted if each not in text] == [], name
        links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
        assert [link for link in links if not (ROOT / name).parent.joinpath(link).exists()] == []


def test_bundled_javascript_has_no_other_licence() -> None:
    """All packages of npm are tools: the sources import only each other, so no notice is needed."""
    lock = json.loads((ROOT / "widgets/js/package-lock.json").read_text())["packages"]
    assert lock.pop("")["license"] == PROJECT["license"]
    assert lock and all(package.get("dev") for package in lock.values())
    sources = [*(ROOT / "widgets/js/src").rglob("*.ts")]
    texts = [file.read_text(encoding="utf-8") for file in sources]
    imported = [
        name for t in texts for name in re.findall(r"^(?:im|ex)port .*from \"(.+)\"", t, re.M)
    ]
    assert len(imported) > len(sources) and all(name.startswith(".") for name in imported)


def test_supported_versions_are_those_of_the_project() -> None:
    rows = {
        part: (bounds, tested)
        for part, bounds, tested in read_table("compatibility.md", "Supported versions")
    }
    lock = (ROOT / "requirements.lock").read_text()
    for part in ("PySpark", "pandas", "DuckDB", "pyarrow"):
        bounds, tested = rows.pop(part)
        assert split_bounds(bounds) == split_bounds(BOUNDS[part.lower()])
        assert f"\n{part.lower()}=={tested}\n" in lock
    assert rows.pop("Python")[0] == PROJECT["requires-python"]
    java = rows.pop("Java, for Spark")[0].removeprefix(">=")
    assert f"-ge {java} ]" in (ROOT / ".ci/need").read_text()
    assert f"openjdk={java}" in read_yaml("environment.yml")["dependencies"]
    assert rows.pop("stored formats")[0] == str(run_state.VERSION)
    assert not rows


def test_every_public_name_is_stable_or_provisional() -> None:
    rows = read_table("compatibility.md", "Public names")
    assert [name for name, _ in rows] == braid.__all__
    assert {status for _, status in rows} == {"stable", "provisional"}


def test_versions_of_formats_are_those_of_the_code() -> None:
    written = {
        name: (version, by, read)
        for name, version, by, read in read_table("formats.md", "Versions of formats")
    }
    current = {
        "folder of a run or hub": run_state.VERSION,
        "events and recordings": event_jsonl.VERSION,
        "JSON of a report": report_outcome.VERSION,
    }
    assert {name: version for name, (version, _, _) in written.items()} == {
        n: str(v) for n, v in current.items()
    }
    releases = {
        file.name.removesuffix(".tar.gz") for file in (ROOT / "tests/stored_formats").glob("*.gz")
    }
    for _, by, read in written.values():
        assert braid.__version__ in split_bounds(by) == split_bounds(read)
    assert split_bounds(written["folder of a run or hub"][1]) == releases


def test_the_conda_recipe_has_the_bounds_of_the_project() -> None:
    recipe = read_yaml(".ci/conda/recipe.yaml")
    assert recipe["package"] == {"name": PROJECT["name"], "version": braid.__version__}
    named = {"python-duckdb": "duckdb", "prometheus_client": "prometheus-client"}
    needs = recipe["requirements"]
    bounds = dict(need.split(" ", 1) for need in [*needs["run"], *needs["run_constraints"]])
    assert bounds.pop("python") == PROJECT["requires-python"] and bounds.pop("openjdk") == ">=17"
    found = {named.get(name, name): split_bounds(text) for name, text in bounds.items()}
    assert found == {name: split_bounds(text) for name, text in BOUNDS.items()}
    [script] = recipe["build"]["python"]["entry_points"]
    assert script.split(" = ") == ["braid", PROJECT["scripts"]["braid"]]


def test_containers_call_the_commands_of_this_project() -> None:
    lines = (ROOT / "Containerfile").read_text().splitlines()
    orders = [line.partition(" ")[::2] for line in lines if not line.startswith("#")]
    assert orders[0] == ("FROM", "python:3.11-slim-bookworm"), "Debian 12 has Java 17"
    assert {order for order, _ in orders} == {"FROM", "RUN", "WORKDIR", "COPY", "EXPOSE", "CMD"}
    [_, command] = [text for order, text in orders if order == "RUN"]
    check_targets(command.split())
    check_targets(json.loads(orders[-1][1]))
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert (ROOT / ".devcontainer" / container["build"]["dockerfile"]).resolve().is_file()
    assert container["postCreateCommand"] == command


def test_files_that_set_up_braid_elsewhere_exist() -> None:
    text = (ROOT / "docs/compatibility.md").read_text(encoding="utf-8")
    text = text.split("\n## Other ways to set up\n")[1].split("\n## ")[0]
    paths = [
        name for name in re.findall(r"`([^` ]+)`", text) if "." in name or name == "Containerfile"
    ]
    assert len(paths) == 8 and [name for name in paths if not (ROOT / name).is_file()] == []
    [pip] = [
        step["pip"]
        for step in read_yaml("environment.yml")["dependencies"]
        if "pip" in step and isinstance(step, dict)
    ]
    assert all(
        set(re.findall(r"\w+", extras[4:])) <= {*PROJECT["optional-dependencies"]} for extras in pip
    )
