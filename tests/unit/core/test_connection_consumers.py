"""What ends a connection consumer from outside is told once; what its pool raises does not end it."""

from __future__ import annotations

import threading
import uuid

import pytest

import jmsapi
import jmsapi_inproc
from jmsapi import JMSException, ServerSession, ServerSessionPool, Session
from jmsapi.asf import SampleServerSession, SampleServerSessionPool
from jmsapi_conformance.kit import PATIENCE_MS


def test_a_lost_link_is_told_once_and_ends_the_thread_of_a_connection_consumer() -> None:
    name = f"lost-{uuid.uuid4().hex}"
    told: list[JMSException] = []
    heard = threading.Event()

    def hear(error: JMSException) -> None:
        told.append(error)
        heard.set()

    before = set(threading.enumerate())
    with jmsapi.connection_factory(f"inproc://{name}").create_connection() as connection:
        connection.exception_listener = hear
        session = connection.create_session()
        pool = SampleServerSessionPool(connection, 1, lambda: print)
        consumer = connection.create_connection_consumer(session.create_queue("q"), None, pool, 1)
        connection.start()
        (lending,) = [thread for thread in set(threading.enumerate()) - before if thread.name.endswith("-lending")]
        jmsapi_inproc.discard(name)
        lending.join(10)
        assert not lending.is_alive()
        assert heard.wait(10)
        consumer.close()
        pool.close()
    assert len(told) == 1


class Raising(ServerSessionPool, ServerSession):
    """A pool of one server session, of which one member raises once; also that server session."""

    def __init__(self, inner: ServerSession, where: str, what: type[BaseException]) -> None:
        self._inner = inner
        self._where: str | None = where
        self._what = what
        self.started = 0

    def _raise_once(self, where: str) -> None:
        if where == self._where:
            self._where = None
            raise self._what

    def get_server_session(self) -> ServerSession:
        """Give the one there is."""
        self._raise_once("get")
        return self

    @property
    def session(self) -> Session:
        """The session."""
        self._raise_once("session")
        return self._inner.session

    def start(self) -> None:
        """Start it."""
        self.started += 1
        self._raise_once("start")
        self._inner.start()


@pytest.mark.parametrize("where", ["get", "session", "start"])
@pytest.mark.parametrize("what", [SystemExit, KeyboardInterrupt, GeneratorExit, ValueError])
def test_a_pool_may_raise_anything_and_is_told_of_and_asked_again(where: str, what: type[BaseException]) -> None:
    name = f"raising-{uuid.uuid4().hex}"
    told: list[JMSException] = []
    got = threading.Event()
    with jmsapi.connection_factory(f"inproc://{name}").create_connection() as connection:
        connection.exception_listener = told.append
        session, server = connection.create_session(), connection.create_session()
        server.message_listener = lambda _: got.set()
        inner = SampleServerSession(server)
        pool = Raising(inner, where, what)
        queue = session.create_queue("q")
        consumer = connection.create_connection_consumer(queue, None, pool, 1)
        connection.start()
        session.create_producer(queue).send(session.create_text_message("text"))
        assert got.wait(PATIENCE_MS / 1000)
        consumer.close()
        inner.close()
    assert [error.error_code for error in told] == ["server-session-pool"]
    assert isinstance(told[0].__cause__, what)
    # One that was had and not loaded is started nevertheless: it goes back to its pool when it has run.
    assert pool.started == (1 if where == "get" else 2)
    jmsapi_inproc.discard(name)


@pytest.mark.parametrize("what", [SystemExit, KeyboardInterrupt, GeneratorExit, ValueError])
def test_the_thread_of_a_server_session_outlives_what_a_run_raises(what: type[BaseException]) -> None:
    class OneRun:
        runs = 0

        def run(self) -> None:
            self.runs += 1
            if self.runs == 1:
                raise what
            ran.set()

        def close(self) -> None:
            closed.set()

    ran, closed, back = threading.Event(), threading.Event(), threading.Event()

    class Told:
        def finished(self, _: SampleServerSession) -> None:
            back.set()

    one = SampleServerSession(OneRun(), Told())  # type: ignore[arg-type]
    one.start()
    assert back.wait(PATIENCE_MS / 1000)
    one.start()
    assert ran.wait(PATIENCE_MS / 1000)
    one.close()
    assert closed.is_set()


def test_closing_does_not_wait_for_a_server_session_that_was_never_run(caplog: pytest.LogCaptureFixture) -> None:
    name = f"never-run-{uuid.uuid4().hex}"
    started = threading.Event()

    class Idle(ServerSession, ServerSessionPool):
        """A server session that is started and does nothing."""

        def get_server_session(self) -> ServerSession:
            return self

        @property
        def session(self) -> Session:
            return server

        def start(self) -> None:
            started.set()

    with jmsapi.connection_factory(f"inproc://{name}").create_connection() as connection:
        session, server = connection.create_session(), connection.create_session()
        server.message_listener = print
        queue = session.create_queue("q")
        consumer = connection.create_connection_consumer(queue, None, Idle(), 1)
        connection.start()
        session.create_producer(queue).send(session.create_text_message("text"))
        assert started.wait(PATIENCE_MS / 1000)
        consumer.close()
        assert not caplog.records
        message = session.create_consumer(queue).receive(PATIENCE_MS)
        assert message is not None and not message.jms_redelivered
    jmsapi_inproc.discard(name)
