"""Stored long runs: when they are read and when computed."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pandas as pd
import pytest
from braid import Coordinated
from braid.core.placement import Placement
from braid_lab.common import result_cache as tables
from braid_lab.common.result_cache import (
    CachedOutcome,
    ResultCache,
    describe_cache_dates,
    fingerprint_outcomes,
)
from braid_lab.diffusion import experiments as study
from braid_lab.diffusion import figures as figures
from braid_lab.diffusion import long_runs as kept
from braid_lab.diffusion.experiments import DiffusionSetting
from braid_lab.psp import cached_runs
from braid_lab.psp import experiments as psp_experiments
from braid_lab.psp import scheme_comparison as psp_rivals
from braid_lab.slices import mean_gains

SMALL = DiffusionSetting(3, 2.0, hosts=4, seconds=2)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ResultCache[[int]]:
    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    return square_table("now")


def square_table(code: str) -> ResultCache[[int]]:
    """Return a table of squares, of this code."""
    return ResultCache(
        "few.csv", ("a", "b"), lambda: code, "x = {}".format, lambda x: {"a": x * x, "b": 9.0}
    )


def test_a_run_is_made_once_and_then_read(table: ResultCache[[int]]) -> None:
    asked = {"x = 1": lambda: {"a": 1.0, "b": 2.0}, "x = 2": lambda: {"a": 3.0, "b": 4.0}}
    assert table.fill(asked, 0.0) == (0, 2), "no minutes, no runs"
    assert table.fill(asked, 1.0) == (2, 0)
    assert table.fill(asked, 1.0) == (0, 0)
    again = replace(square_table("now"), compute=lambda x: pytest.fail("it is kept"))
    ran = again.make_source()(2)
    assert ran.outcome == {"a": 3.0, "b": 4.0} and len(ran.date) == len("2026-01-31")


def test_a_run_of_other_settings_of_other_code_or_a_fresh_one_is_made(
    table: ResultCache[[int]],
) -> None:
    table.store("x = 1", {"a": 1.0, "b": 2.0})
    read, new = table.make_source(), CachedOutcome({"a": 1, "b": 9.0})
    assert read(1).outcome["b"] == 2 and read(1).date
    assert read(3) == CachedOutcome({"a": 9, "b": 9.0})
    assert table.make_source(fresh=True)(1) == new == square_table("later").make_source()(1)


def test_runs_that_are_asked_for_are_listed_and_not_made(table: ResultCache[[int]]) -> None:
    def ask(made: Callable[[int], CachedOutcome]) -> None:
        assert made(2).outcome == made(3).outcome == made(2).outcome == {"a": 1.0, "b": 1.0}

    asked = table.list_requests(ask)
    assert {key: run() for key, run in asked.items()} == {
        "x = 2": {"a": 4, "b": 9.0},
        "x = 3": {"a": 9, "b": 9.0},
    }
    assert not table.file_path.exists()


def test_what_was_kept_is_told_with_its_days() -> None:
    assert describe_cache_dates(["", ""]) == "2 runs, all made now (modelled)"
    assert describe_cache_dates(["2026-01-31", ""]).endswith(
        "1 kept, of 2026-01-31; the others made now"
    )
    days = ["2026-02-01", "2026-01-31"]
    assert describe_cache_dates(days) == "2 runs (modelled): 2 kept, of 2026-01-31 to 2026-02-01"


@pytest.mark.parametrize("field", [f.name for f in fields(DiffusionSetting)])
def test_every_setting_tells_a_run_from_another(field: str) -> None:
    other = dict.fromkeys([f.name for f in fields(DiffusionSetting)], 7)
    other |= {"rates": (1.0, 2.0), "costs": study.GU_SCANNED, "selects": "hop", "copies": None}
    changed = replace(SMALL, **{field: other[field]})
    assert kept.run_key("CTR", SMALL) != kept.run_key("CTR", changed)
    assert (kept.run_key("ATR", SMALL) == kept.run_key("ATR", changed)) == (field == "copies")


def test_code_that_does_something_else_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy, a price, the search: each changes the outcomes of short runs."""
    assert (
        fingerprint_outcomes([{"a": 1.0}])
        == fingerprint_outcomes([{"a": 1.0000001}])
        != fingerprint_outcomes([{"a": 1.001}])
    )
    before = kept._fingerprint_code()
    assert before == kept.CACHE.code_fingerprint
    monkeypatch.setattr(
        "braid.papers.diffusion.segment_length.LengthSearch.next_length",
        lambda self, step: replace(self, max_host_load=0.0, completed_work=0.0, batches=0),
    )
    assert kept._fingerprint_code() != before


def test_the_table_of_gu_is_of_runs_that_are_asked_for_and_of_the_present_code() -> None:
    """For other code, ``python -m braid_lab.diffusion.long_runs`` computes it again."""
    asked = kept.requested_runs()
    assert set(kept.CACHE.cached_rows) == set(asked)
    found = kept.cached_table()
    assert len(found) == len(list(kept.long_runs())), "all that the notebook shows"
    assert kept.summarize_cached()["seeds"].tolist() == [5] * 18
    assert found["date"].str.match(r"\d{4}-\d{2}-\d{2}$").all()


