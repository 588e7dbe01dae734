"""The join of the page on S3, in a process that dies in its sink, right after batch 2 is put.

Usage: ``python bucket_recipe_driver.py LAKE``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from runpy import run_path
from typing import Any

EXAMPLE = run_path(str(Path(__file__).parents[1] / "docs/examples/in_bucket.py"))


def main(lake: str) -> None:
    """Run the page's ``main`` with a sink that ends the process."""
    put = EXAMPLE["into_bucket"]

    def put_and_die(results: Any, batch: int, url: str) -> None:
        put(results, batch, url)
        if batch == 2:
            os._exit(9)

    EXAMPLE["main"].__globals__["into_bucket"] = put_and_die
    EXAMPLE["main"](lake)


if __name__ == "__main__":
    main(sys.argv[1])
