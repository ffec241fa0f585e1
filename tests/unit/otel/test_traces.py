"""Spans by the semantic conventions of messaging, and the context in the properties of messages."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Iterator

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind

import jmsapi
import jmsapi.aio
import jmsapi.otel
from jmsapi import JMSContext, Message
from jmsapi._core.telemetry import installed
from jmsapi.listener import JMSListenerProperty, JMSQueueListener, deploy
from jmsapi.testing import EmbeddedBroker, LoopbackServer

from .watching import WAIT_S, Watched, watching

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def watched() -> Iterator[Watched]:
    with watching() as found:
        yield found


@pytest.fixture
def url() -> str:
    return f"inproc://{uuid.uuid4().hex}"


def told(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def links(span: ReadableSpan) -> list[int]:
    return [link.context.span_id for link in span.links]


def identity(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def send_one(jms: JMSContext, text: str = "text") -> None:
    jms.create_producer().send(jms.create_queue("q"), text)


def test_a_send_and_a_receive_have_the_spans_that_the_conventions_name(watched: Watched, url: str) -> None:
    with jmsapi.connection_factory(url).create_context() as jms:
        jms.create_producer().set_jms_correlation_id("talk").send(jms.create_queue("q"), "text")
        message = jms.create_consumer(jms.create_queue("q")).receive(20_000)
        assert message is not None
        sent, received = watched.named("send q", "receive q")
        assert (sent.kind, received.kind) == (SpanKind.PRODUCER, SpanKind.CLIENT)
        shared = {
            "messaging.system": "jms",
            "messaging.destination.name": "q",
            "messaging.message.id": message.jms_message_id,
            "messaging.message.conversation_id": "talk",
        }
        assert told(sent) == {**shared, "messaging.operation.name": "send", "messaging.operation.type": "send"}
        assert told(received) == {**shared, "messaging.operation.name": "receive", "messaging.operation.type": "receive"}
        assert links(received) == [identity(sent)]
        assert received.parent is None
        assert sent.instrumentation_scope is not None
        assert sent.instrumentation_scope.schema_url == jmsapi.otel.SCHEMA_URL == "https://opentelemetry.io/schemas/1.44.0"


def test_the_spans_of_a_broker_elsewhere_say_where(watched: Watched) -> None:
    with LoopbackServer() as server, jmsapi.connection_factory(server.url).create_context() as jms:
        send_one(jms)
        (sent,) = watched.named("send q")
        assert f"stomp://{told(sent)['server.address']}:{told(sent)['server.port']}" == server.url


def test_the_object_that_the_sender_keeps_has_the_properties_it_had(watched: Watched, url: str) -> None:
    with jmsapi.connection_factory(url).create_context() as jms:
        queue, message = jms.create_queue("q"), jms.create_text_message("text")
        message.set_string_property("own", "value")
        jms.create_producer().send(queue, message)
        assert list(message.property_names) == ["own"]
        message.set_string_property("more", "value")
        received = jms.create_consumer(queue).receive(20_000)
        assert received is not None
        assert set(received.property_names) == {"own", "traceparent", "JMSXDeliveryCount"}


def test_nothing_is_added_to_a_message_where_nobody_watches(url: str) -> None:
    with jmsapi.connection_factory(url).create_context() as jms:
        send_one(jms)
        received = jms.create_consumer(jms.create_queue("q")).receive(20_000)
        assert received is not None
        assert list(received.property_names) == ["JMSXDeliveryCount"]


def test_a_received_message_can_be_sent_on_as_it_is_and_its_trace_goes_on(watched: Watched, url: str) -> None:
    with jmsapi.connection_factory(url).create_context() as jms:
        send_one(jms)
        message = jms.create_consumer(jms.create_queue("q")).receive(20_000)
        assert message is not None
        before = message.get_string_property("traceparent")
        jms.create_producer().send(jms.create_queue("next"), message)
        assert message.get_string_property("traceparent") == before
        on = jms.create_consumer(jms.create_queue("next")).receive(20_000)
        assert on is not None
        assert on.get_string_property("traceparent") != before
        first, second = watched.named("send q", "send next")
        assert second.parent is not None
        assert second.parent.span_id == identity(first)


def test_a_context_that_the_application_has_set_stays(watched: Watched, url: str) -> None:
    with jmsapi.connection_factory(url).create_context() as jms:
        jms.create_producer().set_property("traceparent", TRACEPARENT).send(jms.create_queue("q"), "text")
        message = jms.create_consumer(jms.create_queue("q")).receive(20_000)
        assert message is not None
        assert message.get_string_property("traceparent") == TRACEPARENT
        (sent,) = watched.named("send q")
        assert sent.kind is SpanKind.CLIENT
        assert links(sent) == [int("b7ad6b7169203331", 16)]


@pytest.mark.parametrize("written", ["", "nonsense", "00-" + "0" * 32 + "-b7ad6b7169203331-01", "01-x"])
def test_properties_that_are_no_context_are_none(watched: Watched, url: str, written: str) -> None:
    with jmsapi.connection_factory(url).create_context() as jms:
        jms.create_producer().set_property("traceparent", written).send(jms.create_queue("q"), "text")
        message = jms.create_consumer(jms.create_queue("q")).receive(20_000)
        assert message is not None
        sent, received = watched.named("send q", "receive q")
        assert links(received) == [identity(sent)]


def test_baggage_and_trace_state_travel_over_every_wire(broker_url: str, watched: Watched) -> None:
    name = f"otel-{uuid.uuid4().hex}"
    state = trace.TraceState([("vendor", "value")])
    parent = trace.SpanContext(1, 2, is_remote=True, trace_flags=trace.TraceFlags(1), trace_state=state)
    outer = baggage.set_baggage("tenant", "blue", trace.set_span_in_context(trace.NonRecordingSpan(parent)))
    with jmsapi.connection_factory(broker_url).create_context() as jms:
        token = context.attach(outer)
        try:
            jms.create_producer().send(jms.create_queue(name), "text")
        finally:
            context.detach(token)
        message = jms.create_consumer(jms.create_queue(name)).receive(20_000)
        assert message is not None
        assert message.get_string_property("tracestate") == "vendor=value"
        assert message.get_string_property("baggage") == "tenant=blue"
        found = jmsapi.otel.context_of(message)
        (sent,) = watched.named(f"send {name}")
        assert trace.get_current_span(found).get_span_context().span_id == identity(sent)
        assert baggage.get_all(found) == {"tenant": "blue"}
        assert sent.parent is not None
        assert (sent.parent.trace_id, sent.parent.span_id) == (1, 2)


def test_a_listener_runs_in_a_span_of_its_message(watched: Watched, url: str) -> None:
    current: list[int] = []
    done = threading.Event()

    def on_message(message: Message) -> None:
        current.append(trace.get_current_span().get_span_context().span_id)
        done.set()

    with jmsapi.connection_factory(url).create_context() as jms:
        jms.create_consumer(jms.create_queue("q")).message_listener = on_message
        send_one(jms)
        assert done.wait(WAIT_S)
        sent, processed = watched.named("send q", "process q")
        assert processed.kind is SpanKind.CONSUMER
        assert current == [identity(processed)]
        assert processed.parent is not None
        assert processed.parent.span_id == identity(sent)
        assert links(processed) == [identity(sent)]


def test_a_listener_that_raises_has_the_error_in_its_span(watched: Watched, url: str) -> None:
    calls: list[bool] = []
    done = threading.Event()

    def on_message(message: Message) -> None:
        calls.append(message.jms_redelivered)
        if len(calls) == 1:
            raise KeyError("first")
        done.set()

    with jmsapi.connection_factory(url).create_context() as jms:
        jms.create_consumer(jms.create_queue("q")).message_listener = on_message
        send_one(jms)
        assert done.wait(WAIT_S)
        jms.close()
    first, second = watched.named("process q")
    assert told(first)["error.type"] == "KeyError"
    assert not first.status.is_ok
    assert "error.type" not in told(second)
    assert watched.numbers("jmsapi.client.redeliveries") == {"process q": 1}


def test_a_batch_has_one_span_with_a_link_to_each_message(watched: Watched, url: str) -> None:
    done = threading.Event()

    @JMSQueueListener()
    @JMSListenerProperty("destination", "q")
    @JMSListenerProperty("batchSize", "3")
    @JMSListenerProperty("batchWaitMs", "20000")
    def on_batch(messages: list[Message]) -> None:
        done.set()

    factory = jmsapi.connection_factory(url)
    with factory.create_context() as jms:
        for number in range(3):
            send_one(jms, str(number))
    with deploy(on_batch, factory=factory):
        assert done.wait(WAIT_S)
    sent = watched.named("send q")
    (processed,) = watched.named("process q")
    assert told(processed)["messaging.batch.message_count"] == 3
    assert "messaging.message.id" not in told(processed)
    assert sorted(links(processed)) == sorted(map(identity, sent))
    assert processed.parent is None
    (committed,) = watched.named("commit q")
    assert committed.parent is not None
    assert committed.parent.span_id == identity(processed)
    assert told(committed)["messaging.operation.type"] == "settle"
    assert watched.numbers("messaging.client.consumed.messages") == {"process q": 3}


def test_commit_rollback_and_acknowledge_are_settle_spans(watched: Watched, url: str) -> None:
    factory = jmsapi.connection_factory(url)
    with factory.create_context(JMSContext.SESSION_TRANSACTED) as jms:
        queue = jms.create_queue("q")
        jms.create_producer().send(queue, "text").send(queue, "text")
        jms.commit()
        consumer = jms.create_consumer(queue)
        consumer.receive(20_000)
        jms.rollback()
        consumer.receive(20_000)
        consumer.receive(20_000)
        jms.commit()
    with factory.create_context(JMSContext.CLIENT_ACKNOWLEDGE) as jms:
        send_one(jms)
        message = jms.create_consumer(jms.create_queue("q")).receive(20_000)
        assert message is not None
        message.acknowledge()
    settled = [span for span in watched.spans if told(span)["messaging.operation.type"] == "settle"]
    assert [span.name for span in settled] == ["commit", "rollback q", "commit q", "acknowledge q"]
    assert [len(span.links) for span in settled] == [0, 1, 2, 1]
    assert {span.kind for span in settled} == {SpanKind.CLIENT}


@pytest.mark.parametrize("mode", [JMSContext.AUTO_ACKNOWLEDGE, JMSContext.DUPS_OK_ACKNOWLEDGE])
@pytest.mark.parametrize("wanted", [False, True])
def test_acknowledgements_that_nobody_waits_for_have_spans_where_they_are_wanted(url: str, mode: int, wanted: bool) -> None:
    with watching(acknowledgements=wanted) as watched:
        with jmsapi.connection_factory(url).create_context(mode) as jms:
            send_one(jms)
            jms.create_consumer(jms.create_queue("q")).receive(20_000)
        assert [span.name for span in watched.spans].count("acknowledge q") == wanted


def test_an_asynchronous_send_lasts_until_it_is_answered(watched: Watched, url: str) -> None:
    answered = threading.Event()

    class Listener(jmsapi.CompletionListener):
        def on_completion(self, message: Message) -> None:
            answered.set()

        def on_exception(self, message: Message, exception: Exception) -> None:
            answered.set()

    with jmsapi.connection_factory(url).create_context() as jms:
        jms.create_producer().set_async(Listener()).send(jms.create_queue("q"), "text")
        assert answered.wait(WAIT_S)
        watched.named("send q")
    assert watched.numbers("messaging.client.sent.messages") == {"send q": 1}


def test_a_send_that_fails_says_so(watched: Watched) -> None:
    with EmbeddedBroker() as broker, broker.connection_factory().create_context() as jms:
        broker.faults.fail("send")
        with pytest.raises(jmsapi.JMSRuntimeException):
            send_one(jms)
    (sent,) = watched.named("send q")
    kind = told(sent)["error.type"]
    assert str(kind).startswith("jmsapi.errors.")
    assert watched.numbers("messaging.client.sent.messages") == {f"send q {kind}": 1}


def test_a_temporary_destination_names_neither_spans_nor_metrics(watched: Watched, url: str) -> None:
    with jmsapi.connection_factory(url).create_context() as jms:
        queue = jms.create_temporary_queue()
        jms.create_producer().send(queue, "text")
        (sent,) = watched.named("send")
        assert told(sent)["messaging.destination.temporary"] is True
        assert told(sent)["messaging.destination.name"] == queue.queue_name
        assert watched.numbers("messaging.client.sent.messages") == {"send": 1}


def test_a_block_that_processes_what_was_received_has_a_span(watched: Watched, url: str) -> None:
    with jmsapi.connection_factory(url).create_context() as jms:
        send_one(jms)
        message = jms.create_consumer(jms.create_queue("q")).receive(20_000)
        assert message is not None
        with pytest.raises(ValueError, match="no"), jmsapi.otel.process(message) as span:
            assert trace.get_current_span() is span
            raise ValueError("no")
        sent, processed = watched.named("send q", "process q")
        assert processed.parent is not None
        assert processed.parent.span_id == identity(sent)
        assert told(processed)["error.type"] == "ValueError"
        assert watched.numbers("messaging.process.duration") == {"process q ValueError": 1}
        with pytest.raises(jmsapi.IllegalArgumentException), jmsapi.otel.process(jms.create_message()):
            pass


def test_the_asyncio_face_has_the_same_spans(watched: Watched, url: str) -> None:
    async def program() -> None:
        async with jmsapi.aio.connection_factory(url).create_context() as jms:
            queue = jms.create_queue("q")
            await jms.create_producer().send(queue, "text")
            async with await jms.create_consumer(queue) as consumer:
                message = await consumer.receive(timeout_ms=20_000)
                assert message is not None
                with jmsapi.otel.process(message):
                    await jms.create_producer().send(jms.create_queue("next"), "text")

    asyncio.run(program())
    assert watched.tree() == "\n".join(
        [
            "send q (producer)",
            "    process q (consumer)",
            "        send next (producer)",
            "receive q (client, linked to: send q)",
        ]
    )


@pytest.mark.parametrize("wanted", ["messaging", "messaging/dup", "http,messaging", ""])
def test_the_variable_for_stable_conventions_changes_nothing_as_there_is_no_older_version_here(
    monkeypatch: pytest.MonkeyPatch, url: str, wanted: str
) -> None:
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", wanted)
    with watching() as watched, jmsapi.connection_factory(url).create_context() as jms:
        send_one(jms)
        assert [span.name for span in watched.spans] == ["send q"]


def test_a_factory_says_whether_its_connections_are_watched(url: str) -> None:
    with watching() as watched:
        with jmsapi.connection_factory(f"{url}?telemetry=false").create_context() as jms:
            send_one(jms)
        assert watched.spans == []
    with jmsapi.connection_factory(url, telemetry=True).create_context():
        assert installed() is not None
    jmsapi.otel.uninstrument()


def test_a_connection_that_was_open_before_stays_as_it_was(url: str) -> None:
    with jmsapi.connection_factory(url).create_context() as jms:
        jms.start()
        with watching() as watched:
            send_one(jms)
            assert watched.spans == []
