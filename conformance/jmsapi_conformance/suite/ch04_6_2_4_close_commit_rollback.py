"""4.6.2.4 Asynchronous send: close, commit or rollback."""

import threading
from collections.abc import Callable

import pytest

from jmsapi import (
    Connection,
    IllegalStateException,
    IllegalStateRuntimeException,
    JMSContext,
    Message,
    Queue,
    Session,
)
from jmsapi_conformance.interceptor import Interceptor
from jmsapi_conformance.kit import (
    PATIENCE_MS,
    Completions,
    expect_nothing,
    finish,
    must_wait,
    outcome_of,
    receive_texts,
)
from jmsapi_conformance.marks import needs, requirement

CLOSES = pytest.mark.parametrize("what", ["producer", "session", "connection", "context"])
BOTH_CALLS = pytest.mark.parametrize("refused", [False, True], ids=["on_completion", "on_exception"])
ENDS = pytest.mark.parametrize("end", ["commit", "rollback"])


@requirement("4.6.2.4-1")
@CLOSES
def test_close_waits_for_the_answers_to_sends(interceptor: Interceptor, queue: Queue, what: str) -> None:
    completions = Completions()
    sender = Sender(interceptor, queue)
    interceptor.hold()
    messages = sender.send(what, completions, 3)
    closing = must_wait(sender.closer(what))
    assert (completions.completed, completions.failed) == ([], [])
    interceptor.let_go()
    finish(closing)
    assert completions.completed == messages
    assert completions.failed == []


@requirement("4.6.2.4-1")
@CLOSES
def test_close_waits_for_the_completion_listeners_to_return(interceptor: Interceptor, queue: Queue, what: str) -> None:
    running, going = threading.Event(), threading.Event()
    returned: list[Message] = []

    def hold(message: Message) -> None:
        running.set()
        going.wait(PATIENCE_MS / 1000)
        returned.append(message)

    sender = Sender(interceptor, queue)
    messages = sender.send(what, Completions(then=hold), 3)
    assert running.wait(PATIENCE_MS / 1000)
    # Who closes what somebody else is closing already waits too.
    closing = [must_wait(sender.closer(what)), must_wait(sender.closer(what))]
    going.set()
    for close in closing:
        finish(close)
    assert returned == messages


@requirement("4.6.2.4-2")
@needs("transactions")
@ENDS
@pytest.mark.parametrize("kind", ["session", "context"])
def test_commit_and_rollback_wait_for_sends_and_their_listeners(
    interceptor: Interceptor, queue: Queue, other_session: Session, kind: str, end: str
) -> None:
    completions = Completions()
    consumer = other_session.create_consumer(queue)
    interceptor.hold()
    if kind == "session":
        session = interceptor.connect().create_session(Session.SESSION_TRANSACTED)
        producer = session.create_producer(queue)
        for number in range(50):
            producer.send(session.create_text_message(str(number)), completion_listener=completions)
        _end_waiting(interceptor, getattr(session, end))
    else:
        context = interceptor.context(JMSContext.SESSION_TRANSACTED)
        sender = context.create_producer().set_async(completions)
        for number in range(50):
            sender.send(queue, str(number))
        _end_waiting(interceptor, getattr(context, end))
    assert len(completions.completed) == 50
    assert completions.failed == []
    if end == "commit":
        assert receive_texts(consumer, 50) == [str(number) for number in range(50)]
    expect_nothing(consumer, other_session, queue)


def _end_waiting(interceptor: Interceptor, end: Callable[[], None]) -> None:
    """End a transaction with sends under way, and see that this waits for their answers.

    Where an emulation keeps the sends of a transaction until its commit, a rollback has none under way, and nothing to wait for.
    """
    if "send" not in interceptor.calls and end.__name__ == "rollback":
        end()
        assert "send" not in interceptor.calls
        return
    ending = must_wait(end)
    interceptor.let_go()
    finish(ending)


@requirement("4.6.2.4-2")
@needs("transactions")
@ENDS
@pytest.mark.parametrize("kind", ["session", "context"])
def test_commit_and_rollback_return_when_the_last_completion_listener_has(
    interceptor: Interceptor, queue: Queue, kind: str, end: str
) -> None:
    running, going = threading.Event(), threading.Event()
    returned: list[Message] = []

    def hold(message: Message) -> None:
        if returned:
            running.set()
            going.wait(PATIENCE_MS / 1000)
        returned.append(message)

    completions = Completions(then=hold)
    if kind == "session":
        session = interceptor.connect().create_session(Session.SESSION_TRANSACTED)
        producer = session.create_producer(queue)
        for number in range(2):
            producer.send(session.create_text_message(str(number)), completion_listener=completions)
        ending = must_wait(getattr(session, end))
    else:
        context = interceptor.context(JMSContext.SESSION_TRANSACTED)
        sender = context.create_producer().set_async(completions)
        for number in range(2):
            sender.send(queue, str(number))
        ending = must_wait(getattr(context, end))
    assert running.wait(PATIENCE_MS / 1000)
    assert len(returned) == 1
    going.set()
    finish(ending)
    assert len(returned) == 2


