"""The cluster of Wang 2008, section 16.1: its hosts, and the costs of joining images on them."""

from __future__ import annotations

from braid.core.cluster_model import REFERENCE_MIPS, CostParameters, HostCapacity


def wang_cost_parameters(kilopixels: float) -> CostParameters:
    """Return the costs of Wang 2008, section 16.1.

    Joins are nested loops over images, so only comparisons cost.

    ``kilopixels`` is the size of an image: 5, 10 or 20. The book gives no times. A nanosecond for
    each pixel is what NumPy takes for a distance of two images. Sending or receiving a tuple is
    assumed to cost 50 microseconds on a gigabit network.
    """
    return CostParameters(transfer_ms=0.05, probe_ms=0.0, compare_us=kilopixels)


def wang_host_capacities(hosts: int) -> tuple[HostCapacity, ...]:
    """Return the hosts of Wang 2008, section 16.1: equal machines, 1 GB, gigabit networks."""
    return (HostCapacity(1000.0, REFERENCE_MIPS, 1000.0),) * hosts
