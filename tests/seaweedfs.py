"""A local object store: SeaweedFS, which supports conditional puts, on its own loopback ports."""

from __future__ import annotations

import os
import socket
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

_PARTS = ("master", "volume", "filer", "s3")


def _find_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    found = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return found


@contextmanager
def seaweedfs_store(bucket: str = "runs") -> Iterator[dict[str, str]]:
    """Yield the environment that addresses a store with a bucket."""
    ports = _find_ports(2 * len(_PARTS))
    each = [f"-{part}.port={port}" for part, port in zip(_PARTS, ports, strict=False)]
    each += [f"-{p}.port.grpc={port}" for p, port in zip(_PARTS, ports[len(_PARTS) :], strict=True)]
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "log", "wb") as log:
        program = Path(sysconfig.get_path("scripts")) / "weed"
        fixed = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", "-master.telemetry=false"]
        fixed += ["-master.peers=none"]  # otherwise it waits a second for peers
        small = ["-volume.max=20", "-master.volumeSizeLimitMB=64"]
        small += ["-s3.port.iceberg=0", "-s3.port.lance=0"]  # two stores would share these ports
        process = subprocess.Popen(
            [program, "server", f"-dir={folder}", *fixed, *small, *each],
            env=os.environ | {"TMPDIR": folder},  # it writes its own logs there
            stdout=log,
            stderr=log,
        )
        try:
            url = f"http://127.0.0.1:{ports[3]}"
            _await_answer(f"{url}/{bucket}", process, Path(folder) / "log")
            yield {
                "AWS_ENDPOINT": url,
                "AWS_ALLOW_HTTP": "true",
                "AWS_ACCESS_KEY_ID": "test",
                "AWS_SECRET_ACCESS_KEY": "test",
                "AWS_REGION": "us-east-1",
            }
        finally:
            process.kill()
            process.wait()


def _await_answer(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the bucket can be created and an object can be put."""
    end = time.monotonic() + 60
    for wanted in (url, f"{url}/first"):
        while True:
            try:
                urlopen(Request(wanted, b"", method="PUT"), timeout=5).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < end, log.read_text()[-2000:]
                time.sleep(0.05)
