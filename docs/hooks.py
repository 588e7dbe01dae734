"""Generate pages when mkdocs builds this site.

They are: start, contributing and changes (from the files beside this folder), the concordance, the
gallery, the pages of the API, the replay of the front page, and the simulation of the architecture
page. Figures of the benchmarks come from their page. None is stored in the repository, so none can
be out of date.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]

MEASURE_REFERENCE = re.compile(r"\{measure:([^}]+)\}")
ROOT_PAGES = {
    "start.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changes.md": "CHANGELOG.md",
}
SOURCES = {
    "braid": ROOT / "toolkit",
    "braid_lab": ROOT / "toolkit",
    "braid_widgets": ROOT / "widgets",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the API into the navigation, and this checkout before any other."""
    sys.path[:0] = [str(ROOT), *map(str, SOURCES.values())]
    pages: list[Any] = [{name: f"api/{name}.md"} for name in list_packages()]
    config.nav = [{"API": pages} if entry == {"API": "api/"} else entry for entry in config.nav]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    from docs import concordance, gallery

    for name, source in ROOT_PAGES.items():
        files.append(File.generated(config, name, content=read_root_page(source)))
    files.append(File.generated(config, "concordance.md", content=concordance.render_page()))
    files.append(File.generated(config, "gallery.md", content=gallery.render_page()))
    files.append(File.generated(config, "run.html", content=render_simulation()))
    files.append(File.generated(config, "replay.html", content=render_replay()))
    for name in list_packages():
        files.append(File.generated(config, f"api/{name}.md", content=render_package(name)))
    return files


def read_root_page(source: str) -> str:
    """Return a page beside this folder, with its links to pages as links in the site."""
    text = (ROOT / source).read_text(encoding="utf-8").replace("](docs/", "](")
    for name, other in ROOT_PAGES.items():
        text = text.replace(f"]({other})", f"]({name})")
    return text.replace("](LICENSE)", "](#licence)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put measured figures in place: ``{measure:NAME}`` is one of the page on performance."""
    return MEASURE_REFERENCE.sub(
        lambda match: read_measures()[" ".join(match[1].split())], markdown
    )


def read_measures() -> dict[str, str]:
    """Return the figures of the page on performance, by name."""
    rows = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    return {row[0]: row[1] for row in cells if len(row) == 5}


def render_replay() -> str:
    """Return the recorded run of the front page as a page that plays offline."""
    from braid_lab.launches.recorded_runs import recording_path

    return render_run_page(recording_path("fluct"))


def render_run_page(source: Any) -> str:
    """Return the page of a run, which plays offline."""
    from braid_widgets.cockpit.page import save_run_page

    with tempfile.TemporaryDirectory() as folder:
        return save_run_page(source, Path(folder) / "run.html").read_text(encoding="utf-8")


def list_packages() -> list[str]:
    """Return all packages; each has a page of the API."""
    return [
        ".".join(init.parent.relative_to(source).parts)
        for name, source in SOURCES.items()
        for init in sorted((source / name).rglob("__init__.py"))
    ]


def render_package(package: str) -> str:
    """Return the page of a package: its docstring, then its modules in alphabetical order."""
    parts = package.split(".")
    folder = SOURCES[parts[0]].joinpath(*parts)
    modules = [package, *(f"{package}.{f.stem}" for f in sorted(folder.glob("[!_]*.py")))]
    return f"# {package}\n" + "".join(f"\n::: {module}\n" for module in modules)


def render_simulation() -> str:
    """Return a simulated run of the adaptive grid as a page that plays offline."""
    from braid.papers.theta.grid import AdaptiveGrid
    from braid.simulation.simulator import simulate

    batches = [(400, 40 + 160 * b) for b in range(24)]
    return render_run_page(simulate(AdaptiveGrid(hosts=16), batches, seed=1))
