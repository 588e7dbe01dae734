"""Make one run under each named placement of Gu 2007, section 5, from the command line."""

from __future__ import annotations

import time
from argparse import ArgumentParser

from braid_lab.diffusion.experiments import (
    PLACEMENTS,
    DiffusionSetting,
    make_placement,
    simulate_setting,
    summarize,
)


def main() -> None:
    """Make one run under each named placement, and print how long it takes."""
    parser = ArgumentParser(
        "python -m braid_lab.diffusion",
        description="Runs of Gu 2007, section 5, modelled.",
    )
    parser.add_argument(
        "placements",
        nargs="*",
        default=["ATR", "CTR"],
        help=f"of {', '.join(PLACEMENTS)}; by default ATR and CTR",
    )
    defaults = {"hosts": 30, "streams": 4, "window": 30, "seconds": 1000, "seed": 0}
    for name, number in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=number, help=f"by default {number}")
    given = vars(parser.parse_args())
    names, setting = given.pop("placements"), DiffusionSetting(**given)
    for name in names:
        began = time.perf_counter()
        got = summarize(simulate_setting(make_placement(name, setting), setting), setting.window)
        numbers = ", ".join(f"{what} {value:.4g}" for what, value in got.items())
        print(
            f"{name}: {time.perf_counter() - began:.1f} s (measured); {numbers} (modelled)",
            flush=True,
        )


if __name__ == "__main__":
    main()
