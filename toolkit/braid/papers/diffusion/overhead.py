"""The overhead of aligned tuple routing, in closed form.

Windows and lengths share one unit of time; rates are tuples per that unit. None stands for full
history.

Source: Gu, Yu and Wang, "Adaptive Load Diffusion for Multiway Windowed Stream Joins", ICDE 2007,
section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

Windows = Sequence[float | None]


def atr_overhead(
    rates: Sequence[float], windows: Windows, master: int, length: float, hosts: int | None = None
) -> float:
    """Return O_ATR: extra tuples per unit of time for segments of ``length`` T (Eq. 2).

    A tuple has at most one copy per host, which the equation leaves out. With ``hosts``, J, each
    slave tuple counts for at most J - 1 extra ones. Without it, full history costs infinity.
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
