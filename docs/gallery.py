"""Make the page of the notebooks by task, and the picture of each: docs/gallery/NAME.webp.

.venv/bin/python docs/gallery.py [NAME ...]

draws the pictures: of all notebooks, or of some. Each has the digest of its notebook in its XMP, so
that a test can refuse the picture of another version.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TASKS, PICTURES = ROOT / "notebooks/tasks", ROOT / "docs/gallery"
SIZE = (640, 400)
ON_SPARK = "spark: bool"
"""A parameter with which a notebook joins Spark DataFrames."""
PAGE_HEAD = """# Gallery

Twelve tasks, each a notebook: question, data, join, cockpit, a figure, and a check against DuckDB.
The data are generated with fixed seeds. Copy the cells that you need; `make lab` opens the
notebooks, and `braid report tasks/NAME -p batches=20` makes a page of one with other parameters.
"""


def list_tasks() -> list[str]:
    """Return the names of the notebooks."""
    return sorted(file.stem for file in TASKS.glob("*.ipynb"))


def read_cells(name: str) -> list[dict[str, Any]]:
    """Return the cells of a notebook, each with its source as one text."""
    cells = json.loads((TASKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return [{**cell, "source": "".join(cell["source"])} for cell in cells]


def digest_code(name: str) -> str:
    """Return the digest of a notebook's code."""
    code = [cell["source"] for cell in read_cells(name) if cell["cell_type"] == "code"]
    return hashlib.sha256("\n\n".join(code).encode()).hexdigest()


def run_cells(name: str, **parameters: Any) -> list[Any]:
    """Run the code of a notebook without a kernel. Return the value that each cell displays.

    ``parameters`` replace values of its parameters cell.
    """
    names: dict[str, Any] = {}
    shown = []
    for cell in read_cells(name):
        if cell["cell_type"] == "code":
            shown.append(_run_cell(cell["source"], names))
            if cell["metadata"].get("tags"):
                assert parameters.keys() <= names.keys(), "an unknown parameter"
                names.update(parameters)
    return shown


def _run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run one cell, and return the value of its last line if it is an expression."""
    *body, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        body.append(last)
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def render_page() -> str:
    """Return the page of all notebooks."""
    return "\n".join([PAGE_HEAD, *map(_describe_task, list_tasks())])


def _describe_task(name: str) -> str:
    """Return the part of a notebook: its question, its picture and its join."""
    cells = read_cells(name)
    title, _, question = cells[0]["source"].partition("\n")
    join = next(c["source"] for c in cells if c["source"].startswith("# Join\n"))
    code = join.removeprefix("# Join\n").partition("scratch = ")[0].strip()
    places = "tables and Spark" if ON_SPARK in cells[1]["source"] else "tables"
    return (
        f"#{title}\n\n{question.strip()}\n\n"
        f"![The figure of this notebook](gallery/{name}.webp)\n\n"
        f"```python\n{code}\n```\n\n"
        f"Notebook: `notebooks/tasks/{name}.ipynb`, tried with {places}.\n"
    )


def draw_picture(name: str) -> None:
    """Run a notebook and store the picture of its figure."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        figure = run_cells(name, folder=folder)[-2]
        figure.update_layout(width=SIZE[0], height=SIZE[1], template="plotly_white")
        html = Path(folder) / "figure.html"
        figure.write_html(html, include_mathjax=False, config={"displayModeBar": False})
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"),
                args=["--headless", "--no-sandbox", "--disable-gpu"],
            )
            view = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
            view.goto(html.as_uri())
            view.wait_for_selector(".main-svg")
            shot = view.locator(".plotly-graph-div").screenshot()
            browser.close()
    PICTURES.mkdir(exist_ok=True)
    target = PICTURES / f"{name}.webp"
    picture = Image.open(io.BytesIO(shot)).convert("RGB")
    picture.save(target, quality=60, method=6, xmp=digest_code(name).encode())
    print(f"{target}: {target.stat().st_size / 1e3:.1f} kB")


if __name__ == "__main__":
    for task in sys.argv[1:] or list_tasks():
        draw_picture(task)
