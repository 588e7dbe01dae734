"""The schemes of Gu et al. 2007 in our own words, with the numbers of the paper."""

from braid_lab.common.tuple_models import Listing

ATR = Listing(
    "Section 3",
    "aligned tuple routing",
    (
        (1, 1, "master routing: a segment of the master goes to the host with the least load"),
        (2, 2, "slave routing: a slave's rows go to every host whose segment they may meet"),
        (
            3,
            3,
            "switching: rows of old and new master go, marked, to old (*) and new (#) hosts",
        ),
    ),
    "paragraph",
)
CTR = Listing(
    "Figure 6",
    "coordinated tuple routing",
    (
        (1, 2, "a row later than its stream's segment starts a new segment"),
        (3, 6, "for each join order, cover what it must meet, hop by hop: a path"),
        (7, 7, "select the path with the least overhead"),
        (8, 9, "void what several hosts of a hop would do twice; keep the path"),
        (10, 11, "the segment is stored on the first hop: update the routing table"),
        (12, 13, "a row of the segment carries its path, which it follows from hop to hop"),
        (14, 14, "send a copy of the row to each host of the first hop"),
    ),
)
