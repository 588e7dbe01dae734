"""Mutation testing of the papers' policies with mutmut: which small faults no unit test detects.

    make mutants                                # all policies
    make mutants ARGS="theta --each 40"         # one folder, 40 mutants of each file

A copy of the library and of the tests of one paper is made for each folder of ``braid.papers``.
From the mutants of each file, a seeded sample is tried; each runs the tests of its paper that call
the mutated function. Texts of errors and events are not mutated. The results are added to
``runs/mutants.json``: by mutant "killed", "survived", "no test", "no end" (the tests take far longer
than without the fault) or "not tried" (time was up).
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "runs" / "mutants.json"
TESTS = {
    "theta": ("grid", "growth", "recomputed_theta"),
    "diffusion": ("aligned", "coordinated", "recomputed_diffusion"),
    "psp": ("ring", "ring_balance", "recomputed_slices"),
    "slices": ("slices", "sharing", "recomputed_slices"),
    "shedding": ("shedding_policy", "shedding_placements", "recomputed_shedding"),
    "reuse": (
        "recomputed_reuse",
        "reuse_cascade",
        "reuse_changes",
        "reuse_definitions",
        "reuse_lattice",
        "reuse_network",
        "reuse_planner",
        "reuse_reference",
        "reuse_rest",
    ),
    "hotkeys": ("hot_keys",),
    "hypercube": ("hypercube", "shares"),
}
"""By folder of ``braid.papers``, the test files of the paper, without "test_"."""
SLOW = {
    "theta": ("growth_keeps", "theorem_4_4", "spends_at_most", "storage_is_within"),
    "diffusion": ("tuning", "throughput", "hundred", "far_the_greedy", "optimized_is_ahead"),
    "psp": ("grows_and_shrinks", "follow_the_measured"),
    "reuse": ("told_alone", "much_quicker", "so_much_and_no_more", "rivals"),
}
"""By folder, parts of the names of tests that are left out, as they take seconds each."""
SKIPPED = {"__init__.py", "run_events.py", "hub_events.py"}
"""Files that state what a policy has decided: records and their texts."""
STATUS = {0: "survived", 5: "no test", 33: "no test", None: "not tried"} | dict.fromkeys(
    (-24, 24, 36, 152, 255), "no end"
)
"""By exit code; any other is that of a test that failed, crashed or did not end."""
CONFIG = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = ["src/braid/papers/{folder}/*"]
do_not_mutate_patterns = ['raise \\w+Error', '^\\s*f?"[^"]*\\s[^"]*"', "yield Alternative"]
pytest_add_cli_args = ["-p", "no:cacheprovider", "-p", "no:xdist", "-k", "{chosen}"]
pytest_add_cli_args_test_selection = {tests}
timeout_multiplier = 4.0
timeout_constant = 20.0
track_dependencies = false
use_git_change_detection = false

[tool.pytest.ini_options]
addopts = "-q --strict-markers --import-mode=importlib"
pythonpath = ["src", "tests", "."]
markers = ["unit", "spark", "notebooks", "browser"]
"""


def make_workspace(work: Path, folder: str) -> None:
    """Copy the library and the tests of a paper, with mutmut's settings."""
    ignored = shutil.ignore_patterns("__pycache__")
    for package in ("braid", "braid_lab"):
        shutil.copytree(ROOT / "toolkit" / package, work / "src" / package, ignore=ignored)
    (work / "tests" / "unit").mkdir(parents=True)
    for file in (ROOT / "tests").glob("*.py"):
        shutil.copy(file, work / "tests")
    shutil.copytree(ROOT / "tests" / "models", work / "tests" / "models", ignore=ignored)
    chosen = [f"tests/unit/test_{name}.py" for name in TESTS[folder]]
    for name in ("tests/unit/conftest.py", *chosen):
        shutil.copy(ROOT / name, work / name)
    quick = " and ".join(f"not {part}" for part in SLOW.get(folder, ())) or "test"
    text = CONFIG.format(folder=folder, tests=json.dumps(chosen), chosen=quick)
    (work / "pyproject.toml").write_text(text, encoding="utf-8")


def list_mutants(work: Path, folder: str) -> dict[str, list[str]]:
    """Return the names of all mutants, by file."""
    os.chdir(work)
    from mutmut.configuration import reset_config
    from mutmut.mutation.file_mutation import mutate_file_contents
    from mutmut.utils.format_utils import get_mutant_name

    reset_config()
    found = {}
    for path in sorted(Path("src/braid/papers", folder).glob("*.py")):
        if path.name not in SKIPPED:
            made = mutate_file_contents(str(path), path.read_text(encoding="utf-8"))
            texts = read_functions(made.code)
            found[path.name] = [
                get_mutant_name(path, name) for name in made.mutant_names if has_effect(name, texts)
            ]
    return found


