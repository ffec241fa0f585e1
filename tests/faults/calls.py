"""Every call of the API that may wait for a broker, each as one row: how to get there, and the call itself.

A row's function prepares on a healthy link and returns the call, which is made once something is wrong with it. What a row does
not name and ``LOCAL`` does not excuse is a hole, which ``test_blocking_calls`` finds.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import jmsapi
from jmsapi import (
    Connection,
    DeliveryMode,
    JMSContext,
    Message,
    QueueRequestor,
    Session,
    TopicRequestor,
)

REQUEST_MS = 700
OPEN_MS = 2500
FOREVER_ENDS_S = 1.5
"""When a call without a limit of its own is ended by closing what it waits on."""


class Rig:
    """A factory whose link goes through the proxy, and what a row makes with it."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        self.name = f"faults.{uuid.uuid4().hex}"
        self._url = url
        self._options = {
            "connect_timeout_ms": OPEN_MS,
            "request_timeout_ms": REQUEST_MS,
            "send_timeout_ms": REQUEST_MS,
            "close_timeout_ms": REQUEST_MS,
            "checked": True,
            **options,
        }
        self.factory = self.factory_with()
        self._closing: list[Any] = []
        self._timers: list[threading.Timer] = []

    def factory_with(self, **options: Any) -> jmsapi.ConnectionFactory:
        return jmsapi.connection_factory(self._url, **{**self._options, **options})

    @property
    def first(self) -> Any:
        """The first connection or context that was opened."""
        return self._closing[0]

    def keep(self, thing: Any) -> Any:
        """Close something when the row is over."""
        self._closing.append(thing)
        return thing

    def connection(self, *, client_id: bool = False, started: bool = True) -> Connection:
        connection = cast("Connection", self.keep(self.factory.create_connection()))
        if client_id:
            connection.client_id = self.name
        if started:
            connection.start()
        return connection

    def session(self, mode: int = Session.AUTO_ACKNOWLEDGE, *, client_id: bool = False) -> Session:
        return self.connection(client_id=client_id).create_session(mode)

    def context(self, mode: int = JMSContext.AUTO_ACKNOWLEDGE, *, client_id: bool = False) -> JMSContext:
        context = cast("JMSContext", self.keep(self.factory.create_context(mode)))
        if client_id:
            context.client_id = self.name
        return context

    def queue_session(self) -> Any:
        connection = self.keep(cast("Any", self.factory).create_queue_connection())
        connection.start()
        return connection.create_queue_session(False, Session.AUTO_ACKNOWLEDGE)

    def topic_session(self, *, client_id: bool = False) -> Any:
        connection = self.keep(cast("Any", self.factory).create_topic_connection())
        if client_id:
            connection.client_id = self.name
        connection.start()
        return connection.create_topic_session(False, Session.AUTO_ACKNOWLEDGE)

    def one_received(self, session: Session) -> Message:
        """Send one message and receive it, by a queue that no other session's consumer holds messages of."""
        queue = session.create_queue(f"{self.name}.{session.acknowledge_mode}")
        session.create_producer(queue).send(session.create_text_message("x"))
        if session.transacted:
            session.commit()
        return arrived(session.create_consumer(queue).receive(5000))

    def ended(self, thing: Any, call: Callable[[], Any]) -> Callable[[], Any]:
        """Make a call that has no limit of its own, and close what it waits on from another thread when it has lasted."""

        def made() -> Any:
            timer = threading.Timer(FOREVER_ENDS_S, _quietly, [thing.close])
            self._timers.append(timer)
            timer.start()
            try:
                return call()
            finally:
                timer.cancel()

        return made

    def close(self) -> None:
        for timer in self._timers:
            timer.cancel()
            timer.join()
        for thing in reversed(self._closing):
            thing.close()


def arrived(message: Message | None) -> Message:
    """Fail as a slow broker does, if it is one."""
    if message is None:
        raise jmsapi.JMSException("the message has not come yet", "timeout")
    return message


def _quietly(close: Callable[[], None]) -> None:
    try:
        close()
    except jmsapi.JMSError:
        return


Prepare = Callable[[Rig], Callable[[], Any]]


