"""The setup: dependencies, lock file, make targets, and installation of missing requirements.

Notebooks are stored without outputs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
TARGETS = ["demo", "lab", "report", "test", "test-unit", "bench", "lint"]
JAVA = """#!/bin/sh\necho 'openjdk version "{version}" 2025-04-15' >&2\n"""


def test_the_lock_satisfies_every_dependency_and_names_no_source() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [
        line
        for line in (ROOT / "requirements.lock").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+]+", line) for line in lines)
    locked = {
        name.lower().replace("_", "-"): version
        for name, version in (line.split("==") for line in lines)
    }
    extras = [text for extra in project["optional-dependencies"].values() for text in extra]
    for wanted in map(Requirement, project["dependencies"] + extras):
        if wanted.name != project["name"]:
            assert locked[wanted.name] in wanted.specifier, str(wanted)


def test_what_the_lock_names_takes_every_python_that_the_project_takes() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    names = [line.partition("==")[0] for line in lines if not line.startswith("#")]
    asked = {name: distribution(name).metadata.get("Requires-Python") or "" for name in names}
    assert {n: wants for n, wants in asked.items() if "3.11.0" not in SpecifierSet(wants)} == {}


def test_bare_make_prints_a_line_for_each_target() -> None:
    completed = subprocess.run(
        ["make", "-s", "-C", str(ROOT)], capture_output=True, text=True, check=True
    ).stdout
    shown = [line.split()[1] for line in completed.splitlines()]
    assert set(TARGETS) <= set(shown)
    assert len(shown) == len(set(shown)) == len(completed.splitlines())


def test_notebooks_and_reports_do_not_wait_for_the_packages_of_tests() -> None:
    """In a fresh checkout: all targets install from the lock, `make demo` what it shows only."""
    for target, packages in {
        "demo": "-c requirements.lock -e '.[lab,data]'",
        "lab": "-c requirements.lock -e '.[lab,data]'",
        "test-unit": "-r requirements.lock",
    }.items():
        command = ["make", "-n", "-C", str(ROOT), "-W", "requirements.lock", target]
        steps = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        installed = [line for line in steps.splitlines() if " requirements.lock" in line]
        assert len(installed) == 1 and installed[0].endswith(packages), target


@pytest.mark.parametrize(
    "notebook", sorted((ROOT / "notebooks").rglob("[!.]*.ipynb")), ids=lambda p: p.stem
)
def test_notebooks_are_kept_without_outputs(notebook: Path) -> None:
    content = json.loads(notebook.read_text())
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert [cell["outputs"] for cell in code] == [[]] * len(code)
    assert {cell["execution_count"] for cell in code} == {None}
    assert "widgets" not in content["metadata"]


