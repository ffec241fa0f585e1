"""Feeds a STOMP connection mutations of real frames: whatever a peer sends must end in deliveries or in a ProviderError.

    python tests/providers/stomp/frame_fuzz.py --frames 10000000 --seed 1

Each read is cut and dealt with by the code that a socket's bytes go through, up to the events for the core, and every part of
each delivered message is read. A Python exception of another kind ends the run with the bytes that caused it.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final

from jmsapi.spi import Address, ConsumerSpec, Delivery, DestinationKind, Envelope, Handle, ProviderError, SystemClock
from jmsapi_stomp.connection import StompConnection
from jmsapi_stomp.connection_settings import connection_settings
from jmsapi_stomp.options import StompOptions
from jmsapi_stomp.provider import StompProvider

SERVERS: Final = {"artemis": "ActiveMQ-Artemis/2.56.0", "classic": "ActiveMQ/6.3.1", "rabbitmq": "RabbitMQ/4.0.5"}
CONNECTED: Final = "CONNECTED\nversion:1.2\nsession:ID\\c1\nheart-beat:10000,10000\nserver:%s\n\n\0\n"
SEEDS: Final = (
    b"MESSAGE\nsubscription:c2\ncontent-length:5\nmessage-id:1283\ndestination:q\nexpires:0\nredelivered:false\npriority:4\n"
    b"persistent:true\ntimestamp:1795842329749\nack:c2,1283\nJMS_PY_type:Text\nn:7\nJMS_PY_props:n=i\n\nhello\0",
    b"MESSAGE\nexpires:0\ndestination:/queue/own\nsubscription:c2\npriority:4\nmessage-id:ID\\cvm-41169-1795842721361-5\\c2\\c-1\\c1\\c1\n"
    b"reply-to:/temp-queue/x1\ntimestamp:1795842728158\ntransformation:jms-map-json\n\nown\0\n",
    b"MESSAGE\nsubscription:c2\ndestination:/queue/tq1\nmessage-id:T_c2@@session-ThJ@@1\nredelivered:false\nack:T_c2@@session-ThJ@@1\n"
    b'JMS_PY_type:Map\nreceipt:1\ncontent-type:text/plain;charset=utf-16\ncontent-length:15\n\n{"a":["b",true]}\0\n',
    b"MESSAGE\nsubscription:c2\nmessage-id:1\ntype:amqp-1.0\ncontent-length:9\n\n\x00Sw\xa1\x04text\0\n",
    b"MESSAGE\nsubscription:c2\nmessage-id:1\ntype:amqp-1.0\ncontent-length:14\n\n\x00Sw\xc1\x09\x04\xa1\x01a\x55\x07\xa1\x01b@\0\n",
    b"MESSAGE\nsubscription:c2\nJMS_PY_type:Stream\nJMS_PY_corr:AAE=\n"
    b'JMS_PY_long:{"x"\\c "y"}\nJMS_PY_dest:1\\cnews\n\n[["s","a"]]\0',
    b"RECEIPT\nreceipt-id:1\n\n\0\n",
    b"RECEIPT\nreceipt-id:77\n\n\0\n",
    b"ERROR\nmessage:Server cancelled subscription\nsubscription:c2\ncontent-length:4\n\nwhy?\0\n",
    b"ERROR\nreceipt-id:3\nmessage:AMQ229031\\c no\n\n\0\n",
    b"CONNECTED\nversion:1.2\nheart-beat:0,0\n\n\0\n",
    b"\n",
)
WORDS: Final = (
    *(
        b"\0",
        b"\n",
        b"\r\n",
        b":",
        b"\\",
        b"\\c",
        b"\xff",
        b"\xc0\x80",
        b"\xed\xa0\xbd",
        b"\n\n",
        b"\0\n",
        b"content-length:",
        b"-5",
    ),
    *(b"9" * 20, b"9" * 400, b"9" * 5000, b"ack:", b"subscription:c2\n", b"message-id:", b"expires:soon\n", b"priority:x\n"),
    *(
        b"JMS_PY_props:a=b\n",
        b"JMS_PY_exp:",
        b"JMS_AMQP_ORIGINAL_ENCODING:5\n",
        b"heart-beat:1,",
        b"receipt-id:",
        b"browser:end\n",
    ),
)
PARTS: Final = tuple(name for name in vars(Envelope) if isinstance(vars(Envelope)[name], property))


@dataclass
class Outcomes:
    """What became of the frames."""

    reads: int = 0
    delivered: int = 0
    unreadable: int = 0
    ended: int = 0
    kinds: set[str] = field(default_factory=set[str])


class Reader:
    """The core's side: reads every part of what is delivered."""

    def __init__(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            self._outcomes.delivered += 1
            for part in PARTS:
                try:
                    getattr(delivery.envelope, part)
                except ProviderError as error:
                    self._outcomes.unreadable += 1
                    self._outcomes.kinds.add(error.kind.value)

    def on_sent(self, results: Sequence[Any]) -> None:
        assert results

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        self._outcomes.kinds.add(cause.kind.value)

    def on_lost(self, cause: ProviderError) -> None:
        self._outcomes.ended += 1
        self._outcomes.kinds.add(cause.kind.value)

    def on_resumed(self) -> None:
        raise AssertionError("this provider does not reconnect")


class Connection:
    """A provider whose socket is the caller of ``read``; its I/O thread does not run, so all happens in the caller's."""

    def __init__(self, server: str, outcomes: Outcomes) -> None:
        options = StompOptions.model_validate({"scheme": "stomp", "host": "localhost", "broker": server})
        self.provider = StompProvider(options, SystemClock())
        lifecycle: Any = self.provider._lifecycle
        lifecycle._events = Reader(outcomes)
        lifecycle._settings = settings = connection_settings(options)
        lifecycle._main = self.wire = StompConnection(lifecycle.loop, SystemClock(), settings, lifecycle)
        self._wire: Any = self.wire
        self._wire._connecting = lifecycle._on_connected
        self.read((CONNECTED % SERVERS[server]).encode())
        session = self.provider.open_session(transacted=False).result(0)
        opened: Future[Handle] = self.provider.open_consumer(
            session, ConsumerSpec(Address(DestinationKind.QUEUE, "q"), prefetch=1000)
        )
        self._run_jobs()
        self.read(b"RECEIPT\nreceipt-id:1\n\n\0\n")
        self.provider.credit(opened.result(0), 1_000_000)
        self._run_jobs()

    def _run_jobs(self) -> None:
        loop: Any = self.provider._lifecycle.loop
        loop._run_jobs(len(loop._jobs))

    def read(self, data: bytes) -> None:
        """Do what the transport does with what one read brought."""
        transport = self._wire._transport
        try:
            frames = transport._cutter.feed(data)
        except ProviderError as fault:
            transport._end(fault)
            return
        if frames:
            self.wire.on_frames(frames)
        if transport._cutter.fault is not None and self.wire.dead is None:
            transport._end(transport._cutter.fault)
        transport._queue.clear()


def mutated(dice: random.Random) -> bytes:
    """Return one or a few real frames with some bytes changed."""
    data = bytearray(b"".join(dice.choices(SEEDS, k=dice.choice((1, 1, 1, 2, 3)))))
    for _ in range(dice.choice((0, 1, 1, 2, 4, 8))):
        at = dice.randrange(len(data) + 1)
        match dice.randrange(5):
            case 0 if at < len(data):
                data[at] = dice.randrange(256)
            case 1:
                data[at:at] = dice.choice(WORDS)
            case 2:
                del data[at : at + dice.randrange(1, 12)]
            case 3:
                lines = bytes(data).split(b"\n")
                data = bytearray(b"\n".join([*lines, dice.choice(lines)]))
            case _:
                start = dice.randrange(len(data) + 1)
                data[at:at] = data[start : start + dice.randrange(40)]
    return bytes(data)


def fuzz(reads: int, seed: int) -> Outcomes:
    """Feed so many mutated reads to connections of each broker.

    Raises:
        AssertionError: An exception that is no ProviderError came out; the bytes are in its text.
    """
    dice = random.Random(seed)
    outcomes = Outcomes()
    connections: dict[str, Connection] = {}
    for _ in range(reads):
        server = dice.choice(tuple(SERVERS))
        connection = connections.get(server)
        if connection is None:
            connection = connections[server] = Connection(server, outcomes)
        data = mutated(dice)
        outcomes.reads += 1
        try:
            connection.read(data)
        except Exception as error:
            raise AssertionError(f"{server}, seed {seed}, read {outcomes.reads}: {error!r} came of {data!r}") from error
        if connection.wire.dead is not None or outcomes.reads % 1000 == 0:
            del connections[server]
    return outcomes


def main() -> int:
    """Run until so many reads are done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    begun = time.monotonic()
    print(fuzz(given.frames, given.seed), f"seed {given.seed}, {given.frames / (time.monotonic() - begun):.0f} reads a second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
