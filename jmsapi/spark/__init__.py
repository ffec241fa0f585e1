"""Read and write JMS through PySpark. Needs the extra ``spark``; importing this module loads neither PySpark nor Arrow.

import jmsapi.spark

jmsapi.spark.register(spark)
orders = (spark.readStream.format("jms").option("url", "stomp://localhost:61613").option("queue", "ORDERS")
          .option("stagingLocation", "/data/orders-staging").load())
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING

from jmsapi.errors import JMSException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register", "release"]


def register(spark: SparkSession, name: str = "jms") -> None:
    """Make ``format("jms")`` known to a session, with its default parallelism as that of the source.

    Not needed where ``pyspark_jms`` is installed, which Spark finds by itself; but this says plainly what is missing.

    Args:
        spark: The session.
        name: The name of the format.
    Raises:
        JMSException: ``missing-extra``: PySpark is older than 4.0, PyArrow is missing here, or the workers' Python has neither.
    Threads: any.
    """
    import pyspark

    release = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    if release < (4, 0):
        raise JMSException(
            f"jmsapi.spark needs PySpark 4.0 or newer, 4.2 for streams; this is {pyspark.__version__}, whose Spark knows no data "
            "sources in Python",
            "missing-extra",
        )
    if importlib.util.find_spec("pyarrow") is None:
        raise JMSException("jmsapi.spark needs PyArrow: pip install 'jmsapi[spark]'", "missing-extra")
    parallelism = _parallelism(spark)
    from jmsapi.spark.source import JmsDataSource

    class Registered(JmsDataSource):
        default_parallelism = parallelism

        @classmethod
        def name(cls) -> str:
            return name

    try:
        spark.dataSource.register(Registered)
    except Exception as error:
        # PySpark 4.0 lets nobody register what pyspark_jms has made known already, which is the same but for the parallelism.
        if name != "jms" or "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise


def _parallelism(spark: SparkSession) -> int:
    """Return how many tasks the session runs at once, as far as it tells; check its workers' Python where they run here."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        # A client of Spark Connect: context and workers are the server's, which needs jmsapi installed as they do.
        return int(spark.conf.get("spark.default.parallelism", None) or spark.conf.get("spark.cores.max", None) or 2)
    context = spark.sparkContext
    if (context.master or "").startswith("local"):
        _check_python(context.pythonExec)
    return context.defaultParallelism


def release(staging_location: str, load_id: str) -> None:
    """Delete the staged rows of a load with ``readMode=consume``, once they are where they should be.

    Args:
        staging_location: As in the option ``stagingLocation``.
        load_id: As in the option ``loadId``. The name cannot be used again.
    Raises:
        JMSException: ``bad-staging``: no such load there, or one that is not over: what it has consumed is nowhere else. Nothing
            is made or deleted then.
    Threads: any.
    """
    from jmsapi.spark.loads import release_load

    release_load(staging_location, load_id)


def _check_python(worker: str) -> None:
    """Check that the Python which Spark starts for its workers on this machine is one that has everything."""
    program = "import sys, jmsapi, pyarrow, pyspark; print(*sys.version_info[:2])"
    try:
        told = subprocess.run([worker, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JMSException(f"the workers' Python, {worker}, cannot be run: {error}", "missing-extra") from error
    if told.returncode or told.stdout.split() != [str(part) for part in sys.version_info[:2]]:
        why = (told.stderr.strip().splitlines() or [f"it is Python {'.'.join(told.stdout.split())}"])[-1]
        raise JMSException(
            f"the workers' Python, {worker}, is not fit ({why}): set PYSPARK_PYTHON to one that has jmsapi, such as "
            f"{sys.executable}, before the session is made",
            "missing-extra",
        )
