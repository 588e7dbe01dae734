"""The long runs of Gu 2007 that are kept, and what they say of Fig. 4, 11 to 13 and 15."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from braid.studies import diffusion_kept as kept


def test_every_line_of_the_table_is_a_run_that_was_asked_for() -> None:
    keys = [one.key for one in kept.runs()]
    assert len(keys) == len(set(keys))
    table = kept.table()
    assert tuple(table.columns) == kept.COLUMNS and set(table["seconds"]) == {kept.SECONDS}
    lines = table[list(kept.COLUMNS[:5])].astype(str).itertuples(index=False, name=None)
    assert set(lines) <= set(keys)


def test_runs_are_added_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = [
        replace(one, setting=replace(one.setting, seconds=2, window=2.0, hosts=4))
        for one in list(kept.runs())[:2]
    ]
    monkeypatch.setattr(kept, "FOLDER", tmp_path)
    monkeypatch.setattr(kept, "FILE", tmp_path / "long.csv")
    monkeypatch.setattr(kept, "runs", lambda: iter(few))
    assert (kept.record(1.0), kept.record(1.0)) == (2, 0)
    assert kept.table()["placement"].tolist() == ["ATR", "ATR-unoptimized"]
    assert kept.summary()["seeds"].tolist() == [1, 1]


def rows(figure: str, ratios: dict[tuple[str, str], float], other: str, value: str) -> pd.DataFrame:
    """ATR at one, another placement at its ratio to it, by reading and x."""
    made = [
        {"figure": figure, "reading": reading, "x": x, "seed": 0, "placement": name, value: v}
        for (reading, x), ratio in ratios.items()
        for name, v in (("ATR", 1.0), (other, ratio))
    ]
    return pd.DataFrame(made)


@pytest.mark.parametrize(
    ("low", "high", "holds"), [(0.9, 1.1, "yes"), (1.1, 1.2, "no"), (0.9, 0.95, "no")]
)
def test_fig_13_needs_both_ends(low: float, high: float, holds: str) -> None:
    ends = {("visited", "n = 3"): low, ("visited", "n = 6"): high}
    (claim,) = kept.claims(rows("13", ends, "CTR, L = 15", "throughput"))
    assert claim.holds == holds


def test_fig_15_names_the_reading_that_it_holds_under() -> None:
    ends = {("a", "σ = 0.2"): 1.1, ("a", "σ = 1"): 0.8, ("b", "σ = 0.2"): 0.9, ("b", "σ = 1"): 0.8}
    (claim,) = kept.claims(rows("15", ends, "CTR, L = 15", "throughput"))
    assert (claim.holds, claim.reason) == ("under reading", "a")


@pytest.mark.parametrize(("best", "holds"), [(3, "under reading"), (1, "no")])
def test_fig_4_has_a_best_length_inside(best: int, holds: str) -> None:
    made = [
        {"figure": "4", "x": f"T = {t}, patience 300", "throughput": 10.0 - abs(t - best)}
        for t in (1, 3, 5)
    ]
    (claim,) = kept.claims(pd.DataFrame(made))
    assert claim.holds == holds