@dataclass(frozen=True)
class Row:
    """One way to make one call.

    Args:
        members: The members of the API that this call is, as ``Owner.member``.
        waits_ms: The sum of its deadlines.
        prepare: Gets there, and returns the call.
    """

    members: tuple[str, ...]
    waits_ms: float
    prepare: Prepare

    @property
    def name(self) -> str:
        return self.prepare.__name__


ROWS: list[Row] = []


def row(*members: str, waits_ms: float = REQUEST_MS) -> Callable[[Prepare], Prepare]:
    def add(prepare: Prepare) -> Prepare:
        ROWS.append(Row(members, waits_ms, prepare))
        return prepare

    return add


# ---------------------------------------------------------------- factories and connections

# A client id is set by opening the link anew, with its own deadline, and closing the old one.
REOPEN_MS = OPEN_MS + REQUEST_MS


@row("ConnectionFactory.create_connection", waits_ms=OPEN_MS)
def create_connection(rig: Rig) -> Callable[[], Any]:
    return lambda: rig.keep(rig.factory.create_connection())


@row("ConnectionFactory.create_context", waits_ms=OPEN_MS + REQUEST_MS)
def create_context(rig: Rig) -> Callable[[], Any]:
    return lambda: rig.keep(rig.factory.create_context())


@row("QueueConnectionFactory.create_queue_connection", waits_ms=OPEN_MS)
def create_queue_connection(rig: Rig) -> Callable[[], Any]:
    return lambda: rig.keep(cast("Any", rig.factory).create_queue_connection())


@row("TopicConnectionFactory.create_topic_connection", waits_ms=OPEN_MS)
def create_topic_connection(rig: Rig) -> Callable[[], Any]:
    return lambda: rig.keep(cast("Any", rig.factory).create_topic_connection())


@row("Connection.client_id", waits_ms=REOPEN_MS)
def set_client_id(rig: Rig) -> Callable[[], Any]:
    connection = rig.connection(started=False)
    return lambda: setattr(connection, "client_id", rig.name)


@row("JMSContext.client_id", waits_ms=REOPEN_MS)
def set_client_id_of_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context()
    return lambda: setattr(context, "client_id", rig.name)


@row("Connection.create_session")
def create_session(rig: Rig) -> Callable[[], Any]:
    return rig.connection().create_session


@row("Connection.create_session")
def create_transacted_session(rig: Rig) -> Callable[[], Any]:
    connection = rig.connection()
    return lambda: connection.create_session(Session.SESSION_TRANSACTED)


@row("QueueConnection.create_queue_session")
def create_queue_session(rig: Rig) -> Callable[[], Any]:
    connection = rig.keep(cast("Any", rig.factory).create_queue_connection())
    return lambda: connection.create_queue_session(False, Session.AUTO_ACKNOWLEDGE)


@row("TopicConnection.create_topic_session")
def create_topic_session(rig: Rig) -> Callable[[], Any]:
    connection = rig.keep(cast("Any", rig.factory).create_topic_connection())
    return lambda: connection.create_topic_session(True, Session.AUTO_ACKNOWLEDGE)


@row("Connection.start")
def start(rig: Rig) -> Callable[[], Any]:
    connection = rig.connection(started=False)
    session = connection.create_session()
    session.create_consumer(session.create_queue(rig.name))
    return connection.start


@row("Connection.stop")
def stop(rig: Rig) -> Callable[[], Any]:
    session = rig.session(Session.CLIENT_ACKNOWLEDGE)
    rig.one_received(session)
    return rig.first.stop


@row("Connection.close")
def close_an_idle_connection(rig: Rig) -> Callable[[], Any]:
    return rig.connection().close


@row("Connection.close")
def close_a_connection_with_consumers_and_something_unacknowledged(rig: Rig) -> Callable[[], Any]:
    connection = rig.connection()
    for mode in (Session.AUTO_ACKNOWLEDGE, Session.CLIENT_ACKNOWLEDGE, Session.SESSION_TRANSACTED):
        rig.one_received(connection.create_session(mode))
    return connection.close


# ---------------------------------------------------------------- sessions


@row("Session.commit", waits_ms=2 * REQUEST_MS)
def commit_of_what_was_sent(rig: Rig) -> Callable[[], Any]:
    session = rig.session(Session.SESSION_TRANSACTED)
    producer = session.create_producer(session.create_queue(rig.name))
    producer.send(session.create_text_message("x"))
    return session.commit


