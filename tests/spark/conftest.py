"""One small Spark session for all tests that need one, and queues of their own on real brokers."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

import jmsapi
from jmsapi_conformance.brokers import KINDS, Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The model and the mutants lie beside the tests.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory, leave_out: Callable[[str], NoReturn]) -> Iterator[SparkSession]:
    """Give the session that all tests of a worker share: two cores, no web page, a task may fail twice."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        leave_out("Spark needs Java, which is not here")
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    import jmsapi.spark

    place = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = str(spark_home(place / "home"))
    os.environ["PYTHONHASHSEED"] = "0"
    # Workers inherit these: where the hook for crashes lies, and the file that says when one is due.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    os.environ["JMSAPI_SPARK_ON_STEP"] = "crash_hook:on_step"
    os.environ["CRASH_AT"] = str(place / "crash_at")
    session = (
        SparkSession.builder.master("local[2,3]")
        .appName("jmsapi tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", str(place))
        .config("spark.sql.warehouse.dir", str(place / "warehouse"))
        .config("spark.sql.session.timeZone", "UTC")
        # A busy machine: worker and JVM may be slow to find each other.
        .config("spark.python.authenticate.socketTimeout", "120s")
        # Short programs: compiling them well costs more than it saves.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={place} -XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    jmsapi.spark.register(session)
    yield session
    gateway = session.sparkContext._gateway
    session.stop()
    # The machine goes as well: its sockets would count as leaks of tests that come later.
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


@pytest.fixture
def crash_at() -> Iterator[Callable[[str, int], Path]]:
    """Give a function that lets the first process die that comes to a step of a claim; it returns the file that goes then."""
    file = Path(os.environ["CRASH_AT"])

    def arm(step: str, claim: int) -> Path:
        file.write_text(f"{step} {claim}", encoding="utf-8")
        return file

    yield arm
    file.unlink(missing_ok=True)


class Place:
    """A queue of its own on a broker, and the options that lead to it."""

    def __init__(self, url: str, broker: Broker) -> None:
        self.full_url = url
        scheme, _, rest = url.partition("://")
        account, _, where = rest.rpartition("@")
        self.user, _, self.password = account.partition(":")
        self.queue = f"spark.{uuid.uuid4().hex}"
        self.broker = broker
        self.options: dict[str, str] = {
            "url": f"{scheme}://{where}",
            "username": self.user,
            "password": self.password,
            "queue": self.queue,
        }

    def send(self, *bodies: Any, **properties: Any) -> None:
        """Send bodies to the queue, as one transaction where there are any."""
        with jmsapi.connection_factory(self.full_url).create_context() as context:
            producer = context.create_producer()
            for name, value in properties.items():
                producer.set_property(name, value)
            queue = context.create_queue(self.queue)
            for body in bodies:
                producer.send(queue, body)

    def left(self, expected: int = 0) -> list[str]:
        """Take what is on the queue, waiting long for as many as are expected; for other kinds than text the kind."""
        found: list[str] = []
        with jmsapi.connection_factory(self.full_url).create_context() as context:
            consumer = context.create_consumer(context.create_queue(self.queue))
            while (message := consumer.receive(20_000 if len(found) < expected else 500)) is not None:
                text = isinstance(message, jmsapi.TextMessage)
                found.append((message.get_body(str) or "") if text else type(message).__name__)
        return found


@pytest.fixture
def classic_place(classic: Broker) -> Place:
    """Give a queue on Classic over STOMP."""
    return Place(classic.url("stomp"), classic)


@pytest.fixture
def artemis_place(artemis: Broker) -> Place:
    """Give a queue on Artemis over AMQP."""
    return Place(artemis.url("amqp"), artemis)


@pytest.fixture
def rabbitmq_place(rabbitmq: Broker) -> Place:
    """Give a queue on RabbitMQ over STOMP."""
    return Place(rabbitmq.url("stomp"), rabbitmq)


@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.broker) for kind in KINDS])
def each_place(request: pytest.FixtureRequest) -> Place:
    """Give a queue on each broker in turn."""
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found


@pytest.fixture(params=[pytest.param("classic", marks=pytest.mark.broker), pytest.param("artemis", marks=pytest.mark.broker)])
def place(request: pytest.FixtureRequest) -> Place:
    """Give a queue on Classic over STOMP, then one on Artemis over AMQP."""
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found
