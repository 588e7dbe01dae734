"""Whether load shedding has skipped a combination of tuples, from the plan of its batch.

Source: Gedik 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from braid.util.batch_numbers import display_batch


@dataclass(frozen=True)
class Admission:
    """How a tuple fared in a run that drops tuples on arrival.

    - ``label``: the tuple; ``batch``: the micro-batch in which it came.
    - ``share``: share of its stream that was admitted then; None: unknown.
    - ``number``: its hash as a number in [0, 1). It was admitted if that is below the share. None:
      unknown.
    """

    label: str
    batch: int
    share: float | None
    number: float | None = None

    @property
    def may_be_dropped(self) -> bool:
        """Whether it was dropped, as far as is known."""
        if self.share is None:
            return True
        return self.share < 1 if self.number is None else self.number >= self.share

    def describe_drop(self) -> str:
        """Return what is known about its drop, as a sentence."""
        dropped = f"{self.label} was dropped on arrival in batch {display_batch(self.batch)}"
        if self.number is None or self.share is None:
            return dropped
        share = f"{self.share:.3g} of its stream was admitted"
        return f"{dropped}: {share}, its hash is {self.number:.3g}"

    def describe_chance(self) -> str:
        """Return the tuple with the share that was admitted, if that is known."""
        if self.share is None:
            return self.label
        return f"{self.label} ({self.share:.3g} of its stream was admitted)"


@dataclass(frozen=True)
class PairShedding:
    """How load shedding met a combination of tuples.

    - ``batch``: the micro-batch in which it was due; None: unknown.
    - ``shares``: the probability with which it was taken; several: it is one of them; empty: none
      is known.
    - ``number``: its hash as a number in [0, 1). It was taken if that is below the share. None:
      unknown.
    - ``admissions``: its members, in a run that drops tuples on arrival and takes all pairs.
    """

    batch: int | None = None
    shares: tuple[float, ...] = ()
    number: float | None = None
    admissions: tuple[Admission, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether it is known what the batch took."""
        return bool(self.shares or self.admissions)

    def find_verdict(self) -> tuple[str, str] | None:
        """Return "shed" or "dropped", and a sentence; None: the combination was taken."""
        if self.admissions:
            return _judge_admissions(self.admissions)
        if not self.shares:
            return "shed", "the run sheds load; what its batch took is no longer known"
        low, high = min(self.shares), max(self.shares)
        if low >= 1 or (self.number is not None and self.number < high):
            return None
        when = "" if self.batch is None else f"in batch {display_batch(self.batch)} "
        chance = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
        this = "this one was not" if self.number is None else f"its hash is {self.number:.3g}"
        return "shed", f"{when}such pairs were taken with probability {chance}; {this}"


def _judge_admissions(admissions: Sequence[Admission]) -> tuple[str, str] | None:
    dropped = [each for each in admissions if each.may_be_dropped]
    sure = [each for each in dropped if each.number is not None or len(dropped) == 1]
    if not dropped:
        return None
    if sure:
        return "dropped", "; ".join(each.describe_drop() for each in sure)
    members = " or ".join(each.describe_chance() for each in dropped)
    return "dropped", f"{members} was dropped on arrival"
