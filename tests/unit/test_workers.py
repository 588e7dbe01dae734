"""Workers of another program's session run this Python and find this package. No Spark."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from signal import SIGKILL
from subprocess import PIPE, Popen, TimeoutExpired
from types import SimpleNamespace
from typing import Any

import braid
import pytest
from braid import spark_session
from braid.spark_workers import prepare_workers
from shared_jvm import end_process

HOME = str(Path(braid.__file__).parents[1])


def session(master: str = "local[2]", python: str = "python3", **environment: str) -> Any:
    context = SimpleNamespace(master=master, pythonExec=python, environment=environment)
    return SimpleNamespace(sparkContext=context)


def test_they_run_this_python_with_this_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    spark = session(PYTHONPATH="/mine")
    for _ in range(2):
        prepare_workers(spark)
        assert spark.sparkContext.pythonExec == sys.executable
        assert spark.sparkContext.environment["PYTHONPATH"] == os.pathsep.join([HOME, "/mine"])


def test_those_of_a_cluster_are_sent_this_package_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    sent: list[str] = []
    spark = session("spark://there:7077")
    spark.sparkContext.applicationId, spark.sparkContext.addPyFile = "of this test", sent.append
    for _ in range(2):
        prepare_workers(spark)
    assert [Path(f).name for f in sent] == ["braid.zip"]
    assert (spark.sparkContext.pythonExec, spark.sparkContext.environment) == ("python3", {})


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            "echo Traceback >&2; echo \"ModuleNotFoundError: No module named 'braid'\" >&2; exit 1",
            r"which cannot import Braid \(ModuleNotFoundError: No module named 'braid'\); set it to",
        ),
        (None, r"which cannot import Braid \(.*No such file"),
    ],
)
def test_a_python_without_braid_is_refused_before_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lines: str | None, said: str
) -> None:
    python = tmp_path / "python"
    if lines is not None:
        python.write_text(f"#!/bin/sh\n{lines}\n")
        python.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    with pytest.raises(ValueError, match=said) as refusal:
        prepare_workers(session(python=str(python)))
    assert "\n" not in str(refusal.value) and sys.executable in str(refusal.value)


def test_another_python_with_braid_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 0\n")
    python.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    spark = session(python=str(python))
    prepare_workers(spark)
    assert spark.sparkContext.pythonExec == str(python) and not spark.sparkContext.environment


def test_what_a_jvm_says_comes_through_but_for_what_each_begins_with(
    capfd: pytest.CaptureFixture[str],
) -> None:
    reported, said = os.pipe()
    os.write(said, b"WARNING: Using incubator modules: jdk.incubator.vector\nno space left\n")
    os.write(said, b'Setting Spark log level to "ERROR".\nWARN')
    os.close(said)
    spark_session._forward_stderr(reported)
    assert capfd.readouterr().err == "no space left\nWARN"


def test_a_jvm_of_the_tests_that_does_not_end_is_killed() -> None:
    heeds = Popen(["cat"], stdin=PIPE)
    end_process(heeds)
    assert heeds.returncode == 0
    deaf = Popen(["sleep", "60"], stdin=PIPE)
    with pytest.raises(TimeoutExpired):
        end_process(deaf, 0.1)
    assert deaf.returncode == -SIGKILL
