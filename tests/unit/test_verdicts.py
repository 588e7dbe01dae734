"""The rules for verdicts (docs/verdicts.json): a setting, a quotation, a fault, no alternatives."""

from __future__ import annotations

import json
import re
from inspect import getclosurevars
from pathlib import Path
from pkgutil import resolve_name
from string import Formatter
from typing import Any

import mutations
import pytest
from braid_lab.diffusion import claims as diffusion
from braid_lab.diffusion import figures
from braid_lab.hotkeys import claims as hotkeys
from braid_lab.hypercube import claims as hypercube
from braid_lab.psp import claims as psp
from braid_lab.reuse import claims as reuse
from braid_lab.shared_ring import claims as shared_ring
from braid_lab.shedding import claims as shedding
from braid_lab.slices import claims as slices
from braid_lab.theta import claims as theta

pytestmark = pytest.mark.unit
DOCS = Path(__file__).parents[2] / "docs"
VERDICTS = json.loads((DOCS / "verdicts.json").read_text(encoding="utf-8"))
RECORDED = (theta, diffusion, psp, slices, shared_ring, shedding, reuse, hotkeys, hypercube)
"""Studies whose settings take all their numbers from their runs."""
NAMED = re.compile(r"(Fig\.|Table|Eq\.|Theorem|Algorithm|section) \d[\d.]*|SINK\d|Q\d")
"""Places in a paper, and names."""
STUDIES = (theta, diffusion, psp, slices, shared_ring, shedding, reuse, hotkeys, hypercube)
COMPUTED = {
    "Wang 2008, II": r"Theorem 9",
    "Wang 2008, I": r"Fig\. 5\.|Fig\. 6\.|6\.4\.4$|beyond the paper$",
    "Wang 2008, III": r"Eq\. 21\.",
    "Gedik 2007": r"Fig\. [1567]$",
}
"""By paper, the sources that the paper itself computes by its equations."""
INDEXED = "by true densities: what"
"""Begins the reason of Fig. 14's claims about inverted indexes, which blocks of Braid do not have."""
RUN = re.compile(r"\d+ (s|batches|queries|types)\b|runs of|computed")
"""How long a run is, or how much it has."""
RIVALS = re.compile(
    r"\.(plan_top_down|build_hierarchy"
    r"|wang_cost_parameters|mean_latency_seconds)$"
)
"""Targets outside ``braid`` that are a policy, a rival, a price or an equation of the paper."""
KERNELS = {
    "braid.kernels.query_bitmaps.QueryBitmaps.result_bitmaps": "the bitmaps are those of chapter "
    "20 of Wang 2008, which the policy of Part III hands to the engine",
    "braid.kernels.shedding_sampler.draw_numbers": "the drop operator of Gedik 2007: the policy "
    "sets its shares, the kernel draws",
}
"""Targets outside ``braid.papers`` that faults may replace, and why."""
IMPORTED: set[str] = set()
"""Imports of studies that faults replace; none may be added."""
KNOWN = re.compile(
    r"ATR|CTR|PSP|Chain|ring|Grid|HashPartition|policy|planner|Lattice|computed|Spark|rule|bitmaps"
    r"|containment|HotKeys|HyperCube"
)
"""The policies; and "computed", where the paper itself computes."""
LENGTH = re.compile(r"\d+ ?(s|ms|batches|seeds?|queries|nodes|values|Q1)\b|\d|examples?|early")
"""How long, how often or on how much."""
VARIED = {
    r"the policy \(": r"γ = .*T_r = .*T_c = ",
    r"\bCTR\b": r"L\b|copies|HyperCube|CTR's own",
    "counted and priced|ATR .* and CTR .* PSP": "σ",
}
"""For each pattern of a setting, another pattern that the setting must contain."""
PRINTED_SECONDS = (
    ("Wang 2008, II", r"Fig\. 16\.[1-5]|16\.[2-4]", 600),
    ("Gu 2007", r"Fig\. 1[1-6]|Fig\. 4", 1000),
    ("Gu 2007", r"Fig\. [7-9]", 1200),
)
"""A paper, how sources begin, and for how many seconds the paper ran them."""
SECONDS = re.compile(r"([\d,]*\d) s( of the [\d,]*\d printed)?(?:,|$)")
CLOCK = re.compile(r"(^|\.)(clock|time|perf_counter|process_time|monotonic)$")
"""Targets that a policy does not have."""


def sentence(claim: dict[str, str]) -> str:
    return f"{claim['source']}: {claim['statement']}"


def test_every_verdict_has_its_setting_which_names_a_policy_and_a_length() -> None:
    bare = [sentence(c) for c in VERDICTS if not KNOWN.search(c["setting"])]
    assert not bare
    assert not [sentence(c) for c in VERDICTS if not LENGTH.search(c["setting"])]


def test_a_reason_has_no_alternatives() -> None:
    """A reason with "or" is none, and no setting; a quotation may have it."""
    unquoted = {
        sentence(c): re.sub(r'"[^"]*"', "", f"{c['reason']} {c['setting']}") for c in VERDICTS
    }
    doubtful = re.compile(r"\b(or|likely|perhaps|probably|maybe)\b")
    assert not {name: text for name, text in unquoted.items() if doubtful.search(text)}


def test_every_setting_is_one_of_its_study() -> None:
    """Verdicts are those of the code, except for the values of their runs."""
    patterns = {
        re.compile("".join(map(match_part, Formatter().parse(setting))))
        for study in STUDIES
        for setting in list_templates(study)
    }
    assert not [
        sentence(c) for c in VERDICTS if not any(p.fullmatch(c["setting"]) for p in patterns)
    ]


