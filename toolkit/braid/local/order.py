"""Positions that put keys in order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_DIGIT, _MOST_BITS = 16, 32
"""NumPy puts 16-bit numbers in order by counting them, which takes a third of what comparing them
does: so for numbers of two such digits it is done digit by digit.
"""


def order_of(keys: npt.NDArray[np.generic]) -> npt.NDArray[np.intp]:
    """The positions of the keys in rising order."""
    if keys.dtype.kind != "i" or not len(keys):
        return np.argsort(keys)
    low, high = int(keys.min()), int(keys.max())
    bits = (high - low).bit_length()
    if bits > _MOST_BITS:
        return np.argsort(keys)
    above = (keys.astype(np.int64, copy=False) - low).astype(np.uint32)
    order = np.argsort(above.astype(np.uint16), kind="stable")
    if bits > _DIGIT:
        digit = (above >> np.uint32(_DIGIT)).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
    return order
