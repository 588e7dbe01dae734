"""The work of HotKeys in a batch, in our own words and numbers."""

from braid_lab.common.tuple_models import Listing

BATCH = Listing(
    "HotKeys",
    "what is done in a batch",
    (
        (1, 1, "count the rows of each value; earlier batches count less"),
        (2, 2, "estimate the work of each host: the rows that it gets, and their pairs"),
        (3, 3, "a shared value that has cooled goes home"),
        (4, 4, "one host is too busy: share out the heaviest values, each over idle hosts"),
        (5, 5, "nearly all rows of a value are of one stream: keep that, and copy the others"),
        (6, 6, "move stored rows to their hosts, some in each batch"),
        (7, 7, "a new row: store it at the home of its value, and probe there"),
        (8, 8, "a new row of a shared value: store it on one of its hosts, and probe all"),
        (9, 9, "of a copied stream: store it on all of them; of the kept one: probe there only"),
    ),
    "",
)
