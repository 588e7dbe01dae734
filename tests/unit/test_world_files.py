"""The simulated disk behaves like the system's, and a power failure loses only what it may."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from world.files import SECTOR, Files, Folder

NAMES = ["/a", "/b", "/d", "/d/a", "/d/b"]
name = st.sampled_from(NAMES)
body = st.binary(max_size=6).map(lambda some: some * 300)
operation = st.one_of(
    st.tuples(st.just("write"), name, body),
    st.tuples(st.just("append"), name, body),
    st.tuples(st.sampled_from(["mkdir", "rmdir", "unlink", "force"]), name),
    st.tuples(st.sampled_from(["link", "replace"]), name, name),
)


def on_disk(root: Path, verb: str, path: str, *more: Any) -> None:
    """Perform the operation on the system's own disk."""
    at = Path(f"{root}{path}")
    if verb in ("write", "append"):
        with open(at, "wb" if verb == "write" else "ab") as file:
            file.write(*more)
    elif verb == "force":
        os.fsync(at_once := os.open(at, os.O_RDONLY))
        os.close(at_once)
    else:
        getattr(os, verb)(at, *(f"{root}{each}" for each in more))


def in_memory(files: Files, verb: str, path: str, *more: Any) -> None:
    if verb == "write":
        files.append(files.create(path), *more)
    elif verb == "append":
        node = files.find(path)
        files.append(files.create(path) if node is None else files.file(path), *more)
    elif verb == "force":
        node = files.find(path)
        files.force(files.file(path) if node is None else node)
    else:
        getattr(files, verb)(path, *more)


def tried(do: Any, *given: Any) -> str | None:
    """Return the kind of the error raised."""
    try:
        do(*given)
    except OSError as error:
        return type(error).__name__
    return None


def content(files: Files) -> dict[str, bytes]:
    return {path: node.content for path, node in files.walk()}


@given(operations=st.lists(operation, max_size=25))
@example([("write", "/a", b""), ("mkdir", "/b"), ("replace", "/b", "/a")])
@example([("mkdir", "/b"), ("replace", "/b", "/b/a")])
@settings(max_examples=150, deadline=None)
def test_the_simulated_disk_does_as_the_disk_of_the_system(operations: list[Any]) -> None:
    root, files = Path(tempfile.mkdtemp()), Files()
    try:
        for each in operations:
            wanted, got = tried(on_disk, root, *each), tried(in_memory, files, *each)
            if each[0] == "replace" and files.find(each[1]).__class__ is Folder:
                break  # Braid never moves a folder over another
            assert (got is None) == (wanted is None), (each, got, wanted)
        else:
            there = [f for f in root.rglob("*") if f.is_file()]
            assert content(files) == {f"/{f.relative_to(root)}": f.read_bytes() for f in there}
    finally:
        shutil.rmtree(root)


@given(operations=st.lists(operation, max_size=12), seed=st.integers(0, 9))
@settings(max_examples=150, deadline=None)
def test_a_power_cut_leaves_what_was_forced_and_invents_nothing(
    operations: list[Any], seed: int
) -> None:
    files = Files()
    for each in operations:
        tried(in_memory, files, *each)
    once = {node.number: node for _, node in files.walk()}
    certain = forced(files.root)
    files.cut(random.Random(seed))
    left = content(files)
    for path, body in certain.items():
        assert left[path] == body
    for _, node in files.walk():
        if node.number in once and once[node.number].is_forced:
            assert node.content == once[node.number].durable
    before = content(files)
    files.cut(random.Random(seed + 1))
    assert content(files) == before, "all that a power cut left is on disk"


def forced(folder: Folder, above: str = "") -> dict[str, bytes]:
    """Return the forced files whose names have not changed since: no power cut takes them."""
    found = dict[str, bytes]()
    changed = {name for name, _ in folder.pending}
    for name, node in folder.durable.items():
        if name in changed:
            continue
        if isinstance(node, Folder):
            found |= forced(node, f"{above}/{name}")
        elif node.is_forced:
            found[f"{above}/{name}"] = node.durable
    return found


def test_every_subset_of_changes_of_names_may_be_lost_but_per_name_in_order() -> None:
    def changed() -> Files:
        files = Files()
        for verb in ("mkdir", "force"):
            getattr(files, verb)("/d") if verb == "mkdir" else files.force(files.root)
        for text in (b"1", b"2"):
            files.append(files.create("/d/new"), text)
            files.force(files.file("/d/new"))
            files.replace("/d/new", "/d/a")
        files.append(files.create("/d/b"), b"3")
        files.force(files.file("/d/b"))
        return files

    seen = set[tuple[tuple[str, bytes], ...]]()
    for seed in range(400):
        files = changed()
        files.cut(random.Random(seed))
        seen.add(tuple(content(files).items()))
    new: list[list[tuple[str, bytes]]] = [[], [("/d/new", b"1")], [("/d/new", b"2")]]
    a: list[list[tuple[str, bytes]]] = [[], [("/d/a", b"1")], [("/d/a", b"2")]]
    b: list[list[tuple[str, bytes]]] = [[], [("/d/b", b"3")]]
    wanted = {tuple(sorted([*x, *y, *z])) for x, y, z in product(a, b, new)}
    assert seen == wanted


def test_of_a_file_that_was_not_forced_a_power_cut_leaves_a_prefix_zeros_or_sectors() -> None:
    whole, seen = b"x" * (3 * SECTOR), set[str]()
    for seed in range(100):
        files = Files()
        node = files.create("/a")
        files.append(node, whole[:SECTOR])
        files.force(node)
        files.force(files.root)
        files.append(node, whole[SECTOR:])
        files.cut(random.Random(seed))
        left = files.file("/a").content
        assert left.startswith(whole[:SECTOR]), "what was forced stays where the file only grew"
        mixed = {left[SECTOR : 2 * SECTOR], left[2 * SECTOR :]} == {bytes(SECTOR), b"x" * SECTOR}
        seen.add(
            "mixed" if mixed else "zeros" if 0 in left else f"{left in (whole, whole[:SECTOR])}"
        )
    assert seen == {"mixed", "zeros", "True", "False"}


def test_a_flipped_bit_is_on_disk_too() -> None:
    files = Files()
    node = files.create("/a")
    files.append(node, b"\x00\x00")
    files.force(node)
    files.force(files.root)
    files.flip("/a", 8)
    assert files.file("/a").content == b"\x00\x01"
    files.cut(random.Random(0))
    assert files.file("/a").content == b"\x00\x01"
