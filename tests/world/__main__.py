"""Run worlds on all cores and print those that fail: ``python -m world SEED WORLDS``."""

import sys

from world.playing import play_worlds

if __name__ == "__main__":
    sys.exit(min(1, play_worlds(*map(int, sys.argv[1:3]))))
