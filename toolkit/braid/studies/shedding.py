"""The experiments of Gedik 2007, section 6, as tidy frames; modelled unless a name says measured.

What is modelled is counted in pairs: of the workload's sets it is known how likely a new tuple
matches one of any age (``density``), so the output that a way to shed load gets from a budget of
pairs follows from which part of the window it processes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from braid.papers.shedding.windows import optimality as phi

Floats = npt.NDArray[np.float64]


def peak(deviation: float, middle: float = 0.5, steps: int = 2000) -> Floats:
    """A density of matches by age: a bell over the window, its ``deviation`` as part of that."""
    age = (np.arange(steps) + 0.5) / steps
    return np.asarray(np.exp(-((age - middle) ** 2) / (2 * deviation**2)))


def optimality(
    deviations: Sequence[float] = (0.2, 0.05),
    basics: Sequence[float] = (0.02, 0.05, 0.1, 0.2, 0.5),
    shares: Sequence[float] = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.3),
) -> pd.DataFrame:
    """Fig. 5: phi by ``basic`` (b / w) and ``share`` (r'), for bells of these ``deviations``."""
    rows = [
        (deviation, basic, share, phi(peak(deviation), basic, share))
        for deviation in deviations
        for basic in basics
        for share in shares
    ]
    return pd.DataFrame(rows, columns=["deviation", "basic", "share", "optimality_modelled"])
