"""The names that ``from braid import ...`` provides."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import braid
import pytest


@pytest.mark.parametrize("name", braid.__all__)
def test_a_public_name_is_no_module(name: str) -> None:
    """A module of that name would replace it once imported."""
    for _ in range(2):
        assert not isinstance(getattr(braid, name), ModuleType)


def test_a_session_is_a_function_from_the_first_import_on() -> None:
    program = (
        "from braid import session; import braid; assert session is braid.session; session.__code__"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
