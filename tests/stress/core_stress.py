"""Sessions of every mode at once, with random close, stop, recover and rollback: nothing lost, doubled, stuck or leaked.

    python tests/stress/core_stress.py [--seconds 60] [--sessions 32] [--parts 16] [--seed N]

Each thread owns one session at a time with ``--parts`` producers and consumers on shared queues. A message counts as sent when
its send (or commit) has returned, and as received when the session's mode says that it is acknowledged. In the end the queues
and those of their dead letters are emptied and the two are compared message by message.
"""

from __future__ import annotations

import argparse
import collections
import random
import threading
import time
from dataclasses import dataclass, field

import jmsapi
from jmsapi import (
    Connection,
    IllegalStateException,
    JMSException,
    Message,
    MessageConsumer,
    MessageProducer,
    Session,
    TextMessage,
)

QUEUES = 8
MODES = (
    Session.AUTO_ACKNOWLEDGE,
    Session.CLIENT_ACKNOWLEDGE,
    Session.DUPS_OK_ACKNOWLEDGE,
    Session.SESSION_TRANSACTED,
)


@dataclass
class Tally:
    """What the threads say they did."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    sent: collections.Counter[str] = field(default_factory=collections.Counter[str])
    received: collections.Counter[str] = field(default_factory=collections.Counter[str])
    events: collections.Counter[str] = field(default_factory=collections.Counter[str])
    faults: list[str] = field(default_factory=list[str])


class Worker:
    """One thread and the session it owns."""

    def __init__(self, number: int, connections: list[Connection], parts: int, seed: int, tally: Tally, end: float) -> None:
        self.number = number
        self.connections = connections
        self.parts = parts
        self.random = random.Random(seed * 1000 + number)
        self.tally = tally
        self.end = end
        self.serial = 0

    def run(self) -> None:
        """Work until the time is up; anything unexpected is a fault."""
        try:
            while time.monotonic() < self.end:
                self.one_session()
        except Exception as error:
            with self.tally.lock:
                self.tally.faults.append(f"worker {self.number}: {type(error).__name__}: {error}")

    def one_session(self) -> None:
        """Use one session for a while, then close it in one way or another."""
        mode = self.random.choice(MODES)
        session = self.random.choice(self.connections).create_session(mode)
        queues = [session.create_queue(f"stress-{self.random.randrange(QUEUES)}") for _ in range(self.parts)]
        producers = [session.create_producer(queue) for queue in queues[: self.parts // 2]]
        consumers = [session.create_consumer(queue) for queue in queues[self.parts // 2 :]]
        sent: list[str] = []
        received: list[str] = []
        for _ in range(self.random.randrange(20, 200)):
            if time.monotonic() >= self.end:
                break
            self.step(session, mode, producers, consumers, sent, received)
        if mode == Session.SESSION_TRANSACTED and self.random.random() < 0.5:
            session.commit()
            self.count(sent, received)
        elif mode == Session.CLIENT_ACKNOWLEDGE:
            self.count(sent, [])
        elif mode != Session.SESSION_TRANSACTED:
            self.count(sent, received)
        self.close(session)

    def step(
        self,
        session: Session,
        mode: int,
        producers: list[MessageProducer],
        consumers: list[MessageConsumer],
        sent: list[str],
        received: list[str],
    ) -> None:
        """Do one random thing."""
        dice = self.random.random()
        if dice < 0.45:
            self.serial += 1
            text = f"{self.number}-{self.serial}"
            self.random.choice(producers).send(session.create_text_message(text))
            sent.append(text)
        elif dice < 0.9:
            consumer = self.random.choice(consumers)
            message = consumer.receive_no_wait() if dice < 0.7 else consumer.receive(2)
            if message is not None:
                received.append(text_of(message))
                if mode == Session.CLIENT_ACKNOWLEDGE and self.random.random() < 0.1:
                    message.acknowledge()
                    self.count([], received)
        elif dice < 0.95:
            if mode == Session.SESSION_TRANSACTED:
                if self.random.random() < 0.5:
                    session.commit()
                    self.count(sent, received)
                else:
                    session.rollback()
                    sent.clear()
                    received.clear()
                    self.tally.events["rollback"] += 1
            elif mode == Session.CLIENT_ACKNOWLEDGE:
                session.recover()
                received.clear()
                self.tally.events["recover"] += 1
        elif dice < 0.97 and len(consumers) > 1:
            # What a closed consumer delivered stays with its session: in CLIENT and TRANSACTED it still counts.
            consumers.pop(self.random.randrange(len(consumers))).close()
            self.tally.events["consumer closed"] += 1

    def count(self, sent: list[str], received: list[str]) -> None:
        """These are settled now."""
        with self.tally.lock:
            self.tally.sent.update(sent)
            self.tally.received.update(received)
        sent.clear()
        received.clear()

    def close(self, session: Session) -> None:
        """Close the session, from this thread or from another one."""
        if self.random.random() < 0.3:
            other = threading.Thread(target=session.close)
            other.start()
            other.join(30)
            if other.is_alive():
                raise AssertionError("close from another thread did not return")
        else:
            session.close()
        self.tally.events["session closed"] += 1


def text_of(message: Message) -> str:
    """Return a message's text."""
    assert isinstance(message, TextMessage)
    return message.text or ""


