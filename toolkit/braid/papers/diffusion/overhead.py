"""What aligned routing costs, in closed form. Source: Gu, Yu and Wang, "Adaptive Load Diffusion for
Multiway Windowed Stream Joins", ICDE 2007, section 3.

Windows and lengths are in any one unit of time, rates in tuples per that unit; None stands for full
history.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

Windows = Sequence[float | None]


def copies_per_segment(rates: Sequence[float], windows: Windows, master: int) -> float:
    """Slave tuples that are copied for each master segment: the sum of (W_i + W_M) r_i over the
    slaves.
    """
    return sum(_combine_windows(windows, i, master) * r for i, r in enumerate(rates) if i != master)


def atr_overhead(
    rates: Sequence[float], windows: Windows, master: int, length: float, hosts: int | None = None
) -> float:
    """O_ATR: extra tuples per unit of time for segments of ``length`` T (Eq. 2).

    A tuple has no more than one copy per host, which the equation leaves out; with ``hosts``, J,
    each slave tuple counts for at most J - 1 extra ones. Without it, a full history costs
    infinitely much.
    """
    most = inf if hosts is None else hosts - 1
    return sum(
        min(_combine_windows(windows, i, master) / length, most) * r
        for i, r in enumerate(rates)
        if i != master
    )


def _combine_windows(windows: Windows, slave: int, master: int) -> float:
    a, b = windows[slave], windows[master]
    return inf if a is None or b is None else a + b
