"""The wheel, in an environment with Braid's requirements but without a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest
from braid_lab.reports.notebook_runner import NOTEBOOKS, list_notebooks
from braid_lab.reports.report_page import find_external_urls

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Bare:
    """A virtual environment with the wheel, and an empty working directory."""

    venv: Path
    here: Path

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
    """Build the wheel from the source archive and install it alone.

    Its requirements are those of this Python, made visible by a path file that leaves out editable
    packages.
    """
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", ROOT)
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
    return Bare(venv, here)


def test_it_is_the_wheel_that_is_imported(bare: Bare) -> None:
    asked = (
        "from importlib.metadata import version; import braid, braid_widgets as w; "
        "print(version('braid-joins'), braid.__version__, braid.__file__, w.__file__)"
    )
    told, known, *places = bare("python", "-c", asked).split()
    assert told == known
    assert all(Path(place).is_relative_to(bare.venv) for place in places) and len(places) == 2


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
