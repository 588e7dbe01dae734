"""Examples of all algorithms that can be stepped through, by name."""

from __future__ import annotations

from braid_lab.diffusion import reference_atr, reference_ctr
from braid_lab.hotkeys import spread_steps
from braid_lab.hypercube import cell_steps
from braid_lab.psp import reference as psp
from braid_lab.psp import relocation_steps
from braid_lab.reuse import lattice_steps, pair_steps
from braid_lab.shared_ring import reference_bitmaps
from braid_lab.shedding import rate_steps, set_indexes, utility_steps
from braid_lab.shedding import reference as shedding
from braid_lab.slices import reference as slices
from braid_lab.theta import reference as theta

EXAMPLES = {
    "grid": theta.EXAMPLE,
    "ATR": reference_atr.EXAMPLE,
    "CTR": reference_ctr.EXAMPLE,
    "ring": psp.EXAMPLE,
    "relocation": relocation_steps.EXAMPLE,
    "chain": slices.EXAMPLE,
    "bitmaps": reference_bitmaps.EXAMPLE,
    "shedding": shedding.EXAMPLE,
    "index": set_indexes.EXAMPLE,
    "pair": pair_steps.EXAMPLE,
    "hot keys": spread_steps.EXAMPLE,
    "hypercube": cell_steps.EXAMPLE,
    "rates": rate_steps.EXAMPLE,
    "utility": utility_steps.EXAMPLE,
    "lattice": lattice_steps.EXAMPLE,
}
