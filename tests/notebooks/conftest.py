"""One JVM for the reports of notebooks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from shared_jvm import Jvm, warm


@pytest.fixture(scope="package")
def jvm() -> Iterator[Jvm]:
    """Where all reports have their Spark. In JupyterLab (test_lab.py) a kernel starts its own."""
    with warm() as jvm:
        yield jvm


@pytest.fixture
def attached(jvm: Jvm) -> Iterator[dict[str, str]]:
    """The environment in which a process has its Spark there."""
    yield jvm.environment
    jvm.leave()


@pytest.fixture
def on_spark(attached: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel of a notebook attaches to the JVM that is there."""
    for name, value in attached.items():
        monkeypatch.setenv(name, value)
