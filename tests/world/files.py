"""A file system in memory that loses data in a power failure.

It is as weak as POSIX permits. The synced content of a file survives a power failure, and a name
survives if its folder was synced. Until then, any subset of the changes of names may be lost, and
of the content any prefix, any sector, or all of it.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

SECTOR = 512
"""Bytes that a disk writes atomically."""


@dataclass(eq=False)
class Inode:
    """A file: its content, and its last synced content."""

    number: int
    content: bytes = b""
    durable: bytes = b""
    is_forced: bool = False
    """Whether ``durable`` is the whole content."""
    time: float = 0.0
    """Time of the last change, in seconds."""


Change = tuple[str, "Inode | Folder | None"]
"""A name and its new target; None: removed."""


@dataclass(eq=False)
class Folder:
    """A folder: its names, its synced names, and the changes in between."""

    number: int
    names: dict[str, Inode | Folder] = field(default_factory=dict)
    durable: dict[str, Inode | Folder] = field(default_factory=dict)
    pending: list[Change] = field(default_factory=list)
    time: float = 0.0

    def set(self, name: str, node: Inode | Folder | None) -> None:
        """Set the file or folder of a name; None removes it."""
        if node is None:
            del self.names[name]
        else:
            self.names[name] = node
        self.pending.append((name, node))

    def force(self) -> None:
        """Sync all names to disk."""
        self.durable, self.pending = dict(self.names), []


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


class Files:
    """The file system. Paths are absolute, as text; methods raise OSError as the system does."""

    def __init__(self) -> None:
        self.root, self._count, self.now = Folder(1), 1, 0.0

    def _number(self) -> int:
        self._count += 1
        return self._count

    def find(self, path: str) -> Inode | Folder | None:
        """Return the file or folder at a path, or None."""
        node: Inode | Folder | None = self.root
        for part in path.split("/"):
            if part:
                node = node.names.get(part) if isinstance(node, Folder) else None
        return node

    def file(self, path: str) -> Inode:
        """Return the file at a path."""
        node = self.find(path)
        if node is None:
            raise _error(errno.ENOENT, path)
        if isinstance(node, Folder):
            raise _error(errno.EISDIR, path)
        return node

    def folder(self, path: str) -> Folder:
        """Return the folder at a path."""
        node = self.find(path)
        if node is None:
            raise _error(errno.ENOENT, path)
        if isinstance(node, Inode):
            raise _error(errno.ENOTDIR, path)
        return node

    def _place(self, path: str) -> tuple[Folder, str]:
        above, _, name = path.rstrip("/").rpartition("/")
        return self.folder(above), name

    def create(self, path: str) -> Inode:
        """Return the empty file at a path; create it if necessary."""
        folder, name = self._place(path)
        node = folder.names.get(name)
        if isinstance(node, Folder):
            raise _error(errno.EISDIR, path)
        if node is None:
            node = Inode(self._number())
            folder.set(name, node)
        self.change(node, b"")
        return node

    def change(self, node: Inode, content: bytes) -> None:
        """Replace the content of a file."""
        node.content, node.is_forced, node.time = content, False, self.now

    def append(self, node: Inode, more: bytes) -> None:
        """Append to a file."""
        self.change(node, node.content + more)

    def mkdir(self, path: str) -> None:
        """Create a folder."""
        folder, name = self._place(path)
        if name in folder.names or not name:
            raise _error(errno.EEXIST, path)
        folder.set(name, Folder(self._number(), time=self.now))

    def rmdir(self, path: str) -> None:
        """Remove an empty folder."""
        folder, name = self._place(path)
        if self.folder(path).names:
            raise _error(errno.ENOTEMPTY, path)
        folder.set(name, None)

    def link(self, path: str, new: str) -> None:
        """Add a name to a file; the name must be free."""
        node, (folder, name) = self.file(path), self._place(new)
        if name in folder.names:
            raise _error(errno.EEXIST, new)
        folder.set(name, node)

    def replace(self, path: str, new: str) -> None:
        """Rename a file or folder, replacing a file of that name."""
        node = self.find(path)
        if node is None:
            raise _error(errno.ENOENT, path)
        (old, name), (folder, target) = self._place(path), self._place(new)
        there = folder.names.get(target)
        if isinstance(there, Folder):
            raise _error(errno.EISDIR, new)
        if isinstance(node, Folder) and there is not None:
            raise _error(errno.ENOTDIR, new)
        if isinstance(node, Folder) and new.startswith(f"{path}/"):
            raise _error(errno.EINVAL, new)
        if there is node:
            return
        folder.set(target, node)
        old.set(name, None)

    def unlink(self, path: str) -> None:
        """Remove the name of a file."""
        self.file(path)
        folder, name = self._place(path)
        folder.set(name, None)

    def force(self, node: Inode | Folder) -> None:
        """Sync the content of a file, or the names in a folder, to disk."""
        if isinstance(node, Folder):
            node.force()
        else:
            node.durable, node.is_forced = node.content, True

    def walk(self, path: str = "") -> Iterator[tuple[str, Inode]]:
        """Return all files below a path, in the order of their names."""
        node = self.find(path)
        if isinstance(node, Inode):
            yield path, node
        elif node is not None:
            for name in sorted(node.names):
                yield from self.walk(f"{path}/{name}")

    def cut(self, draw: random.Random) -> None:
        """Cut the power: only synced data remains, and of the rest what ``draw`` selects."""
        self.root = self.copy_after_cut(draw).root

    def copy_after_cut(self, draw: random.Random) -> Files:
        """Return a copy of the files as a power failure would leave them now."""
        left = Files()
        left.root, left._count, left.now = _left(self.root, draw, {}), self._count, self.now
        return left

    def flip(self, path: str, bit: int) -> None:
        """Flip a bit of a file, also on disk; its number is taken modulo the file's length."""
        node = self.file(path)
        byte, mask = bit // 8 % len(node.content), 1 << bit % 8

        def flipped(body: bytes) -> bytes:
            if byte >= len(body):
                return body
            return body[:byte] + bytes([body[byte] ^ mask]) + body[byte + 1 :]

        node.content, node.durable = flipped(node.content), flipped(node.durable)


