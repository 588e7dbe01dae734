"""The studies of Wang 2008: shapes that hold whatever the seed, and frames that say what is
modelled.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from braid.core.events import BatchCommitted
from braid.studies import psp

SHORT = psp.Setting(sigma=0.05, rate=20.0, seconds=30.0)


def test_every_number_that_is_not_a_setting_says_that_it_is_modelled():
    known = {"nodes", "scheme", "join", "part", "sigma", "adapts", "second"}
    for frame in (
        psp.schemes((4,)),
        psp.breakdown(2, SHORT),
        psp.response((4,)),
        psp.rivals((3,), SHORT),
        psp.adaptation("16.6", 10.0),
    ):
        assert len(frame) and all(c in known or c.endswith("_modelled") for c in frame.columns)
        assert not frame.isna().any().any()


def test_the_closed_forms_of_15_1():
    by = psp.schemes((4, 8, 16)).pivot(index="nodes", columns="scheme")
    assert by["memory_modelled"]["PSP"].tolist() == [1500.0] * 3, "lambda W M = 50 x 10 x 3"
    assert by["memory_modelled"]["ATR"].tolist() == [n * (500 + 2 * 1500) for n in (4, 8, 16)], (
        "T + 2 W for two slaves, T = W"
    )
    sent = by["sent_modelled"]
    assert (sent["ATR"] < sent["CTR"]).all() and (sent["CTR"] < sent["PSP"]).all()


def test_the_best_ring_is_inside_and_longer_for_more_selectivity():
    times = psp.response(tuple(range(1, 40)), joins=("small",))
    best = times.loc[times.groupby("sigma")["response_modelled"].idxmin()].set_index("sigma")
    assert 1 < best["nodes"][0.05] <= best["nodes"][0.1] < best["nodes"][0.5] < 39
    assert (abs(best["nodes"] - best["best_modelled"]) <= 1.5).all(), "near Theorem 9"


def test_the_network_costs_the_same_for_every_join():
    parts = psp.breakdown(4, SHORT).pivot(index="join", columns="part", values="mean_modelled")
    assert parts["network"].nunique() == 1
    assert parts.loc["large", "join"] == pytest.approx(4 * parts.loc["small", "join"])


@pytest.mark.parametrize("seed", [0, 1])
def test_memory_and_response_of_the_rivals(seed):
    contest = psp.rivals((3, 9), replace(SHORT, seconds=60.0, seed=seed))
    stored, left, took = (
        contest.pivot(index="nodes", columns="scheme", values=f"{k}_modelled")
        for k in ("stored", "left", "response")
    )
    for ring in ("PSP", "PSP-D"):
        assert stored.loc[9, ring] == pytest.approx(stored.loc[3, ring], rel=0.15)
        assert (stored[ring] < stored["PSP-I"]).all() and (
            stored[ring] < stored["ATR, T = W"]
        ).all()
    assert stored.loc[9, "CTR, 2 copies"] == pytest.approx(stored.loc[3, "CTR, 2 copies"], rel=0.1)
    assert stored.loc[9, "CTR, N/2 copies"] > 1.5 * stored.loc[9, "CTR, 2 copies"]
    assert left.loc[9, "ATR, T = W"] > 1.3 * left.loc[3, "ATR, T = W"], (
        "idle hosts keep their last segment"
    )
    assert took.loc[9, "ATR, T = W"] == pytest.approx(took.loc[3, "ATR, T = W"], rel=0.05)
    assert took.loc[9, "CTR, 2 copies"] < took.loc[3, "CTR, 2 copies"]


def test_joins_of_five_streams_have_the_same_shapes():
    contest = psp.rivals((3, 9), replace(SHORT, streams=5))
    stored, took = (
        contest.pivot(index="nodes", columns="scheme", values=f"{k}_modelled")
        for k in ("stored", "response")
    )
    assert stored.loc[9, "PSP-D"] == pytest.approx(stored.loc[3, "PSP-D"], rel=0.15)
    assert (
        stored.loc[9, "CTR, N/2 copies"]
        > 1.5 * stored.loc[9, "CTR, 2 copies"]
        > 2 * stored.loc[9, "PSP-D"]
    )
    assert took.loc[9, "CTR, 2 copies"] < took.loc[3, "CTR, 2 copies"]


@pytest.mark.parametrize("figure", list(psp.CHANGES))
def test_a_ring_that_takes_nodes_in_keeps_up(figure):
    grown = psp.adaptation(figure)
    end = grown[grown["second"] > 54].groupby("adapts")["response_modelled"].mean()
    assert end[True] < end[False] / 2
    nodes = grown.groupby("adapts")["nodes"].max()
    assert nodes[False] == 3 < nodes[True]


def test_an_unknown_figure_is_refused():
    with pytest.raises(ValueError, match="there are: 16.6"):
        psp.adaptation("16.9")


def test_runs_by_settings_and_their_agreement():
    arrivals, ring = psp.by_settings(
        rates="5,10", windows="4", streams=2, nodes=3, resize=5, seconds=20.0
    )
    assert (
        arrivals.rates == (5.0, 10.0)
        and arrivals.windows == (4.0, 4.0)
        and ring.resize == ((10, 5),)
        and ring.max_hosts == 5
    )
    events = psp.modelled(arrivals, ring)
    commits = [e for e in events if isinstance(e, BatchCommitted)]
    assert [tuple(e.received) for e in commits] == arrivals.counts()
    both = psp.agreement(events, events)
    assert (
        both["ratio"].dropna().eq(1).all()
        and both.set_index("what").loc["state at the end", "measured"]
        == commits[-1].all_hosts.stored
    )


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (dict(rates="5,6"), "rates are '5,6'"),
        (dict(windows="soon"), "windows are 'soon'"),
        (dict(windows="0"), "longer than 0 seconds"),
        (dict(form="round"), "form is 'round'"),
        (dict(sigma=2.0), "sigma is 2.0"),
    ],
)
def test_settings_that_cannot_be_get_one_sentence(settings, told):
    with pytest.raises(ValueError, match=told) as raised:
        psp.by_settings(**settings)
    assert "\n" not in str(raised.value)
