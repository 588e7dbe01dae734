"""The measured overhead of a slice, C_sys, with its spread (Wang 2008, section 7.2)."""

from __future__ import annotations

import numpy as np
from braid.shared.calibrate import measure_slice_overhead


def measure_quartiles(times: int = 9) -> tuple[float, float, float]:
    """Return the lower quartile, median and upper quartile of ``times`` measurements.

    Other work on the machine increases all three.
    """
    low, middle, high = np.quantile(
        [measure_slice_overhead() for _ in range(times)], (0.25, 0.5, 0.75)
    )
    return float(low), float(middle), float(high)
