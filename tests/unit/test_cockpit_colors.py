"""Texts of the cockpit have contrast in both themes, and the ramp of loads rises in lightness."""

from __future__ import annotations

import re
from pathlib import Path

import braid_widgets
import pytest

CSS = (Path(braid_widgets.__file__).parent / "base" / "palette.css").read_text(encoding="utf-8")
COLORS = {
    name: pair
    for name, *pair in re.findall(r"--ck-([\w-]+): light-dark\(#(\w{6}), #(\w{6})\)", CSS)
}
STREAMS = [f"stream{k}" for k in range(6)]
GROUNDS = ["bg", "panel"]
TEXTS = [
    *((name, ground) for name in ("ink", "muted", "faint", "accent") for ground in GROUNDS),
    *((name, ground) for name in STREAMS for ground in GROUNDS),
    *((tone, f"{tone}-bg") for tone in ("good", "near", "bad")),
    *(("bad", ground) for ground in GROUNDS),
    *((name, "chip") for name in ("ink", "muted")),
    ("on-accent", "accent"),
]


def luminance(color: str) -> float:
    """Return the relative luminance of WCAG 2."""
    parts = [int(color[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_every_text_can_be_read(theme: int) -> None:
    pale = {
        f"{text} on {ground}": round(ratio, 2)
        for text, ground in TEXTS
        if (ratio := contrast(COLORS[text][theme], COLORS[ground][theme])) < 4.5
    }
    assert pale == {}


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_full_hosts_differ_from_empty_ones_in_lightness(theme: int) -> None:
    empty, full = (COLORS[name][theme] for name in ("ramp0", "ramp1"))
    assert contrast(empty, full) > 7
    steps = list(zip(*(bytes.fromhex(color) for color in (empty, full)), strict=True))
    signs = {(b > a) - (b < a) for a, b in steps}
    assert len(signs - {0}) == 1, "each channel goes the same way, so does the luminance"
