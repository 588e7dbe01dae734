"""Why measures miss what is required: measured reasons, which the page prints beside them."""

from __future__ import annotations

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
    "grid, 256 hosts / 1, CPU": (
        "When the limit was set, a batch took 16.1 ms on one host and 27.3 ms on 256. Both have "
        "become cheaper, but one host more: see the table. The rest is Python's work for 512 "
        "replicas and about 1,300 meetings of blocks a batch."
    ),
    "our join / reading the rows into Arrow": (
        "Reading the rows takes two thirds of the join's time, and the join can begin only when "
        "Spark has handed over a batch. The rest, which sorts, stores and probes rows and writes "
        "results, is to take less than a third of the reading."
    ),
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
