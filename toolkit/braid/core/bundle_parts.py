"""Parts of a bundle, the file of ``braid bundle`` that describes a run to others.

It is a ZIP file::

    run/events.jsonl    events; without data, texts of conditions and errors are left out
    run/run.json        settings, likewise
    run/...             with data: all other files of the run
    health.json         health when the bundle was written
    diagnosis.json      what a diagnosis needs besides events
    versions.json       packages, Python and machine
    files.json          names and lengths of all files of the run
    report.txt          health, diagnosis, summary and damage, in words
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from braid.errors import DamagedRunError

EVENTS, SETTINGS = "run/events.jsonl", "run/run.json"
HEALTH, DIAGNOSIS = "health.json", "diagnosis.json"
VERSIONS, FILES, REPORT = "versions.json", "files.json", "report.txt"


def is_bundle(path: str | Path) -> bool:
    """Return whether a path is that of a bundle."""
    if not Path(path).is_file() or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as bundle:
        return EVENTS in bundle.namelist()


def read_bundle_part(path: str | Path, name: str) -> bytes:
    """Return a part of a bundle. Raises DamagedRunError if it is missing or damaged."""
    try:
        with zipfile.ZipFile(path) as bundle:
            return bundle.read(name)
    except (KeyError, zipfile.BadZipFile) as error:
        raise DamagedRunError(f"{path} is damaged: {error.args[0]}") from None
