"""Puts the notebooks, and the recordings and tables that they show, into the wheel.

A checkout has them as top-level folders, an installed package under ``braid_lab/reports``; either
way a notebook finds the recordings in ``../data/recordings``. All else is in pyproject.toml.
"""

from pathlib import Path
from shutil import copyfile

from setuptools import setup
from setuptools.command.build_py import build_py

DATA = ("notebooks/**/*.ipynb", "data/recordings/*", "data/studies/*")


class WithNotebooks(build_py):
    """build_py, and the data files of braid.reports."""

    def data(self) -> list[tuple[Path, Path]]:
        """Each file and where it goes, for a build that is not editable."""
        if self.editable_mode:
            return []
        reports = Path(self.build_lib, "braid_lab", "reports")
        return [(f, reports / f) for pattern in DATA for f in sorted(Path().glob(pattern))]

    def run(self) -> None:
        """Build, then copy."""
        super().run()
        for source, target in self.data():
            target.parent.mkdir(parents=True, exist_ok=True)
            copyfile(source, target)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """The files that an uninstall removes."""
        return [*super().get_outputs(include_bytecode), *(str(to) for _, to in self.data())]


setup(cmdclass={"build_py": WithNotebooks})
