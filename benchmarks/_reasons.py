"""Why measures miss what is required: measured reasons, which the page prints beside them."""

from __future__ import annotations

_GROWTH = (
    "Not explained yet. A day before, 20,000 batches gave 1.03 for time and 1.13 for memory. "
    "The objects that Python reaches do not grow from 1,100 to 1,950 batches."
)
REASONS = {
    "hot keys, CPU / a hash's, z = 0": (
        "The functions of its own take 1 % of the profiled time; the rest is that of a hash. "
        "Beside other work the rounds vary by half: three more runs gave 1.03, 1.03 and 1.11."
    ),
    "ms of a batch of 10 rows, one host, p50": (
        "A batch opens 10 files and forces 7 to disk; a loop by hand that forces 5 takes longer "
        "(see the row on the loop). Another run of the same day gave 6.13."
    ),
    "ms of a batch of 10 rows, one host, p99": (
        "As for p50. The slowest batches also merge small blocks, or wait for the disk."
    ),
    "one thread / two": (
        "Needs two idle cores, and this machine shares its two. Counted by the CPU time of the "
        "longer thread of each stage, the stages take 478 ms on one thread and 277 ms on two; "
        "93 ms of 571 are not shared: reading, planning, commit, checksums. Two idle cores would "
        "therefore give about 1.5. The second thread adds 3 % of CPU, so threads hardly wait for a "
        "lock."
    ),
    "hash, 256 hosts / 1, CPU": (
        "Each of 512 new blocks and of 1,660 meetings of blocks a batch is handled by itself in "
        "Python: finding which meet takes 24 % of the time, planning 16 % (compaction 11 %), the "
        "commit 12 %. Beside other work on the machine, another run gave 3.07."
    ),
    "joins in which the choice is the worst": (
        "For three streams on two hosts the modeled work of HotKeys is 0.998 of a central join's, "
        "so it is chosen; measured, it takes 1.29 times the best."
    ),
    "grid, 256 hosts / 1, CPU": (
        "Batches became cheaper on few hosts more than on many: since the run before, that of one "
        "host from 16.1 to 8.5 ms and that of 256 hosts from 27.3 to 20.5 ms."
    ),
    "our join / reading the rows into Arrow": (
        "Reading the rows takes two thirds of the join's time, and the join can begin only when "
        "Spark has handed over a batch. The rest, which sorts, stores and probes rows and writes "
        "results, is to take less than a third of the reading."
    ),
    "in process: ms a batch, last tenth / second tenth": _GROWTH,
    "in process: CPU ms a batch, last tenth / second tenth": _GROWTH,
    "in process: RSS MB, last tenth / second tenth": _GROWTH,
    "in process: ms a commit, last tenth / second tenth": (
        "Only file operations became slower. The number of file calls in a commit is unchanged "
        "(0.997), and the rest of a commit takes 1.06 times as long."
    ),
    "on Spark: ms a commit, last tenth / second tenth": (
        "A commit is the same as in process, where only file operations became slower. The "
        "benchmark does not count file calls on Spark."
    ),
}
"""Reasons by the end of a measure's name."""


def find_reason(name: str) -> str | None:
    """Return the reason why a measure may miss its requirement; None: none is known."""
    return next((reason for end, reason in REASONS.items() if name.endswith(end)), None)
