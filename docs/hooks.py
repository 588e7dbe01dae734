"""What mkdocs makes by itself when it builds this site: the front page (from README.md), the
concordance, the pages of the API, and the picture of the architecture page. None of them is kept in
the repository, so none can be out of date.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

HERE = Path(__file__).parent
ROOT = HERE.parent

SOURCES = {"braid": ROOT / "toolkit", "braid_widgets": ROOT / "widgets"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the API into the navigation, and this checkout before any other."""
    sys.path[:0] = [str(HERE), *map(str, SOURCES.values())]
    pages: list[Any] = [{name: f"api/{name}.md"} for name in packages()]
    config.nav = [{"API": pages} if entry == {"API": "api/"} else entry for entry in config.nav]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is generated."""
    import concordance

    files.append(File.generated(config, "index.md", content=front()))
    files.append(File.generated(config, "concordance.md", content=concordance.page()))
    files.append(File.generated(config, "run.html", content=picture()))
    for name in packages():
        files.append(File.generated(config, f"api/{name}.md", content=api(name)))
    return files


def front() -> str:
    """README.md as the front page: its links to this folder become links in the site."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text.replace("](docs/", "](").replace("](LICENSE)", "](#licence)")


def packages() -> list[str]:
    """All packages, each of which has a page of the API."""
    return [
        ".".join(init.parent.relative_to(source).parts)
        for name, source in SOURCES.items()
        for init in sorted((source / name).rglob("__init__.py"))
    ]


def api(package: str) -> str:
    """The page of a package: what it says of itself, then its modules in alphabetical order."""
    parts = package.split(".")
    folder = SOURCES[parts[0]].joinpath(*parts)
    modules = [package, *(f"{package}.{f.stem}" for f in sorted(folder.glob("[!_]*.py")))]
    return f"# {package}\n" + "".join(f"\n::: {module}\n" for module in modules)


def picture() -> str:
    """A modelled run of the adaptive grid as a page that plays offline, by our own replay."""
    from braid.model.simulate import simulate
    from braid.papers.theta.grid import AdaptiveGrid
    from braid_widgets.theta import stage

    batches = [(400, 40 + 160 * b) for b in range(24)]
    events = simulate(AdaptiveGrid(hosts=16), batches, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        return stage.save(events, Path(folder) / "run.html").read_text(encoding="utf-8")
