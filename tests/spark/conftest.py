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
    from spark_session import end_session, new_session

    session = new_session(tmp_path_factory.mktemp("spark"))
    yield session
    end_session(session)


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


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """An empty bucket of an emulator, which the environment names to fsspec."""
    import fsspec
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }.items():
            patch.setenv(name, value)
        # Instances that are kept know the emulator of an earlier module.
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        # What the emulator keeps outlives the server: each module has a bucket of its own.
        bucket = f"jmsapi-tests-{uuid.uuid4().hex}"
        fsspec.filesystem("s3", use_listings_cache=False).mkdir(bucket)
        yield f"s3://{bucket}"
    server.stop()
