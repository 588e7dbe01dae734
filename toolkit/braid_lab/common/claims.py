"""Claims of the papers and their results: a registry for each study.

A claim is a function under ``ClaimRegistry.claim``, which has its place in the paper and its
sentence. The function returns a Finding from the study's figures; once registered it returns a
Claim. Notebooks and tests call ``ClaimRegistry.test_claims`` with the figures that they have. They
show ``claims_table`` and end with ``check_claims``, so that a report fails if a claim that used to
hold no longer does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Literal, NamedTuple, ParamSpec

import pandas as pd

from braid_lab.common.recorded_settings import format_setting

P = ParamSpec("P")
Verdict = Literal["yes", "no", "under reading", "not tried"]


@dataclass(frozen=True)
class Claim:
    """One claim and its result."""

    paper: str
    """Authors and year of the paper."""
    source: str
    """Figure, table, theorem or section."""
    statement: str
    """The claim of the paper, in a sentence."""
    result: str
    """The result of the study: figures with units."""
    holds: Verdict
    """"under reading": only if the claim is read as ``reason`` says."""
    reason: str = ""
    """Why the claim does not hold, or what qualifies it; of a registered claim at least the result.
    """
    is_required: bool = False
    """Whether ``check_claims`` fails if the claim does not hold."""
    setting: str = ""
    """The policies or equations, what they ran on, and for how long; with the values of its run."""

    def __str__(self) -> str:
        return f"{self.paper}, {self.source}: {self.statement}: {self.result}"


@dataclass(frozen=True)
class Finding:
    """The result of a study on a claim: the fields of a Claim that follow from figures."""

    result: str
    holds: Verdict
    reason: str = ""
    is_required: bool | None = None
    """None: as the claim is registered."""
    ran: Mapping[str, object] = field(default_factory=dict)
    """Values that the claim itself ran with, by their names in its setting."""


def judge(result: str, holds: object, reason: str = "", *, failure: str = "") -> Finding:
    """Return the finding "yes" or "no" for a truth value, including those of NumPy.

    ``reason`` qualifies either; ``failure`` is the likely reason if the claim does not hold.
    """
    return Finding(result, "yes" if holds else "no", reason or ("" if holds else failure))


def judge_reading(result: str, holds: object, reading: str) -> Finding:
    """Return the finding "under reading", or "no" if the claim does not hold under it either."""
    return Finding(result, "under reading" if holds else "no", reading)


def leave_untested(result: str, reason: str = "") -> Finding:
    """Return the finding of a run that is too small to test a claim."""
    return Finding(result, "not tried", reason)


Case = Mapping[str, Any]
"""Arguments of a claim that is tested several times; its place and sentence may name them."""


class _Check(NamedTuple):
    test: Callable[..., Claim]
    parameters: tuple[Parameter, ...]
    list_cases: Callable[..., Iterable[Case]]


class ClaimRegistry:
    """The claims of one study, in the order of their definition.

    ``paper`` has the authors and the year. ``settings`` are those of claims that state none: by how
    their place in the paper begins, the longest first.
    """

    def __init__(self, paper: str, settings: Mapping[str, str] | None = None) -> None:
        self.paper, self.settings = paper, settings or {}
        self._checks: list[_Check] = []

    def claim(
        self,
        source: str,
        statement: str,
        *,
        is_required: bool = False,
        cases: Callable[..., Iterable[Case]] = lambda: [{}],
        setting: str = "",
    ) -> Callable[[Callable[P, Finding]], Callable[P, Claim]]:
        """Register the decorated function as a claim.

        Parameters
        ----------
        source, statement
            The claim's place in the paper, and its sentence. They may have arguments of the
            function in braces.
        is_required
            Whether ``check_claims`` fails if the claim does not hold.
        cases
            Returns the arguments with which the claim is tested, one mapping for each test, from
            figures. By default the claim is tested once, with figures alone.
        setting
            The policies or equations, what they ran on, and for how long, with values of the run
            in braces (``recorded_settings``); default: that of the registry for the place.
        """

        def register_claim(find: Callable[P, Finding]) -> Callable[P, Claim]:
            shape = signature(find)

            @wraps(find)
            def test_claim(*args: P.args, **kwargs: P.kwargs) -> Claim:
                bound = shape.bind(*args, **kwargs)
                bound.apply_defaults()
                place, sentence = (text.format_map(bound.arguments) for text in (source, statement))
                finding = find(*args, **kwargs)
                must = is_required if finding.is_required is None else finding.is_required
                template = setting or self._find_setting(place)
                return Claim(
                    self.paper,
                    place,
                    sentence,
                    finding.result,
                    finding.holds,
                    finding.reason or finding.result,
                    must,
                    format_setting(template, bound.arguments, finding.ran),
                )

            self._checks.append(_Check(test_claim, tuple(shape.parameters.values()), cases))
            return test_claim

        return register_claim

    def _find_setting(self, place: str) -> str:
        return max(
            ((len(key), text) for key, text in self.settings.items() if place.startswith(key)),
            default=(0, ""),
        )[1]

    def include_claims(self, part: ClaimRegistry) -> None:
        """Append the claims of another registry."""
        self._checks += part._checks

    def test_claims(self, *records: object, **figures: Any) -> list[Claim]:
        """Return the claims for which all figures are given, each with its result.

        A parameter of a claim gets the figure of its name, the record of its type, or the field of
        a record that has its name. A figure that is None is not given. Without any argument, the
        claims that take no figures are tested.
        """
        return [claim for check in self._checks for claim in _run_check(check, records, figures)]


def _run_check(check: _Check, records: tuple[object, ...], figures: Case) -> Iterator[Claim]:
    needed = tuple(signature(check.list_cases).parameters.values())
    arguments = _find_arguments(needed, records, figures)
    for case in check.list_cases(**arguments) if arguments is not None else ():
        takes_figures = needed or any(
            p.default is Parameter.empty and p.name not in case for p in check.parameters
        )
        given = _find_arguments(check.parameters, records, {**figures, **case})
        if given is not None and bool(takes_figures) == bool(records or figures):
            yield check.test(**given)


def _find_arguments(
    parameters: Iterable[Parameter], records: Iterable[object], figures: Case
) -> dict[str, Any] | None:
    """Return the arguments by name; None if one is not given."""
    values = {p.name: _find_argument(p, records, figures) for p in parameters}
    missing = {p.name for p in parameters if values[p.name] is None}
    if any(p.name in missing and p.default is Parameter.empty for p in parameters):
        return None
    return {name: value for name, value in values.items() if name not in missing}


def _find_argument(parameter: Parameter, records: Iterable[object], figures: Case) -> Any:
    if parameter.name in figures:
        return figures[parameter.name]
    for record in records:
        if any(kind.__name__ == parameter.annotation for kind in type(record).__mro__):
            return record
        if (value := getattr(record, parameter.name, None)) is not None:
            return value
    return None


def format_values(values: Mapping[Any, float] | pd.Series) -> str:
    """Return numbers by x as text: "10: 0.98, 20: 1.3"."""
    return ", ".join(f"{x}: {value:.3g}" for x, value in values.items())


def format_range(low: float, high: float) -> str:
    """Return a range of shares as text."""
    return f"{low:.1%} to {high:.1%}"


def format_shares(values: pd.Series | Mapping[Any, float]) -> str:
    """Return shares by competitor as text."""
    return ", ".join(f"{v:.1%} against {k}" for k, v in values.items())


def claims_table(claims: Iterable[Claim]) -> pd.DataFrame:
    """Return the claims as a table: where, what the paper says, found here, holds, reason, run."""
    rows = [(c.source, c.statement, c.result, c.holds, c.reason, c.setting) for c in claims]
    names = ["where", "the paper says", "found here", "holds", "reason", "setting"]
    return pd.DataFrame(rows, columns=names)


def check_claims(claims: Iterable[Claim]) -> str:
    """Return, as a sentence, how many claims hold.

    If BRAID_CLAIMS is set, append the claims to the file that it names, one line of JSON each.
    Raises AssertionError, listing them, if claims that must hold do not.
    """
    claims = list(claims)
    if path := os.environ.get("BRAID_CLAIMS"):
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(c)) + "\n" for c in claims)
    if failed := [str(c) for c in claims if c.is_required and c.holds == "no"]:
        raise AssertionError("\n".join(failed))
    held = sum(c.holds == "yes" for c in claims)
    must = sum(c.is_required for c in claims)
    return f"{len(claims)} claims, {held} hold here; all checks passed ({must} must hold)."
