"""One server of Spark Connect for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from connect_server import ConnectServer


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    server = ConnectServer(tmp_path_factory.mktemp("server"))
    server.start()
    yield server
    server.kill()
