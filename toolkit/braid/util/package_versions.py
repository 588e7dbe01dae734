"""Versions of the packages that Braid runs on."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("duckdb", "pyarrow", "numpy", "sqlglot", "pyspark", "pandas")


def list_versions() -> dict[str, str | None]:
    """Return the version of each package; None: it is not installed."""
    return {package: _find_version(package) for package in _PACKAGES}


def list_present_versions() -> dict[str, str]:
    """Return the versions of Braid and of the installed packages."""
    present = {"Braid": find_braid_version(), **list_versions()}
    return {package: version for package, version in present.items() if version is not None}


def _find_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def find_braid_version() -> str:
    """Return the version of Braid."""
    return version("braid-joins")
