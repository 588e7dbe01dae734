"""Spark's own stream-stream joins in a process of their own: the rival of several programs.

The process has a plain session, not ``braid.spark_session``, which changes how Spark keeps files.
It stays alive, so that Spark and Braid take turns and both are warm. Each run is checked: the log
of offsets must name the state store and the version of the join's state that were asked for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from _common import STATE_STORES, run_builtin_join
from pyspark.sql import SparkSession

SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def make_plain_session(memory: str = "4g") -> SparkSession:
    """Return a session without anything of Braid's."""
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    settings: dict[str, bool | float | int | str | None] = {
        **SETTINGS,
        "spark.driver.memory": memory,
    }
    return (
        SparkSession.builder.appName("rival").master("local[*]").config(map=settings).getOrCreate()
    )


class PlainSpark:
    """A process that runs joins of Spark's when asked. ``memory``: of its JVM."""

    def __init__(self, memory: str = "4g") -> None:
        command = [sys.executable, __file__, memory]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()  # the end of its input ends the process

    def run_join(
        self, join: str, folder: Path, given: Any, store: str, out: Path
    ) -> tuple[list[float], int]:
        """Return seconds per batch and the number of results of a join.

        - ``join``: function that returns the joined frame, as ``module.name``. Its arguments are a
          session, ``folder`` and ``given``.
        - ``store``: name of the state store.
        """
        request = {"join": join, "given": given, "store": store, "folder": str(folder)}
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request | {"out": str(out)}) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith('{"seconds"'):
                answer = json.loads(line)
                return answer["seconds"], answer["results"]
        raise RuntimeError(f"the process of Spark ended with {self._process.wait()}")


def check_settings(out: Path, store: str) -> None:
    """Raise AssertionError if a query did not run with the settings of its state store."""
    first = (out / "checkpoint" / "offsets" / "0").read_text().splitlines()[1]
    logged = json.loads(first)["conf"]
    for key, value in STATE_STORES[store].items():
        assert logged.get(key, value) == value, f"{store}: {key} is {logged[key]}, not {value}"
    version = "spark.sql.streaming.join.stateFormatVersion"
    assert logged[version] == STATE_STORES[store][version], (
        f"{store} has another version of the state"
    )


def main() -> None:
    """Answer the requests of the standard input, a line each."""
    spark = make_plain_session(sys.argv[1])
    for line in sys.stdin:
        request = json.loads(line)
        module, name = request["join"].split(".")
        joined = getattr(import_module(module), name)(
            spark, Path(request["folder"]), request["given"]
        )
        out = Path(request["out"])
        seconds, results = run_builtin_join(spark, joined, request["store"], out)
        check_settings(out, request["store"])
        print(json.dumps({"seconds": seconds, "results": results}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
