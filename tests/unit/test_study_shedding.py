"""The claims of Gedik 2007 hold on small settings, and fail on figures that they do not speak of."""

from __future__ import annotations

from braid.studies import shedding
from braid.studies import shedding_claims as claims


def test_optimality_falls_with_load_skew_and_size():
    """Fig. 5."""
    frame = shedding.optimality()
    tried = (claims.load_claim, claims.skew_claim, claims.size_claim)
    assert [claim(frame).holds for claim in tried] == ["yes"] * 3
    upside = frame.assign(optimality_modelled=1 - frame["optimality_modelled"])
    assert [claim(upside).holds for claim in tried] == ["no"] * 3
