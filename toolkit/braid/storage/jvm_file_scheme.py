"""Local file system under a scheme of its own, for files that Spark's JVM writes for Braid.

Hadoop's local file system adds a checksum file to each file. Without Hadoop's native library, which
PySpark lacks, it also starts a process ``chmod`` for each new file and folder: 6 ms, four times in
a micro-batch of two streams. Files of the scheme ``braid-file`` need neither. The scheme ``file``
stays Hadoop's, so other queries of the session are not affected.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEME = "braid-file"
_CLASS = "BraidLocalFiles"
_SOURCE = """
public class BraidLocalFiles extends org.apache.hadoop.fs.RawLocalFileSystem {
  @Override
  public java.net.URI getUri() {
    return java.net.URI.create("braid-file:///");
  }

  @Override
  public String getScheme() {
    return "braid-file";
  }

  @Override
  public void setPermission(
      org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission permission)
      throws java.io.IOException {
    java.nio.file.Path file = pathToFile(path).toPath();
    int mode = permission.toShort();
    if (java.nio.file.Files.isDirectory(file)) {  // keeps setuid and setgid, as by chmod
      mode |= ((Integer) java.nio.file.Files.getAttribute(file, "unix:mode")).intValue() & 06000;
    }
    java.nio.file.Files.setAttribute(file, "unix:mode", Integer.valueOf(mode));
  }
}
"""


def register_private_file_system(jvm: Any, settings: Any) -> None:
    """Register the scheme in this JVM.

    Spark's own compiler compiles the class in 0.15 s. Hadoop keeps one object for all files of a
    scheme. No setting names the class, since workers on other machines would look for it.
    """
    if os.name != "posix":
        return
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(_SOURCE)
    configuration = jvm.org.apache.hadoop.conf.Configuration(settings)
    configuration.setClassLoader(compiler.getClassLoader())
    configuration.set(f"fs.{SCHEME}.impl", _CLASS)
    _open_file_system(jvm, configuration)


def make_own_path(spark: SparkSession, path: Path) -> str:
    """Return a path for Spark to write to, with the scheme if Spark is one JVM that knows it.

    Never use it for a path from which Spark reads a stream, since Spark's logs record those.
    """
    context: Any = spark.sparkContext
    if not re.match(r"local(\[|$)", context.master):
        return str(path)
    try:
        _open_file_system(context._jvm, context._jsc.hadoopConfiguration())
    except Py4JError:  # the session was not created by Braid
        return str(path)
    return f"{SCHEME}:{path.absolute()}"


def _open_file_system(jvm: Any, settings: Any) -> Any:
    return jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI(f"{SCHEME}:///"), settings)
