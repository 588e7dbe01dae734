"""The paper's example: figure 1's network with streams, and rates that lead to its decisions.

Source: Seshadri 2008, section 2.1. Rates are ours: the paper gives none.
"""

from __future__ import annotations

from braid.papers.reuse.network import Network
from braid.papers.reuse.result_rates import Rates, StreamRate

from braid_lab.workloads.networks import make_figure_1

Q1 = """SELECT f.num, f.gate, b.area, c.status, w.forecast
FROM flights [RANGE 5 MIN SLIDE 1 MIN] f, weather [RANGE 5 MIN] w,
  checkins [RANGE 1 MIN] c, baggage [RANGE 1 MIN] b
WHERE f.dest = w.city AND f.num = c.flight AND f.num = b.flight
  AND f.terminal = 'TERMINAL A' AND f.carrier_code = 'DL'"""
"""The query of a display at SINK3, every minute."""

Q2 = """SELECT f.num, c.status, c.vacant_seats
FROM flights [RANGE 5 MIN SLIDE 5 MIN] f, checkins [RANGE 5 MIN] c
WHERE f.num = c.flight AND f.carrier_code IN ('DL', 'CO')"""
"""The query of an airline's manager at SINK1 or SINK4, every five minutes."""

_BYTES = {"num": 8.0, "flight": 8.0, "gate": 4.0, "dest": 4.0, "city": 4.0, "terminal": 12.0}


def figure_1_example() -> tuple[Network, Rates, dict[str, str]]:
    """Return figure 1, the rates of its four streams, and their source nodes."""
    at = {s: s.upper() for s in ("flights", "checkins", "baggage", "weather")}
    carriers = ("DL", "CO", "AA", "UA", "WN", "B6", "US", "NW")
    flights = [
        {"carrier_code": c, "terminal": f"TERMINAL {t}"} for c in carriers for t in ("A", "B")
    ]
    rates = Rates(
        {
            "flights": StreamRate(4.0, _BYTES, flights),
            "checkins": StreamRate(25.0, _BYTES | {"status": 12.0}),
            "baggage": StreamRate(25.0, _BYTES),
            "weather": StreamRate(1.0, _BYTES | {"forecast": 40.0}),
        },
        {
            "checkins.flight = flights.num": 5e-4,
            "baggage.flight = flights.num": 5e-4,
            "baggage.flight = checkins.flight": 5e-4,
            "flights.dest = weather.city": 1e-2,
        },
    )
    return make_figure_1(), rates, at