def match_part(part: tuple[str, str | None, str | None, str | None]) -> str:
    """Return a pattern of a text that a value may follow."""
    return re.escape(part[0]) + ("" if part[1] is None else ".+")


def list_templates(study: Any) -> set[str]:
    """Return the settings of a study's claims, with the names of values in braces."""
    settings = set()
    for check in study.CLAIMS._checks:
        values = getclosurevars(check.test).nonlocals
        settings |= {values["setting"], *values["self"].settings.values()}
    return settings - {""}


@pytest.mark.parametrize("study", RECORDED, ids=lambda s: s.__name__.split(".")[1])
def test_a_setting_has_no_number_but_those_of_its_run(study: Any) -> None:
    """Numbers in braces are recorded by the run (``recorded_settings``)."""
    fixed = {t: " ".join(text for text, *_ in Formatter().parse(t)) for t in list_templates(study)}
    assert not [t for t, text in fixed.items() if re.search(r"\d", NAMED.sub("", text))]


def test_a_setting_names_what_its_study_varies() -> None:
    """Copies under CTR; selectivities, where costs are priced; what runs differ in from printed."""
    for name, needed in VARIED.items():
        bare = [c for c in VERDICTS if re.search(name, c["setting"])]
        assert bare
        assert not [sentence(c) for c in bare if not re.search(needed, c["setting"])]


@pytest.mark.parametrize(("paper", "source", "printed"), PRINTED_SECONDS)
def test_a_run_that_is_shorter_than_printed_says_so(paper: str, source: str, printed: int) -> None:
    found = [c for c in VERDICTS if c["paper"] == paper and re.match(source, c["source"])]
    runs = {sentence(c): SECONDS.findall(c["setting"])[-1:] for c in found}
    assert any(runs.values())
    suffix = f" of the {printed:,} printed"
    short = {n: r for n, r in runs.items() if r and int(r[0][0].replace(",", "")) < printed}
    assert not {n: r for n, r in short.items() if r[0][1] != suffix}


def test_trade_offs_of_gu_are_judged_in_the_range_that_is_printed() -> None:
    ranges = {n: (e.values[0], e.values[-1]) for n, e in figures.EXPERIMENTS.items()}
    assert ranges == {
        "11, 12": (10, 80),
        "13": (2, 6),
        "14": (10, 50),
        "15": (0.2, 1.0),
        "16": (0.0, 1.0),
    }


def test_a_no_quotes_the_paper_with_its_place_and_names_policy_and_length() -> None:
    quoted = re.compile(r'^"[^"]{4,}".*?\((section )?[\w\d.,]+')
    refuted = [c for c in VERDICTS if c["holds"] == "no"]
    assert refuted
    assert not [sentence(c) for c in refuted if not quoted.match(c["reason"])]
    assert not [sentence(c) for c in refuted if not RUN.search(c["setting"])]


def test_nothing_is_judged_by_a_model_where_the_policy_can_run() -> None:
    """Unless the paper itself computes it, or Braid has nothing that could run."""
    modelled = [c for c in VERDICTS if c["setting"].startswith("computed")]
    assert modelled
    assert not [
        sentence(c)
        for c in modelled
        if not re.match(COMPUTED[c["paper"]], c["source"]) and not c["reason"].startswith(INDEXED)
    ]


def test_a_fault_is_one_of_a_policy_unless_an_equation_is_what_is_judged() -> None:
    """A fault that acts on how a study measures proves nothing about the policy."""
    assert not [m.name for m in mutations.mutations() if CLOCK.search(m.at)]
    computed = {c["statement"] for c in VERDICTS if c["setting"].startswith("computed")}
    elsewhere = [
        m
        for m in mutations.mutations()
        if not m.at.startswith("braid.papers.") and m.at not in KERNELS
    ]
    assert not [
        f"{m.name}: {start}"
        for m in elsewhere
        for start in m.breaks
        if not m.at.rsplit(".", 1)[1][0].isupper()
        and not RIVALS.search(m.at)
        and not any(statement.startswith(start) for statement in computed)
    ]


def test_a_fault_is_put_where_the_policy_is_and_not_where_a_study_imports_it() -> None:
    """A study's own import is patched by those faults alone that are listed, and will be moved."""
    patched = {
        m.at
        for m in mutations.mutations()
        if not m.at.startswith("braid.") and not m.at.startswith(find_module(resolve_name(m.at)))
    }
    assert patched <= IMPORTED


def find_module(target: Any) -> str:
    """Return the module that defines a fault's target; "": it is a value."""
    return getattr(target, "__module__", None) or ""


def test_every_verdict_has_a_reason() -> None:
    assert not [sentence(c) for c in VERDICTS if not c["reason"]]


def test_a_yes_names_the_fault_that_breaks_it() -> None:
    """Also a verdict under a reading."""
    starts = {start for m in mutations.mutations() for start in m.breaks}
    held = [c for c in VERDICTS if c["holds"] in ("yes", "under reading")]
    lacking = [sentence(c) for c in held if not any(c["statement"].startswith(s) for s in starts)]
    assert not lacking


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.__name__.split(".")[1])
def test_every_claim_of_a_study_has_a_setting(study: object) -> None:
    """A claim without figures is looked at itself, and one with figures in the registry."""
    registry = study.CLAIMS  # type: ignore[attr-defined]
    assert all(c.setting for c in registry.test_claims())
