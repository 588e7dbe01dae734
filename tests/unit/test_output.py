"""Results as others see them: whole files of committed batches, each named once, despite
crashes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from braid.errors import DamagedRunError
from braid.storage import spark_sink_log
from braid.storage.log_entries import CompactedResults
from braid.storage.published_results import PublishedResults
from braid.storage.run_medium import LocalMedium
from braid.storage.spark_sink_log import SparkSinkLog
from braid.util.file_system import FileSystem

BATCHES = [[f"{b:06d}-{p}-0000cafe.parquet" for p in range(b % 3)] for b in range(450)]
"""Files by batch; some batches have none, including batch 0."""


def output(folder: Path) -> PublishedResults:
    return PublishedResults(LocalMedium(folder, "process"))


def make_output(folder: Path) -> PublishedResults:
    folder.mkdir()
    out = output(folder)
    out.make_folders()
    return out


def written(out: PublishedResults, batch: int) -> list[str]:
    """Return the files that the tasks of a batch write."""
    for name in BATCHES[batch]:
        (out.new / name).write_text(name)
    return BATCHES[batch]


def interval(compact: list[int]) -> int:
    """Return the compaction interval that Spark infers (CompactibleFileStreamLog), from rising
    numbers.
    """
    if len(compact) >= 2:
        return compact[-1] - compact[-2]
    return 10 if not compact else next(n for n in (10, compact[0] + 1) if (compact[0] + 1) % n == 0)


def logged(out: PublishedResults) -> list[str]:
    """Return the file names in the log as Spark reads it: from the last compact file on."""
    ids = {int(f.name.split(".")[0]): f for f in out.sink_log.folder.glob("[0-9]*")}
    last = max(ids, default=-1)
    every = interval(sorted(n for n, f in ids.items() if f.suffix == ".compact"))
    compact = (last + 1) // every * every - 1
    assert compact < 0 or ids[compact].suffix == ".compact"
    assert sorted(n for n in ids if n > compact) == [*range(compact + 1, last + 1)]
    lines = []
    for n in range(max(compact, 0), last + 1):
        version, *rest = ids[n].read_text().split("\n")
        assert version == "v1" and (ids[n].suffix == ".compact") == ((n + 1) % every == 0)
        lines += [json.loads(line) for line in rest]
    for line in lines:
        file = Path(line["path"].removeprefix("file://"))
        assert file.stat().st_size == line["size"]
    times = [line["modificationTime"] for line in lines]
    assert times == sorted(times)
    return [Path(line["path"]).name for line in lines]


def listed(out: PublishedResults) -> list[str]:
    return sorted(f.name for f in out.results.glob("*.parquet"))


def upto(batch: int) -> list[str]:
    return [name for names in BATCHES[: batch + 1] for name in names]


def test_each_committed_file_is_seen_once_and_others_are_not(tmp_path: Path) -> None:
    out = make_output(tmp_path / "run")
    for batch in range(35):
        names = written(out, batch)
        (out.new / f"{batch:06d}-9-0000dead.parquet").touch()
        out.publish_batch(batch, names)
        assert logged(out) == listed(out) == upto(batch)


def test_a_batch_that_another_driver_has_published_is_seen_once(tmp_path: Path) -> None:
    """The driver that committed it continues after another one has recovered the folder."""
    out = make_output(tmp_path / "run")
    for batch in range(3):
        out.publish_batch(batch, written(out, batch))
    names = written(out, 3)
    output(tmp_path / "run").recover_published([], BATCHES[:4], list)
    assert not [*out.new.iterdir()]
    out.publish_batch(3, names)
    assert logged(out) == listed(out) == upto(3)


def test_a_committed_file_that_is_nowhere_is_not_published(tmp_path: Path) -> None:
    out = make_output(tmp_path / "run")
    with pytest.raises(FileNotFoundError):
        out.publish_batch(0, ["000000-0-0000dead.parquet"])


def test_the_log_stays_in_proportion(tmp_path: Path) -> None:
    """Total bytes written and bytes present, as the run grows from 100 batches to 450."""
    out, written_bytes, real = make_output(tmp_path / "run"), [0], SparkSinkLog._put_entry

    def put(log: SparkSinkLog, file: Path, lines: list[str]) -> None:
        real(log, file, lines)
        written_bytes[0] += file.stat().st_size

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkSinkLog, "_put_entry", put)
        for batch in range(450):
            out.publish_batch(batch, written(out, batch))
            if batch in (98, 99, 100, 188, 189, 198, 199, 200, 298, 299, 300, 449):
                assert logged(out) == upto(batch)
                last = output(tmp_path / "run")
                before = {f.name: f.stat().st_mtime_ns for f in out.sink_log.folder.iterdir()}
                last.recover_published([], BATCHES[: batch + 1], list)
                assert {
                    f.name: f.stat().st_mtime_ns for f in out.sink_log.folder.iterdir()
                } == before
    whole = (out.sink_log.folder / "399.compact").stat().st_size
    assert written_bytes[0] < 16 * whole
    (out.sink_log.folder / "399.compact").write_text("v1")
    (out.sink_log.folder / "420").unlink()
    output(tmp_path / "run").recover_published([], BATCHES, list)
    assert logged(out) == upto(449)


def test_files_of_later_batches_have_later_times(tmp_path: Path) -> None:
    """Spark's file source orders files by their times; a clock that stands still must not mix
    batches.
    """
    out = make_output(tmp_path / "run")
    for batch in range(12):
        out.publish_batch(batch, written(out, batch))
    lines = [json.loads(s) for s in (out.sink_log.folder / "9.compact").read_text().split("\n")[1:]]
    time = {Path(line["path"]).name: line["modificationTime"] for line in lines}
    assert (
        time["000001-0-0000cafe.parquet"]
        < time["000002-0-0000cafe.parquet"]
        == time["000002-1-0000cafe.parquet"]
    )
    assert time["000002-1-0000cafe.parquet"] < time["000004-0-0000cafe.parquet"]


def emptied(out: PublishedResults) -> None:
    """Leave a file as a power failure does."""
    (out.sink_log.folder / "410").write_bytes(b"")


def torn(out: PublishedResults) -> None:
    body = (out.sink_log.folder / "399.compact").read_bytes()
    (out.sink_log.folder / "399.compact").write_bytes(body[: len(body) // 2])


def lost(out: PublishedResults) -> None:
    (out.sink_log.folder / "410").unlink()


def left_over(out: PublishedResults) -> None:
    (out.results / BATCHES[449 - 1][0].replace("000448", "000450")).touch()


def other(out: PublishedResults) -> None:
    """Replace a file of a batch that is not merged."""
    (out.sink_log.folder / "449").write_text((out.sink_log.folder / "448").read_text())


def test_of_merged_batches_names_are_looked_at_only_where_something_is_amiss(
    tmp_path: Path,
) -> None:
    out, asked = make_output(tmp_path / "run"), list[int]()
    for batch in range(450):
        out.publish_batch(batch, written(out, batch))
    sizes = [sum(map(len, BATCHES[n : n + 84])) for n in range(0, 420, 84)]
    groups = [CompactedResults(84 * i, 84 * i + 84, size, ()) for i, size in enumerate(sizes)]

    def earlier() -> list[list[str]]:
        asked.append(1)
        return BATCHES[:420]

    for change in (emptied, torn, lost, left_over, other):
        change(out)
        for times in (1, 0):
            asked.clear()
            output(out.results.parent).recover_published(groups, BATCHES[420:450], earlier)
            assert len(asked) == times, change
            assert logged(out) == listed(out) == upto(449)
            assert (out.sink_log.folder / "410").read_bytes()[:2] == b"v1"


class Crash(Exception):
    """Raised at the point at which the process is killed."""


def cut_off(patch: pytest.MonkeyPatch, steps: int) -> None:
    """Raise Crash instead of the change on disk after the given number of changes."""
    left = [steps]

    def counted(real: Any) -> Any:
        def change(*given: Any, **named: Any) -> Any:
            if left[0] == 0:
                raise Crash
            left[0] -= 1
            return real(*given, **named)

        return change

    for name in ("replace_file", "link_file", "remove_file"):
        patch.setattr(FileSystem, name, counted(getattr(FileSystem, name)))


@pytest.mark.parametrize("batch", [0, 4, 5, 9, 19, 29, 32, 199])
def test_a_crash_at_any_step_of_publishing_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """A committed batch is interrupted before each change on disk of its publication, one after the
    other.
    """
    for steps in range(20):
        out = make_output(tmp_path / f"{steps}")
        for earlier in range(batch):
            out.publish_batch(earlier, written(out, earlier))
        names = written(out, batch)
        with monkeypatch.context() as patch:
            cut_off(patch, steps)
            try:
                out.publish_batch(batch, names)
                cut = False
            except Crash:
                cut = True
        assert set(upto(batch - 1)) <= set(listed(out)) <= set(upto(batch))
        assert logged(out) in (upto(batch - 1), upto(batch))
        assert all(Path(out.committed_path(name)).read_text() == name for name in upto(batch))
        for _ in range(2):
            out.recover_published([], BATCHES[: batch + 1], list)
            assert logged(out) == listed(out) == upto(batch)
            assert not [*out.new.iterdir()]
        out.publish_batch(batch + 1, written(out, batch + 1))
        assert logged(out) == listed(out) == upto(batch + 1)
        if not cut:
            break
    assert not cut and steps > len(names)


def test_what_no_batch_names_is_removed(tmp_path: Path) -> None:
    """Tasks of an uncommitted batch left a file, and a killed rename of the log another."""
    out = make_output(tmp_path / "run")
    out.publish_batch(0, [])
    out.publish_batch(1, written(out, 1))
    written(out, 2)
    (out.sink_log.folder / ".2.0000cafe").touch()
    (out.sink_log.folder / "2").write_text("v1\n{}")
    out.recover_published([], BATCHES[:2], list)
    assert logged(out) == listed(out) == upto(1)
    assert not [*out.new.iterdir()]
    assert sorted(f.name for f in out.sink_log.folder.iterdir()) == ["0", "1"]


def test_what_is_written_late_removes_nothing_later(tmp_path: Path) -> None:
    """A driver slept before it logged a batch with which all lines are written."""
    out = make_output(tmp_path / "run")
    for batch in range(13):
        out.publish_batch(batch, written(out, batch))
    before = {f.name: f.read_bytes() for f in out.sink_log.folder.iterdir()}
    output(tmp_path / "run").sink_log.append_batch(9, BATCHES[9])
    assert {f.name: f.read_bytes() for f in out.sink_log.folder.iterdir()} == before


def test_a_run_that_was_moved_is_named_anew(tmp_path: Path) -> None:
    out = make_output(tmp_path / "run")
    for batch in range(13):
        out.publish_batch(batch, written(out, batch))
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    out = output(tmp_path / "elsewhere")
    out.recover_published([], BATCHES[:13], list)
    assert logged(out) == upto(12)


def cut(line: str) -> str:
    return line[: len(line) // 2]


def other_file(line: str) -> str:
    """Change a letter of the name and nothing else."""
    return line.replace("0000cafe", "0000cage")


def no_time(line: str) -> str:
    return line.replace('"modificationTime":', '"modificationTime":"')


DAMAGES = (cut, other_file, no_time)


@pytest.mark.parametrize("way", DAMAGES)
def test_batches_are_not_dropped_by_a_log_that_is_damaged(tmp_path: Path, way: Any) -> None:
    """One sentence reports it, nothing changes, and the resumed run repairs the log."""
    out = make_output(tmp_path / "run")
    for batch in range(25):
        out.publish_batch(batch, written(out, batch))
    file = out.sink_log.folder / "19.compact"
    lines = file.read_text().split("\n")
    file.write_text("\n".join([*lines[:12], way(lines[12]), *lines[13:]]))
    before = {f: f.read_bytes() for f in out.results.rglob("*") if f.is_file()}
    with pytest.raises(
        DamagedRunError, match=r"^[^\n]*/19.compact is damaged: it has a line that is none"
    ):
        out.unpublish(0, 5)
    assert {f: f.read_bytes() for f in out.results.rglob("*") if f.is_file()} == before
    files = [[], [], [], [], [], *BATCHES[5:25]]
    groups = [CompactedResults(5, 10, sum(map(len, files[5:10])), ())]
    output(tmp_path / "run").recover_published(groups, files[10:], lambda: files[:10])
    assert logged(out) == listed(out) == [n for names in files for n in names]
    out.unpublish(5, 10)
    assert logged(out) == listed(out) == [n for names in files[10:] for n in names]


@pytest.mark.parametrize("way", DAMAGES)
@pytest.mark.parametrize("batches", [20, 24])
def test_of_the_log_the_last_line_is_whole_when_a_run_goes_on(
    tmp_path: Path, way: Any, batches: int
) -> None:
    """It has the time after which the files of the next batch are dated."""
    out = make_output(tmp_path / "run")
    for batch in range(batches):
        out.publish_batch(batch, written(out, batch))
    file = max(out.sink_log.folder.iterdir(), key=lambda f: int(f.stem))
    body = file.read_text().rpartition("\n")
    file.write_text(f"{body[0]}\n{way(body[2])}")
    if way is not other_file or batches != 20:
        with pytest.raises(
            DamagedRunError, match=rf"^[^\n]*/{file.name} is damaged: it has a line that is"
        ):
            output(tmp_path / "run").publish_batch(batches, written(out, batches))
    again = output(tmp_path / "run")
    groups = [CompactedResults(0, 20, len(upto(19)), ())]
    again.recover_published(groups, BATCHES[20:batches], lambda: BATCHES[:20])
    again.publish_batch(batches, written(out, batches))
    assert logged(out) == listed(out) == upto(batches)


@pytest.mark.parametrize("way", DAMAGES)
def test_lines_that_are_written_again_are_whole(tmp_path: Path, way: Any) -> None:
    """A damaged line is not copied, and the others keep the sizes of their files."""
    out = make_output(tmp_path / "run")
    for batch in range(19):
        out.publish_batch(batch, written(out, batch))
    file, sizes = out.sink_log.folder / "9.compact", out.sink_log.logged_sizes()
    lines = file.read_text().split("\n")
    file.write_text("\n".join([*lines[:5], way(lines[5]), *lines[6:]]))
    name = Path(json.loads(lines[5])["path"]).name
    assert (
        out.sink_log.logged_sizes() == {n: size for n, size in sizes.items() if n != name}
        and name in sizes
    )
    assert [*out.sink_log.damaged_files()] == [file]
    with pytest.raises(
        DamagedRunError, match=r"^[^\n]*/9.compact is damaged: it has a line that is none"
    ):
        out.publish_batch(19, written(out, 19))
    out.republish([], BATCHES[:20])
    assert logged(out) == listed(out) == upto(19) and not out.sink_log.damaged_files()


@pytest.mark.parametrize("chunk", [1, 3, 7, 1000])
@pytest.mark.parametrize("body", [b"", b"v1", b"v1\n{a}\n{b}", b"v1\n{a}\n{b", b"\n" * 21])
def test_a_large_log_file_is_counted_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, body: bytes
) -> None:
    monkeypatch.setattr(spark_sink_log, "_CHUNK", chunk)
    (tmp_path / "9.compact").write_bytes(body)
    found = spark_sink_log._count_lines(tmp_path / "9.compact", 5)
    assert found == (body.count(b"\n"), body[:5], body.rpartition(b"\n")[2])
