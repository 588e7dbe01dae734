"""The steps of a state slice in our own words, with the numbers of Wang 2008, Fig. 5.2."""

from braid_lab.common.tuple_models import Listing

BUILD = Listing(
    "Figure 5.2, a build copy",
    "what a slice does with it",
    ((1, 1, "insert: add it to the slice's state"),),
    "step",
)
PROBE = Listing(
    "Figure 5.2, a probe copy",
    "what a slice does with it",
    (
        (1, 1, "cross-purge: what is older than the slice goes on to the next slice"),
        (2, 2, "probe: emit the pairs with what remains; ages need no check (Lemma 1)"),
        (3, 3, "propagate: go on to the next slice, behind what was purged"),
    ),
    "step",
)