def disturb(connections: list[Connection], tally: Tally, end: float, seed: int) -> None:
    """Stop and start connections."""
    dice = random.Random(seed)
    while time.monotonic() < end:
        connection = dice.choice(connections)
        try:
            connection.stop()
            connection.start()
        except (IllegalStateException, JMSException) as error:
            tally.faults.append(f"stop and start: {error}")
        tally.events["stop and start"] += 1
        threading.Event().wait(0.005)


def stress(seconds: float, sessions: int, parts: int, seed: int) -> Tally:
    """Run the storm; return what was seen, faults included."""
    before = {thread.ident for thread in threading.enumerate()}
    tally = Tally()
    factory = jmsapi.connection_factory(f"inproc://stress-{seed}", prefetch=10, redelivery_delay_ms=0)
    connections = [factory.create_connection() for _ in range(4)]
    for connection in connections:
        connection.start()
    end = time.monotonic() + seconds
    workers = [Worker(n, connections, parts, seed, tally, end) for n in range(sessions)]
    threads = [threading.Thread(target=worker.run, name=f"worker-{worker.number}") for worker in workers]
    threads.append(threading.Thread(target=disturb, args=(connections, tally, end, seed), name="disturber"))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(1.0, end - time.monotonic()) + 60)
        if thread.is_alive():
            tally.faults.append(f"{thread.name} is stuck")
    for connection in connections:
        connection.close()
    with factory.create_context() as context:
        # What failed more often than max_redeliveries allows is a dead letter.
        for name in (f"{prefix}stress-{n}" for n in range(QUEUES) for prefix in ("", "DLQ.")):
            consumer = context.create_consumer(context.create_queue(name))
            while (text := consumer.receive_body_no_wait(str)) is not None:
                tally.received[text] += 1
    left = [t.name for t in threading.enumerate() if t.ident not in before and t.name.startswith("jmsapi-")]
    if left:
        tally.faults.append(f"threads are left: {left}")
    lost = tally.sent - tally.received
    twice = tally.received - tally.sent
    if lost:
        tally.faults.append(f"{sum(lost.values())} lost, such as {list(lost)[:5]}")
    if twice:
        tally.faults.append(f"{sum(twice.values())} doubled or never sent, such as {list(twice)[:5]}")
    return tally


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--sessions", type=int, default=32)
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    tally = stress(given.seconds, given.sessions, given.parts, given.seed)
    print(f"seed {given.seed}: {given.sessions} sessions with {given.parts} producers and consumers for {given.seconds:.0f} s")
    print(f"sent {sum(tally.sent.values()):,}, received {sum(tally.received.values()):,}; {dict(tally.events)}")
    for fault in tally.faults:
        print("FAULT:", fault)
    return 1 if tally.faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
