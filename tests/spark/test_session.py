"""What the session's JVM does beside running queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from braid.spark_session import _set_permissions_here
from pyspark.sql import SparkSession


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_local_files_get_their_permissions_without_a_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As `chmod` sets them; the bit that Java does not know, too."""
    hadoop: Any = spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]
    permission = hadoop.permission.FsPermission
    settings = spark._jsparkSession.sessionState().newHadoopConf()
    files = hadoop.FileSystem.get(spark._jvm.java.net.URI("file:///"), settings)  # type: ignore[union-attr]
    assert files.getClass().getName() == "BraidLocalFiles"

    files.create(hadoop.Path(str(tmp_path / "made"))).close()
    assert mode(tmp_path / "made") == 0o644
    for bits in (0o400, 0o751, 0o1777):
        path = tmp_path / f"{bits:o}"
        files.mkdirs(hadoop.Path(str(path)))
        files.setPermission(hadoop.Path(str(path)), permission(f"{bits:o}"))
        assert mode(path) == bits


def test_files_of_a_session_that_another_made_stay(spark: SparkSession) -> None:
    hadoop: Any = spark._jvm.org.apache.hadoop  # type: ignore[union-attr]
    place = spark._jvm.java.net.URI("file:///")  # type: ignore[union-attr]
    settings = spark._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    theirs = hadoop.conf.Configuration(settings)
    theirs.set("fs.file.impl", "org.apache.hadoop.fs.LocalFileSystem")

    def named() -> str:
        return str(hadoop.fs.FileSystem.get(place, settings).getClass().getSimpleName())

    hadoop.fs.FileSystem.get(place, settings).close()
    hadoop.fs.FileSystem.get(place, theirs)
    try:
        _set_permissions_here(spark)
        assert named() == "LocalFileSystem"
    finally:
        hadoop.fs.FileSystem.get(place, settings).close()
        _set_permissions_here(spark)
    assert named() == "BraidLocalFiles"


def test_settings_of_hadoop_do_not_say_whence_they_are(spark: SparkSession) -> None:
    """Nor after a scan, for which Spark copies them."""
    spark.range(1).count()
    settings: Any = spark._jsparkSession.sessionState().newHadoopConf()
    assert settings.size() > 1000
    assert settings.getPropertySources("io.file.buffer.size") is None
    assert settings.get("io.file.buffer.size") == "65536"
