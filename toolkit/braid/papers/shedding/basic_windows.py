"""Basic windows: the pieces of a window that are processed or not.

Here a basic window is a set of blocks: windows slide block by block, and no block is merged across
the end of a basic window.

Source: Gedik 2007, section 5.1.
"""

from __future__ import annotations

from math import ceil

from braid.core.plan import Block

PARTS = 20
"""Default number of basic windows in a window: the paper has 1 of 20 seconds."""


def basic_window_length(window: int, basic: int | None) -> int:
    """Return b, in microseconds: as given, or a twentieth of the window."""
    return basic if basic is not None else max(1, window // PARTS)


def basic_window_ends(window: int | None, basic: int | None) -> tuple[int, ...]:
    """Return the ages b, 2b, .., w_i (microseconds) across which blocks are not merged.

    There are none in full history.
    """
    if window is None:
        return ()
    b = basic_window_length(window, basic)
    return (*range(b, window, b), window)


def locate_basic_window(
    block: Block, batch: int, window: int | None, basic: int | None, now: int | None
) -> int:
    """Return j, the basic window of the middle of a block's event times; 0: the youngest.

    ``now`` is the latest event time of the other streams, in microseconds. In full history, or
    while the others are silent, basic windows double: j is the number of doublings in the number of
    batches since the block's first.
    """
    if window is None or block.event_time_range is None or now is None:
        return max(0, batch - block.batch).bit_length()
    b = basic_window_length(window, basic)
    return min(ceil(window / b), max(0, (now - sum(block.event_time_range) // 2) // b))
