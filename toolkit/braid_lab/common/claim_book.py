"""Builders of claims: reported, required, or holding under one interpretation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from braid_lab.common.claims import Claim, Verdict, make_verdict


@dataclass(frozen=True)
class ClaimBuilder:
    """A builder of the claims of a ``paper``, or of a part of it.

    A claim has its place in the paper (``where``), what the paper ``says``, what is ``found``, and
    whether that ``holds``.
    """

    paper: str

    def report_claim(
        self, where: str, says: str, found: str, holds: object, reason: str = ""
    ) -> Claim:
        """Return a claim that is only reported, with the likely reason if it does not hold."""
        return Claim(self.paper, where, says, found, make_verdict(holds), "" if holds else reason)

    def required_claim(
        self, where: str, says: str, found: str, holds: object, reason: str = ""
    ) -> Claim:
        """Return a claim that must hold."""
        return Claim(self.paper, where, says, found, make_verdict(holds), reason, is_required=True)

    def interpreted_claim(
        self, where: str, says: str, found: str, holds: object, reading: str
    ) -> Claim:
        """Return a claim that must hold under the named interpretation."""
        way: Verdict = "under reading" if holds else "no"
        return Claim(self.paper, where, says, found, way, reading, is_required=True)

    def untested_claim(self, where: str, says: str, found: str) -> Claim:
        """Return a claim that a run is too small to test."""
        return Claim(self.paper, where, says, found, "not tried")


def format_range(low: float, high: float) -> str:
    """Return a range of shares as text."""
    return f"{low:.1%} to {high:.1%}"


def format_shares(values: pd.Series | Mapping[Any, float]) -> str:
    """Return shares by competitor as text."""
    return ", ".join(f"{v:.1%} against {k}" for k, v in values.items())