@row("Session.commit", waits_ms=2 * REQUEST_MS)
def commit_of_what_was_received(rig: Rig) -> Callable[[], Any]:
    session = rig.session(Session.SESSION_TRANSACTED)
    rig.one_received(session)
    return session.commit


@row("MessageProducer.send", "Session.commit", waits_ms=5 * REQUEST_MS)
def send_in_a_transaction_and_commit(rig: Rig) -> Callable[[], Any]:
    session = rig.session(Session.SESSION_TRANSACTED)
    producer = session.create_producer(session.create_queue(rig.name))

    def both() -> None:
        producer.send(session.create_text_message("x"))
        session.commit()

    return both


@row("Session.rollback", waits_ms=2 * REQUEST_MS)
def rollback(rig: Rig) -> Callable[[], Any]:
    session = rig.session(Session.SESSION_TRANSACTED)
    rig.one_received(session)
    session.create_producer(session.create_queue(rig.name)).send(session.create_text_message("x"))
    return session.rollback


@row("Session.recover")
def recover(rig: Rig) -> Callable[[], Any]:
    session = rig.session(Session.CLIENT_ACKNOWLEDGE)
    rig.one_received(session)
    return session.recover


@row("Message.acknowledge")
def acknowledge(rig: Rig) -> Callable[[], Any]:
    return rig.one_received(rig.session(Session.CLIENT_ACKNOWLEDGE)).acknowledge


@row("Session.close")
def close_a_session(rig: Rig) -> Callable[[], Any]:
    session = rig.session(Session.CLIENT_ACKNOWLEDGE)
    rig.one_received(session)
    return session.close


@row("Session.close")
def close_a_session_in_a_transaction(rig: Rig) -> Callable[[], Any]:
    session = rig.session(Session.SESSION_TRANSACTED)
    rig.one_received(session)
    session.create_producer(session.create_queue(rig.name)).send(session.create_text_message("x"))
    return session.close


