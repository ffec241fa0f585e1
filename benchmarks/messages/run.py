"""What messages cost: objects, and the codecs of both wires beside the wire libraries' own.

    python benchmarks/messages/run.py [--rounds N]

Times are microseconds, the median over the rounds and the best one; compare rows of one run only. A message is a TextMessage
of 1 KiB with five properties. Codec rows are skipped where the wire library is not installed.

| row | what is measured |
|---|---|
| create | a new message, five properties of five types and the text |
| snapshot | freezing it for a send, unchanged since the last one |
| snapshot after a change | the same, with one property set in between |
| received | the object for one delivery, nothing read |
| received and read | the same, with text and all five properties read by typed getters |
| memory | bytes for each of 10,000 received messages, over the body: nothing read, properties read, text read as well |
| encode, decode | envelope to bytes; bytes to envelope with all properties and the body read |
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

from jmsapi._core.destination import QueueImpl
from jmsapi._core.message import create, received, snapshot, stamp
from jmsapi._core.object_codec import ObjectCodec
from jmsapi.spi import Address, Delivery, DestinationKind, MessageKind, PlainEnvelope, Tag

TEXT = "x" * 1024
QUEUE = Address(DestinationKind.QUEUE, "benchmark")
CODEC = ObjectCodec()
CALLS = 2_000
MESSAGES = 10_000
Row = tuple[str, Callable[[], object]]


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    print(f"{'':34} {'median':>9} {'best':>9}   us")
    for name, call in (*objects(), *stomp(), *amqp()):
        times = [once(call) for _ in range(rounds)]
        print(f"{name:34} {statistics.median(times):9.2f} {min(times):9.2f}")
    print(f"{'':34} {'unread':>9} {'props':>9} {'text':>9}   bytes over the body")
    for name, make in wires():
        print(f"{f'memory, {name}':34} " + " ".join(f"{memory(make, state):9,.0f}" for state in STATES))
    return 0


def once(call: Callable[[], object]) -> float:
    """Return the microseconds of one call, over many."""
    begin = time.perf_counter_ns()
    for _ in range(CALLS):
        call()
    return (time.perf_counter_ns() - begin) / CALLS / 1000


# ---- objects


def new(text: str = TEXT) -> Any:
    """Create the message."""
    message: Any = create(MessageKind.TEXT, CODEC)
    message.set_string_property("region", "EU")
    message.set_int_property("number", 42)
    message.set_long_property("total", 2**40)
    message.set_double_property("price", 1.5)
    message.set_boolean_property("paid", True)
    message.text = text
    return message


def read(message: Any) -> None:
    """Read everything the application put in."""
    message.get_string_property("region")
    message.get_int_property("number")
    message.get_long_property("total")
    message.get_double_property("price")
    message.get_boolean_property("paid")
    _ = message.text


def freeze(message: Any) -> PlainEnvelope:
    """Freeze it for a send."""
    return snapshot(
        message,
        destination=QUEUE,
        message_id="ID:1234567890:1:1",
        timestamp=1_700_000_000_000,
        delivery_mode=2,
        priority=4,
        expiration=0,
        delivery_time=1_700_000_000_000,
        origin="me",
    )


def deliver(envelope: Any) -> Any:
    """Make the object for one delivery."""
    return received(Delivery(Tag(), envelope, 1), 0, None, CODEC, None)


def objects() -> Iterator[Row]:
    """Give the rows without a wire."""
    message, changing, here = new(), new(), QueueImpl("benchmark")
    envelope = freeze(message)

    def change() -> None:
        changing.set_int_property("number", 43)
        freeze(changing)

    yield "create", new
    yield "snapshot", lambda: freeze(message)
    yield "snapshot after a change", change
    yield "stamp", lambda: stamp(message, envelope, here)
    yield "received", lambda: deliver(envelope)
    yield "received and read", lambda: read(deliver(envelope))


# ---- wires


def touch(envelope: Any) -> None:
    """Have everything decoded that an application may read."""
    _ = envelope.kind, envelope.body, envelope.properties, envelope.destination, envelope.message_id, envelope.timestamp
    _ = envelope.correlation_id, envelope.reply_to, envelope.delivery_mode, envelope.jms_type, envelope.expiration
    _ = envelope.delivery_time, envelope.priority


def stomp() -> Iterator[Row]:
    """Give the rows of STOMP, beside stomp.py's own writing and reading of the same frame."""
    try:
        from stomp.utils import Frame, convert_frame, parse_frame
    except ImportError:
        return
    encode_it, decode_it = stomp_codec()
    envelope = freeze(new())
    frame = encode_it(envelope)
    parsed = parse_frame(frame)
    theirs = Frame(parsed.cmd, dict(parsed.headers), parsed.body)
    yield "stomp encode", lambda: encode_it(envelope)
    yield "  stomp.py convert_frame", lambda: b"".join(convert_frame(theirs))
    yield "stomp decode", lambda: touch(decode_it(frame))
    yield "  stomp.py parse_frame", lambda: parse_frame(frame)