@requirement("4.6.2.4-3")
@CLOSES
def test_sends_under_way_finish_normally_when_close_is_called(
    interceptor: Interceptor, queue: Queue, other_session: Session, what: str
) -> None:
    completions = Completions()
    sender = Sender(interceptor, queue)
    messages = sender.send(what, completions, 100)
    sender.closer(what)()
    assert completions.completed == messages
    assert completions.failed == []
    assert receive_texts(other_session.create_consumer(queue), 100) == [str(number) for number in range(100)]


@requirement("4.6.2.4-4")
@CLOSES
@BOTH_CALLS
def test_a_completion_listener_may_not_close_its_own_objects(
    interceptor: Interceptor, queue: Queue, other_session: Session, what: str, refused: bool
) -> None:
    sender = Sender(interceptor, queue)
    outcomes: list[BaseException | None] = []
    completions = Completions(then=lambda _: outcomes.append(outcome_of(sender.closer(what))))
    interceptor.refuse(lambda number: refused and number == 0)
    sender.send(what, completions, 1)
    completions.wait_for(1)
    sender.send(what, completions, 1)
    sender.closer(what)()
    assert (len(completions.failed), len(completions.completed)) == ((1, 1) if refused else (0, 2))
    expected = IllegalStateRuntimeException if what == "context" else IllegalStateException
    assert [type(outcome) for outcome in outcomes] == [expected, expected]


@requirement("4.6.2.4-5")
@needs("transactions")
@ENDS
@BOTH_CALLS
def test_a_completion_listener_may_not_end_the_transaction_of_its_own_session(
    interceptor: Interceptor, queue: Queue, other_session: Session, end: str, refused: bool
) -> None:
    outcomes: list[BaseException | None] = []
    session = interceptor.connect().create_session(Session.SESSION_TRANSACTED)
    consumer = other_session.create_consumer(queue)
    completions = Completions(then=lambda _: outcomes.append(outcome_of(getattr(session, end))))
    interceptor.refuse(lambda number: refused and number == 1)
    producer = session.create_producer(queue)
    producer.send(session.create_text_message("0"), completion_listener=Completions())
    producer.send(session.create_text_message("1"), completion_listener=completions)
    if refused and "send" not in interceptor.calls:
        session.rollback()
        pytest.skip("the sends of a transaction are kept until its commit, so none is refused before")
    completions.wait_for(1)
    expect_nothing(consumer, other_session, queue)
    # The transaction is unchanged: it is open, and has its first message.
    if refused:
        session.rollback()
    else:
        session.commit()
        assert receive_texts(consumer, 2) == ["0", "1"]
    assert [type(outcome) for outcome in outcomes] == [IllegalStateException]
    assert len(completions.failed) == refused
    expect_nothing(consumer, other_session, queue)


@requirement("4.6.2.4-5")
@needs("transactions")
@ENDS
def test_a_completion_listener_may_not_end_the_transaction_of_its_own_context(
    interceptor: Interceptor, queue: Queue, other_session: Session, end: str
) -> None:
    outcomes: list[BaseException | None] = []
    with interceptor.factory().create_context(JMSContext.SESSION_TRANSACTED) as context:
        completions = Completions(then=lambda _: outcomes.append(outcome_of(getattr(context, end))))
        context.create_producer().set_async(completions).send(queue, "text")
        completions.wait_for(1)
        context.commit()
    assert [type(outcome) for outcome in outcomes] == [IllegalStateRuntimeException]
    assert receive_texts(other_session.create_consumer(queue), 1) == ["text"]


class Sender:
    """A producer of a connection and one of a context, and everything that can be closed around them."""

    def __init__(self, interceptor: Interceptor, queue: Queue) -> None:
        self._queue = queue
        self._connection: Connection = interceptor.connect()
        self._session = self._connection.create_session()
        self._producer = self._session.create_producer(queue)
        self._context = interceptor.context()
        self._of_context = self._context.create_producer()
        self._sent = 0

    def send(self, what: str, completions: Completions, count: int) -> list[Message]:
        """Send asynchronously, through the context or the common API, and return the messages."""
        messages: list[Message] = []
        for _ in range(count):
            text = str(self._sent)
            self._sent += 1
            if what == "context":
                messages.append(self._context.create_text_message(text))
                self._of_context.set_async(completions).send(self._queue, messages[-1])
            else:
                messages.append(self._session.create_text_message(text))
                self._producer.send(messages[-1], completion_listener=completions)
        return messages

    def closer(self, what: str) -> Callable[[], None]:
        """Return the close method of one of the objects."""
        by_name: dict[str, Callable[[], None]] = {
            "producer": self._producer.close,
            "session": self._session.close,
            "connection": self._connection.close,
            "context": self._context.close,
        }
        return by_name[what]
