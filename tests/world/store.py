"""An object store in memory, with the methods of ``braid.storage.object_store.ObjectStore``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from braid.util.file_system import current_file_system


class ObjectStore:
    """The objects of all drivers. An object that was put remains, whatever happens to a driver."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}


class SimulatedBucket:
    """One driver's connection to the store.

    ``ask`` is called before and after each request, and raises if the request fails: before,
    nothing was done; after, its response is lost.
    """

    def __init__(self, store: ObjectStore, ask: Callable[[str, str, bool], None], url: str) -> None:
        self.store, self.ask, self.url = store, ask, url.rstrip("/")

    def put_object(self, name: str, body: bytes | Path, new: bool = False) -> None:
        """Put an object whole; see Bucket. A client without a response retries."""
        content = current_file_system().read_file(body) if isinstance(body, Path) else bytes(body)
        self.ask("put", name, True)
        if new and name in self.store.objects:
            raise FileExistsError(f"{self.url}/{name} is there")
        self.store.objects[name] = content
        try:
            self.ask("put", name, False)
        except LostAnswer:
            if new:
                raise FileExistsError(f"{self.url}/{name} is there") from None

    def get_object(self, name: str) -> bytes:
        """Return an object."""
        self.ask("get", name, True)
        if name not in self.store.objects:
            raise FileNotFoundError(f"{self.url}/{name} is missing")
        return self.store.objects[name]

    def download(self, name: str, path: Path) -> None:
        """Copy an object to a file."""
        current_file_system().write_file(path, self.get_object(name))

    def object_size(self, name: str) -> int:
        """Return the bytes of an object; -1 if it is missing."""
        self.ask("size", name, True)
        body = self.store.objects.get(name)
        return -1 if body is None else len(body)

    def list_objects(self, folder: str = "") -> dict[str, int]:
        """Return the objects below a folder, and their bytes."""
        self.ask("names", folder, True)
        begin = f"{folder}/" if folder else ""
        return {n: len(b) for n, b in sorted(self.store.objects.items()) if n.startswith(begin)}

    def delete_objects(self, names: Collection[str]) -> None:
        """Remove objects."""
        for name in sorted(names):
            self.ask("delete", name, True)
            self.store.objects.pop(name, None)

    def check_conditional_put(self) -> None:
        """Accept: the store puts a new object only if none exists."""


class LostAnswer(Exception):
    """A request was done, but its response was lost; the client retries by itself."""


def failing(name: str, code: int) -> OSError:
    """Return the error that a bucket raises for an error response of the store."""
    return OSError(f"world://run/{name}: the server answered {code}")
