"""Built-in plugins are in one table; installed ones come by entry points, and may be broken."""

from __future__ import annotations

import ast
import logging
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import getmembers, isabstract, isclass
from pathlib import Path

import braid
import braid.papers
import braid.simulation
import pytest
from braid import plugins
from braid.cli import main
from braid.core import event_jsonl, plugin_provider
from braid.core.placement import (
    PLACEMENTS,
    Placement,
    placement_names,
    registered_placements,
)
from braid.core.run_events import EVENTS, Event
from braid.errors import PluginError
from words import ROOT

SOURCES = ROOT / "toolkit" / "braid"
ABOVE = ("__init__.py", "plugins.py", "cli.py")
"""The only files that may import Braid by text."""
BY_TEXT = {"import_module", "find_spec", "walk_packages", "iter_modules", "__import__"}
TURNS = """
from dataclasses import dataclass
from braid.core.run_events import Event
from braid.core.placement import Placement
from braid.core.plan import Plan

@dataclass(frozen=True)
class Turns(Placement):
    hosts: int

    def plan_batch(self, facts, state):
        return Plan()

@dataclass(frozen=True, slots=True)
class TurnTaken(Event):
    batch: int
"""
OTHERS = TURNS.replace("Turns", "Others")
Install = Callable[..., None]


def _modules() -> Iterator[str]:
    for package in (braid.papers, braid.simulation):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield module.name


def _defined(base: type) -> dict[str, str]:
    """Return the module of each public concrete subclass in the papers and the simulation."""
    return {
        name: kind.__module__
        for module in map(import_module, _modules())
        for name, kind in getmembers(module, isclass)
        if issubclass(kind, base) and kind.__module__ == module.__name__
        if not name.startswith("_") and not isabstract(kind)
    }


def test_the_table_has_every_placement_of_the_package() -> None:
    assert _defined(Placement) == plugins.PLACEMENTS


def test_the_table_has_every_module_of_events() -> None:
    core = {
        f"braid.core.{name}"
        for name in (
            *("run_events", "comparison_watch", "irregular_rows", "answer_events"),
            *("clock_events", "touch_events", "trace_rows"),
        )
    }
    assert {*_defined(Event).values()} | core == set(plugins.EVENT_MODULES)


def test_the_names_of_the_front_door_are_those_that_type_checkers_read() -> None:
    tree = ast.parse((SOURCES / "__init__.py").read_text())
    (block,) = (n for n in tree.body if isinstance(n, ast.If))
    read = {i.names[0].name: i.module for i in block.body if isinstance(i, ast.ImportFrom)}
    assert read == braid._MODULES | {"Any": "typing"}
    assert set(plugins.PLACEMENTS) < set(braid.__all__)


def _texts(node: ast.AST) -> Iterator[str]:
    return (n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and type(n.value) is str)


def _imports_by_text(source: str) -> list[int]:
    """Return the lines of calls that import a module of Braid by a text."""
    return [
        call.lineno
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call)
        and getattr(call.func, "attr", getattr(call.func, "id", "")) in BY_TEXT
        and any(text.startswith("braid") for text in _texts(call))
    ]


@pytest.mark.parametrize(
    "call",
    [
        "import_module('braid.papers')",
        "importlib.import_module(f'braid_widgets.{name}')",
        "find_spec('braid_lab')",
        "walk_packages(package.__path__, 'braid.papers.')",
    ],
)
def test_an_import_by_text_is_found(call: str) -> None:
    assert _imports_by_text(f"x = 1\n{call}") == [2]
    assert not _imports_by_text("import_module('plotly'); find_spec(name)")