def test_a_figure_reads_the_runs_that_are_kept(
    table: ResultCache[[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``full`` of notebook 02: labeled as stored, and equal to a new computation."""
    mine = replace(kept.CACHE, file="gu.csv", fingerprint=lambda: "now")
    monkeypatch.setattr(kept, "CACHE", mine)
    first = figures.stream_number(2, 1, (2,), kept.CACHE.make_source())
    assert set(first["kept"]) == {""}
    s = DiffusionSetting(2, 20.0, selectivity=0.15, seconds=2)
    mine.store(kept.run_key("ATR", s), {n: 7.0 for n in kept.BESIDE})
    second = figures.stream_number(2, 1, (2,), kept.CACHE.make_source())
    read = second[second["kept"] != ""]
    assert set(read["placement"]) == {"ATR"} and set(read["throughput"]) == {7.0}
    pd.testing.assert_frame_equal(
        second[second["kept"] == ""], first[second["kept"] == ""], check_dtype=False
    )
    fresh = figures.stream_number(2, 1, (2,), kept.CACHE.make_source(fresh=True))
    assert set(fresh["kept"]) == {""}


def test_the_contest_of_wang_reads_the_runs_that_are_kept(
    table: ResultCache[[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``full`` of notebook 03: no stored run is computed, and settings distinguish runs."""
    mine = replace(cached_runs.CACHE, file="w.csv", fingerprint=lambda: "now")
    monkeypatch.setattr(cached_runs, "CACHE", mine)
    short = psp_experiments.RingSetting(seconds=12.0)
    names = list(psp_rivals.competitors(4, short))
    for k, name in enumerate(names):
        given = psp_experiments.with_fine_batches(replace(short, sigma=0.05), 4)
        mine.store(cached_runs.run_key(name, 4, given), dict.fromkeys(cached_runs.COUNTS, 1.0 + k))
    monkeypatch.setattr(cached_runs, "count_scheme", lambda *run: pytest.fail(f"{run} is kept"))
    found = psp_rivals.compare_schemes((4,), setting=short, source=cached_runs.CACHE.make_source())
    assert found["kept"].all() and found["busy_modelled"].tolist() == [
        1.0 + k for k in range(len(names)) for _ in psp_experiments.JOINS
    ]
    assert len(psp_experiments.seed_statistics(found, "busy_modelled")) == len(found)
    reported = {cached_runs.run_key("PSP", 4, s) for s in (short, replace(short, seed=1))}
    assert (
        len(
            reported
            | {cached_runs.run_key("PSP", 5, short), cached_runs.run_key("PSP-D", 4, short)}
        )
        == 4
    )


def test_another_scheme_of_wang_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies at half of the nodes equal two at four nodes, and differ at six.

    If they differ only at sixteen, the scheme itself distinguishes them.
    """
    now, plain, real = (
        cached_runs.CACHE.code_fingerprint,
        psp_rivals.competitors,
        cached_runs.count_scheme,
    )
    made: dict[tuple[Placement, psp_experiments.RingSetting], dict[str, float]] = {}

    def counts(scheme: str, nodes: int, setting: psp_experiments.RingSetting) -> dict[str, float]:
        run = psp_rivals.competitors(nodes, setting)[scheme], setting
        if run not in made:
            made[run] = real(scheme, nodes, setting)
        return made[run]

    monkeypatch.setattr(cached_runs, "count_scheme", counts)
    before = cached_runs._fingerprint_code()
    assert before == now

    def third(nodes: int, setting: psp_experiments.RingSetting) -> dict[str, Placement]:
        half = Coordinated(nodes, max_copies=max(2, nodes // 3))
        return {**plain(nodes, setting), psp_rivals.HALF: half}

    def few(nodes: int, setting: psp_experiments.RingSetting) -> dict[str, Placement]:
        half = Coordinated(nodes, max_copies=max(2, min(6, nodes // 2)))
        return {**plain(nodes, setting), psp_rivals.HALF: half}

    monkeypatch.setattr(psp_rivals, "competitors", third)
    assert cached_runs._fingerprint_code() != before, "by what runs come to"
    monkeypatch.setattr(psp_rivals, "competitors", plain)
    monkeypatch.setattr(cached_runs, "competitors", few)
    assert cached_runs._fingerprint_code() != before, "by the scheme"


def test_the_table_of_wang_is_of_runs_that_are_asked_for_and_of_the_present_code() -> None:
    """For other code, ``python -m braid_lab.psp.cached_runs`` computes it again."""
    asked = cached_runs.requested_runs()
    assert len(asked) == 4 * 4 * 3 * 3 * 7 and set(cached_runs.CACHE.cached_rows) <= set(asked)
    with cached_runs.CACHE.file_path.open(encoding="utf-8", newline="") as file:
        codes = {row["code"] for row in csv.DictReader(file)}
    assert codes == {cached_runs.CACHE.code_fingerprint}, "of other code than the present one"


def test_the_gains_of_the_chain_are_kept_for_the_present_code() -> None:
    """For other code, ``python -m braid_lab.slices.mean_gains`` computes them again."""
    cache = mean_gains.CACHE
    assert set(cache.cached_rows) == set(mean_gains.requested_runs())
    with cache.file_path.open(encoding="utf-8", newline="") as file:
        assert {row["code"] for row in csv.DictReader(file)} == {cache.code_fingerprint}
