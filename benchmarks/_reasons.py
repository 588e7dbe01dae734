"""Why measures miss what is required: measured reasons, which the page prints beside them."""

from __future__ import annotations

REASONS = {
    "hot keys, CPU / a hash's, z = 0": (
        "The functions of its own take 1 % of the profiled time; the rest is that of a hash. "
        "Beside other work the rounds vary by half: three more runs gave 1.03, 1.03 and 1.11."
    ),
    "ms of a batch of 10 rows, one host, p50": (
        "Of 22 profiled ms of CPU, building, storing and probing blocks take 65 %, the commit "
        "19 %, publishing 6 %, reading the input 4 % and planning 3 %. A batch opens 10 files and "
        "forces 7 to disk; no single function takes more than 6 %. A loop by hand that forces 5 "
        "took 1.7 times as long, in turns on a busy disk (medians of three rounds)."
    ),
    "ms of a batch of 10 rows, one host, p99": (
        "As for p50. The slowest batches also merge small blocks, or wait for the disk."
    ),
    "one thread / two": (
        "Needs two idle cores, and this machine shares its two. Counted by the CPU time of the "
        "longer thread of each stage, the stages take 478 ms on one thread and 277 ms on two; "
        "93 ms of 571 are not shared: reading, planning, commit, checksums. So two idle cores "
        "would give about 1.5. The second thread adds 3 % of CPU, so threads hardly wait for a "
        "lock."
    ),
    "hash, 256 hosts / 1, CPU": (
        "Each of 512 new blocks and of 1,660 meetings of blocks a batch is handled by itself in "
        "Python: finding which meet takes 24 % of the time, planning 16 % (compaction 11 %), the "
        "commit 12 %. Beside other work on the machine, another run gave 3.07."
    ),
    "grid, 256 hosts / 1, CPU": (
        "Finding which blocks meet takes 24 % of the time, planning 11 % and the commit 11 %. The "
        "figure varies with the machine's other work: 1.70 with little, 1.92 with much."
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
"""By the end of a measure's name."""


def find_reason(name: str) -> str | None:
    """Return the reason why a measure may miss its requirement; None: none is known."""
    return next((reason for end, reason in REASONS.items() if name.endswith(end)), None)
