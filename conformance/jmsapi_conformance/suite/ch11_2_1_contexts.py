"""11.2.1 to 11.2.3 JMSContext: one connection and one session, and the messages made by them."""

from collections.abc import Callable

import pytest

from jmsapi import (
    BytesMessage,
    Connection,
    ConnectionFactory,
    IllegalStateRuntimeException,
    JMSConsumer,
    JMSContext,
    MapMessage,
    Message,
    ObjectMessage,
    Queue,
    Session,
    StreamMessage,
    TextMessage,
    Topic,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.kit import (
    PATIENCE_MS,
    Recorder,
    finish,
    in_thread,
    own_names,
    receive_text,
    receive_texts,
    send_texts,
)
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._credentials import credentials_of

MODES = [
    pytest.param(JMSContext.SESSION_TRANSACTED, marks=needs("transactions")),
    JMSContext.AUTO_ACKNOWLEDGE,
    JMSContext.CLIENT_ACKNOWLEDGE,
    JMSContext.DUPS_OK_ACKNOWLEDGE,
]


@requirement("11.2.1-1")
def test_a_context_hands_out_neither_its_connection_nor_its_session(context: JMSContext, queue: Queue) -> None:
    context.create_producer().send(queue, "text")
    declared = {name for name in dir(JMSContext) if not name.startswith("_")}
    assert declared >= {"client_id", "meta_data", "session_mode"}
    for name in declared:
        assert not isinstance(getattr(context, name), Connection | Session), name


@requirement("11.2.1-3")
def test_a_consumer_of_a_context_is_used_synchronously_or_asynchronously(
    context: JMSContext, factory: ConnectionFactory, queue: Queue, other_session: Session
) -> None:
    consumer = context.create_consumer(queue)
    assert isinstance(consumer, JMSConsumer)
    send_texts(other_session, queue, "received")
    assert receive_text(consumer) == "received"
    consumer.close()
    recorder = Recorder()
    with factory.create_context() as second:
        second.create_consumer(queue).message_listener = recorder
        send_texts(other_session, queue, "listened to")
        assert recorder.wait_for_texts(1) == ["listened to"]


@requirement("11.2.1-5")
def test_a_context_without_arguments_acknowledges_automatically(context: JMSContext) -> None:
    assert context.session_mode == JMSContext.AUTO_ACKNOWLEDGE
    assert context.transacted is False


@requirement("11.2.1-6")
@pytest.mark.parametrize("mode", MODES)
def test_a_context_has_the_mode_that_it_was_created_with(factory: ConnectionFactory, mode: int) -> None:
    with factory.create_context(mode) as context:
        assert context.session_mode == mode
        assert context.transacted is (mode == JMSContext.SESSION_TRANSACTED)
        context.create_message()


@requirement("11.2.1-8")
@pytest.mark.parametrize("mode", MODES)
def test_a_context_is_created_with_user_password_and_mode(
    backend: Backend, queue: Queue, other_session: Session, mode: int
) -> None:
    user, password = credentials_of(backend)
    with backend.factory(user=None, password=None).create_context(user or "user", password or "password", mode) as context:
        assert context.session_mode == mode
        assert context.transacted is (mode == JMSContext.SESSION_TRANSACTED)
        context.create_producer().send(queue, "text")
        if context.transacted:
            context.commit()
    assert receive_text(other_session.create_consumer(queue)) == "text"


@requirement("11.2.1-9")
@pytest.mark.parametrize("mode", MODES)
def test_a_further_context_shares_the_connection_and_has_a_session_of_its_own(
    factory: ConnectionFactory, queue: Queue, names: Names, mode: int
) -> None:
    with factory.create_context() as first:
        first.client_id = names.client_id()
        second = first.create_context(mode)
        assert second.client_id == first.client_id
        assert (first.session_mode, second.session_mode) == (JMSContext.AUTO_ACKNOWLEDGE, mode)
        assert second.transacted is (mode == JMSContext.SESSION_TRANSACTED)
        second.create_producer().send(queue, "dropped with its transaction" if second.transacted else "second")
        second.close()
        first.create_producer().send(queue, "first")
        expected = ["first"] if mode == JMSContext.SESSION_TRANSACTED else ["second", "first"]
        assert receive_texts(first.create_consumer(queue), len(expected)) == expected


@requirement("11.2.1-10")
def test_contexts_of_one_connection_are_used_in_different_threads(factory: ConnectionFactory, names: Names) -> None:
    def exchange(context: JMSContext, name: str) -> list[str | None]:
        queue = context.create_queue(name)
        producer, consumer = context.create_producer(), context.create_consumer(queue)
        received: list[str | None] = []
        for number in range(50):
            producer.send(queue, f"{name} {number}")
            received.append(consumer.receive_body(str, PATIENCE_MS))
        return received

    with factory.create_context() as first, first.create_context(JMSContext.AUTO_ACKNOWLEDGE) as second:
        used = [names.queue(), names.queue()]
        pending = [in_thread(lambda c=c, n=n: exchange(c, n)) for c, n in zip((first, second), used, strict=True)]  # type: ignore[misc]
        for name, future in zip(used, pending, strict=True):
            assert finish(future) == [f"{name} {number}" for number in range(50)]


ON_CLOSED: dict[str, Callable[[JMSContext, Queue, Topic], object]] = {
    "acknowledge": lambda context, _, __: context.acknowledge(),
    "auto_start": lambda context, _, __: context.auto_start,
    "client_id": lambda context, _, __: context.client_id,
    "commit": lambda context, _, __: context.commit(),
    "create_browser": lambda context, queue, _: context.create_browser(queue),
    "create_bytes_message": lambda context, _, __: context.create_bytes_message(),
    "create_consumer": lambda context, queue, _: context.create_consumer(queue),
    "create_context": lambda context, _, __: context.create_context(JMSContext.AUTO_ACKNOWLEDGE),
    "create_durable_consumer": lambda context, _, topic: context.create_durable_consumer(topic, "name"),
    "create_map_message": lambda context, _, __: context.create_map_message(),
    "create_message": lambda context, _, __: context.create_message(),
    "create_object_message": lambda context, _, __: context.create_object_message(),
    "create_producer": lambda context, _, __: context.create_producer(),
    "create_queue": lambda context, _, __: context.create_queue("name"),
    "create_shared_consumer": lambda context, _, topic: context.create_shared_consumer(topic, "name"),
    "create_shared_durable_consumer": lambda context, _, topic: context.create_shared_durable_consumer(topic, "name"),
    "create_stream_message": lambda context, _, __: context.create_stream_message(),
    "create_temporary_queue": lambda context, _, __: context.create_temporary_queue(),
    "create_temporary_topic": lambda context, _, __: context.create_temporary_topic(),
    "create_text_message": lambda context, _, __: context.create_text_message(),
    "create_topic": lambda context, _, __: context.create_topic("name"),
    "exception_listener": lambda context, _, __: context.exception_listener,
    "meta_data": lambda context, _, __: context.meta_data,
    "recover": lambda context, _, __: context.recover(),
    "rollback": lambda context, _, __: context.rollback(),
    "session_mode": lambda context, _, __: context.session_mode,
    "start": lambda context, _, __: context.start(),
    "stop": lambda context, _, __: context.stop(),
    "request": lambda context, queue, _: context.request(queue, "text", timeout_ms=100),
    "transacted": lambda context, _, __: context.transacted,
    "unsubscribe": lambda context, _, __: context.unsubscribe("name"),
}


@requirement("11.2.1-11")
def test_no_method_of_a_context_is_left_out_below() -> None:
    constants = {"AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "DUPS_OK_ACKNOWLEDGE", "SESSION_TRANSACTED"}
    assert {name for name in dir(JMSContext) if not name.startswith("_")} == {*ON_CLOSED, *constants, "close"}


@requirement("11.2.1-11")
@pytest.mark.parametrize("call", ON_CLOSED.values(), ids=ON_CLOSED)
def test_each_method_of_a_closed_context_but_close_raises_an_unchecked_exception(
    context: JMSContext, queue: Queue, topic: Topic, call: Callable[[JMSContext, Queue, Topic], object]
) -> None:
    context.close()
    with pytest.raises(IllegalStateRuntimeException):
        call(context, queue, topic)
    context.close()


@requirement("11.2.2-1")
def test_the_session_modes_are_those_of_sessions() -> None:
    assert (JMSContext.AUTO_ACKNOWLEDGE, Session.AUTO_ACKNOWLEDGE) == (1, 1)
    assert (JMSContext.CLIENT_ACKNOWLEDGE, Session.CLIENT_ACKNOWLEDGE) == (2, 2)
    assert (JMSContext.DUPS_OK_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE) == (3, 3)
    assert (JMSContext.SESSION_TRANSACTED, Session.SESSION_TRANSACTED) == (0, 0)


CREATED: dict[str, tuple[type, Callable[[Session | JMSContext], Message]]] = {
    "plain": (Message, lambda client: client.create_message()),
    "bytes": (BytesMessage, lambda client: client.create_bytes_message()),
    "map": (MapMessage, lambda client: client.create_map_message()),
    "object": (ObjectMessage, lambda client: client.create_object_message()),
    "stream": (StreamMessage, lambda client: client.create_stream_message()),
    "text": (TextMessage, lambda client: client.create_text_message()),
    "object with content": (ObjectMessage, lambda client: client.create_object_message(["content"])),
    "text with content": (TextMessage, lambda client: client.create_text_message("content")),
}


@requirement("11.2.3-1", "11.2.3-3")
@pytest.mark.parametrize("kind", CREATED)
def test_a_context_creates_messages_like_a_session(context: JMSContext, session: Session, kind: str) -> None:
    interface, create = CREATED[kind]
    by_context, by_session = create(context), create(session)
    assert isinstance(by_context, interface)
    assert type(by_context) is type(by_session)
    # What the timestamp of a message is that was not sent, JMS leaves open.
    for field in (name for name in dir(Message) if name.startswith("jms_") and name != "jms_timestamp"):
        assert getattr(by_context, field) == getattr(by_session, field), field
    assert own_names(by_context) == own_names(by_session) == set()
    for message in (by_context, by_session):
        if isinstance(message, BytesMessage | StreamMessage):
            message.write_int(1)
            message.reset()
            assert message.read_int() == 1
        else:
            assert message.get_body(object) == by_session.get_body(object)
        message.set_int_property("p", 1)
        assert message.get_int_property("p") == 1


@requirement("11.2.3-2")
def test_text_and_object_messages_are_created_with_their_content(context: JMSContext) -> None:
    assert context.create_text_message("text").text == "text"
    value = ["value"]
    message = context.create_object_message(value)
    value.append("added later")
    assert message.object == ["value"]
