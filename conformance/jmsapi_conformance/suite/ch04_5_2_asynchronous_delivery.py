"""4.5.2 Asynchronous delivery."""

import pytest

from jmsapi import Connection, Message, Queue, Session
from jmsapi_conformance.fixtures import Connect
from jmsapi_conformance.kit import Recorder, eventually, expect_nothing, receive_text, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement


@requirement("4.5.2-1")
def test_a_listener_is_called_with_each_message_in_order(session: Session, queue: Queue, other_session: Session) -> None:
    consumer = session.create_consumer(queue)
    assert consumer.message_listener is None
    listener = Recorder()
    consumer.message_listener = listener
    expected = [str(number) for number in range(10)]
    send_texts(other_session, queue, *expected)
    assert listener.wait_for_texts(10) == expected
    assert consumer.message_listener is listener


@requirement("4.5.2-1")
def test_a_plain_function_can_be_a_listener(session: Session, queue: Queue, other_session: Session) -> None:
    recorder = Recorder()
    consumer = session.create_consumer(queue)
    consumer.message_listener = recorder.on_message
    send_texts(other_session, queue, "text")
    assert recorder.wait_for_texts(1) == ["text"]


@requirement("4.5.2-2")
@pytest.mark.parametrize("mode", [Session.AUTO_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE])
def test_a_message_whose_listener_raises_is_delivered_again_at_once(
    connection: Connection, queue: Queue, other_session: Session, mode: int
) -> None:
    listener = Recorder(then=RaiseOnFirstSight())
    send_texts(other_session, queue, "m1", "m2")
    connection.create_session(mode).create_consumer(queue).message_listener = listener
    messages = listener.wait_for(3)
    assert [text_of(message) for message in messages] == ["m1", "m1", "m2"]
    assert [message.jms_redelivered for message in messages] == [False, True, False]
    assert [message.get_int_property("JMSXDeliveryCount") for message in messages] == [1, 2, 1]


@requirement("4.5.2-3")
def test_a_listener_that_always_raises_is_given_up_some_time_or_never(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    def refuse_m1(message: Message) -> None:
        if text_of(message) == "m1":
            raise RuntimeError("never m1")

    listener = Recorder(then=refuse_m1)
    session = connection.create_session()
    # Both are there before: what a broker hands out again may be overtaken by what is only just arriving.
    send_texts(other_session, queue, "m1", "m2")
    session.create_consumer(queue).message_listener = listener
    # Its own choice: an end, behind which the next message comes, or none.
    eventually(lambda: "m2" in listener.texts or listener.texts.count("m1") > 100, "m2, or m1 again and again")
    session.close()
    attempts = listener.texts.count("m1")
    assert attempts >= 2
    assert listener.texts in (["m1"] * attempts, [*["m1"] * attempts, "m2"])


@requirement("4.5.2-3")
def test_the_limit_of_redeliveries_ends_the_retries_of_a_failing_message(
    connect: Connect, queue: Queue, other_session: Session
) -> None:
    def fail_bad_ones(message: Message) -> None:
        if text_of(message) == "bad":
            raise ValueError("a bad message")

    recorder = Recorder(fail_bad_ones)
    session = connect(max_redeliveries=2).create_session()
    send_texts(other_session, queue, "bad", "good")
    session.create_consumer(queue).message_listener = recorder
    assert recorder.wait_for_texts(4) == ["bad", "bad", "bad", "good"]
    counts = [message.get_int_property("JMSXDeliveryCount") for message in recorder.messages]
    assert counts == [1, 2, 3, 1]


@requirement("4.5.2-4")
def test_a_client_acknowledge_session_goes_on_after_a_listener_raised(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    listener = Recorder(then=RaiseOnFirstSight())
    consumer = session.create_consumer(queue)
    send_texts(other_session, queue, "m1", "m2")
    consumer.message_listener = listener
    assert listener.wait_for_texts(2) == ["m1", "m2"]
    session.recover()
    assert listener.wait_for_texts(4) == ["m1", "m2", "m1", "m2"]


@requirement("4.5.2-5")
@needs("transactions")
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_transacted_session_goes_on_after_a_listener_raised_and_rolls_nothing_back(
    connection: Connection, queue: Queue, other_session: Session, end: str
) -> None:
    session = connection.create_session(Session.SESSION_TRANSACTED)

    def finish_after_the_second(message: Message) -> None:
        if text_of(message) == "m1" and not message.jms_redelivered:
            raise RuntimeError("first sight")
        if text_of(message) == "m2" and not message.jms_redelivered:
            getattr(session, end)()

    listener = Recorder(then=finish_after_the_second)
    send_texts(other_session, queue, "m1", "m2")
    session.create_consumer(queue).message_listener = listener
    if end == "commit":
        assert listener.wait_for_texts(2) == ["m1", "m2"]
        session.close()
        expect_nothing(other_session.create_consumer(queue), other_session, queue)
    else:
        assert listener.wait_for_texts(4) == ["m1", "m2", "m1", "m2"]


@requirement("4.5.2-6")
def test_delivery_survives_a_listener_that_raises_and_the_log_has_its_traceback(
    session: Session, queue: Queue, other_session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    listener = Recorder(then=RaiseOnFirstSight())
    send_texts(other_session, queue, "m1", "m2")
    session.create_consumer(queue).message_listener = listener
    assert listener.wait_for_texts(3) == ["m1", "m1", "m2"]
    raised = [record.exc_info[1] for record in caplog.records if record.name.startswith("jmsapi") and record.exc_info]
    assert any(isinstance(error, RuntimeError) for error in raised), "no record of the library has the traceback"


@requirement("4.5.2-1", "B.2.21-6")
def test_without_a_listener_the_consumer_is_received_from_again(session: Session, queue: Queue, other_session: Session) -> None:
    listener = Recorder()
    consumer = session.create_consumer(queue)
    consumer.message_listener = listener
    send_texts(other_session, queue, "heard")
    assert listener.wait_for_texts(1) == ["heard"]
    consumer.message_listener = None
    send_texts(other_session, queue, "received")
    assert receive_text(consumer) == "received"


class RaiseOnFirstSight:
    """Raises for the text m1, the first time."""

    def __init__(self) -> None:
        self._raised = False

    def __call__(self, message: Message) -> None:
        if text_of(message) == "m1" and not self._raised:
            self._raised = True
            raise RuntimeError("first sight of m1")
