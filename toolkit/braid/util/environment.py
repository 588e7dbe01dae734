"""Time, random names and what a process is called, in one place: the engine and the hub ask
``environment()`` alone, so that a test can have the same answers each time.
"""

from __future__ import annotations

import os
import socket
import time
import uuid

from braid.util.replaceable import Replaceable


class Environment:
    """This process, as it is."""

    def read_clock(self) -> float:
        """Return seconds since some moment, for how long something takes."""
        return time.perf_counter()

    def read_time(self) -> float:
        """Return seconds since 1970."""
        return time.time()

    def wait_seconds(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def make_token(self) -> str:
        """Return eight random hexadecimal digits, for a name that nobody else gives."""
        return uuid.uuid4().hex[:8]

    def find_host_name(self) -> str:
        """Return the name of this machine."""
        return socket.gethostname()

    def find_process_id(self) -> int:
        """Return the number of this process."""
        return os.getpid()


_current = Replaceable(Environment())
current_environment, replace_environment = _current.get_current, _current.replace_meanwhile
