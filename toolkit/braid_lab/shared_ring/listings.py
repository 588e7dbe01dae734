"""Routing by bitmaps in our own words: Wang 2008, chapter 20."""

from braid_lab.common.tuple_models import Listing

ROUTING = Listing(
    "Chapter 20",
    "which queries a result serves",
    (
        (1, 1, "a new row serves every query: its bitmap is all ones"),
        (2, 2, "a row found in a slice serves the queries whose window reaches it (Lemma 9)"),
        (3, 3, "the product of the bitmaps is 0: leave the probe out"),
        (4, 4, "a result goes to the queries of the product"),
    ),
    "",
)
