"""The recipes of the documentation run, and print what their page says."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

import pytest

pytestmark = pytest.mark.unit
DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["attribution", "dimension"])
def test_a_recipe_prints_what_its_page_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    example, page = DOCS / "examples" / f"{name}.py", (DOCS / "kinds.md").read_text()
    assert f'--8<-- "docs/examples/{name}.py"' in page
    run_path(str(example))
    assert f"```text\n{capsys.readouterr().out}```\n" in page
