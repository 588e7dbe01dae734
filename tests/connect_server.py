"""A server of Spark Connect in a process of its own, whose Python workers have no Braid."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pyspark

SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-Xss8m -XX:+UseSerialGC",
}
MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
NO_BRAID = 'raise ImportError("the server has no Braid")\n'


class ConnectServer:
    """A server on a free port of this machine. After ``kill``, ``start`` starts another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "modules/braid").mkdir(parents=True)
        (folder / "modules/braid/__init__.py").write_text(NO_BRAID)
        self.python = folder / "python"
        """The command that starts the server's Python workers."""
        self.set_python(sys.executable)

    def set_python(self, command: str) -> None:
        """Set the command that the server's Python workers are started with."""
        self.python.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        self.python.chmod(0o755)

    def start(self) -> None:
        """Start the server, and wait until it takes connections."""
        with socket.socket() as free:  # gRPC does not soon look again for one that was gone
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        spark = Path(pyspark.__file__).parent
        settings = SETTINGS | {
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            "spark.local.dir": str(self.folder),
        }
        named = [f"--conf={name}={value}" for name, value in settings.items()]
        command = [str(spark / "bin/spark-class"), "org.apache.spark.deploy.SparkSubmit"]
        environment = {
            "SPARK_HOME": str(spark),
            "PYSPARK_PYTHON": str(self.python),
            "PYTHONPATH": str(self.folder / "modules"),
        }
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--class", MAIN, *named, "spark-internal"],
                cwd=self.folder,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        while not self._takes_connections():
            assert self.process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.1)

    def _takes_connections(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        """Kill the server, wait until it is gone, and end its Python workers, which outlive it."""
        workers = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        self.process.wait()
        for worker in workers:
            with suppress(psutil.NoSuchProcess):
                worker.kill()

    def connect(self) -> Any:
        """Return a new session. It does not wait ten minutes for a server that is gone."""
        from pyspark.sql.connect.client.retries import DefaultPolicy
        from pyspark.sql.connect.session import SparkSession

        session = SparkSession.builder.remote(f"sc://127.0.0.1:{self.port}").create()
        session.client.set_retry_policies([DefaultPolicy(max_retries=2)])
        return session
