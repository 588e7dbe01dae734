"""Writes docs/verdicts.json: which of the papers' claims hold. Each notebook ends with the claims
of its study; this runs them, which takes some minutes each and needs Spark.

    .venv/bin/python docs/verdicts.py                      # all
    .venv/bin/python docs/verdicts.py 02_load_diffusion    # one anew, the others stay
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from braid_lab.reports import notebook_runner

FULL: dict[str, dict[str, Any]] = {
    "01_adaptive_theta_join": {"ranges": True},
    "02_load_diffusion": {"full": True},
    "03_psp_ring": {"full": True, "ways": "3,5,7,9"},
    "05_shared_ring": {"deploy_batches": 160},
    "06_load_shedding": {"study_seeds": 3},
    "07_stream_reuse": {"surface_queries": 800},
}
"""By notebook, the parameters with which it tries claims at the papers' size."""
KEPT = Path(__file__).parent / "verdicts.json"
FIELDS = ("paper", "source", "statement", "holds", "reason", "setting")


def tried(name: str, values: Mapping[str, Any]) -> list[dict[str, str]]:
    """The claims of a notebook, run with these parameters: each once, in order. One that a run was
    too coarse for is left out where another run of the notebook tries it. Raises RuntimeError when
    the notebook fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "claims.jsonl"
        path = notebook_runner.NOTEBOOKS / f"{name}.ipynb"
        environment = {"BRAID_CLAIMS": str(file), "OMP_NUM_THREADS": "1"}  # small matrices
        ran = notebook_runner.run_notebook(path, values, sys.stderr.write, environment=environment)
        if ran.error:
            raise RuntimeError(f"{name}: {ran.error}")
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    claims = [{"notebook": name} | {f: json.loads(line)[f] for f in FIELDS} for line in lines]
    certain = {_sentence(c) for c in claims if c["holds"] != "not tried"}
    told = [c for c in claims if c["holds"] != "not tried" or _sentence(c) not in certain]
    return [claim for k, claim in enumerate(told) if claim not in told[:k]]


def _sentence(claim: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(claim[field] for field in ("paper", "source", "statement"))


def keep(name: str, claims: list[dict[str, str]]) -> None:
    """Put a notebook's claims in the place of those that it had."""
    before = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else []
    after = sorted(
        [c for c in before if c["notebook"] != name] + claims, key=lambda c: str(c["notebook"])
    )
    text = ",\n".join(json.dumps(c, ensure_ascii=False) for c in after)
    KEPT.write_text(f"[\n{text}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    for chosen in map(
        notebook_runner.find_notebook, sys.argv[1:] or notebook_runner.list_notebooks()
    ):
        keep(chosen, found := tried(chosen, FULL.get(chosen, {})))
        print(f"{chosen}: {len(found)} claims")