@row("Session.create_producer")
def create_producer(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    return lambda: session.create_producer(session.create_queue(rig.name))


@row("Session.create_consumer")
def create_consumer(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    return lambda: session.create_consumer(session.create_queue(rig.name))


@row("Session.create_consumer")
def create_consumer_on_a_topic(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    return lambda: session.create_consumer(session.create_topic(rig.name), "a = 1", True)


@row("Session.create_shared_consumer")
def create_shared_consumer(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    return lambda: session.create_shared_consumer(session.create_topic(rig.name), "shared")


# Opening or ending a subscription may take several questions, each with its deadline: what is there, an end, a new one.
SUBSCRIBE_MS = 4 * REQUEST_MS


@row("Session.create_durable_consumer", waits_ms=SUBSCRIBE_MS)
def create_durable_consumer(rig: Rig) -> Callable[[], Any]:
    session = rig.session(client_id=True)
    return lambda: session.create_durable_consumer(session.create_topic(rig.name), "durable")


@row("Session.create_durable_subscriber", waits_ms=SUBSCRIBE_MS)
def create_durable_subscriber(rig: Rig) -> Callable[[], Any]:
    session = rig.session(client_id=True)
    return lambda: session.create_durable_subscriber(session.create_topic(rig.name), "durable")


@row("Session.create_shared_durable_consumer", waits_ms=SUBSCRIBE_MS)
def create_shared_durable_consumer(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    topic = session.create_topic(f"VirtualTopic.{rig.name}")
    return lambda: session.create_shared_durable_consumer(topic, rig.name)


@row("Session.unsubscribe", waits_ms=SUBSCRIBE_MS)
def unsubscribe(rig: Rig) -> Callable[[], Any]:
    session = rig.session(client_id=True)
    session.create_durable_consumer(session.create_topic(rig.name), "durable").close()
    return lambda: session.unsubscribe("durable")


@row("Session.create_browser", "QueueBrowser.enumeration", waits_ms=3 * REQUEST_MS)
def browse(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    queue = session.create_queue(rig.name)
    session.create_producer(queue).send(session.create_text_message("x"))
    return lambda: list(session.create_browser(queue).enumeration)


@row("QueueBrowser.close")
def close_a_browser(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    return session.create_browser(session.create_queue(rig.name)).close


@row("Session.create_temporary_queue")
def create_temporary_queue(rig: Rig) -> Callable[[], Any]:
    return rig.session().create_temporary_queue


@row("Session.create_temporary_topic")
def create_temporary_topic(rig: Rig) -> Callable[[], Any]:
    return rig.session().create_temporary_topic


@row("TemporaryQueue.delete")
def delete_temporary_queue(rig: Rig) -> Callable[[], Any]:
    return rig.session().create_temporary_queue().delete


@row("TemporaryTopic.delete")
def delete_temporary_topic(rig: Rig) -> Callable[[], Any]:
    return rig.session().create_temporary_topic().delete


# ---------------------------------------------------------------- producers


class Completions(jmsapi.CompletionListener):
    """Counts what it hears."""

    def __init__(self) -> None:
        self.heard = 0

    def on_completion(self, message: Message) -> None:
        self.heard += 1

    def on_exception(self, message: Message, exception: Exception) -> None:
        self.heard += 1


@row("MessageProducer.send")
def send_persistent(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    producer = session.create_producer(session.create_queue(rig.name))
    return lambda: producer.send(session.create_text_message("x"))


@row("MessageProducer.send", waits_ms=2 * REQUEST_MS)
def send_persistent_without_a_destination_of_its_own(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    producer = session.create_producer()
    return lambda: producer.send(session.create_queue(rig.name), session.create_text_message("x"))


@row("MessageProducer.send")
def send_a_large_message(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    producer = session.create_producer(session.create_queue(rig.name))
    return lambda: producer.send(session.create_text_message("x" * 3_000_000))


# Each send has its deadline; a slow link lets some of the three thousand through first.
@row("MessageProducer.send", waits_ms=2 * REQUEST_MS + 20_000)
def send_more_than_may_be_unanswered(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    producer = session.create_producer(session.create_queue(rig.name))
    producer.delivery_mode = DeliveryMode.NON_PERSISTENT
    completions = Completions()

    def many() -> None:
        for _ in range(3000):
            producer.send(session.create_text_message("x" * 100), completion_listener=completions)

    return many


@row("MessageProducer.send", "Session.close", waits_ms=3 * REQUEST_MS)
def send_asynchronously_and_close(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    producer = session.create_producer(session.create_queue(rig.name))

    def both() -> None:
        completions, sent = Completions(), 0
        try:
            for _ in range(20):
                producer.send(session.create_text_message("x"), completion_listener=completions)
                sent += 1
        finally:
            session.close()
            # Each is answered once before close returns, whatever happened.
            assert completions.heard == sent

    return both


@row("MessageProducer.close", waits_ms=REQUEST_MS)
def close_a_producer_with_sends_under_way(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    producer = session.create_producer(session.create_queue(rig.name))
    for _ in range(20):
        producer.send(session.create_text_message("x"), completion_listener=Completions())
    return producer.close


# ---------------------------------------------------------------- consumers


@row("MessageConsumer.receive", waits_ms=REQUEST_MS)
def receive(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    consumer = session.create_consumer(session.create_queue(rig.name))
    return lambda: consumer.receive(REQUEST_MS)


@row("MessageConsumer.receive", waits_ms=FOREVER_ENDS_S * 1000 + REQUEST_MS)
def receive_without_a_limit(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    consumer = session.create_consumer(session.create_queue(rig.name))
    return rig.ended(rig.first, consumer.receive)


@row("MessageConsumer.receive", waits_ms=2 * REQUEST_MS)
def receive_without_a_prefetch(rig: Rig) -> Callable[[], Any]:
    rig.factory = rig.factory_with(prefetch=0)
    session = rig.session()
    consumer = session.create_consumer(session.create_queue(rig.name))
    return lambda: consumer.receive(REQUEST_MS)


@row("MessageConsumer.receive_no_wait", waits_ms=REQUEST_MS)
def receive_no_wait(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    consumer = session.create_consumer(session.create_queue(rig.name))
    return consumer.receive_no_wait


@row("MessageConsumer.close", waits_ms=2 * REQUEST_MS)
def close_a_consumer(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    return session.create_consumer(session.create_queue(rig.name)).close


@row("MessageConsumer.close", waits_ms=2 * REQUEST_MS)
def close_a_consumer_of_a_durable_subscription(rig: Rig) -> Callable[[], Any]:
    session = rig.session(client_id=True)
    return session.create_durable_consumer(session.create_topic(rig.name), "durable").close


@row("MessageConsumer.message_listener")
def set_a_listener(rig: Rig) -> Callable[[], Any]:
    session = rig.session()
    consumer = session.create_consumer(session.create_queue(rig.name))
    return lambda: setattr(consumer, "message_listener", lambda message: None)


# ---------------------------------------------------------------- the domains of JMS 1.0, requestors


@row("QueueSession.create_receiver")
def create_receiver(rig: Rig) -> Callable[[], Any]:
    session = rig.queue_session()
    return lambda: session.create_receiver(session.create_queue(rig.name))


@row("QueueSession.create_sender", "QueueSender.send", waits_ms=2 * REQUEST_MS)
def create_a_sender_and_send(rig: Rig) -> Callable[[], Any]:
    session = rig.queue_session()
    return lambda: session.create_sender(session.create_queue(rig.name)).send(session.create_text_message("x"))


@row("QueueSession.create_browser", waits_ms=3 * REQUEST_MS)
def browse_in_a_queue_session(rig: Rig) -> Callable[[], Any]:
    session = rig.queue_session()
    return lambda: list(session.create_browser(session.create_queue(rig.name)).enumeration)


@row("QueueSession.create_temporary_queue")
def create_temporary_queue_in_a_queue_session(rig: Rig) -> Callable[[], Any]:
    return cast("Callable[[], Any]", rig.queue_session().create_temporary_queue)


@row("TopicSession.create_subscriber")
def create_subscriber(rig: Rig) -> Callable[[], Any]:
    session = rig.topic_session()
    return lambda: session.create_subscriber(session.create_topic(rig.name))


@row("TopicSession.create_durable_subscriber", waits_ms=SUBSCRIBE_MS)
def create_durable_subscriber_in_a_topic_session(rig: Rig) -> Callable[[], Any]:
    session = rig.topic_session(client_id=True)
    return lambda: session.create_durable_subscriber(session.create_topic(rig.name), "durable")


@row("TopicSession.unsubscribe", waits_ms=SUBSCRIBE_MS)
def unsubscribe_in_a_topic_session(rig: Rig) -> Callable[[], Any]:
    session = rig.topic_session(client_id=True)
    session.create_durable_subscriber(session.create_topic(rig.name), "durable").close()
    return lambda: session.unsubscribe("durable")


@row("TopicSession.create_publisher", "TopicPublisher.publish", waits_ms=2 * REQUEST_MS)
def create_a_publisher_and_publish(rig: Rig) -> Callable[[], Any]:
    session = rig.topic_session()
    return lambda: session.create_publisher(session.create_topic(rig.name)).publish(session.create_text_message("x"))


@row("TopicSession.create_temporary_topic")
def create_temporary_topic_in_a_topic_session(rig: Rig) -> Callable[[], Any]:
    return cast("Callable[[], Any]", rig.topic_session().create_temporary_topic)


@row("QueueRequestor.request", waits_ms=FOREVER_ENDS_S * 1000 + 2 * REQUEST_MS)
def request_on_a_queue(rig: Rig) -> Callable[[], Any]:
    session = rig.queue_session()
    requestor = QueueRequestor(session, session.create_queue(rig.name))
    return rig.ended(rig.first, lambda: requestor.request(session.create_text_message("x")))


@row("QueueRequestor.close", waits_ms=2 * REQUEST_MS)
def close_a_queue_requestor(rig: Rig) -> Callable[[], Any]:
    session = rig.queue_session()
    return QueueRequestor(session, session.create_queue(rig.name)).close


@row("TopicRequestor.request", waits_ms=FOREVER_ENDS_S * 1000 + 2 * REQUEST_MS)
def request_on_a_topic(rig: Rig) -> Callable[[], Any]:
    session = rig.topic_session()
    requestor = TopicRequestor(session, session.create_topic(rig.name))
    return rig.ended(rig.first, lambda: requestor.request(session.create_text_message("x")))


@row("TopicRequestor.close", waits_ms=2 * REQUEST_MS)
def close_a_topic_requestor(rig: Rig) -> Callable[[], Any]:
    session = rig.topic_session()
    return TopicRequestor(session, session.create_topic(rig.name)).close


# ---------------------------------------------------------------- contexts


@row("JMSContext.create_context")
def create_context_from_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context()
    return lambda: rig.keep(context.create_context(JMSContext.CLIENT_ACKNOWLEDGE))


@row("JMSContext.start", "JMSContext.stop")
def start_and_stop_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context()
    context.create_consumer(context.create_queue(rig.name))

    def both() -> None:
        context.start()
        context.stop()

    return both


@row("JMSContext.close", waits_ms=2 * REQUEST_MS)
def close_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context()
    context.create_consumer(context.create_queue(rig.name)).receive_no_wait()
    return context.close


@row("JMSContext.create_producer", "JMSProducer.send", waits_ms=3 * REQUEST_MS)
def send_from_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context()
    queue = context.create_queue(rig.name)
    return lambda: context.create_producer().send(queue, "x")


@row("JMSProducer.send", "JMSProducer.async_", "JMSProducer.set_async", waits_ms=3 * REQUEST_MS)
def send_asynchronously_from_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context()
    queue = context.create_queue(rig.name)
    return lambda: context.create_producer().set_async(Completions()).send(queue, "x")


@row("JMSContext.commit", waits_ms=2 * REQUEST_MS)
def commit_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context(JMSContext.SESSION_TRANSACTED)
    context.create_producer().send(context.create_queue(rig.name), "x")
    return context.commit


@row("JMSContext.rollback", waits_ms=2 * REQUEST_MS)
def rollback_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context(JMSContext.SESSION_TRANSACTED)
    context.create_producer().send(context.create_queue(rig.name), "x")
    return context.rollback


def _received_by(context: JMSContext, name: str) -> None:
    queue = context.create_queue(name)
    context.create_producer().send(queue, "x")
    arrived(context.create_consumer(queue).receive(5000))


@row("JMSContext.recover")
def recover_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context(JMSContext.CLIENT_ACKNOWLEDGE)
    _received_by(context, rig.name)
    return context.recover


@row("JMSContext.acknowledge")
def acknowledge_in_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context(JMSContext.CLIENT_ACKNOWLEDGE)
    _received_by(context, rig.name)
    return context.acknowledge


@row("JMSContext.create_consumer")
def create_consumer_of_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context()
    return lambda: context.create_consumer(context.create_queue(rig.name))


@row("JMSContext.create_shared_consumer")
def create_shared_consumer_of_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context()
    return lambda: context.create_shared_consumer(context.create_topic(rig.name), "shared")


@row("JMSContext.create_durable_consumer", waits_ms=SUBSCRIBE_MS)
def create_durable_consumer_of_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context(client_id=True)
    return lambda: context.create_durable_consumer(context.create_topic(rig.name), "durable")


@row("JMSContext.create_shared_durable_consumer", waits_ms=SUBSCRIBE_MS)
def create_shared_durable_consumer_of_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context()
    topic = context.create_topic(f"VirtualTopic.{rig.name}")
    return lambda: context.create_shared_durable_consumer(topic, rig.name)


@row("JMSContext.unsubscribe", waits_ms=SUBSCRIBE_MS)
def unsubscribe_in_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context(client_id=True)
    context.create_durable_consumer(context.create_topic(rig.name), "durable").close()
    return lambda: context.unsubscribe("durable")


@row("JMSContext.create_browser", waits_ms=3 * REQUEST_MS)
def browse_in_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context()
    return lambda: list(context.create_browser(context.create_queue(rig.name)).enumeration)


@row("JMSContext.create_temporary_queue")
def create_temporary_queue_in_a_context(rig: Rig) -> Callable[[], Any]:
    return rig.context().create_temporary_queue


@row("JMSContext.create_temporary_topic")
def create_temporary_topic_in_a_context(rig: Rig) -> Callable[[], Any]:
    return rig.context().create_temporary_topic


@row("JMSConsumer.receive", waits_ms=REQUEST_MS)
def receive_in_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context()
    consumer = context.create_consumer(context.create_queue(rig.name))
    return lambda: consumer.receive(REQUEST_MS)


@row("JMSConsumer.receive", waits_ms=FOREVER_ENDS_S * 1000 + REQUEST_MS)
def receive_in_a_context_without_a_limit(rig: Rig) -> Callable[[], Any]:
    context = rig.context()
    return rig.ended(context, context.create_consumer(context.create_queue(rig.name)).receive)


@row("JMSConsumer.receive_no_wait")
def receive_no_wait_in_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context()
    return context.create_consumer(context.create_queue(rig.name)).receive_no_wait


@row("JMSConsumer.receive_body", waits_ms=REQUEST_MS)
def receive_body(rig: Rig) -> Callable[[], Any]:
    context = rig.context()
    consumer = context.create_consumer(context.create_queue(rig.name))
    return lambda: consumer.receive_body(str, REQUEST_MS)


@row("JMSConsumer.receive_body_no_wait")
def receive_body_no_wait(rig: Rig) -> Callable[[], Any]:
    context = rig.context()
    consumer = context.create_consumer(context.create_queue(rig.name))
    return lambda: consumer.receive_body_no_wait(str)


@row("JMSConsumer.close", waits_ms=2 * REQUEST_MS)
def close_a_consumer_of_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context()
    return context.create_consumer(context.create_queue(rig.name)).close


@row("JMSConsumer.message_listener")
def set_a_listener_in_a_context(rig: Rig) -> Callable[[], Any]:
    context = rig.context()
    consumer = context.create_consumer(context.create_queue(rig.name))
    return lambda: setattr(consumer, "message_listener", lambda message: None)


# ---------------------------------------------------------------- what never waits for a broker

_DATA = "holds values of this process only"
_XA = "XA is offered in process only, where there is no link"
LOCAL_TYPES: dict[str, str] = {
    **dict.fromkeys(
        ("BytesMessage", "MapMessage", "ObjectMessage", "StreamMessage", "TextMessage", "Queue", "Topic", "ConnectionMetaData"),
        _DATA,
    ),
    **dict.fromkeys(("JMSException", "JMSRuntimeException"), _DATA),
    **dict.fromkeys(("CompletionListener", "ExceptionListener", "MessageListener"), "is the application's"),
    **dict.fromkeys(("ConnectionConsumer", "ServerSession", "ServerSessionPool"), "connection consumers are refused by name"),
}
LOCAL: dict[str, str] = {
    **dict.fromkeys(
        (
            f"{owner}.create_{kind}_message"
            for owner in ("Session", "JMSContext")
            for kind in ("bytes", "map", "object", "stream", "text")
        ),
        "makes an object of this process",
    ),
    **dict.fromkeys(("Session.create_message", "JMSContext.create_message"), "makes an object of this process"),
    **dict.fromkeys(
        (
            "Session.create_queue",
            "Session.create_topic",
            "JMSContext.create_queue",
            "JMSContext.create_topic",
            "QueueSession.create_queue",
            "TopicSession.create_topic",
        ),
        "names a destination, and makes none",
    ),
    **dict.fromkeys(
        (
            "Connection.create_connection_consumer",
            "Connection.create_shared_connection_consumer",
            "Connection.create_durable_connection_consumer",
            "Connection.create_shared_durable_connection_consumer",
            "QueueConnection.create_connection_consumer",
            "TopicConnection.create_connection_consumer",
            "TopicConnection.create_durable_connection_consumer",
            "Session.run",
            "Session.message_listener",
        ),
        "connection consumers are refused by name",
    ),
    "Connection.exception_listener": "is noted",
    "JMSContext.exception_listener": "is noted",
    "JMSContext.auto_start": "is noted",
}
# Properties that only tell what is known here.
READS = {
    *("Connection.meta_data", "JMSContext.meta_data", "JMSContext.transacted", "JMSContext.session_mode"),
    *("Session.transacted", "Session.acknowledge_mode", "MessageConsumer.message_selector", "JMSConsumer.message_selector"),
    *("QueueBrowser.queue", "QueueBrowser.message_selector", "QueueReceiver.queue", "QueueSender.queue"),
    *("TopicPublisher.topic", "TopicSubscriber.topic", "TopicSubscriber.no_local", "MessageProducer.destination"),
}


def why_local(member: str) -> str | None:
    """Say why a member of the API never waits for a broker; None when it may."""
    owner, _, name = member.partition(".")
    if owner.startswith("XA"):
        return _XA
    if owner == "Message" and name != "acknowledge":
        return _DATA
    # Settings of a producer, and its properties, are kept until it sends.
    if owner == "MessageProducer" and name not in ("send", "close"):
        return _DATA
    if owner == "JMSProducer" and name not in ("send", "async_", "set_async"):
        return _DATA
    if member in READS:
        return _DATA
    return LOCAL_TYPES.get(owner) or LOCAL.get(member)
