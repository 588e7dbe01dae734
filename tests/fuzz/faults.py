"""Check that the fuzzer finds faults that are put back: ``python -m fuzz.faults [NAME ...]``."""

from __future__ import annotations

import logging
import re
import sys
import time
from pkgutil import resolve_name
from typing import Any
from unittest.mock import patch

from braid.core.event_jsonl import LOGGER
from mutations.fuzzed import FAULTS, SeededFault

from fuzz.campaign import Campaign
from fuzz.hub_campaign import StatementCampaign
from fuzz.query_campaign import CHECKS, find_wrong_answers

_SECONDS = 300.0
"""Seconds within which each fault must be found."""
_PER_ROUND = 50
"""Number of conditions between two checks of findings."""


def main(names: list[str]) -> int:
    """Look for all faults, or for the named ones. Return 1 if one is not found."""
    LOGGER.setLevel(logging.CRITICAL)
    chosen = [f for f in FAULTS if not names or f.name in names]
    if unknown := set(names) - {f.name for f in FAULTS}:
        sys.exit(f"unknown faults {sorted(unknown)}; there are {[f.name for f in FAULTS]}")
    missed = 0
    for fault in chosen:
        began = time.monotonic()
        shown = find_fault(fault)
        seconds = time.monotonic() - began
        print(
            f"{fault.name}: {'found' if shown else 'NOT FOUND'} in {seconds:.0f} s: {shown}",
            flush=True,
        )
        missed += not shown
    return int(bool(missed))


def find_fault(fault: SeededFault, seconds: float = _SECONDS, seed: int = 0) -> str:
    """Return the case that shows a fault that is put back; empty if none does in time."""
    with patch(fault.at, fault.fault(resolve_name(fault.at))):
        if fault.needs == "hub":
            return _find_by_statements(fault, seconds, seed)
        if fault.needs == "runs":
            checks = [check for check in CHECKS if re.fullmatch(fault.shows, check.__name__)]
            runs = find_wrong_answers(seed, seconds / 60, checks=checks)
            return next((f"seed {run}: {wrong}" for run, wrong in runs if wrong), "")
        if fault.needs == "tables":
            return _find_by_conditions(fault, Campaign(seed), seconds)
        from fuzz.__main__ import open_spark

        with open_spark(True) as spark:
            return _find_by_conditions(fault, Campaign(seed, spark), seconds)


def _find_by_statements(fault: SeededFault, seconds: float, seed: int) -> str:
    ends, number = time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        wrong = StatementCampaign(seed + number).run(count=20).wrong
        number += 1
        for case in wrong:
            if re.search(fault.shows, case.statement):
                return f"{case.statement}: {case.why}"
    return ""


def _find_by_conditions(fault: SeededFault, campaign: Campaign, seconds: float) -> str:
    ends, number, seen = time.monotonic() + seconds, 0, 0
    while time.monotonic() < ends:
        campaign.round(number, _PER_ROUND)
        number += 1
        findings: list[Any] = campaign.report.findings[seen:]
        seen += len(findings)
        for finding in findings:
            if re.search(fault.shows, f"{finding.shrunk.on} {finding.wrong}"):
                return f"{finding.shrunk.on}: {finding.wrong}"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
