"""The work of the hypercube in a batch, in our own words and numbers."""

from braid_lab.common.tuple_models import Listing

BATCH = Listing(
    "Shares",
    "what is done in a batch",
    (
        (1, 1, "measure the rows of each stream in a batch"),
        (2, 2, "best shares: of all ways to write the cells as a product, the least sent"),
        (3, 3, "if others send much less: multiply one share, divide another, next batch"),
        (4, 4, "a new layout: cells get new places; copy, cut and drop stored rows"),
        (5, 5, "a new row: hash it by its own columns; send it to all cells along the others"),
        (6, 6, "join it in each of these cells: partners that match are in one of them"),
    ),
    "",
)
