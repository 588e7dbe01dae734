"""Settings of runs, recorded with their figures: a claim's setting names the values that were run.

A function that makes figures is decorated with ``records_arguments``, or calls ``record_values``.
The setting of a claim is a template, "{queries} queries on {nodes} nodes": its values are those of
the figures that the claim is tested with, so the text and the run cannot differ.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import signature
from string import Formatter
from typing import Any, ParamSpec

import pandas as pd
from braid.util.machine import available_cores, machine_memory

P = ParamSpec("P")
RECORDED = "recorded_settings"
"""The attribute of a data frame that has the values of its run by name."""


def describe_machine() -> str:
    """Return the machine on which a run is measured."""
    memory = f"{machine_memory() / 1e9:.0f} GB"
    return f"{platform.machine()}, {available_cores()} cores, {memory}"


def record_values(frame: pd.DataFrame, **values: object) -> pd.DataFrame:
    """Add values of its run to a data frame. Return the frame."""
    frame.attrs[RECORDED] = {**frame.attrs.get(RECORDED, {}), **values}
    return frame


def records_arguments(run: Callable[P, pd.DataFrame]) -> Callable[P, pd.DataFrame]:
    """Decorate a function that makes a data frame: the frame has the values of its arguments.

    What the function itself has recorded stays.
    """

    @wraps(run)
    def make_frame(*args: P.args, **kwargs: P.kwargs) -> pd.DataFrame:
        bound = signature(run).bind(*args, **kwargs)
        bound.apply_defaults()
        frame = run(*args, **kwargs)
        recorded = frame.attrs.get(RECORDED, {})
        return record_values(frame, **{**bound.arguments, **recorded})

    return make_frame


def concat_runs(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate data frames of several runs, with the values of all."""
    parts = list(frames)
    frame = pd.concat(parts, ignore_index=True)
    frame.attrs = {}
    names = dict.fromkeys(name for part in parts for name in part.attrs.get(RECORDED, {}))
    return record_values(frame, **{name: _list_recorded(parts, name) for name in names})


@dataclass(frozen=True)
class RunValues:
    """The distinct values of one setting in all runs of a claim.

    ``format`` lists them: "1, 2 and 8". With "count" it is their number, with "range" the least and
    the greatest, "1 to 8", and with "most" the greatest. With "apart" each is one of several runs,
    and with "readings" one of several interpretations.
    """

    values: tuple[Any, ...]

    def __format__(self, spec: str) -> str:
        if spec == "count":
            return str(len(self.values))
        if spec == "range" and len(self.values) > 1:
            return f"{_format_value(min(self.values))} to {_format_value(max(self.values))}"
        if spec == "most":
            return _format_value(max(self.values))
        if spec == "apart":
            return "; and ".join(map(_format_value, self.values))
        if spec == "readings":
            first, *others = map(_format_value, self.values)
            return f"{first} (in another reading {', '.join(others)})" if others else first
        *most, last = map(_format_value, self.values)
        return f"{', '.join(most)} and {last}" if most else last


def format_recorded(frame: pd.DataFrame, name: str) -> str:
    """Return the recorded values of one setting of a run as text."""
    return format(RunValues(_list_recorded([frame], name)))


def format_setting(template: str, figures: object, more: Mapping[str, object]) -> str:
    """Return a setting with the values of its runs.

    They are those in ``more``, then those recorded with the figures, then the values of their
    columns. Raises ValueError for a value that no run has recorded.
    """
    names = {name for _, name, _, _ in Formatter().parse(template) if name}
    frames = list(_iterate_frames(figures)) if names - more.keys() else []
    values_by_name = {
        name: _list_values(more[name]) if name in more else _list_run_values(frames, name)
        for name in names
    }
    if missing := sorted(name for name, values in values_by_name.items() if not values):
        raise ValueError(f"no run has recorded {', '.join(missing)}: {template}")
    return template.format_map({name: RunValues(values) for name, values in values_by_name.items()})


def _list_run_values(frames: Iterable[pd.DataFrame], name: str) -> tuple[Any, ...]:
    parts = list(frames)
    if recorded := _list_recorded(parts, name):
        return recorded
    columns = (part[name].dropna().unique().tolist() for part in parts if name in part)
    return _list_values([value for column in columns for value in column])


def _list_recorded(frames: Iterable[pd.DataFrame], name: str) -> tuple[Any, ...]:
    runs = (frame.attrs.get(RECORDED, {}) for frame in frames)
    return _list_values([value for run in runs if name in run for value in _list_values(run[name])])


def _list_values(given: object) -> tuple[Any, ...]:
    """Return distinct values, in order if they have one."""
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        return (given,)
    distinct = tuple(dict.fromkeys(given))
    try:
        return tuple(sorted(distinct))
    except TypeError:
        return distinct


def _format_value(value: object) -> str:
    if type(value) is int or (isinstance(value, float) and value.is_integer()):
        return f"{value:,.0f}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _iterate_frames(figures: object) -> Iterator[pd.DataFrame]:
    """Yield the data frames of figures: of mappings, sequences and records too."""
    if isinstance(figures, pd.DataFrame):
        yield figures
    elif isinstance(figures, Mapping):
        for value in figures.values():
            yield from _iterate_frames(value)
    elif isinstance(figures, list | tuple):
        for value in figures:
            yield from _iterate_frames(value)
    elif is_dataclass(figures):
        for field in fields(figures):
            yield from _iterate_frames(getattr(figures, field.name))
