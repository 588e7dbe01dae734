"""The engine in a simulated world never accesses this machine's disk."""

from __future__ import annotations

from inspect import signature

import pytest
from braid.util.file_system import FileSystem
from world.disk import SimulatedDisk


@pytest.mark.parametrize(
    "verb", [v for v in vars(FileSystem) if not v.startswith("_") and v != "find_files"]
)
def test_the_simulated_disk_has_each_method_of_the_disk(verb: str) -> None:
    """A missing one would access this machine's files. ``find`` calls others."""
    real, simulated = vars(FileSystem)[verb], vars(SimulatedDisk)[verb]
    assert str(signature(simulated)) == str(signature(real))
