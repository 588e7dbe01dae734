"""Clock, random names and process identity, in one place.

The engine and the hub use ``current_environment()`` alone, so that a test can make them
deterministic.
"""

from __future__ import annotations

import os
import socket
import time
import uuid

from braid.util.replaceable import Replaceable


class Environment:
    """The real environment of this process."""

    def read_clock(self) -> float:
        """Return the seconds of a monotonic clock, to measure durations."""
        return time.perf_counter()

    def read_time(self) -> float:
        """Return the seconds since 1970."""
        return time.time()

    def wait_seconds(self, seconds: float) -> None:
        """Wait for some seconds."""
        time.sleep(seconds)

    def make_token(self) -> str:
        """Return eight random hexadecimal digits, for a unique name."""
        return uuid.uuid4().hex[:8]

    def find_host_name(self) -> str:
        """Return the name of this machine."""
        return socket.gethostname()

    def find_process_id(self) -> int:
        """Return the id of this process."""
        return os.getpid()


_current = Replaceable(Environment())
current_environment, replace_environment = _current.get_current, _current.replace_meanwhile
