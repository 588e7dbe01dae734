"""The steps of a PSP ring in our own words: Wang 2008, sections 12.2, 12.3 and 14.2."""

from braid_lab.common.tuple_models import Listing

RING = Listing(
    "Figure 12.3",
    "what a node does with what arrives",
    (
        (1, 1, "a build copy: insert it into the state"),
        (2, 2, "a probe copy: purge what is too old; send that and the copy on; probe"),
        (3, 3, "an intermediate result: send it on, unless it is back; probe"),
        (4, 4, "END marks (12.2): after the last one the next row may come"),
    ),
    "",
)
RELOCATION = Listing(
    "Section 14.2",
    "aggressive relocation",
    (
        (1, 1, "suspend the join"),
        (2, 2, "put new node j after node k, the least k with k M / N ≥ j"),
        (3, 3, "each node hands on ΔS of a new slice, and whole ones to new nodes (Eq. 14.1)"),
        (4, 4, "resume the join on the wider ring"),
    ),
    "",
)