def read_functions(code: str) -> dict[str, str]:
    """Return the text of each function, without its name and the strictness of ``zip``."""
    return {
        node.name: re.sub(r",?\s*strict=\w+", "", ast.unparse(node).partition("(")[2])
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.FunctionDef)
    }


def has_effect(name: str, texts: Mapping[str, str]) -> bool:
    """Return whether a mutant changes more than whether ``zip`` checks lengths that are equal.

    Examples of a placement are no policy.
    """
    original = f"{name.partition('__mutmut_')[0]}__mutmut_orig"
    return texts[name] != texts[original] and "example_instances" not in name


def draw_sample(mutants: dict[str, list[str]], each: int, seed: int) -> list[str]:
    """Return at most ``each`` mutants of every file, drawn by ``seed``."""
    sample: list[str] = []
    for file, names in mutants.items():
        draw = random.Random(f"{seed} {file}")
        sample += sorted(draw.sample(names, min(each, len(names))))
    return sample


def run_mutants(work: Path, sample: list[str], seconds: float) -> dict[str, str]:
    """Run mutmut on a sample for at most ``seconds``; return what came of each mutant."""
    path = os.environ.get("PYTHONPATH", "")
    tools = [p for p in path.split(os.pathsep) if (Path(p) / "mutmut").exists()]
    quick = {"PYTHONPATH": os.pathsep.join(tools), "BRAID_QUICK": "1", "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", "1", *sample]
    log = work / "mutmut.log"
    with (
        log.open("w", encoding="utf-8") as told,
        subprocess.Popen(
            command, cwd=work, env={**os.environ, **quick}, stdout=told, stderr=told
        ) as running,
    ):
        try:
            running.wait(seconds)
        except subprocess.TimeoutExpired:
            running.terminate()
    codes = {name: code for name, code in read_exit_codes(work) if name in set(sample)}
    if not any(code is not None for code in codes.values()):
        print(f"mutmut tried nothing:\n{log.read_text(encoding='utf-8')[-1000:]}")
    return {name: STATUS.get(code, "killed") for name, code in codes.items()}


def read_exit_codes(work: Path) -> Iterator[tuple[str, int | None]]:
    """Yield each mutant with the exit code of its tests; None: not tried."""
    for meta in (work / "mutants").rglob("*.py.meta"):
        yield from json.loads(meta.read_text(encoding="utf-8"))["exit_code_by_key"].items()


def format_score(found: dict[str, str]) -> str:
    """Return killed mutants of those tried, by file, as a table in Markdown."""
    files = sorted({name.rsplit(".", 1)[0] for name in found})
    lines = ["| file | tried | killed | survived | no test | no end |", "|---|---|---|---|---|---|"]
    total: Counter[str] = Counter()
    for file in files:
        by = Counter(status for name, status in found.items() if name.rsplit(".", 1)[0] == file)
        total += by
        lines.append(_format_row(file.removeprefix("braid.papers."), by))
    lines.append(_format_row("all", total))
    share = total["killed"] / max(1, total.total() - total["not tried"])
    return "\n".join([*lines, f"\n{share:.1%} are killed."])


def _format_row(name: str, by: Counter[str]) -> str:
    kinds = ("killed", "survived", "no test", "no end")
    return f"| {name} | {sum(by[k] for k in kinds)} | {' | '.join(str(by[k]) for k in kinds)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="mutation testing of braid.papers")
    parser.add_argument("folders", nargs="*", default=list(TESTS), help=", ".join(TESTS))
    parser.add_argument("--each", type=int, default=20, help="mutants of each file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=900, help="for each folder, at most")
    given = parser.parse_args()
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for folder in given.folders:
        with TemporaryDirectory() as temporary:
            work = Path(temporary)
            make_workspace(work, folder)
            mutants = list_mutants(work, folder)
            sample = draw_sample(mutants, given.each, given.seed)
            count = sum(map(len, mutants.values()))
            print(f"{folder}: {len(sample)} of {count} mutants", flush=True)
            found = {k: v for k, v in found.items() if f"papers.{folder}." not in k}
            found |= run_mutants(work, sample, given.seconds)
            os.chdir(ROOT)
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(format_score(found))
    print("\n".join(sorted(name for name, status in found.items() if status != "killed")))


if __name__ == "__main__":
    main()
