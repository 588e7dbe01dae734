"""Behavior of the session's JVM apart from running queries."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from braid import spark_session
from braid.spark_session import _ASKED, _cache_java_names, _fork_settings
from braid.storage.jvm_file_scheme import SCHEME, make_own_path
from py4j.java_gateway import JavaClass, JavaPackage, JVMView
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_files_of_braid_alone_get_their_permissions_without_a_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Permissions are those of `chmod`; a folder with the setgid bit keeps it."""
    hadoop: Any = spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]
    permission = hadoop.permission.FsPermission
    settings = spark._jsparkSession.sessionState().newHadoopConf()
    place = spark._jvm.java.net.URI(f"{SCHEME}:///")  # type: ignore[union-attr]
    files = hadoop.FileSystem.get(place, settings)
    assert files.getClass().getName() == "BraidLocalFiles"
    assert make_own_path(spark, tmp_path) == f"{SCHEME}:{tmp_path}"

    files.create(hadoop.Path(str(tmp_path / "made"))).close()
    assert mode(tmp_path / "made") == 0o644
    (handing := tmp_path / "handing").mkdir()
    handing.chmod(0o2775)
    for bits in (0o400, 0o751, 0o1777):
        for parent in (tmp_path, handing):
            path = parent / f"{bits:o}"
            files.mkdirs(hadoop.Path(str(path)))
            handed = mode(path) & 0o6000
            assert bool(handed) == (parent == handing)
            files.setPermission(hadoop.Path(str(path)), permission(f"{bits:o}"))
            assert mode(path) == bits | handed


def test_the_jvm_is_not_asked_again_for_what_pyspark_names(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    for kind in (JVMView, JavaPackage, JavaClass):
        monkeypatch.setattr(kind, "__getattr__", lambda _, name: asked.append(name) or Any)
    assert {asked.split()[0] for asked in _ASKED} <= vars(spark._jvm).keys()
    assert spark.range(3).select((F.expr("id") + F.col("id")).alias("twice")).columns == ["twice"]
    assert asked == []


def test_a_name_that_is_no_class_yet_is_not_kept(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark imports some packages of the JVM when it first needs them."""
    monkeypatch.setattr(spark_session, "_ASKED", ("NotImportedYet make", "PythonPartitioner"))
    jvm = spark._jvm
    assert "PythonPartitioner" not in vars(jvm)
    _cache_java_names(jvm, None)
    assert "NotImportedYet" not in vars(jvm) and vars(jvm).pop("PythonPartitioner")


def test_a_session_that_is_there_is_not_changed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An existing session stays unchanged, also one of another program."""
    changed: list[SparkSession] = []
    monkeypatch.setattr(spark_session, "_install_shortcuts", changed.append)
    assert spark_session.session(cores=2).sparkContext is spark.sparkContext
    assert changed == []


def test_workers_are_forked_from_what_has_imported_braid(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parent(_: int) -> str:
        return Path(f"/proc/{os.getppid()}/cmdline").read_text()

    reported = spark.sparkContext.parallelize([0], 1).map(parent).collect()
    assert ["braid.execution.spark_daemon" in command for command in reported] == [
        sys.platform == "linux"
    ]
    assert _fork_settings("spark://somewhere:7077") == _fork_settings("yarn") == {}, (
        "Braid is sent there later"
    )
    monkeypatch.setenv("PYSPARK_PYTHON", "/elsewhere/python3")
    assert _fork_settings("local[2,4]") == {}


def test_settings_of_hadoop_do_not_say_whence_they_are(spark: SparkSession, tmp_path: Path) -> None:
    """Also after a scan, for which Spark copies the settings."""
    spark.range(1).write.parquet(str(tmp_path / "one"))
    assert spark.read.parquet(str(tmp_path / "one")).count() == 1
    settings: Any = spark._jsparkSession.sessionState().newHadoopConf()
    assert settings.size() > 1000
    assert settings.getPropertySources("io.file.buffer.size") is None
    assert settings.get("io.file.buffer.size") == "65536"


def test_a_spark_without_what_is_changed_stays_as_it_is(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(spark_session, "_SOURCES", "nothing")
    with caplog.at_level("INFO", "braid"):
        spark_session._install_shortcuts(spark)
    (reported,) = caplog.messages
    assert "without _drop_setting_sources" in reported and "NoSuchFieldException" in reported
