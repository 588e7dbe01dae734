"""The JavaScript: its types match the views, its bundles exist, and its packages contain no
sources.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from braid_widgets.base.columnar import Columns
from braid_widgets.base.player import embed_data, read_bundle, thin
from braid_widgets.cockpit.frames import MapFrame
from braid_widgets.theta.matrix import HostCopies

JS = Path(__file__).parents[2] / "widgets" / "js"
WIDGETS = JS.parent / "braid_widgets"


@pytest.fixture(scope="module")
def frames() -> Any:
    """Return the script that generates the types of frames."""
    spec = importlib.util.spec_from_file_location("frames", JS / "frames.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_types_of_frames_are_those_of_the_views(frames: Any) -> None:
    text = frames.typescript()
    for record in (HostCopies, MapFrame):
        declared = re.search(rf"interface {record.__name__} {{\n(.*?)}}", text, re.S)
        assert declared is not None
        assert re.findall(r"(\w+)\??:", declared[1]) == [*get_type_hints(record)]
    lines = [path.read_text("utf-8") for path in (JS / "src").rglob("*.ts")]
    used = re.findall(r"import type {(.*)} from \"../../frames.ts\"", "\n".join(lines))
    assert used
    for name in {name.strip() for names in used for name in names.split(",")}:
        assert text.count(f"interface {name} {{") == 1


def test_a_field_that_the_browser_cannot_have_is_refused(frames: Any) -> None:
    with pytest.raises(TypeError, match="no counterpart"):
        frames._type(set[int], {})


def test_the_scripts_of_all_bundles_are_small() -> None:
    entries = (JS / "src" / "entry").iterdir()
    assert sum(len(read_bundle(path.stem).encode()) for path in entries) <= 110_000


FIRST_MAPS = {"blocks", "grid", "segments", "ring", "ages", "shedding", "hub"}
"""Maps that the first limits cover: 2,900 lines of TypeScript and 7,000 of Python. Each later map
allows 140 and 160 more. All steppers are drawn by one module, so later ones add no lines here.
"""
LATER_MAPS = {*get_type_hints(MapFrame), "answers"} - FIRST_MAPS
ALLOWED = {
    "ts": 2_900 + 140 * len(LATER_MAPS),
    "py": 7_000 + 160 * len(LATER_MAPS),
}
REACHED = {"ts": 3_972, "py": 7_480}
"""Lines that there may be until the limit is reached; lower them with each deletion."""


@pytest.mark.parametrize(("folder", "kind"), [(JS / "src", "ts"), (WIDGETS, "py")])
def test_the_views_only_become_shorter(folder: Path, kind: str) -> None:
    paths = [*folder.rglob(f"*.{kind}")]
    count = sum(len(path.read_text("utf-8").splitlines()) for path in paths)
    assert paths and count <= max(ALLOWED[kind], REACHED[kind])


@pytest.mark.parametrize("path", sorted((JS / "src" / "entry").iterdir()), ids=lambda p: p.stem)
def test_a_bundle_is_one_module_that_loads_nothing(path: Path) -> None:
    text = read_bundle(path.stem)
    assert "export{" in text and "import" not in text and "</script" not in text


def test_packages_are_locked_by_hash_and_name_no_source() -> None:
    packages = json.loads((JS / "package-lock.json").read_text())["packages"]
    installed = [entry for name, entry in packages.items() if name]
    assert installed and all("integrity" in entry for entry in installed)
    assert not any("resolved" in entry for entry in installed)


def test_records_go_by_column() -> None:
    copies = [HostCopies(2, 3, 0, 5), HostCopies(2, 4, 1, 6)]
    columns = Columns.from_records(HostCopies, copies)
    assert columns["rows"] == [5, 6] and list(columns) == [*HostCopies._fields]
    assert Columns.from_records(HostCopies, []) == {name: [] for name in HostCopies._fields}
    assert json.loads(json.dumps(columns)) == columns


def test_a_page_holds_its_frames_as_data_that_cannot_end_it() -> None:
    data = {"frames": [{"title": "</script><b>"}]}
    text = embed_data("steps", "", data, "", "steps")
    assert text.count("</script>") == 2 and "<b>" not in text
    script = text.split('<script type="application/json">')[1].split("</script>")[0]
    assert json.loads(script) == data


def lengths() -> list[tuple[int, int]]:
    return [(n, most) for n in (1, 2, 9, 10, 11, 99, 1000) for most in (1, 10, 40)]


@pytest.mark.parametrize(("length", "most"), lengths())
def test_a_long_film_is_thinned_and_keeps_both_ends(length: int, most: int) -> None:
    kept = thin(range(length), most)
    assert kept[0] == 0 and kept[-1] == length - 1 and len(kept) <= most + 1
    assert kept == sorted(set(kept))
