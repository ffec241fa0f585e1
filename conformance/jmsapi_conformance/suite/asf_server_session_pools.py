"""8.2.2, 8.2.3, 8.2.6 Server sessions and their pool, as the sample of the requirements has them (ASF-20 to ASF-46)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jmsapi import Connection, IllegalArgumentException, IllegalStateException, JMSException, Message, Queue, Session
from jmsapi.asf import SampleServerSession, SampleServerSessionPool
from jmsapi_conformance.fixtures import Connect
from jmsapi_conformance.kit import PATIENCE_MS, QUIET_MS, Recorder, eventually, finish, in_thread, must_wait, send_texts
from jmsapi_conformance.marks import requirement


class Fake:
    """A session that keeps what is done with it.

    Args:
        run: What its ``run`` does besides.
        close: What its ``close`` does besides.
    """

    def __init__(self, run: Callable[[], object] = lambda: None, close: Callable[[], object] = lambda: None) -> None:
        self.on_run = run
        self._close = close
        self.runs: list[int] = []
        self.closed = 0
        self.message_listener: Any = None

    def run(self) -> None:
        self.runs.append(threading.get_ident())
        self.on_run()

    def close(self) -> None:
        self.closed += 1
        self._close()


class Maker:
    """A connection that makes such sessions.

    Args:
        fails: Which one, counted from 1, cannot be made.
    """

    def __init__(self, fails: int = 0) -> None:
        self._fails = fails
        self.made: list[Fake] = []

    def create_session(self, mode: int) -> Fake:
        if len(self.made) + 1 == self._fails:
            raise JMSException("no more sessions")
        self.made.append(Fake())
        return self.made[-1]


def threads() -> set[threading.Thread]:
    """Return the threads that are alive."""
    return set(threading.enumerate())


@pytest.fixture
def served() -> Iterator[Callable[..., SampleServerSession]]:
    """Give a function that makes a server session of a fake session."""
    made: list[SampleServerSession] = []

    def make(session: Any) -> SampleServerSession:
        made.append(SampleServerSession(session))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def pool_of(connection: Connection) -> Iterator[Callable[..., SampleServerSessionPool]]:
    """Give a function that makes a pool."""
    made: list[SampleServerSessionPool] = []

    def make(capacity: int, listener: Any = Recorder, connection: Any = connection) -> SampleServerSessionPool:
        made.append(SampleServerSessionPool(connection, capacity, listener))
        return made[-1]

    yield make
    for one in made:
        one.close()


def run_of(pool: SampleServerSessionPool, server_session: Any) -> None:
    """Run a server session, and wait until it is back."""
    server_session.start()
    eventually(lambda: not server_session.in_use, "the run ends")


# ---- the server session


@requirement("8.2.2-1", "ASF-20")
def test_a_server_session_has_the_session_that_it_was_built_with(served: Any, session: Session) -> None:
    one = served(session)
    assert one.session is session
    assert one.session is session


@requirement("8.2.2-2", "8.2.6-1", "ASF-21", "ASF-38")
def test_start_returns_at_once_and_the_session_runs_in_another_thread(served: Any) -> None:
    going = threading.Event()
    fake = Fake(run=lambda: going.wait(PATIENCE_MS / 1000))
    one = served(fake)
    begun = time.monotonic()
    one.start()
    assert time.monotonic() - begun < PATIENCE_MS / 2000
    eventually(lambda: fake.runs, "the session is run")
    going.set()
    assert fake.runs[0] != threading.get_ident()


@requirement("ASF-23", "ASF-40")
def test_each_start_is_one_run_always_in_the_same_thread(served: Any) -> None:
    fake = Fake()
    one = served(fake)
    ran = threading.Semaphore(0)
    fake.on_run = ran.release
    for _ in range(3):
        one.start()
        assert ran.acquire(timeout=PATIENCE_MS / 1000)
    time.sleep(QUIET_MS / 1000)
    assert len(fake.runs) == 3
    assert len(set(fake.runs)) == 1


@requirement("ASF-40")
def test_a_pool_of_one_serves_all_messages_in_one_thread(
    connection: Connection, queue: Queue, other_session: Session, pool_of: Any
) -> None:
    listener = Recorder()
    pool = pool_of(1, lambda: listener)
    with connection.create_connection_consumer(queue, None, pool, 1):
        for number in range(1, 11):
            send_texts(other_session, queue, str(number))
            listener.wait_for(number)
    assert len(listener.threads) == 1


@requirement("ASF-37")
def test_each_server_session_has_a_thread_that_waits(served: Any) -> None:
    before = threads()
    fakes = [Fake(), Fake()]
    for fake in fakes:
        served(fake)
    assert len(threads() - before) == 2
    time.sleep(QUIET_MS / 1000)
    assert [fake.runs for fake in fakes] == [[], []]


@requirement("ASF-39")
def test_a_wake_up_alone_runs_nothing(served: Any) -> None:
    fake = Fake()
    one = served(fake)
    with one._changed:
        one._changed.notify_all()
    time.sleep(QUIET_MS / 1000)
    assert fake.runs == []


@requirement("ASF-43")
def test_closing_a_server_session_ends_its_thread_and_closes_its_session(served: Any) -> None:
    before = threads()
    fake = Fake()
    one = served(fake)
    one.close()
    assert (fake.closed, fake.runs, threads() - before) == (1, [], set())
    with pytest.raises(IllegalStateException):
        one.start()


@requirement("ASF-44")
def test_what_a_session_raises_when_it_is_closed_is_not_passed_on(served: Any) -> None:
    def refuse() -> None:
        raise JMSException("not now")

    before = threads()
    served(Fake(close=refuse)).close()
    assert threads() - before == set()


@requirement("ASF-42")
def test_a_run_that_raises_leaves_the_server_session_usable(pool_of: Any, caplog: pytest.LogCaptureFixture) -> None:
    maker = Maker()
    pool = pool_of(1, connection=maker)
    fake = maker.made[0]
    troubles = [ValueError("a fault")]

    def trouble() -> None:
        if troubles:
            raise troubles.pop()

    fake.on_run = trouble
    one = pool.get_server_session()
    run_of(pool, one)
    assert "a run failed" in caplog.text
    assert finish(in_thread(pool.get_server_session)) is one
    run_of(pool, one)
    assert len(fake.runs) == 2


# ---- the pool


@requirement("ASF-28", "ASF-46")
def test_a_pool_makes_all_its_sessions_and_listeners_at_once(pool_of: Any) -> None:
    made: list[object] = []

    class Listener:
        def __init__(self) -> None:
            made.append(self)

        def on_message(self, message: Message) -> None:
            raise AssertionError("nothing comes")

    maker = Maker()
    pool_of(3, Listener, maker)
    assert (len(maker.made), len(made)) == (3, 3)
    assert [fake.message_listener for fake in maker.made] == made


@requirement("ASF-29")
def test_its_sessions_acknowledge_by_themselves_and_have_a_listener_each(pool_of: Any) -> None:
    pool = pool_of(2)
    sessions = [pool.get_server_session().session for _ in range(2)]
    assert [(one.acknowledge_mode, one.transacted) for one in sessions] == [(Session.AUTO_ACKNOWLEDGE, False)] * 2
    assert sessions[0].message_listener is not sessions[1].message_listener
    assert all(isinstance(one.message_listener, Recorder) for one in sessions)


@requirement("ASF-30")
def test_when_a_session_cannot_be_made_those_before_it_are_closed(pool_of: Any) -> None:
    before = threads()
    maker = Maker(fails=3)
    with pytest.raises(JMSException, match="no more sessions"):
        pool_of(3, connection=maker)
    assert [fake.closed for fake in maker.made] == [1, 1]
    assert threads() - before == set()
    maker = Maker()
    turns = iter([Recorder()])
    with pytest.raises(JMSException) as caught:
        pool_of(2, lambda: next(turns), maker)
    assert isinstance(caught.value.__cause__, StopIteration)
    assert [fake.closed for fake in maker.made] == [1, 1]


@requirement("ASF-28")
@pytest.mark.parametrize("capacity", [0, -1, True, "3", None])
def test_a_capacity_that_is_no_number_of_at_least_one_is_refused(pool_of: Any, capacity: Any) -> None:
    with pytest.raises(IllegalArgumentException):
        pool_of(capacity)


@requirement("8.2.3-1", "ASF-24", "ASF-31")
def test_a_pool_gives_the_first_that_is_not_in_use(pool_of: Any) -> None:
    pool = pool_of(3)
    first, second = pool.get_server_session(), pool.get_server_session()
    assert first is not second
    run_of(pool, first)
    assert pool.get_server_session() is first
    assert pool.get_server_session() not in (first, second)


@requirement("8.2.3-3", "8.2.6-2", "ASF-25", "ASF-26", "ASF-41")
def test_a_pool_without_a_free_one_waits_until_one_has_run(pool_of: Any) -> None:
    pool = pool_of(1)
    one = pool.get_server_session()
    assert one.in_use
    waiting = must_wait(pool.get_server_session)
    one.start()
    assert finish(waiting) is one


@requirement("ASF-32")
def test_no_two_callers_get_the_same_one(pool_of: Any) -> None:
    pool = pool_of(8)
    together = threading.Barrier(8)

    def get() -> object:
        together.wait(PATIENCE_MS / 1000)
        return pool.get_server_session()

    got = [finish(one) for one in [in_thread(get) for _ in range(8)]]
    assert len(set(map(id, got))) == 8


@requirement("ASF-33")
def test_one_that_comes_back_wakes_one_who_waits(pool_of: Any) -> None:
    pool = pool_of(1)
    one = pool.get_server_session()
    waiting = [must_wait(pool.get_server_session), must_wait(pool.get_server_session)]
    one.start()
    eventually(lambda: sum(each.done() for each in waiting) == 1, "one of them gets it")
    time.sleep(QUIET_MS / 1000)
    assert sum(each.done() for each in waiting) == 1
    one.start()
    assert [finish(each) for each in waiting] == [one, one]


@requirement("ASF-34", "ASF-35")
def test_a_closed_pool_says_so_to_who_waits_and_to_who_comes(pool_of: Any) -> None:
    pool = pool_of(1)
    pool.get_server_session()
    waiting = must_wait(pool.get_server_session)
    begun = time.monotonic()
    pool.close()
    with pytest.raises(JMSException, match="shut down"):
        finish(waiting, PATIENCE_MS / 2)
    assert time.monotonic() - begun < PATIENCE_MS / 2000
    with pytest.raises(JMSException, match="shut down"):
        pool.get_server_session()


@requirement("ASF-36")
def test_closing_a_pool_closes_every_session_and_ends_every_thread(connect: Connect, pool_of: Any) -> None:
    maker = Maker()
    before = threads()
    pool = pool_of(3, connection=maker)
    assert len(threads() - before) == 3
    pool.close()
    pool.close()
    assert all(fake.closed for fake in maker.made)
    assert threads() - before == set()
