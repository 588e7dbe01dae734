"""The rules for verdicts (docs/verdicts.json): a setting, a quotation, a fault, no alternatives."""

from __future__ import annotations

import json
import re
from pathlib import Path

import mutations
import pytest
from braid_lab.diffusion import claims as diffusion
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
STUDIES = (theta, diffusion, psp, slices, shared_ring, shedding, reuse, hotkeys, hypercube)
KNOWN = re.compile(
    r"ATR|CTR|PSP|Chain|ring|Grid|HashPartition|policy|planner|Lattice|computed|Spark|rule|bitmaps"
    r"|containment|HotKeys|HyperCube"
)
"""The policies; and "computed", where the paper itself computes."""
LENGTH = re.compile(r"\d+ ?(s|ms|batches|seeds?|queries|nodes|values|Q1)\b|\d|examples?|early")
"""How long, how often or on how much."""


def sentence(claim: dict[str, str]) -> str:
    return f"{claim['source']}: {claim['statement']}"


def test_every_verdict_has_its_setting_which_names_a_policy_and_a_length() -> None:
    bare = [sentence(c) for c in VERDICTS if not KNOWN.search(c["setting"])]
    assert not bare
    assert not [sentence(c) for c in VERDICTS if not LENGTH.search(c["setting"])]


def test_a_reason_has_no_alternatives() -> None:
    """A reason with "or" is none; a quotation may have it."""
    unquoted = {sentence(c): re.sub(r'"[^"]*"', "", c["reason"]) for c in VERDICTS}
    doubtful = re.compile(r"\b(or|likely|perhaps|probably|maybe)\b")
    assert not {name: text for name, text in unquoted.items() if doubtful.search(text)}


def test_a_no_quotes_the_paper_and_names_the_place() -> None:
    quoted = re.compile(r'^"[^"]{4,}".*?\((section )?[\w\d.,]+')
    refuted = [c for c in VERDICTS if c["holds"] == "no"]
    assert refuted
    assert not [sentence(c) for c in refuted if not quoted.match(c["reason"])]


def test_an_under_reading_says_which() -> None:
    assert not [sentence(c) for c in VERDICTS if c["holds"] == "under reading" and not c["reason"]]


def test_a_yes_names_the_fault_that_breaks_it() -> None:
    """Also a verdict under a reading."""
    starts = {start for m in mutations.mutations() for start in m.breaks}
    held = [c for c in VERDICTS if c["holds"] in ("yes", "under reading")]
    lacking = [sentence(c) for c in held if not any(c["statement"].startswith(s) for s in starts)]
    assert not lacking


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.__name__.split(".")[1])
def test_every_claim_of_a_study_has_a_setting(study: object) -> None:
    """Of those that take no figures, the claims themselves; of others, their places."""
    registry = study.CLAIMS  # type: ignore[attr-defined]
    assert all(c.setting for c in registry.test_claims())
