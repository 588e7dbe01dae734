"""The wheel, in an environment with Braid's requirements but without a checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from braid_lab.reports.notebook_runner import NOTEBOOKS, list_notebooks
from braid_lab.reports.report_page import find_external_urls
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
TREES = (ROOT / "toolkit", ROOT / "widgets")


@dataclass(frozen=True)
class Bare:
    """A virtual environment with the wheel, and an empty working directory."""

    venv: Path
    here: Path
    dist: Path

    def __call__(self, command: str, *arguments: str, **more: str) -> str:
        """Return the output of a command of the environment, which must succeed.

        ``more`` adds environment variables.
        """
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK"))}
        done = subprocess.run(
            [str(self.venv / "bin" / command), *arguments],
            cwd=self.here,
            env={**keep, **more, "VIRTUAL_ENV": str(self.venv)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def run(*command: str | Path) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Bare:
    """Make the files of a release and install the wheel alone.

    Its requirements are those of this Python, made visible by a path file that leaves out editable
    packages.
    """
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, ROOT / ".ci" / "release", folder / "dist")
    run(sys.executable, "-m", "venv", "--without-pip", venv := folder / "venv")
    [packages] = venv.glob("lib/python*/site-packages")
    templates = "share/jupyter/nbconvert"
    (venv / templates).parent.mkdir(parents=True)
    (venv / templates).symlink_to(Path(sys.prefix) / templates)
    [wheel] = (folder / "dist").glob("*.whl")
    pip = ("-m", "pip", "--disable-pip-version-check", "--python", venv / "bin" / "python")
    run(sys.executable, *pip, "install", "--no-deps", "--no-index", "--no-compile", wheel)
    # After pip, which would take what this Python has of the project for installed there too.
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib"))
    (here := folder / "here").mkdir()
    return Bare(venv, here, folder / "dist")


def test_it_is_the_wheel_that_is_imported(bare: Bare) -> None:
    asked = (
        "from importlib.metadata import version; import braid, braid_widgets as w; "
        "print(version('braid-joins'), braid.__version__, braid.__file__, w.__file__)"
    )
    reported, known, *places = bare("python", "-c", asked).split()
    assert reported == known
    assert all(Path(place).is_relative_to(bare.venv) for place in places) and len(places) == 2


PARTS = {
    "braid": {".py", ".typed"},
    "braid_lab": {".py", ".typed", ".css", ".csv", ".ipynb", ".jsonl"},
    "braid_widgets": {".py", ".typed", ".css", ".js"},
}


def test_the_wheel_has_the_packages_and_nothing_else(bare: Bare) -> None:
    [wheel] = bare.dist.glob("*.whl")
    assert wheel.stat().st_size < 6_000_000
    names = [Path(name) for name in zipfile.ZipFile(wheel).namelist()]
    parts = {name.parts[0] for name in names}
    [about] = parts - {*PARTS}
    assert about.endswith(".dist-info")
    for part, kinds in PARTS.items():
        assert {name.suffix for name in names if name.parts[0] == part} == kinds
    sources = [f.relative_to(t) for t in TREES for p in PARTS for f in (t / p).rglob("*.py")]
    assert sorted(name for name in names if name.suffix == ".py") == sorted(sources)


def test_the_wheel_is_made_again_byte_by_byte(bare: Bare, tmp_path: Path) -> None:
    """In another folder, from the source archive of the release."""
    [source], [wheel] = bare.dist.glob("*.tar.gz"), bare.dist.glob("*.whl")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path)
    [tree] = tmp_path.iterdir()
    with zipfile.ZipFile(wheel) as first:
        stamp = datetime(*first.infolist()[0].date_time, tzinfo=UTC)
    again = {**os.environ, "SOURCE_DATE_EPOCH": str(int(stamp.timestamp()))}
    build = (sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path, tree)
    subprocess.run(list(map(str, build)), env=again, check=True, capture_output=True)
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_the_release_lists_its_packages_and_checksums(bare: Bare) -> None:
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],
        cwd=bare.dist,
        capture_output=True,
        text=True,
    )
    listed = {line.partition(":")[0] for line in checked.stdout.splitlines()}
    assert checked.returncode == 0, checked.stdout
    assert listed == {f.name for f in bare.dist.iterdir()} - {"SHA256SUMS"} and len(listed) == 3
    materials = json.loads((bare.dist / "sbom.cdx.json").read_text())
    assert (materials["bomFormat"], materials["specVersion"]) == ("CycloneDX", "1.6")
    lock = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [tuple(line.split("==")) for line in lock if line and not line.startswith("#")]
    found = [(one["name"], one["version"]) for one in materials["components"]]
    assert found == [(canonicalize_name(name), version) for name, version in pins]
    assert all(
        one["purl"].endswith(f"/{one['name']}@{one['version']}") for one in materials["components"]
    )


OTHERS = ("duckdb", "numpy", "opentelemetry", "pandas", "pyarrow", "pyspark", "sqlglot")


def test_types_of_the_wheel_reach_a_file_of_a_user(bare: Bare, tmp_path: Path) -> None:
    """Stubs of other packages are skipped, which take ten times as long."""
    (tmp_path / "mine.py").write_text(
        "from braid import JoinRun, StreamJoin\n"
        "def start(join: StreamJoin) -> JoinRun:\n"
        "    reveal_type(join.start('runs/a').status)\n"
        "    return join.start(1.5)\n"
    )
    skipped = "".join(f"[mypy-{name}.*]\nfollow_imports = skip\n" for name in OTHERS)
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nstrict = true\n{skipped}")
    python = ("--python-executable", bare.venv / "bin" / "python")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *python, "--no-incremental", "mine.py"],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MYPYPATH")},
        capture_output=True,
        text=True,
    )
    revealed, refused, _ = checked.stdout.splitlines()
    assert revealed.endswith('Revealed type is "dict[str, Any]"')
    assert 'Argument 1 to "start" of "StreamJoin" has incompatible type "float"' in refused


def test_it_lists_the_notebooks(bare: Bare) -> None:
    listed = [line for line in bare("braid", "list").splitlines() if not line.startswith(" ")]
    named = [line.partition(": ") for line in listed]
    assert [name for name, _, _ in named] == list_notebooks(
        NOTEBOOKS
    ) and "00_tour" in list_notebooks(NOTEBOOKS)
    assert all(title for _, _, title in named)


def test_it_makes_a_report(bare: Bare, attached: dict[str, str]) -> None:
    settings = [w for s in ("tuples=600", "hosts=3", "batches=3") for w in ("-p", s)]
    command = ("braid", "report", "00_tour", "-o", "tour.html", *settings)
    assert "wrote tour.html" in bare(*command, **attached)
    html = (bare.here / "tour.html").read_text(encoding="utf-8")
    assert find_external_urls(html) == [], "a browser fetches nothing for it"
    assert '<div data-film="cockpit">' in html and '"state_map":' in html, "the run plays"
    assert "widget-view" not in html and "Traceback" not in html
    assert "pairs, the same as by brute force" in html
    assert "batch 48 of 48" in html and "batch 3 of 3" in html, "the recorded run, and its own"
    assert {p.name for p in bare.here.iterdir()} == {"tour.html", "tour.history.jsonl"}
