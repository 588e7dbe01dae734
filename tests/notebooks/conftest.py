"""One JVM for the reports of notebooks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from shared_jvm import Jvm, start_jvm


@pytest.fixture(scope="package")
def jvm() -> Iterator[Jvm]:
    """The JVM with the Spark of all reports. In JupyterLab (test_lab.py) a kernel starts its
    own.
    """
    with start_jvm() as jvm:
        yield jvm


@pytest.fixture
def attached(jvm: Jvm) -> Iterator[dict[str, str]]:
    """Return the environment with which a process uses this JVM."""
    yield jvm.environment
    jvm.leave()


@pytest.fixture
def on_spark(attached: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the kernel of a notebook attach to the shared JVM."""
    for name, value in attached.items():
        monkeypatch.setenv(name, value)
