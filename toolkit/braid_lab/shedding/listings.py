"""Algorithms of Gedik et al. 2007 in our own words, with the lines of the paper."""

from braid_lab.common.tuple_models import Listing

ADAPT = Listing(
    "Algorithm 2",
    "time correlation adaptation",
    (
        (1, 2, "every T_c seconds, for both windows"),
        (3, 3, "sort the basic windows by the matches that full processing counted"),
        (4, 6, "o = matches for a pair; s = the basic windows, the best first"),
        (7, 8, "count from 0 again"),
    ),
)
PROCESS = Listing(
    "Algorithm 3",
    "what is done with a row",
    (
        (1, 1, "fetch a row; put it in its own window, and take the opposite one"),
        (2, 5, "with probability r γ: compare it with all rows, and count matches"),
        (6, 9, "else a = r |W| rows are left; take the best basic window"),
        (10, 11, "while rows are left: compare it with the whole basic window"),
        (12, 15, "else with a part of it, and stop"),
    ),
)
INDEX = Listing(
    "Section 4.2",
    "lists ordered by time",
    (
        (1, 1, "insert: a set goes to the front of its items' lists, without a search"),
        (2, 2, "remove: the oldest set is at the end of its lists"),
        (3, 3, "merge: the lists of a query's items, newest first, by a heap"),
        (4, 4, "stop where the part of the window that is processed ends"),
    ),
    "",
)
