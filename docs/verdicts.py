"""Write docs/verdicts.json: which of the papers' claims hold.

Each notebook ends with the claims of its study. This runs them, which takes up to half an hour each
and needs Spark.

    .venv/bin/python docs/verdicts.py                      # all
    .venv/bin/python docs/verdicts.py 02_load_diffusion    # one again, the others stay
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

from braid_lab.reports import notebook_runner

FULL: dict[str, dict[str, Any]] = {
    "01_adaptive_theta_join": {"ranges": True},
    "02_load_diffusion": {"full": True},
    "03_psp_ring": {"full": True, "ways": "3,5,7,9"},
    "04_state_slices": {"full": True},
    "05_shared_ring": {"deploy_batches": 160, "deploy_seeds": 3},
    "06_load_shedding": {"study_seeds": 3},
    "07_stream_reuse": {"surface_queries": 800},
    "09_hot_keys": {"seeds": 3},
}
"""By notebook, the parameters with which it tests claims at the papers' size."""
LONGEST = ("06_load_shedding", "01_adaptive_theta_join", "07_stream_reuse")
STORED = Path(__file__).parent / "verdicts.json"
FIELDS = ("paper", "source", "statement", "holds", "reason", "setting")


class TestedClaims(NamedTuple):
    """The claims of a notebook, and the failure of those that must hold; "": all hold."""

    claims: list[dict[str, str]]
    failure: str


def run_claims(name: str, values: Mapping[str, Any]) -> TestedClaims:
    """Return the claims of a notebook that is run with these parameters: each once, in order.

    A claim that a run was too small for is left out if another run of the notebook tests it.
    Raises RuntimeError if the notebook fails before it has tested its claims.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "claims.jsonl"
        path = notebook_runner.NOTEBOOKS / f"{name}.ipynb"
        environment = {"BRAID_CLAIMS": str(file), "OMP_NUM_THREADS": "1"}  # small matrices
        ran = notebook_runner.run_notebook(path, values, sys.stderr.write, environment=environment)
        failure = f"{name}: {ran.error}" if ran.error else ""
        if failure and not file.exists():
            raise RuntimeError(failure)
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    claims = [{"notebook": name} | {f: json.loads(line)[f] for f in FIELDS} for line in lines]
    certain = {_sentence(c) for c in claims if c["holds"] != "not tried"}
    tested = [c for c in claims if c["holds"] != "not tried" or _sentence(c) not in certain]
    distinct = [claim for k, claim in enumerate(tested) if claim not in tested[:k]]
    return TestedClaims(distinct, failure)


def _sentence(claim: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(claim[field] for field in ("paper", "source", "statement"))


def store_claims(name: str, claims: list[dict[str, str]]) -> None:
    """Replace the stored claims of a notebook."""
    before = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else []
    after = sorted(
        [c for c in before if c["notebook"] != name] + claims, key=lambda c: str(c["notebook"])
    )
    text = ",\n".join(json.dumps(c, ensure_ascii=False) for c in after)
    STORED.write_text(f"[\n{text}\n]\n", encoding="utf-8")


def run_all(names: Sequence[str]) -> None:
    """Run notebooks, two at once and the longest first, and store the claims of each.

    Raises RuntimeError at the end if any of them failed, or if a claim that must hold does not.
    """
    longest = sorted(names, key=lambda n: (*LONGEST, n).index(n))
    failures = []
    with ProcessPoolExecutor(2) as pool:
        running = {pool.submit(run_claims, n, FULL.get(n, {})): n for n in longest}
        for done in as_completed(running):
            name = running[done]
            if error := done.exception():
                failures.append(str(error))
                continue
            tested = done.result()
            store_claims(name, tested.claims)
            failures += filter(None, [tested.failure])
            print(f"{name}: {len(tested.claims)} claims", flush=True)
    if failures:
        raise RuntimeError("\n".join(failures))


if __name__ == "__main__":
    run_all([*map(notebook_runner.find_notebook, sys.argv[1:])] or notebook_runner.list_notebooks())
