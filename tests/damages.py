"""Ways to damage a file at rest."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path


def flip_a_bit(file: Path, rng: random.Random) -> None:
    body = bytearray(file.read_bytes())
    body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
    file.write_bytes(body)


def truncate_file(file: Path, rng: random.Random) -> None:
    file.write_bytes(file.read_bytes()[: rng.randrange(file.stat().st_size)])


def zero_file(file: Path, rng: random.Random) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def remove_file(file: Path, rng: random.Random) -> None:
    file.unlink()


DAMAGES: Mapping[str, Callable[[Path, random.Random], None]] = {
    "flip": flip_a_bit,
    "cut": truncate_file,
    "zero": zero_file,
    "remove": remove_file,
}


def list_files(folder: Path) -> list[Path]:
    """Return the non-empty files in a folder, relative to it."""
    files = (f for f in folder.rglob("*") if f.is_file() and f.stat().st_size)
    return sorted(f.relative_to(folder) for f in files)
