"""A small Spark session for tests: two cores, no web page, workers that start fast."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def new_session(place: Path, more: Mapping[str, str] | None = None) -> Any:
    """Start Spark with all it writes in one folder.

    Args:
        place: The folder. Crashes are told in its ``crash_at``; see ``crash_hook``.
        more: Further settings.
    """
    from pyspark.sql import SparkSession

    import jmsapi.spark

    (place / "crash_at").mkdir(exist_ok=True)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = str(spark_home(place / "home"))
    os.environ["PYTHONHASHSEED"] = "0"
    # Workers inherit these.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    os.environ["JMSAPI_SPARK_ON_STEP"] = "crash_hook:on_step"
    os.environ["CRASH_AT"] = str(place / "crash_at")
    builder: Any = SparkSession.builder
    # A task may fail twice.
    builder = builder.master("local[2,3]").appName("jmsapi tests")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(place),
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        # A busy machine: worker and JVM may be slow to find each other.
        "spark.python.authenticate.socketTimeout": "120s",
        # Short programs: compiling them well costs more than it saves.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={place} -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        **(more or {}),
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    jmsapi.spark.register(session)
    return session


def end_session(session: Any) -> None:
    """Stop Spark, its machine as well: its sockets would count as leaks of tests that come later."""
    from pyspark import SparkContext

    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)
    SparkContext._gateway = None
    SparkContext._jvm = None


def spark_home(home: Path) -> Path:
    """Make a home for Spark whose workers start fast.

    Spark gives its workers PySpark as an archive of sources, which each compiles again: five times the processor time, and on
    a busy machine more than the ten seconds that Spark waits for a worker. A folder in the archive's place has it compiled.
    """
    import pyspark

    package = Path(pyspark.__file__).parent
    libraries = home / "python" / "lib"
    libraries.mkdir(parents=True)
    for entry in package.iterdir():
        if entry.name != "python":
            (home / entry.name).symlink_to(entry)
    for entry in (package / "python" / "lib").iterdir():
        if entry.name != "pyspark.zip":
            (libraries / entry.name).symlink_to(entry)
    (libraries / "pyspark.zip").mkdir()
    (libraries / "pyspark.zip" / "pyspark").symlink_to(package)
    return home
