"""Algorithms of Gedik et al. 2007 in our own words, with the lines of the paper."""

from braid_lab.common.tuple_models import Listing

RATE = Listing(
    "Algorithm 1",
    "rate adaptation: how much of the windows to process",
    (
        (1, 2, "r is 1 at first; every T_r seconds"),
        (3, 4, "α: the rows fetched of each stream since the last time"),
        (5, 6, "λ: the rates at which rows came"),
        (7, 7, "β: the part of all rows that was fetched"),
        (8, 8, "β < 1: too much work; multiply r by β"),
        (9, 9, "else multiply r by the boost δ_r, up to 1"),
    ),
)
DIRECTION = Listing(
    "Algorithm 4",
    "join direction adaptation",
    (
        (1, 2, "r_1 and r_2 are 1 at first; after Algorithm 1"),
        (3, 4, "o: the results expected of a pair, for each window"),
        (5, 5, "o_1 ≥ o_2: window 1 gets all that r allows for both"),
        (6, 6, "else window 1 gets what window 2 cannot use"),
        (7, 7, "window 2 gets the rest"),
    ),
)
UTILITY = Listing(
    "Algorithm 5",
    "join direction by utility",
    (
        (1, 2, "after Algorithm 1; a heap"),
        (3, 6, "of each window and type: the value v of its best basic window"),
        (7, 8, "all of these into the heap; a = the pairs that r allows"),
        (9, 12, "take the topmost item; its pairs are spent"),
        (13, 14, "pairs are left: r_i,z grows by one basic window"),
        (15, 18, "else by the part of it that fits, and stop"),
        (19, 21, "the next best basic window of that window and type into the heap"),
    ),
)
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