def test_git_sees_what_is_written_in_a_notebook_and_not_that_it_was_run(tmp_path: Path) -> None:
    def git(*args: str) -> str:
        me = ("-c", "user.name=me", "-c", "user.email=me@here")
        completed = subprocess.run(
            ["git", "-C", str(tmp_path), *me, *args], capture_output=True, text=True, check=True
        )
        return completed.stdout

    file = tmp_path / "notebooks" / "00_tour.ipynb"
    for name in (".gitattributes", ".ci/bare", "notebooks/00_tour.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "as it is kept")
    assert "git config filter.bare.clean .ci/bare" in (ROOT / "Makefile").read_text()
    git("config", "filter.bare.clean", ".ci/bare")
    content = json.loads(file.read_text(encoding="utf-8"))
    for n, cell in enumerate(content["cells"]):
        cell["metadata"]["execution"] = {"iopub.status.busy": "2026"}
        if cell["cell_type"] == "code":
            cell |= {"execution_count": n, "outputs": [{"output_type": "stream", "text": ["é"]}]}
    content["metadata"]["kernelspec"]["display_name"] = "Python 3 (ipykernel)"
    content["metadata"] |= {"widgets": {}, "language_info": {"name": "python", "version": "3.11"}}
    file.write_text(json.dumps(content), encoding="utf-8")
    git("add", "--renormalize", ".")
    assert git("status", "--porcelain") == ""
    content["cells"][0]["source"].append("One more line.")
    file.write_text(json.dumps(content), encoding="utf-8")
    changed = [line for line in git("diff").splitlines() if re.match(r"[+-] ", line)]
    assert len(changed) == 3 and "One more line." in changed[-1], changed


Done = subprocess.CompletedProcess[str]
Need = Callable[..., Done]


@pytest.fixture
def need(tmp_path: Path) -> Need:
    """Run .ci/need with these commands only, as root or not; apt-get, if present, provides Java
    17.
    """

    def run(
        what: str, *, root: bool, java: str = "", apt: bool = True, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        def command(name: str, text: str) -> None:
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)

        for tool in ("sh", "sed", "head", "chmod", "cp"):
            (tmp_path / tool).symlink_to(shutil.which(tool) or tool)
        command("id", f"#!/bin/sh\necho {0 if root else 1000}\n")
        if java:
            command("java", JAVA.format(version=java))
        command("new", JAVA.format(version="17.0.15"))
        if apt:
            command(
                "apt-get",
                f'#!/bin/sh\necho "$@" >> {tmp_path}/log\ncase $* in *jre*) cp {tmp_path}/new '
                f"{tmp_path}/java ;; esac\n",
            )
        return subprocess.run(
            [str(ROOT / ".ci/need"), what],
            capture_output=True,
            text=True,
            env={"PATH": str(tmp_path), **environment},
        )

    return run


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.1", "25-ea"])
def test_a_java_that_will_do_is_taken(need: Need, version: str) -> None:
    done = need("java", root=True, java=version)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("version", ["", "1.8.0_292", "11.0.2"])
def test_java_is_installed_where_that_is_possible(need: Need, tmp_path: Path, version: str) -> None:
    assert need("java", root=True, java=version).returncode == 0
    assert (
        tmp_path / "log"
    ).read_text() == "update -qq\ninstall -y -qq --no-install-recommends openjdk-17-jre-headless\n"


@pytest.mark.parametrize(("root", "apt"), [(False, True), (True, False)])
def test_else_what_to_install_is_said(need: Need, root: bool, apt: bool) -> None:
    done = need("java", root=root, apt=apt, java="11.0.2")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "Spark needs Java 17 or newer: install it (Debian, Ubuntu: sudo apt-get install openjdk"
    )


def test_a_java_home_that_will_not_do_is_named(need: Need) -> None:
    done = need("java", root=True, java="17", JAVA_HOME="/old")
    assert done.returncode == 1 and "JAVA_HOME (/old)" in done.stderr


def test_chromium_is_advised_and_can_be_left_out(need: Need) -> None:
    done = need("chromium", root=False)
    assert done.returncode == 0 and "sudo apt-get install chromium" in done.stderr


def test_without_browser_tests_chromium_is_not_needed(need: Need, tmp_path: Path) -> None:
    done = need("chromium", root=True, BRAID_NO_BROWSER="1")
    assert (done.returncode, done.stderr) == (0, "") and not (tmp_path / "log").exists()


@pytest.mark.parametrize(
    ("builds", "taken"),
    [
        ({"first/python3.11": 0.012, "second/python3.11": 0.008}, "second/python3.11"),
        ({"first/python3.11": 0.009, "second/python3.11": 0.008}, "first/python3.11"),
        ({"first/python3.11": None, "second/python3.11": 0.01}, "second/python3.11"),
        ({"first/python3.12": 0.008, "second/python3": 0.02}, "second/python3"),
        ({"first/python3.11": None}, None),
    ],
)
def test_the_first_python_is_taken_unless_another_build_is_much_quicker(
    tmp_path: Path, builds: dict[str, float | None], taken: str | None
) -> None:
    """A build that is too old, or cannot create environments, reports no seconds."""
    for name, seconds in builds.items():
        (build := tmp_path / name).parent.mkdir(exist_ok=True)
        build.write_text("#!/bin/sh\nexit 1\n" if seconds is None else f"#!/bin/sh\necho {seconds}")
        build.chmod(0o755)
    for tool in ("sh", "awk"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or tool)
    path = os.pathsep.join(map(str, (tmp_path, tmp_path / "first", tmp_path / "second")))
    completed = subprocess.run(
        [ROOT / ".ci/need", "python"], capture_output=True, text=True, env={"PATH": path}
    )
    assert completed.stdout.split() == ([str(tmp_path / taken)] if taken else [])
    assert (completed.returncode, "install it" in completed.stderr) == (
        (0, False) if taken else (1, True)
    )


def test_ci_runs_make_test() -> None:
    assert os.access(ROOT / ".ci/run", os.X_OK)
    assert "make test" in (ROOT / ".ci/run").read_text()
