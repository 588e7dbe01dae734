"""Notebook kernels forked from a process with all imports done, so that they start at once.

``python forked_kernels.py SOCKET`` is that process, for as long as its stdin is open; SOCKET is the
number of a file descriptor. The command of its kernels' spec, ``python forked_kernels.py PATH
...``, requests a kernel at that socket and represents it: it ends with the kernel and forwards
interrupts, and the kernel ends with it.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from subprocess import Popen


def open_socket() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def stand_for(asked: str, *arguments: str) -> None:
    """Request a kernel with this process's environment, folder and streams, and end with it."""
    with open_socket() as kernel:
        kernel.connect(asked)
        reported = json.dumps([dict(os.environ), os.getcwd(), arguments]).encode()
        socket.send_fds(kernel, [reported], [0, 1, 2])
        process = int(kernel.recv(32))
        signal.signal(signal.SIGINT, lambda *_: os.kill(process, signal.SIGINT))
        kernel.recv(1)


def serve_kernels(number: str) -> None:
    import select

    sys.path.pop(0)  # the folder of this file
    with socket.socket(fileno=int(number)) as listening:
        import_modules()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the requester waits for its kernel
        while sys.stdin not in (ready := select.select([listening, sys.stdin], [], [])[0]):
            assert ready
            asked, _ = listening.accept()
            with asked:
                if os.fork() == 0:
                    listening.close()
                    become_kernel(asked)
                    break
    atexit._run_exitfuncs()
    os._exit(0)  # finalizing the imported modules takes a second


def import_modules() -> None:
    """Import everything that notebooks import, and more."""
    import gc
    from importlib import import_module
    from pkgutil import walk_packages

    # As in braid's command: jsonschema would compile grammars for three seconds.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    for name in ("ipykernel.kernelapp", "ipykernel.ipkernel", "plotly.express", "pyspark.sql"):
        import_module(name)
    for name in ("braid", "braid_widgets"):
        for module in walk_packages(import_module(name).__path__, f"{name}."):
            import_module(module.name)
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


def become_kernel(asked: socket.socket) -> None:
    """Become the requested kernel, in a process group that ends with the requester."""
    import tempfile
    import threading

    from ipykernel.kernelapp import launch_new_instance

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    reported, files, *_ = socket.recv_fds(asked, 1 << 20, 3)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    environment, folder, arguments = json.loads(reported)
    os.environ.clear()
    os.environ.update(environment)
    os.environ.pop("JPY_PARENT_PID", None)  # that process is not the parent
    tempfile.tempdir = None
    os.chdir(folder)
    asked.send(str(os.getpid()).encode())

    def end_group() -> None:
        asked.recv(1)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=end_group, daemon=True).start()
    launch_new_instance([*arguments, "--IPKernelApp.parent_handle=1"])


@contextmanager
def fork_kernels(folder: Path) -> Iterator[Popen[bytes]]:
    """Yield the process that kernels are forked from.

    Their spec is in this folder; JUPYTER_PATH must name it.
    """
    import subprocess

    (spec := folder / "kernels" / "python3").mkdir(parents=True)
    command = [sys.executable, "-IS", __file__, str(folder / "asked"), "-f", "{connection_file}"]
    secret = {"supported_encryption": ["curve"]}
    reported = dict(argv=command, display_name="Python 3", language="python", metadata=secret)
    (spec / "kernel.json").write_text(json.dumps(reported))
    with open_socket() as listening:
        listening.bind(str(folder / "asked"))
        listening.listen()
        number = listening.fileno()
        process = subprocess.Popen(
            [sys.executable, __file__, str(number)],
            stdin=subprocess.PIPE,
            start_new_session=True,
            pass_fds=[number],
        )
    yield process
    process.communicate(timeout=30)


if __name__ == "__main__":
    (serve_kernels if len(sys.argv) == 2 else stand_for)(*sys.argv[1:])