def test_nothing_below_the_plugins_imports_by_text() -> None:
    files = [p for p in SOURCES.rglob("*.py") if str(p.relative_to(SOURCES)) not in ABOVE]
    assert len(files) > 100
    assert not {f"{p}:{line}" for p in files for line in _imports_by_text(p.read_text())}


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that installs a package: its code, and its entry points by group."""
    monkeypatch.setattr(plugin_provider, "_provider", plugins.Plugins())
    monkeypatch.setattr(PLACEMENTS, "classes", dict(PLACEMENTS.classes))
    monkeypatch.setattr(EVENTS, "classes", dict(EVENTS.classes))
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def write(name: str, code: str, **groups: str) -> None:
        (tmp_path / f"{name}.py").write_text(code)
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(
            "".join(f"[braid.{group}]\n{entry}\n" for group, entry in groups.items())
        )

    yield write
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", "").startswith(str(tmp_path)):
            del sys.modules[name]


def test_an_installed_placement_is_imported_on_first_use(install: Install) -> None:
    install("turns_pack", TURNS, placements="Turns = turns_pack:Turns")
    assert "Turns" in placement_names() and "turns_pack" not in sys.modules
    kind = Placement.class_by_name("Turns")
    assert kind.__module__ == "turns_pack" and registered_placements()["Turns"] is kind


def test_an_installed_event_is_read(install: Install) -> None:
    install("turns_pack", TURNS, events="turns = turns_pack")
    line = {"format_version": event_jsonl.VERSION, "type": "TurnTaken", "batch": 3}
    assert event_jsonl.event_from_dict(line).batch == 3


@pytest.mark.parametrize(
    ("code", "entry", "reason"),
    [
        ("import nowhere_at_all", "Turns = turns_pack:Turns", "No module named 'nowhere_at_all'"),
        ("1 / 0", "Turns = turns_pack:Turns", "division by zero"),
        (OTHERS, "Turns = turns_pack:Nothing", "has no attribute 'Nothing'"),
        (OTHERS, "Turns = turns_pack:TurnTaken", "it is not a placement named Turns"),
        (OTHERS, "Turns = turns_pack:Others", "it is not a placement named Turns"),
        (
            TURNS.replace("Turns", "Ring"),
            "Turns = turns_pack:Ring",
            "placement Ring is defined in braid.papers.psp.ring and again in turns_pack",
        ),
    ],
)
def test_a_broken_placement_is_logged_and_refused_with_the_reason(
    code: str, entry: str, reason: str, install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    assert Placement.class_by_name("Ring").__module__ == "braid.papers.psp.ring"
    install("turns_pack", code, placements=entry)
    name = entry.split()[0]
    with caplog.at_level(logging.WARNING):
        assert name not in registered_placements() and "Ring" in registered_placements()
    (record,) = caplog.records
    assert record.name == "braid.plugins" and reason in record.getMessage()
    for _ in range(2):
        with pytest.raises(PluginError, match=f"^{name} of braid.placements .* cannot be used: "):
            Placement.class_by_name(name)
    assert len(caplog.records) == 1


def test_a_broken_module_of_events_is_logged_and_named_for_unknown_events(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install("turns_pack", "1 / 0", events="turns = turns_pack")
    with caplog.at_level(logging.WARNING):
        assert "BatchCommitted" in event_jsonl.event_types()
    assert [r.name for r in caplog.records] == ["braid.plugins"]
    line = {"format_version": event_jsonl.VERSION, "type": "TurnTaken", "batch": 3}
    with pytest.raises(ValueError, match=r"'TurnTaken'.*; turns of braid.events .*: division by"):
        event_jsonl.event_from_dict(line)


def test_one_name_of_two_packages_is_refused_with_both(install: Install) -> None:
    for pack in ("turns_pack", "other_pack"):
        install(pack, TURNS, placements=f"Turns = {pack}:Turns")
    with pytest.raises(PluginError, match="in other_pack:Turns and again in turns_pack:Turns"):
        Placement.class_by_name("Turns")


def test_an_installed_placement_does_not_replace_a_built_in_one(install: Install) -> None:
    install("turns_pack", TURNS.replace("Turns", "Ring"), placements="Ring = turns_pack:Ring")
    assert Placement.class_by_name("Ring").__module__ == "braid.papers.psp.ring"


def test_a_broken_command_stops_no_other(
    install: Install, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    install("turns_pack", "1 / 0", commands="turns = turns_pack:add")
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0 and capsys.readouterr().out.startswith("braid 0")
    assert [r.name for r in caplog.records] == ["braid.plugins"]


@pytest.mark.parametrize("arguments", [["report", "00_tour", "-p", "hosts=4", "--force"], ["list"]])
def test_commands_of_the_lab_name_the_extra_without_the_lab(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "braid_lab"] + ["braid_lab"]:
        monkeypatch.setitem(sys.modules, name, None)
    assert main(arguments) == 2
    assert "pip install 'braid-joins[notebooks]'" in capsys.readouterr().err


def test_a_first_look_up_imports_one_placement_and_no_metadata() -> None:
    program = (
        "import sys; from braid.core.placement import Placement; Placement.class_by_name('Chain'); "
        "print(sorted(m for m in sys.modules if m.startswith('braid.papers.') and m.count('.') == 2"
        " or m == 'importlib.metadata'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "['braid.papers.common', 'braid.papers.slices']"
