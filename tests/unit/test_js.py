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
LAB = JS.parents[1] / "toolkit" / "braid_lab"


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
LATER_MAPS = {*get_type_hints(MapFrame), "answers"} - FIRST_MAPS
LATER_STEPPERS = {*LAB.glob("*/*_steps.py")} - {LAB / "common" / "planned_steps.py"}
ALLOWED = {"ts": 2_900 + 140 * len(LATER_MAPS), "py": 7_000 + 160 * len(LATER_MAPS)}
"""Lines of the views. Each later stepper allows 120 more, in the two languages together."""


def count_lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def test_the_views_are_within_their_lines() -> None:
    paths = {"ts": [*(JS / "src").rglob("*.ts")], "py": [*WIDGETS.rglob("*.py")]}
    counts = {kind: sum(map(count_lines, paths[kind])) for kind in paths}
    assert all(paths.values()) and len(LATER_MAPS) == 3 and len(LATER_STEPPERS) == 7
    extra = sum(max(0, counts[kind] - ALLOWED[kind]) for kind in counts)
    assert extra <= 120 * len(LATER_STEPPERS), counts


PARTS = {"cockpit": 250, "tracks": 220, "inspector": 120, "drawer": 140, "pen": 180}


def test_each_part_of_the_views_is_within_its_lines() -> None:
    parts = {path.stem: count_lines(path) for path in (JS / "src").glob("*/*.ts")}
    assert {name: n for name, n in parts.items() if n > PARTS.get(name, 280)} == {}
    maps = [
        p for p in (JS / "src").glob("*/*.ts") if p.parent.name not in ("base", "cockpit", "entry")
    ]
    maps += WIDGETS.glob("*/*_map.py")
    assert len(maps) >= 16 and {p.name: n for p in maps if (n := count_lines(p)) > 160} == {}


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
