"""A bucket: a place in an object store (S3, Google Cloud, Azure), and the few things that a run
needs of it.

Objects are put whole, and are there for all once ``put`` returns. They have names and no folders.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from braid.core.environment import environment
from braid.core.extras import Needs
from braid.core.work import workers
from braid.engine.disk import disk

_AT_ONCE = 16
"""Requests that are on their way."""


class Bucket:
    """The objects below a URL, as ``s3://bucket/prefix``. Where the store is and who may use it is
    in the environment, as obstore reads it (``AWS_ENDPOINT``, ``AWS_ACCESS_KEY_ID``, ...).

    Its methods raise OSError, with one sentence, for whatever the store says, among it
    FileNotFoundError where an object is missing.
    """

    def __init__(self, url: str) -> None:
        with Needs("cloud"):
            from obstore.exceptions import BaseError
            from obstore.store import from_url
        self.url = url.rstrip("/")
        try:
            self._store: Any = from_url(self.url)
        except (BaseError, TypeError, ValueError) as error:
            raise ValueError(
                f"{url} cannot be opened: {_line(error)}; a run needs a folder, or a bucket as "
                "s3://bucket/prefix, gs://bucket/prefix or az://account/container/prefix"
            ) from error

    def put(self, name: str, body: bytes | Path, new: bool = False) -> None:
        """Put an object, or a file's content, whole. Raises FileExistsError where it is to be
        ``new`` and is there: of several that put it, one does.
        """
        import obstore

        with self._told(name):
            obstore.put(self._store, name, body, mode="create" if new else None)

    def get(self, name: str) -> bytes:
        """An object."""
        import obstore

        with self._told(name):
            return bytes(obstore.get(self._store, name).bytes())

    def fetch(self, name: str, path: Path) -> None:
        """Copy an object to a file, which is there whole or not at all."""
        import obstore

        temporary = path.with_name(f".{path.name}.{environment().token()}")
        try:
            with self._told(name), disk().open(temporary, "wb") as file:
                for chunk in obstore.get(self._store, name).stream():
                    file.write(chunk)
            disk().replace(temporary, path)
        finally:
            disk().unlink(temporary, missing_ok=True)

    def size(self, name: str) -> int:
        """The bytes of an object; -1: it is missing."""
        import obstore

        try:
            with self._told(name):
                return int(obstore.head(self._store, name)["size"])
        except FileNotFoundError:
            return -1

    def names(self, folder: str = "") -> dict[str, int]:
        """The objects whose names begin with ``folder`` and a slash, and their bytes."""
        import obstore

        with self._told(folder):
            chunks = obstore.list(self._store, folder or None)
            return {found["path"]: found["size"] for chunk in chunks for found in chunk}

    def delete(self, names: Collection[str]) -> None:
        """Remove objects; it does not matter whether they are there."""
        import obstore

        def one(name: str) -> None:
            with suppress(FileNotFoundError), self._told(name):
                obstore.delete(self._store, name)

        each(one, names)

    def probe(self) -> None:
        """Raise ValueError unless of two that put an object of one name only the first does."""
        name = f"probe-{environment().token()}"
        try:
            with suppress(FileExistsError):  # nobody else gives that name: an answer was lost
                self.put(name, b"1", new=True)
            try:
                self.put(name, b"2", new=True)
            except FileExistsError:
                return
        except OSError as error:
            raise ValueError(f"{self.url} cannot be written to: {error}") from error
        finally:
            with suppress(OSError):
                self.delete([name])
        raise ValueError(
            f"the store of {self.url} puts an object that is to be new (If-None-Match: *) over one "
            "that is there, so two drivers could both commit; a run needs a store that refuses that"
        )

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        """Raise Python's own errors, in one sentence, for the store's."""
        from obstore.exceptions import AlreadyExistsError, BaseError

        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.url}/{name} is missing") from None
        except AlreadyExistsError:
            raise FileExistsError(f"{self.url}/{name} is there") from None
        except BaseError as error:
            raise OSError(f"{self.url}/{name}: {_line(error)}") from error


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def each(work: Callable[[str], Any], names: Iterable[str]) -> list[Any]:
    """Do a piece of work for every name, several at a time."""
    todo = [*names]
    if len(todo) < 2:
        return [work(name) for name in todo]
    with workers().pool("braid-bucket", min(_AT_ONCE, len(todo))) as pool:
        return [*pool.map(work, todo)]


def settings() -> dict[str, str]:
    """What in this process's environment says where stores are and who may use them: what Spark's
    workers are told, too.
    """
    return {k: v for k, v in os.environ.items() if k.startswith(("AWS_", "AZURE_", "GOOGLE_"))}


@cache
def bucket(url: str) -> Bucket:
    """This process's bucket at a URL. Raises ValueError for a URL that is none."""
    return Bucket(url)
