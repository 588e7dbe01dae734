"""Arrivals: rates, bursts, changes, and a condition with a given selectivity."""

from __future__ import annotations

from itertools import combinations, product
from math import sqrt

import numpy as np
import pytest
from braid_lab.workloads.poisson_arrivals import EPOCH, MODULUS, Arrivals, draw_rates
from duck import connect_duckdb


def is_near(found: float, mean: float) -> bool:
    """Return whether a count is within five standard deviations of a Poisson mean."""
    return abs(found - mean) <= 5 * sqrt(mean)


def joined(given: Arrivals) -> int:
    """Return the results by DuckDB over full history."""
    with connect_duckdb() as db:
        for alias, table in given.make_tables().items():
            db.register(alias, table)
        return db.execute(
            f"SELECT count(*) FROM {', '.join(given.stream_aliases)} WHERE {given.condition}"
        ).fetchall()[0][0]


def test_rates_are_drawn_as_gu_draws_them():
    rates = draw_rates(2000, seed=3)
    assert min(rates) >= 5 and max(rates) <= 20
    assert np.mean(rates) == pytest.approx(12.5, abs=0.5)
    assert draw_rates(4, seed=1) == draw_rates(4, seed=1) != draw_rates(4, seed=2)


def test_counts_are_poisson():
    """Mean and variance of the number of tuples per batch are rate times step."""
    counts = np.array(Arrivals((8.0, 20.0), seconds=3000, step=0.5).batch_counts())
    assert counts.shape == (6000, 2)
    assert counts.mean(axis=0) == pytest.approx([4, 10], rel=0.03)
    assert counts.var(axis=0) == pytest.approx([4, 10], rel=0.1)


def test_tuples_are_the_counts():
    given = Arrivals(
        (8.0, 20.0, 3.0), seconds=25, step=2, theta=0.5, changes=((11, (1.0, 2.0, 30.0)),), seed=4
    )
    counts, tables = np.array(given.batch_counts()), given.make_tables()
    assert len(counts) == given.micro_batch_count == 13
    for s, table in enumerate(tables.values()):
        batch, micros = table["batch"].to_numpy(), table["ts"].cast("int64").to_numpy()
        assert np.bincount(batch, minlength=13).tolist() == counts[:, s].tolist()
        assert (np.diff(micros) >= 0).all()
        assert ((micros - EPOCH) // (2 * 10**6) == batch).all()
        assert table["id"].to_pylist() == list(range(len(batch)))


def test_the_same_settings_give_the_same_tuples():
    settings = {"rates": (5.0, 6.0), "seconds": 20.0, "theta": 0.3}
    assert Arrivals(**settings).make_tables() == Arrivals(**settings).make_tables()
    assert Arrivals(**settings).batch_counts() != Arrivals(**settings, seed=1).batch_counts()


def test_rates_change_in_the_middle():
    given = Arrivals((50.0, 0.0), seconds=300, changes=((100, (5.0, 20.0)), (200, (0.0, 80.0))))
    counts = np.array(given.batch_counts())
    for (begin, end), rates in zip(
        [(0, 100), (100, 200), (200, 300)], [(50, 0), (5, 20), (0, 80)], strict=True
    ):
        assert all(
            is_near(n, 100 * r) for n, r in zip(counts[begin:end].sum(axis=0), rates, strict=True)
        )


@pytest.mark.parametrize("theta", [0.0, 0.4, 1.0])
def test_bursts_have_two_rates_and_one_mean(theta: float):
    """Sorted by phase, half of the time has (1 + theta)/2 r and half has (1 - theta)/2 r."""
    given = Arrivals((100.0, 100.0), seconds=2000, theta=theta, period=20)
    for s in range(2):
        micros = given.arrival_times(s)
        assert is_near(len(micros), 100_000)
        phase = np.bincount(micros % 20_000_000 // 500_000, minlength=40)
        halves = [np.roll(phase, -k)[:20].sum() for k in range(40)]
        assert max(halves) == pytest.approx(50_000 * (1 + theta), rel=0.03)
        assert min(halves) == pytest.approx(50_000 * (1 - theta), rel=0.03, abs=2600)
    starts = [
        np.argmax(
            np.convolve(
                np.tile(
                    np.bincount(given.arrival_times(s) % 20_000_000 // 500_000, minlength=40), 2
                ),
                np.ones(20),
            )
        )
        for s in range(2)
    ]
    assert theta == 0 or starts[0] != starts[1], "the bursts of the streams begin apart"


@pytest.mark.parametrize("sigma", [0.0, 0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("streams", [2, 3, 4])
def test_selectivity_is_what_it_says(streams: int, sigma: float):
    """Every pair of tuples matches with probability sigma; groups match with the product over their
    pairs.

    Two groups that share a pair of tuples are positively correlated, so the deviation is that of
    the largest such set.
    """
    size = {2: 40, 3: 8, 4: 3}[streams]
    given = Arrivals((float(size),) * streams, seconds=10, sigma=sigma, seed=5)
    groups = np.prod([len(given.arrival_times(s)) for s in range(streams)])
    pairs = streams * (streams - 1) // 2
    mean = groups * sigma**pairs
    sharing = sum(len(given.arrival_times(s)) for s in range(streams)) if streams > 2 else 1
    assert abs(joined(given) - mean) <= 4 * sqrt(mean * sharing * (1 - sigma))
    assert joined(given) == mean if sigma in (0, 1) else joined(given) > 0 or mean < 50


def test_duckdb_and_brute_force_agree():
    given = Arrivals((3.0, 4.0, 2.0), seconds=5, sigma=0.4, seed=2)
    rows = [table.to_pylist() for table in given.make_tables().values()]
    matching = 0
    for group in product(*rows):
        named = dict(zip(given.stream_aliases, group, strict=True))
        matching += all(
            (named[a][f"u_{b}"] + named[b][f"u_{a}"]) % MODULUS < 400_000
            for a, b in combinations(named, 2)
        )
    assert joined(given) == matching > 0


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"rates": (5.0,)}, "2 to 9 streams"),
        ({"rates": (5.0, 6.0), "windows": (3.0,)}, "same 2 to 9 streams"),
        ({"rates": (5.0, -1.0)}, "0 or more tuples per second"),
        ({"rates": (5.0, 6.0), "step": 0.0}, "greater than 0"),
        ({"rates": (5.0, 6.0), "changes": ((70.0, (1.0, 1.0)),)}, "between 0 and seconds"),
        ({"rates": (5.0, 6.0), "sigma": 1.5}, "sigma is 1.5"),
        ({"rates": (5.0, 6.0), "theta": -0.1}, "theta -0.1"),
    ],
)
def test_bad_settings_are_refused(settings: dict, says: str):
    with pytest.raises(ValueError, match=says):
        Arrivals(**settings)
