"""Pools and server sessions of the tests' own, which keep what happens to them. They inherit from nothing (ASF-4)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from jmsapi import Connection, Message, Queue, Session
from jmsapi.asf import SampleServerSessionPool
from jmsapi_conformance.kit import PATIENCE_MS, QUIET_MS, Recorder, send_texts

__all__ = ["TEXTS", "Nobody", "RecordingPool", "RecordingServerSession", "duck", "loaded", "serving"]

TEXTS = [str(number) for number in range(7)]


class RecordingServerSession:
    """A server session with a thread for each run.

    Args:
        session: Of the connection that dispatches.
        log: Gets a word for each thing that happens.
    """

    def __init__(self, session: Session, log: list[str]) -> None:
        self._session = session
        self._log = log
        self.free = threading.Event()
        self.free.set()
        self.calls: list[int] = []
        """How many messages each run gave to the listener."""
        self._n = 0
        inner: Any = session.message_listener

        def counting(message: Message) -> None:
            self._n += 1
            log.append("on_message")
            if inner is not None:
                getattr(inner, "on_message", inner)(message)

        session.message_listener = counting

    @property
    def session(self) -> Session:
        """Give the session."""
        self._log.append("session")
        return self._session

    def start(self) -> None:
        """Run it in a thread."""
        self._log.append("start")
        threading.Thread(target=self._run, name="conformance-server-session", daemon=True).start()

    def _run(self) -> None:
        self._n = 0
        try:
            self._log.append("run")
            self._session.run()
            self._log.append("ran")
        finally:
            self.calls.append(self._n)
            self.free.set()


class RecordingPool:
    """A pool that makes a server session for each call, or goes on with a fixed number of them.

    Args:
        connection: Makes the sessions.
        listener: Of all sessions.
        capacity: How many; None for a new one each time.
        mode: Of the sessions.
    """

    def __init__(
        self,
        connection: Connection,
        listener: Any,
        capacity: int | None = None,
        mode: int = Session.AUTO_ACKNOWLEDGE,
        make: Callable[[int], Session] | None = None,
    ) -> None:
        self._make = make or connection.create_session
        self._listener = listener
        self._mode = mode
        self._turn = threading.Lock()
        self.log: list[str] = []
        self.made: list[RecordingServerSession] = []
        self._fixed = capacity is not None
        for _ in range(capacity or 0):
            self.made.append(self._new())

    def _new(self) -> RecordingServerSession:
        session = self._make(self._mode)
        session.message_listener = self._listener
        return RecordingServerSession(session, self.log)

    def get_server_session(self) -> RecordingServerSession:
        """Give one that is free, waiting for it."""
        self.log.append("get")
        with self._turn:
            if not self._fixed:
                self.made.append(self._new())
                return self.made[-1]
            while True:
                for one in self.made:
                    if one.free.wait(0.001):
                        one.free.clear()
                        return one

    @property
    def calls(self) -> list[int]:
        """How many messages each run has had, in any order; runs without any left out."""
        return [n for one in self.made for n in one.calls if n]


@contextmanager
def serving(connection: Connection, destination: Any, listener: Any = None, **more: Any) -> Generator[Recorder]:
    """Have a destination served by a ready-made pool.

    Args:
        connection: Makes everything.
        destination: What to consume.
        listener: Makes the listeners; without one a recorder is shared.
        more: ``selector``, ``capacity``, ``max_messages``, ``mode``.
    Yields:
        The recorder that is shared, if any.
    """
    recorder = Recorder()
    make = (lambda: recorder) if listener is None else listener
    mode = more.get("mode", Session.AUTO_ACKNOWLEDGE)
    with (
        SampleServerSessionPool(connection, more.get("capacity", 2), make, mode) as pool,
        connection.create_connection_consumer(destination, more.get("selector"), pool, more.get("max_messages", 5)),
    ):
        yield recorder


def duck(thing: object) -> Any:
    """Pass off an object that has what is needed and inherits from nothing."""
    return thing


class Nobody:
    """A pool that is never asked."""

    def get_server_session(self) -> Any:
        raise AssertionError("nobody asks")


@contextmanager
def loaded(connection: Connection, queue: Queue, session: Session, texts: list[str], sender: Session) -> Generator[None]:
    """Have messages loaded into a session that nobody runs but the test."""
    done = threading.Event()

    class Server:
        def start(self) -> None:
            done.set()

    class Pool:
        def get_server_session(self) -> Any:
            server.session = session
            return server

    server: Any = Server()
    connection.stop()
    send_texts(sender, queue, *texts)
    with connection.create_connection_consumer(queue, None, duck(Pool()), len(texts)):
        # Let all of them come before the first is taken.
        time.sleep(QUIET_MS / 1000)
        connection.start()
        assert done.wait(PATIENCE_MS / 1000)
        yield
