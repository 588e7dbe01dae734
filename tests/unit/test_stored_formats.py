"""Run folders of released versions: each is inspected, replayed and resumed by this one."""

from __future__ import annotations

import tarfile
from pathlib import Path

import braid
import pytest
from braid import StreamJoin
from braid.answer_check import check_answers
from braid.cli import main
from braid_lab.reports.report_page import find_external_urls
from stored_formats.make_folder import LAST, find_pairs, make_tables

ARCHIVES = sorted((Path(__file__).parents[1] / "stored_formats").glob("*.tar.gz"))


def test_this_version_has_a_folder() -> None:
    names = [archive.name.removesuffix(".tar.gz") for archive in ARCHIVES]
    assert braid.__version__ in names
    assert all(archive.stat().st_size < 100_000 for archive in ARCHIVES)


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
def test_a_folder_of_a_release_is_read_and_resumed(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path)
    assert main(["inspect", str(tmp_path / "run")]) in (0, None)
    assert f"batches 1 to {LAST + 1} committed" in capsys.readouterr().out
    assert main(["replay", str(tmp_path / "run"), "-o", str(tmp_path / "page.html")]) in (0, None)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '"state_map":' in page and find_external_urls(page) == []
    run = StreamJoin.resume(tmp_path / "run", make_tables())
    assert len(run.results_since(0)) < len(find_pairs())
    assert run.awaitTermination() and run.status["batch"] == 8
    rows = run.results().to_pylist()
    ids = [(row["o"]["id"], row["p"] and row["p"]["id"]) for row in rows]
    assert sorted(ids, key=repr) == find_pairs()
    assert {None} < {right for _, right in ids}
    assert check_answers(tmp_path / "run").is_right
