"""Split a run's input on a background thread, ahead of the reader of micro-batches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from braid.core.run_state import FileChecksum
from braid.storage.staged_input import GeneratedFiles, StagedStream
from braid.util.batch_numbers import display_batch
from braid.util.cancellation import PART
from braid.util.clock_and_threads import current_workers

InputChecksums = dict[str, list[FileChecksum]]


class InputSplitter:
    """Background splitter of staged streams into files of micro-batches.

    It starts at micro-batch ``first`` and ends with those before it. ``force``: force files to
    disk. ``done`` is called with the checksums of all files. ``is_lazy``: whether a file is written
    only when its micro-batch is waited for, as the streams may change until then.
    """

    def __init__(
        self,
        streams: Mapping[str, StagedStream | GeneratedFiles],
        first: int,
        force: bool,
        done: Callable[[InputChecksums], None],
        is_lazy: bool = False,
    ) -> None:
        self._is_lazy, self.first_unrequested = is_lazy, first
        self._streams, self._first, self._force, self._done = streams, first, force, done
        self._count = max(s.batches for s in streams.values())
        self._checksums: dict[int, dict[str, FileChecksum]] = {}
        self._error: Exception | None = None
        self._ended, self._leaving, self._news = False, False, threading.Condition()
        for stream in streams.values():
            stream.create_placeholders()
        self._thread = current_workers().start_thread("braid-input", self._split_all)

    def _split_all(self) -> None:
        try:
            for number in (*range(self._first, self._count), *range(min(self._first, self._count))):
                self._wait_for_request(number)
                if self._leaving:
                    return
                cut = {
                    a: s.write_micro_batch(number, self._force) for a, s in self._streams.items()
                }
                with self._news:
                    self._checksums[number] = cut
                    self._news.notify_all()
            numbers = range(self._count)
            self._done({a: [self._checksums[n][a] for n in numbers] for a in self._streams})
        except Exception as error:
            self._error = error
        finally:
            self._streams = {}  # mapped files keep their disk space
            with self._news:
                self._ended = True
                self._news.notify_all()

    def _wait_for_request(self, number: int) -> None:
        with self._news:
            while self._is_lazy and number >= self.first_unrequested and not self._leaving:
                self._news.wait(PART)

    def wait_for_batch(self, number: int) -> None:
        """Wait until the files of a micro-batch are written or splitting has ended."""
        with self._news:
            self.first_unrequested = max(self.first_unrequested, number + 1)
            self._news.notify_all()
            while number < self._count and number not in self._checksums and not self._ended:
                self._news.wait(PART)

    def checksums(self, number: int) -> dict[str, FileChecksum]:
        """Return the checksums of a micro-batch's files, by alias.

        Raises RuntimeError if the files were not written.
        """
        with self._news:
            if number in self._checksums or number >= self._count:
                return self._checksums.get(number, {})
        self._raise_split_error()
        raise RuntimeError(
            f"the run was stopped before the input of batch {display_batch(number)} was written"
        )

    def wait_until_split(self) -> None:
        """Wait until all files are written. Raises the error of splitting."""
        with self._news:
            self.first_unrequested = self._count
            self._news.notify_all()
        while not self._ended:
            self._thread.join(PART)
        self._raise_split_error()

    def _raise_split_error(self) -> None:
        if self._error is not None:
            raise RuntimeError(
                f"the run's input could not be written: {self._error}"
            ) from self._error

    def request_stop(self) -> None:
        """Request that splitting stops."""
        self._leaving = True

    def stop(self) -> None:
        """Stop splitting, and wait for the file being written."""
        self.request_stop()
        self._thread.join()
