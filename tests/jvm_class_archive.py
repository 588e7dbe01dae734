"""Write the classes that Spark loads in a small join to a JVM class archive.

Usage: ``python jvm_class_archive.py FILE``. A JVM of the tests that uses the archive starts in two
thirds of the time.
"""

from __future__ import annotations

import os
import sys
import tempfile


def main(file: str) -> None:
    short = "-XX:TieredStopAtLevel=1 -Xlog:disable -Xlog:all=error:stderr"
    os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:ArchiveClassesAtExit={file} {short}"
    import driver
    from braid.spark_session import session
    from braid.stream_join import StreamJoin
    from oracle import create_frames
    from scatter import Scatter

    spark = session(cores=2)
    with tempfile.TemporaryDirectory() as folder:
        join = StreamJoin(
            create_frames(spark, driver.STREAMS), driver.ON, Scatter(), executor="spark"
        )
        run = join.start(folder, batches=2)
        run.awaitTermination()
        run.results().count()
        jvm = spark.sparkContext._gateway.proc
        spark.stop()
    jvm.stdin.close()
    jvm.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
