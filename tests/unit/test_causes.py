"""The line of an error that states its cause."""

from __future__ import annotations

import pytest
from braid.util.error_summary import summarize_error, with_cause

WORKER = """
  An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/opt/worker.py", line 3, in main
    process()
    ^^^^^^^^^
FileNotFoundError: [Errno 2] no such file: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/opt/task.py", line 9, in write
    file.write(rows)
OSError: [Errno 28] No space left on device: '/runs/blocks/7.arrow'

\tat org.apache.spark.api.python.BasePythonRunner
"""
STAGE = """An error occurred while calling o117.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 5.0 failed
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "x.py", line 1
ModuleNotFoundError: No module named 'braid'
\tat y"""
ROOT = """An error occurred while calling o3455.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.
== SQL (line 1, position 1) ==
\tat z"""
JAVA = """An error occurred while calling o117.collectToPython.
: java.lang.OutOfMemoryError: Java heap space
\tat java.base/java.util.Arrays.copyOf"""


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (WORKER, "OSError: [Errno 28] No space left on device: '/runs/blocks/7.arrow'"),
        (STAGE, "ModuleNotFoundError: No module named 'braid'"),
        (ROOT, "org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero."),
        (JAVA, "java.lang.OutOfMemoryError: Java heap space"),
        ("[DIVIDE_BY_ZERO] Division by zero.\n== SQL ==", "[DIVIDE_BY_ZERO] Division by zero."),
        ("\n\n  plain", "plain"),
        ("", "ValueError"),
    ],
)
def test_the_cause_is_one_line(text: str, reported: str) -> None:
    assert summarize_error(ValueError(text)) == reported


def test_an_error_that_hides_its_cause_is_told_by_it() -> None:
    plain, worker = OSError("disk full\nand more"), RuntimeError(WORKER)
    assert with_cause(plain, "batch 3 failed") is plain
    short = with_cause(worker, "batch 3 failed")
    assert str(short).startswith("batch 3 failed: OSError: [Errno 28]")
    assert short.__cause__ is worker
