"""How the claims of a paper are made: told, checked, or read in one way of several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from braid_lab.common.claims import Claim, Verdict, make_verdict


@dataclass(frozen=True)
class ClaimBuilder:
    """The claims of a ``paper``, or of a part of it. A claim has ``where`` it is made, what it
    ``says``, what is ``found``, and whether that ``holds``.
    """

    paper: str

    def report_claim(
        self, where: str, says: str, found: str, holds: object, reason: str = ""
    ) -> Claim:
        """A claim that is told, with the likely reason when it does not hold."""
        return Claim(self.paper, where, says, found, make_verdict(holds), "" if holds else reason)

    def required_claim(
        self, where: str, says: str, found: str, holds: object, reason: str = ""
    ) -> Claim:
        """A claim that must hold."""
        return Claim(self.paper, where, says, found, make_verdict(holds), reason, is_required=True)

    def interpreted_claim(
        self, where: str, says: str, found: str, holds: object, reading: str
    ) -> Claim:
        """A claim that must hold under the reading that is named."""
        way: Verdict = "under reading" if holds else "no"
        return Claim(self.paper, where, says, found, way, reading, is_required=True)

    def untested_claim(self, where: str, says: str, found: str) -> Claim:
        """A claim that a run is too small to try."""
        return Claim(self.paper, where, says, found, "not tried")


def format_range(low: float, high: float) -> str:
    """A range of shares."""
    return f"{low:.1%} to {high:.1%}"


def format_shares(values: pd.Series | Mapping[Any, float]) -> str:
    """Shares by rival."""
    return ", ".join(f"{v:.1%} against {k}" for k, v in values.items())
