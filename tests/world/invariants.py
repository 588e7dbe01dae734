"""Invariants of every simulated world."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from braid.answer_check import check_answers
from braid.errors import DamagedRunError, FencedError
from braid.storage.block_files import read_parquet
from braid.storage.manifest_log import OLD
from braid.storage.run_files import is_run_file
from braid.storage.run_store import RunStore

from world.sink import Ids, Wrong, count_ids, sum_ids

if TYPE_CHECKING:
    from world.drivers import Driver
    from world.world import World

_OTHERS = ("another driver", "is in use by a run")
"""The sentences of a driver that detects another one."""
_SENTENCES = (OSError, RuntimeError, ValueError)


def check_end(world: World, driver: Driver) -> None:
    """Check that a failed driver has one sentence, and a reason."""
    error = driver.error
    said = f"{driver} ended with {type(error).__name__}: {error}"
    if isinstance(error, Wrong):
        raise Wrong(f"{driver}: {error}")
    if not isinstance(error, _SENTENCES) or "\n" in str(error):
        raise Wrong(f"{said}, which is no sentence of Braid's") from error
    if driver.number in world._excused:
        return
    if _is_flipped(world) and isinstance(error, ValueError):
        return
    is_last = driver is world.drivers[-1]
    if "zombie" in world.happened and isinstance(error, RuntimeError):
        lost = isinstance(error, FencedError) or any(part in str(error) for part in _OTHERS)
        if lost and (not is_last or len(world.drivers) > 1):
            return
    raise Wrong(f"{said}, without a fault") from error


def check_promise(world: World) -> None:
    """Check that after a power failure every batch reported as committed still is."""
    if world.scenario.durability != "power" or _is_flipped(world):
        return
    if world.announced < 0:
        return
    try:
        there = RunStore(_run(world)).log.committed_batches()
    except (DamagedRunError, OSError) as error:
        raise Wrong(f"after a power cut: {error}") from error
    if len(there) <= world.announced:
        raise Wrong(f"batch {world.announced} was told, and a power cut left {len(there)} batches")


def check_left(world: World) -> None:
    """Check that readers of a completed run have all results by Spark's log.

    This also holds if drivers that had lost the run have acted since.
    """
    if world.scenario.place == "folder" and not _is_flipped(world):
        store = RunStore("/run")
        listed = {n for n in world.disk.list_names(store.published.results) if is_run_file(n)}
        logged = _logged(world, store.published.results / "_spark_metadata")
        check_same("when the run had ended, Spark's log", logged, listed)


def check_last(world: World, driver: Driver) -> None:
    """Check that the last resume without faults has the right results, or names the damage."""
    may_refuse = _is_flipped(world)
    if driver.error is not None:
        if isinstance(driver.error, Wrong):
            raise Wrong(str(driver.error))
        if may_refuse and isinstance(driver.error, ValueError) and "/" in str(driver.error):
            return
        raise Wrong(
            f"the last resume ended with {type(driver.error).__name__}: {driver.error}"
        ) from driver.error
    try:
        world.check_all(driver.result)
    except DamagedRunError as damaged:
        if not may_refuse:
            raise Wrong(f"the results cannot be read: {damaged}") from damaged


def _run(world: World) -> str:
    return "/run" if world.scenario.place == "folder" else "world://run"


def recompute_answers(world: World) -> str:
    """Return the differences that ``braid check --answers`` finds in a run; "": none.

    DuckDB reads the files, so they are copied to the machine's disk. A run in a bucket, or with a
    damaged file, is not checked.
    """
    if world.scenario.place != "folder" or _is_flipped(world):
        return ""
    with TemporaryDirectory() as folder:
        for path, node in world.files.walk("/run"):
            copy = Path(folder) / path.removeprefix("/run/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(node.content)
        report = check_answers(folder)
    return "" if report.is_right else f"braid check --answers: {report}"


def check_all(world: World, run: Any) -> None:
    """Check the results, the content of the sink and the remaining files."""
    expected = world.scenario.expected()
    since = run.first_retained_batch
    _check_bag("the results", sum_ids([count_ids(run.results())]), expected, since)
    _check_untimed(world, run, since)
    if world.scenario.has_sink:
        _check_bag("what the sink has", sum_ids(world.sink.taken), expected, 0)
    if world.scenario.place == "folder":
        _check_folder(world, expected, since)


def _check_untimed(world: World, run: Any, since: int) -> None:
    """Check that rows without event time are in ``run.late()``, and that no other files are left."""
    rows = run.late().to_pylist()
    found = Counter(
        (list(world.scenario.rows).index(r["stream"]), r["row"][r["stream"]]["id"])
        for r in rows
        if r["reason"] == "untimed"
    )
    expected = {
        (stream, row["id"]): row["batch"]
        for stream, alias in enumerate(world.scenario.rows)
        for row in world.scenario.untimed.get(alias, [])
    }
    _check_bag("the untimed rows", found, expected, since)
    if world.scenario.place == "folder" and world.disk.exists("/run/late"):
        there, may_stay = set(world.disk.list_names("/run/late")), run.store.irregular.list_names()
        named = {file.name for file in run.store.irregular.list_committed()}
        check_same("late/", there | may_stay, may_stay)
        check_same("late/", there & named, named)


def _is_flipped(world: World) -> bool:
    """Return whether a file was damaged, so that a refusal is right."""
    return "flip done" in world.happened


def _check_bag(
    what: str, found: Ids, expected: dict[tuple[int | None, ...], int], since: int
) -> None:
    """Check that a bag has every result from a batch on exactly once, and no other."""
    missing = {r for r, batch in expected.items() if batch >= since and r not in found}
    wrong = {r for r, n in found.items() if n != 1 or r not in expected}
    if missing or wrong:
        raise Wrong(
            f"{what}: of {len(expected)}, {len(missing)} are missing, as {min(missing, default=(), key=repr)},"
            f" and {len(wrong)} are wrong or doubled, as {min(wrong, default=(), key=repr)}"
        )


def _check_folder(world: World, expected: dict[tuple[int | None, ...], int], since: int) -> None:
    """Check that the files are those that the log names."""
    store = RunStore("/run")
    store.log.read_new_entries()
    disk = world.disk
    listed = {n for n in disk.list_names(store.published.results) if is_run_file(n)}
    if not _is_flipped(world):  # who reads files without their seals may read anything
        files = [store.published.results / name for name in sorted(listed)]
        bag = sum_ids(count_ids(read_parquet(file)) for file in files)
        _check_bag("the files in results/", bag, expected, since)
        logged = _logged(world, store.published.results / "_spark_metadata")
        check_same("Spark's log", logged, listed)
    kept = store.log.commits
    named = {f.name for k in kept for f in k.results if k.batch >= since}
    check_same(
        "results/", {n for n in listed if int(n[:6]) >= store.log.first_uncompacted_batch}, named
    )
    check_same("staging/", set(disk.list_names(store.published.new)), set())
    states = [k for k in kept[-OLD:] if k.state is not None]
    blocks = {name for k in states for name in store.states.read_state(k).block_files}
    check_same("blocks/", set(disk.list_names(store.blocks.folder)), blocks)
    there = {n for n in disk.list_names(store.log.folder) if n.startswith("state-")}
    check_same("states", there, {k.state.name for k in states if k.state is not None})
    parts = {part.name for m in store.log.merged for part in m.part_files}
    merged = store.path / "compacted"
    check_same("compacted/", set(disk.list_names(merged)) if disk.exists(merged) else set(), parts)
    check_no_temporaries(world)


def check_no_temporaries(world: World) -> None:
    """Raise Wrong if a temporary file remains."""
    left = [p for p, _ in world.files.walk("/run") if Path(p).name.startswith(".")]
    left = [p for p in left if not p.endswith("/.lock")]
    if left:
        raise Wrong(f"temporary files are left: {', '.join(left)}")


def check_same(what: str, found: set[str], wanted: set[str]) -> None:
    """Raise Wrong unless two sets of names are equal."""
    if found != wanted:
        more, fewer = sorted(found - wanted), sorted(wanted - found)
        raise Wrong(f"{what}: {more} should not be there, {fewer} should be")


def _logged(world: World, log: Path) -> set[str]:
    """Return the files that Spark's log names, each once."""
    names = world.disk.list_names(log)
    compact = max((int(n.partition(".")[0]) for n in names if n.endswith(".compact")), default=-1)
    numbers = [n for n in names if n.isdecimal() and int(n) > compact]
    files = [*([f"{compact}.compact"] if compact >= 0 else []), *numbers]
    lines = [
        line for n in files for line in world.disk.read_file(log / n).decode().splitlines()[1:]
    ]
    found = [str(json.loads(line)["path"]).rpartition("/")[2] for line in lines]
    if len(found) != len({*found}):
        raise Wrong("Spark's log names a file twice")
    return {*found}