def _left(folder: Folder, draw: random.Random, inodes: dict[int, Inode]) -> Folder:
    names, changes = dict(folder.durable), dict[str, list[Inode | Folder | None]]()
    for name, node in folder.pending:
        changes.setdefault(name, []).append(node)
    for name in sorted(changes):
        if kept := draw.randint(0, len(changes[name])):
            last = changes[name][kept - 1]
            names.pop(name, None)
            if last is not None:
                names[name] = last
    left = dict[str, Inode | Folder]()
    for name in sorted(names):
        node = names[name]
        if isinstance(node, Folder):
            left[name] = _left(node, draw, inodes)
        else:
            if node.number not in inodes:
                body = node.durable if node.is_forced else torn(node, draw)
                inodes[node.number] = Inode(node.number, body, body, True, node.time)
            left[name] = inodes[node.number]
    return Folder(folder.number, left, dict(left), [], folder.time)


def torn(node: Inode, draw: random.Random) -> bytes:
    """Return what a power failure leaves of a file that changed since its last sync.

    If the file only grew, the synced content remains.
    """
    old, new = node.durable, node.content
    stays = len(old) if new.startswith(old) else 0
    kind = draw.choice(("all", "old", "prefix", "zeros", "sectors"))
    if kind == "all" or kind == "old":
        return new if kind == "all" else old
    if kind == "prefix":
        return new[: draw.randint(stays, max(stays, len(new)))]
    if kind == "zeros":
        return new[:stays] + bytes(len(new) - stays)
    body = bytearray(new)
    for start in range(stays // SECTOR * SECTOR, len(new), SECTOR):
        if draw.random() < 0.5:
            first, end = max(stays, start), min(start + SECTOR, len(new))
            body[first:end] = bytes(end - first)
    return bytes(body)
