"""Mutation testing of the papers' policies with mutmut: which small faults no unit test detects.

    make mutants                                # all policies
    make mutants ARGS="theta --each 40"         # one folder, 40 mutants of each file

It fails if of a folder fewer than ``--least`` of the mutants tried are killed. Numbers that a module
names are mutated here, as mutmut changes functions only; all of them are tried.

mutmut makes the mutants. From those of each file, a seeded sample is tried. The tests of a paper are
collected once, and run once to see how long each takes; then a process is forked for each mutant,
gets its code, and runs the tests, the quickest first, up to the first that fails. Texts of errors
and events are not mutated. The results are added to ``runs/mutants.json``: by mutant "killed",
"survived", "no end" (the tests take far longer than without the fault) or "not tried" (time was up,
or its function cannot be exchanged).
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import json
import os
import random
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "runs" / "mutants.json"
NOT_TRIED = 77
"""The exit code of a process that could not put its mutant in place."""
ANNOTATIONS = annotations.compiler_flag
TESTS = {
    "theta": ("grid", "policy_thresholds", "policy_values", "recomputed_theta"),
    "diffusion": (
        *("aligned", "coordinated", "policy_thresholds", "policy_values"),
        "recomputed_diffusion",
    ),
    "psp": ("policy_thresholds", "policy_values", "ring", "ring_balance", "recomputed_slices"),
    "slices": ("policy_tables", "policy_thresholds", "slices", "sharing", "recomputed_slices"),
    "shedding": ("policy_tables", "shedding_policy", "shedding_placements", "recomputed_shedding"),
    "reuse": (
        "policy_thresholds",
        "recomputed_reuse",
        "reuse_cascade",
        "reuse_changes",
        "reuse_definitions",
        "reuse_lattice",
        "reuse_network",
        "reuse_pieces",
        "reuse_planner",
        "reuse_reference",
        "reuse_rest",
        "reuse_tables",
    ),
    "hotkeys": (
        *("hot_keys", "policy_tables", "policy_thresholds"),
        *("rare_sides", "recomputed_hotkeys", "value_work"),
    ),
    "hypercube": (
        *("hypercube", "policy_tables", "policy_thresholds"),
        *("recomputed_hypercube", "shares"),
    ),
    "common": ("aligned", "coordinated", "recomputed_diffusion", "ring"),
    "baselines": ("placements", "policy_values", "simulate", "recomputed_hotkeys"),
}
"""By folder of ``braid.papers``, the test files of the paper, without "test_"."""
_SLOW_DIFFUSION = (
    *("tuning", "throughput", "hundred", "far_the_greedy", "optimized_is_ahead"),
    *("follows_the_rates", "runs_unevenly", "everything_ends", "faster_hosts"),
    *("any_number_of_hosts", "does_not_change_the_overhead", "estimated_is_the_overhead"),
)
SLOW = {
    "theta": ("growth_keeps_hosts", "theorem_4_4", "spends_at_most", "storage_is_within"),
    "diffusion": _SLOW_DIFFUSION,
    "common": (*_SLOW_DIFFUSION, "grows_and_shrinks", "follow_the_measured"),
    "psp": ("grows_and_shrinks", "follow_the_measured"),
    "reuse": (
        *("told_alone", "much_quicker", "so_much_and_no_more", "rivals", "at_rest"),
        *("makes_no_plan_dearer", "looked_at_again", "what_a_scan_finds"),
    ),
    "hotkeys": ("killed", "many_hosts", "kinds_and_as_of"),
    "hypercube": ("killed", "equal_brute_force", "three_quarters"),
}
"""By folder, parts of the names of tests that are left out, as they take seconds each."""
SKIPPED = {"__init__.py", "run_events.py", "hub_events.py"}
"""Files that state what a policy has decided: records and their texts."""
CONFIG = """
[tool.mutmut]
source_paths = ["."]
do_not_mutate_patterns = ['raise \\w+Error', '^\\s*f?"[^"]*\\s[^"]*"', "yield Alternative"]
"""


@dataclass(frozen=True)
class Mutant:
    """A function of a module with one small change.

    - ``module``: the module's dotted name.
    - ``name``: mutmut's name of the mutant.
    - ``made``: the changed function.
    """

    module: str
    name: str
    made: ast.FunctionDef

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"

    def find_original(self) -> FunctionType:
        """Return the function that is changed. Raises AttributeError if it cannot be exchanged."""
        path = self.name.partition("__mutmut_")[0]
        path = path[2:].replace("ǁ", ".")  # xǁClassǁmethod, x_function
        found: Any = import_module(self.module)
        for part in path.split("."):
            found = vars(found)[part]
        found = getattr(found, "__func__", found)
        found = getattr(found, "__wrapped__", found)
        if not isinstance(found, FunctionType):
            raise AttributeError(f"{self} is not a function")
        return found

    def put_in_place(self) -> None:
        """Give the original function the code of the mutant.

        Raises ValueError or AttributeError if that is not possible.
        """
        original = self.find_original()
        node = copy.deepcopy(self.made)
        node.decorator_list, node.returns = [], None
        space = dict(original.__globals__)
        tree = ast.fix_missing_locations(ast.Module([node], []))
        exec(compile(tree, "mutant", "exec", flags=ANNOTATIONS), space)
        made = space[node.name]
        original.__code__ = made.__code__
        original.__defaults__ = made.__defaults__
        original.__kwdefaults__ = made.__kwdefaults__


@dataclass(frozen=True)
class ConstantMutant:
    """A number that a module names, with another value.

    - ``module``: the module's dotted name.
    - ``name``: the name of the number.
    - ``value``: the other value.
    """

    module: str
    name: str
    value: float

    def __str__(self) -> str:
        return f"{self.module}.{self.name}={self.value:g}"

    def put_in_place(self) -> None:
        """Change the number in its module, and in all modules of Braid that import it.

        It may be the default of an argument there.
        """
        original = vars(import_module(self.module))[self.name]
        for name, module in [*sys.modules.items()]:
            if name.startswith("braid.") and vars(module).get(self.name) is original:
                setattr(module, self.name, self.value)
                for function in list_defined_functions(module):
                    function.__defaults__ = tuple(
                        self.value if value is original else value
                        for value in function.__defaults__ or ()
                    )


def list_defined_functions(module: Any) -> list[FunctionType]:
    """Return the functions of a module, and those of its classes."""
    classes = [c for c in vars(module).values() if isinstance(c, type)]
    places = [module, *(c for c in classes if c.__module__ == module.__name__)]
    found = [value for place in places for value in vars(place).values()]
    return [value for value in found if isinstance(value, FunctionType)]


def list_constants(folder: str) -> list[ConstantMutant]:
    """Return a mutant of each number that a module of a folder names: one more, or twice it."""
    found = []
    for path in list_files(folder):
        module = f"braid.papers.{folder}.{path.stem}"
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                value = vars(import_module(module))[name]
                if type(value) in (int, float):
                    is_small = isinstance(value, int) and abs(value) < 100
                    found.append(ConstantMutant(module, name, value + 1 if is_small else 2 * value))
    return found


def list_files(folder: str) -> list[Path]:
    """Return the files of a folder that are mutated."""
    files = sorted((ROOT / "toolkit" / "braid" / "papers" / folder).glob("*.py"))
    return [path for path in files if path.name not in SKIPPED]


def list_mutants(folder: str) -> dict[str, list[Mutant]]:
    """Return all mutants, by file."""
    from mutmut.configuration import reset_config
    from mutmut.mutation.file_mutation import mutate_file_contents

    found = {}
    with TemporaryDirectory() as work, contextlib.chdir(work):
        Path("pyproject.toml").write_text(CONFIG, encoding="utf-8")
        reset_config()
        for path in list_files(folder):
            module = f"braid.papers.{folder}.{path.stem}"
            code = mutate_file_contents(path.name, path.read_text(encoding="utf-8"))
            nodes = list_functions(code.code)
            texts = {name: read_function(node) for name, node in nodes.items()}
            found[path.name] = [
                Mutant(module, name, nodes[name])
                for name in code.mutant_names
                if has_effect(name, texts)
            ]
    return found


def list_functions(code: str) -> dict[str, ast.FunctionDef]:
    """Return the functions by name."""
    return {n.name: n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.FunctionDef)}


def read_function(node: ast.FunctionDef) -> str:
    """Return the text of a function, without its name and the strictness of ``zip``."""
    return re.sub(r",?\s*strict=\w+", "", ast.unparse(node).partition("(")[2])


def has_effect(name: str, texts: Mapping[str, str]) -> bool:
    """Return whether a mutant changes more than whether ``zip`` checks lengths that are equal.

    Examples of a placement are no policy.
    """
    original = f"{name.partition('__mutmut_')[0]}__mutmut_orig"
    return texts[name] != texts[original] and "example_instances" not in name


def draw_sample(mutants: Mapping[str, list[Mutant]], each: int, seed: int) -> list[Mutant]:
    """Return at most ``each`` mutants of every file, drawn by ``seed``, one of each file in turn."""
    drawn = []
    for file, of in mutants.items():
        draw = random.Random(f"{seed} {file}")
        drawn.append(draw.sample(of, min(each, len(of))))
    return [mutant for turn in zip_longest(*drawn) for mutant in turn if mutant is not None]


AnyMutant = Mutant | ConstantMutant


class MutantLoop:
    """A pytest plugin that runs the collected tests once for each mutant, in forked processes.

    - ``sample``: the mutants.
    - ``seconds``: time for all, from when the tests have been run once.
    - ``found``: by mutant, what came of it.
    """

    def __init__(self, sample: Sequence[AnyMutant], seconds: float) -> None:
        self.sample, self.seconds = sample, seconds
        self.found = dict.fromkeys(map(str, sample), "not tried")

    def pytest_runtestloop(self, session: Any) -> bool:
        took = self._time_tests(session.items)
        items = sorted(
            (i for i in session.items if took.get(i.nodeid)), key=lambda i: took[i.nodeid]
        )
        limit, ends = 4 * sum(took.values()) + 20, time.monotonic() + self.seconds
        for mutant in self.sample:
            if time.monotonic() > ends:
                break
            self.found[str(mutant)] = self._try_mutant(mutant, items, int(limit))
            print(f"{self.found[str(mutant)]} {mutant}", flush=True)
        return True

    def _time_tests(self, items: Sequence[Any]) -> dict[str, float]:
        """Return the CPU seconds of each test that passes without a fault."""
        reads, writes = os.pipe()
        if (child := os.fork()) == 0:
            took = {}
            for item in items:
                began = time.process_time()
                if not fails_when_run(item):
                    took[item.nodeid] = time.process_time() - began
            with os.fdopen(writes, "w") as reported:
                json.dump(took, reported)
            os._exit(0)
        os.close(writes)
        with os.fdopen(reads) as reported:
            took: dict[str, float] = json.load(reported)
        os.waitpid(child, 0)
        return took

    def _try_mutant(self, mutant: AnyMutant, items: Sequence[Any], limit: int) -> str:
        if (child := os.fork()) == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            try:
                mutant.put_in_place()
            except (ValueError, AttributeError, KeyError):
                os._exit(NOT_TRIED)
            os._exit(any(map(fails_when_run, items)))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return {0: "survived", NOT_TRIED: "not tried", -signal.SIGXCPU: "no end"}.get(
            code, "killed"
        )


def fails_when_run(item: Any) -> bool:
    """Run a test; return whether it fails."""
    from _pytest.runner import runtestprotocol

    return any(report.failed for report in runtestprotocol(item, nextitem=None, log=False))


def run_mutants(
    folder: str, sample: Sequence[AnyMutant], seconds: float, tests: str
) -> dict[str, str]:
    """Try a sample for at most ``seconds``; return what came of each mutant.

    ``tests``: an expression of pytest that selects tests by name; "": all but slow ones.
    """
    import pytest

    loop = MutantLoop(sample, seconds)
    files = [str(ROOT / "tests" / "unit" / f"test_{name}.py") for name in TESTS[folder]]
    chosen = " and ".join(f"not {part}" for part in SLOW.get(folder, ())) or "test"
    options = ["-n0", "-k", tests or chosen, "-p", "no:cacheprovider"]
    pytest.main([*options, f"--rootdir={ROOT}", *files], plugins=[loop])
    return loop.found


def format_score(found: dict[str, str]) -> str:
    """Return killed mutants of those tried, by file, as a table in Markdown."""
    files = sorted(set(map(name_module, found)))
    lines = ["| file | tried | killed | survived | no end |", "|---|---|---|---|---|"]
    total: Counter[str] = Counter()
    for file in files:
        by = Counter(status for name, status in found.items() if name_module(name) == file)
        total += by
        lines.append(_format_row(file.removeprefix("braid.papers."), by))
    lines.append(_format_row("all", total))
    return "\n".join([*lines, f"\n{count_killed(found.values()):.1%} are killed."])


def name_module(name: str) -> str:
    """Return the module of a mutant; the value of a constant may have a point, too."""
    return name.partition("=")[0].rpartition(".")[0]


def count_killed(statuses: Iterable[str]) -> float:
    """Return the share of the mutants tried that are killed, or with which a test never ends."""
    tried = [status for status in statuses if status != "not tried"]
    return sum(status != "survived" for status in tried) / max(1, len(tried))


def _format_row(name: str, by: Counter[str]) -> str:
    kinds = ("killed", "survived", "no end")
    return f"| {name} | {sum(by[k] for k in kinds)} | {' | '.join(str(by[k]) for k in kinds)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="mutation testing of braid.papers")
    parser.add_argument("folders", nargs="*", default=list(TESTS), help=", ".join(TESTS))
    parser.add_argument("--each", type=int, default=20, help="mutants of each file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=900, help="for each folder, at most")
    parser.add_argument("--only", default="", help="mutants whose names have this")
    parser.add_argument("--tests", default="", help='tests by name, as in "search or cover"')
    parser.add_argument("--least", type=float, default=0.9, help="share that must be killed")
    given = parser.parse_args()
    os.environ |= {"BRAID_QUICK": "1"}
    for folder in given.folders:
        mutants = list_mutants(folder)
        drawn: list[AnyMutant] = [
            *list_constants(folder),
            *draw_sample(mutants, given.each, given.seed),
        ]
        sample = [mutant for mutant in drawn if given.only in str(mutant)]
        print(f"{folder}: {len(sample)} of {sum(map(len, mutants.values()))} mutants", flush=True)
        if (child := os.fork()) == 0:  # a process for each folder, in which pytest collects once
            found = run_mutants(folder, sample, given.seconds, given.tests)
            keep_results(folder, found, is_part=bool(given.only or given.tests))
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit(f"{folder}: the process that tries its mutants has failed; nothing is scored")
    found = read_results()
    print(format_score(found))
    print("\n".join(sorted(name for name, status in found.items() if status != "killed")))
    shares = {f: count_killed(s for m, s in found.items() if f".{f}." in m) for f in given.folders}
    if weak := [f"{f} {share:.1%}" for f, share in shares.items() if share < given.least]:
        sys.exit(f"killed are fewer than {given.least:.0%} of the mutants of: {', '.join(weak)}")


def read_results() -> dict[str, str]:
    """Return what came of each mutant in all runs."""
    found: dict[str, str] = {}
    if RESULTS.exists():
        found = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def keep_results(folder: str, found: Mapping[str, str], is_part: bool = False) -> None:
    """Put the results of a folder in the place of those that it had.

    ``is_part``: those of its other mutants stay.
    """
    before = read_results()
    others = {k: v for k, v in before.items() if is_part or f"papers.{folder}." not in k}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(others | dict(found), indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