def stomp_codec() -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Return the provider's two functions, for Artemis."""
    from jmsapi_stomp.artemis import ArtemisStomp
    from jmsapi_stomp.codec import StompEnvelope, encode
    from jmsapi_stomp.frames import FrameCutter
    from jmsapi_stomp.options import StompOptions

    dialect = ArtemisStomp(StompOptions(scheme="stomp", host="localhost"), "2")

    def decode(frame: bytes) -> Any:
        (cut,) = FrameCutter(1 << 24).feed(frame)
        return StompEnvelope(cut, dialect, QUEUE)

    return lambda envelope: encode(envelope, dialect, 0, dialect.start_of_send(envelope.destination)), decode


def amqp() -> Iterator[Row]:
    """Give the rows of AMQP, beside proton's Message."""
    try:
        from proton import Message
    except ImportError:
        return
    encode_it, decode_it = amqp_codec()
    envelope = freeze(new())
    raw = encode_it(envelope)
    theirs = Message()
    theirs.decode(raw)

    def decode_theirs() -> None:
        message = Message()
        message.decode(raw)
        _ = message.body, message.properties, message.annotations, message.address, message.id, message.creation_time
        _ = message.correlation_id, message.reply_to, message.durable, message.subject, message.expiry_time, message.priority

    yield "amqp encode", lambda: encode_it(envelope)
    yield "  proton Message.encode", theirs.encode
    yield "amqp decode", lambda: touch(decode_it(raw))
    yield "  proton Message.decode", decode_theirs


def amqp_codec() -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Return the provider's two functions, for Artemis."""
    from jmsapi_amqp.brokers.artemis import Artemis
    from jmsapi_amqp.codec import ReceivedEnvelope, encode_message
    from jmsapi_amqp.options import AmqpOptions

    book = Artemis(AmqpOptions(scheme="amqp", host="localhost"), {}, ())
    return lambda envelope: encode_message(envelope, book, 0), lambda raw: ReceivedEnvelope(raw, book, QUEUE, 0)


# ---- memory


def wires() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Give for each wire what makes one received envelope of its own."""
    yield "in-process", lambda: freeze(new("".join(["x"] * len(TEXT))))
    for name, codec in (("stomp", stomp_codec), ("amqp", amqp_codec)):
        try:
            encode, decode = codec()
        except ImportError:
            continue
        raw = encode(freeze(new()))
        yield name, lambda decode=decode, raw=raw: decode(bytes(bytearray(raw)))


def memory(make: Callable[[], Any], look: Callable[[Any], object]) -> float:
    """Return the bytes that each of many received messages takes, without the body."""
    read(deliver(make()))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = [deliver(make()) for _ in range(MESSAGES)]
        for message in kept:
            look(message)
        return (tracemalloc.get_traced_memory()[0] - before) / MESSAGES - len(TEXT)
    finally:
        tracemalloc.stop()


STATES = (lambda _: None, lambda message: message.get_string_property("region"), read)


if __name__ == "__main__":
    raise SystemExit(main())
