"""Objects in an object store (S3, Google Cloud, Azure), with the operations that a run needs.

Objects are written atomically, and visible to all once ``put_object`` returns. They have names but
no folders.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from braid.util.clock_and_threads import current_environment, current_workers
from braid.util.file_system import current_file_system
from braid.util.optional_imports import OptionalImport

_AT_ONCE = 16
"""Most concurrent requests."""


class ObjectStore:
    """Objects below a URL, as ``s3://bucket/prefix``.

    Endpoint and credentials come from the environment, as obstore reads it (``AWS_ENDPOINT``,
    ``AWS_ACCESS_KEY_ID``, ...).

    Methods raise OSError for errors of the store, FileNotFoundError if an object is missing.
    """

    def __init__(self, url: str) -> None:
        with OptionalImport("cloud"):
            from obstore.exceptions import BaseError
            from obstore.store import from_url
        self.url = url.rstrip("/")
        try:
            self._store: Any = from_url(self.url)
        except (BaseError, TypeError, ValueError) as error:
            raise ValueError(
                f"{url} cannot be opened: {_first_error_line(error)}; a run needs a folder, or a "
                "bucket as "
                "s3://bucket/prefix, gs://bucket/prefix or az://account/container/prefix"
            ) from error

    def put_object(self, name: str, body: bytes | Path, new: bool = False) -> None:
        """Write an object, or the content of a file, atomically.

        ``new``: raise FileExistsError if it exists. If several processes write it at once, one
        succeeds.
        """
        import obstore

        with self._translate_store_errors(name):
            obstore.put(self._store, name, body, mode="create" if new else None)

    def get_object(self, name: str) -> bytes:
        """Return the content of an object."""
        import obstore

        with self._translate_store_errors(name):
            return bytes(obstore.get(self._store, name).bytes())

    def download(self, name: str, path: Path) -> None:
        """Download an object to a file atomically."""
        import obstore

        temporary = path.with_name(f".{path.name}.{current_environment().make_token()}")
        try:
            with (
                self._translate_store_errors(name),
                current_file_system().open_file(temporary, "wb") as file,
            ):
                for chunk in obstore.get(self._store, name).stream():
                    file.write(chunk)
            current_file_system().replace_file(temporary, path)
        finally:
            current_file_system().remove_file(temporary, missing_ok=True)

    def object_size(self, name: str) -> int:
        """Return the bytes of an object; -1: it is missing."""
        import obstore

        try:
            with self._translate_store_errors(name):
                return int(obstore.head(self._store, name)["size"])
        except FileNotFoundError:
            return -1

    def list_objects(self, folder: str = "") -> dict[str, int]:
        """Return the objects whose names begin with ``folder`` and a slash, and their bytes."""
        import obstore

        with self._translate_store_errors(folder):
            chunks = obstore.list(self._store, folder or None)
            return {entry["path"]: entry["size"] for chunk in chunks for entry in chunk}

    def delete_objects(self, names: Collection[str]) -> None:
        """Remove objects. Missing ones are ignored."""
        import obstore

        def one(name: str) -> None:
            with suppress(FileNotFoundError), self._translate_store_errors(name):
                obstore.delete(self._store, name)

        map_concurrently(one, names)

    def check_conditional_put(self) -> None:
        """Raise ValueError unless the store refuses to create an object that exists."""
        name = f"probe-{current_environment().make_token()}"
        try:
            with suppress(FileExistsError):  # the name is unique, so an answer was lost
                self.put_object(name, b"1", new=True)
            try:
                self.put_object(name, b"2", new=True)
            except FileExistsError:
                return
        except OSError as error:
            raise ValueError(f"{self.url} cannot be written to: {error}") from error
        finally:
            with suppress(OSError):
                self.delete_objects([name])
        raise ValueError(
            f"the store of {self.url} overwrites an object that exists in spite of If-None-Match: "
            "*, so two drivers could both commit; a run needs a store that supports it"
        )

    @contextmanager
    def _translate_store_errors(self, name: str) -> Iterator[None]:
        """Replace errors of the store by Python's own."""
        from obstore.exceptions import AlreadyExistsError, BaseError

        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.url}/{name} is missing") from None
        except AlreadyExistsError:
            raise FileExistsError(f"{self.url}/{name} is there") from None
        except BaseError as error:
            raise OSError(f"{self.url}/{name}: {_first_error_line(error)}") from error


def _first_error_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def map_concurrently(work: Callable[[str], Any], names: Iterable[str]) -> list[Any]:
    """Call a function for every name, several at a time. Return the results in order."""
    todo = [*names]
    if len(todo) < 2:
        return [work(name) for name in todo]
    with current_workers().open_pool("braid-bucket", min(_AT_ONCE, len(todo))) as pool:
        return [*pool.map(work, todo)]


def store_environment() -> dict[str, str]:
    """Return the environment variables with endpoints and credentials, for Spark's workers."""
    return {k: v for k, v in os.environ.items() if k.startswith(("AWS_", "AZURE_", "GOOGLE_"))}


@cache
def open_object_store(url: str) -> ObjectStore:
    """Return this process's store at a URL. Raises ValueError if the URL is invalid."""
    return ObjectStore(url)
