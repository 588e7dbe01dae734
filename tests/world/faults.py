"""Run worlds with each seeded fault until one finds it: ``python -m world.faults [NUMBER ...]``."""

from __future__ import annotations

import sys
import time

from mutations.world import WORLD_FAULTS

from world.playing import played


def main(numbers: list[int]) -> int:
    """Print the number of worlds needed to find each fault; return the number of faults not
    found.
    """
    missed = 0
    for number in numbers:
        fault, began = WORLD_FAULTS[number], time.perf_counter()
        count, found = 0, None
        for verdict in played(range(fault.worlds), fault=number):
            count += 1
            if verdict.wrong:
                found = verdict
                break
        seconds = time.perf_counter() - began
        said = f"found by world {count} of {fault.worlds}: {found.wrong}" if found else "NOT FOUND"
        print(f"{number}. {fault.name}: {said} ({seconds:.0f} s)", flush=True)
        missed += found is None
    return missed


if __name__ == "__main__":
    sys.exit(min(1, main([int(n) for n in sys.argv[1:]] or [*range(len(WORLD_FAULTS))])))
