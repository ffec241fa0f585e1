"""Prove that a shared durable subscription on ActiveMQ Classic loses and doubles nothing, whoever of those who use it is killed.

Member processes move messages from one shared subscription into a queue, each message in a local transaction; half of them use
AMQP, half STOMP. Each is ended with SIGKILL again and again, and so is the broker. In the end every published message must be in
the queue exactly once. The forwarder runs in one of the members, so it is killed as often as they are.

Before that, it is measured how fast one member reads what waits in a shared durable subscription, against a plain durable one.

Usage: python -m tests.stress.shared_proof [--messages N] [--members N] [--kills N] [--broker-kills N] [--limit-s S] [--seed N]
       [--speed-messages N]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass

from jmsapi import JMSContext, JMSError, connection_factory
from jmsapi_conformance.brokers import Broker, Wire, launch

TOPIC, NAME, RESULTS = "proof.shared", "proof-shared", "proof.shared.results"
FAILOVER = "initial_reconnect_delay_ms=10&reconnect_delay_ms=50&max_reconnect_delay_ms=500&resendUnconfirmed=false"
WIRES: tuple[Wire, Wire] = ("amqp", "stomp")
BATCH = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run showed."""

    published: int
    lost: int
    doubled: int
    kills: int
    broker_kills: int
    seconds: float
    takeover_s: list[float]
    """From each kill of a member until the next message was moved, by whomever."""
    broker_back_s: list[float]
    """The same from when the broker had been started again."""

    @property
    def good(self) -> bool:
        """Whether the contract was kept."""
        return not self.lost and not self.doubled


def member(url: str) -> None:
    """Move messages until killed: receive, send on, commit."""
    while True:
        try:
            with connection_factory(url).create_context(JMSContext.SESSION_TRANSACTED) as context:
                producer, results = context.create_producer(), context.create_queue(RESULTS)
                consumer = context.create_shared_durable_consumer(context.create_topic(TOPIC), NAME)
                print("open", flush=True)
                while True:
                    moved = 0
                    while moved < BATCH and (message := consumer.receive(timeout_ms=200 if moved else 1000)) is not None:
                        producer.send(results, message.get_body(str))
                        moved += 1
                    if moved:
                        context.commit()
                        print(moved, flush=True)
        except JMSError as error:
            # What was received in the transaction comes again, to this member or another.
            print(f"again: {error}", file=sys.stderr, flush=True)
            time.sleep(0.2)


class Members:
    """The member processes; each that is killed is started again."""

    def __init__(self, broker: Broker, count: int) -> None:
        self._urls = [f"failover:({broker.url(WIRES[i % 2])}?prefetch=100)?{FAILOVER}" for i in range(count)]
        self.moved = 0
        self.last = time.monotonic()
        self._processes = [self._start(i) for i in range(count)]

    def _start(self, i: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.stress.shared_proof", "--member", self._urls[i]]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        threading.Thread(target=self._read, args=(process,), daemon=True).start()
        return process

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip().isdigit():
                self.moved += int(line)
                self.last = time.monotonic()

    def kill(self, i: int) -> None:
        """End one with SIGKILL and start another in its place."""
        os.kill(self._processes[i].pid, signal.SIGKILL)
        self._processes[i].wait(30)
        self._processes[i] = self._start(i)

    def end(self) -> None:
        """End all."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait(30)


def run(broker: Broker, messages: int, members: int, kills: int, broker_kills: int, limit_s: float, seed: int) -> Outcome:
    """Publish, kill, and count."""
    chance = random.Random(seed)
    began = time.monotonic()
    url = broker.url("amqp")
    with connection_factory(url).create_context() as context:
        context.create_shared_durable_consumer(context.create_topic(TOPIC), NAME).close()
    crew = Members(broker, members)
    published: list[str] = []
    takeovers: list[float] = []
    broker_back: list[float] = []
    publisher = threading.Thread(target=_publish, args=(f"failover:({url})?{FAILOVER}", messages, published), daemon=True)
    publisher.start()
    events = [number % members for number in range(kills * members)] + [-1] * broker_kills
    chance.shuffle(events)
    deadline = began + limit_s
    try:
        for number, event in enumerate(events, 1):
            due = messages * number // (len(events) + 2)
            _until(lambda due=due: crew.moved >= due, deadline)
            if event < 0:
                broker.kill()
                broker.restart(ready_s=120)
            before, at = crew.moved, time.monotonic()
            if event >= 0:
                crew.kill(event)
                before = crew.moved
            _until(lambda before=before: crew.moved > before, deadline)
            (takeovers if event >= 0 else broker_back).append(time.monotonic() - at)
        publisher.join(max(1.0, deadline - time.monotonic()))
        _until(lambda: time.monotonic() - crew.last > 8, deadline)
    finally:
        crew.end()
    found: Counter[str] = Counter()
    with connection_factory(url).create_context() as context:
        consumer = context.create_consumer(context.create_queue(RESULTS))
        while (message := consumer.receive(timeout_ms=3000)) is not None:
            found[message.get_body(str)] += 1
        rest = context.create_shared_durable_consumer(context.create_topic(TOPIC), NAME)
        while (message := rest.receive(timeout_ms=3000)) is not None:
            found[message.get_body(str)] += 1
        rest.close()
        context.unsubscribe(NAME)
    return Outcome(
        len(published),
        sum(body not in found for body in published),
        sum(count - 1 for count in found.values()),
        kills * members,
        broker_kills,
        time.monotonic() - began,
        takeovers,
        broker_back,
    )


def speed(broker: Broker, wire: Wire, messages: int, *, shared: bool, live: bool) -> float:
    """Return how many messages a second one consumer receives from a durable subscription.

    Args:
        broker: Where.
        wire: Of the consumer and of the publisher, which waits for the broker's answer to each persistent message.
        messages: How many.
        shared: Whether the subscription is a shared one.
        live: They are published meanwhile; else they wait in the subscription, whose consumer is opened for them.
    """
    name = f"speed-{wire}-{'shared' if shared else 'plain'}"
    factory = connection_factory(broker.url(wire))
    with factory.create_context() as context, factory.create_context() as other:
        context.client_id = name
        topic = context.create_topic(f"proof.{name}")
        create = context.create_shared_durable_consumer if shared else context.create_durable_consumer
        consumer = create(topic, name)

        def publish() -> None:
            producer = other.create_producer()
            for number in range(messages):
                producer.send(topic, f"m{number}")

        publisher = threading.Thread(target=publish)
        if not live:
            consumer.close()
            publish()
        began = time.monotonic()
        if live:
            publisher.start()
        else:
            consumer = create(topic, name)
        for _ in range(messages):
            if consumer.receive(timeout_ms=60_000) is None:
                raise TimeoutError(f"{name}: a message did not come in a minute")
        seconds = time.monotonic() - began
        if live:
            publisher.join(60)
        consumer.close()
        context.unsubscribe(name)
    return messages / seconds


def _publish(url: str, messages: int, published: list[str]) -> None:
    """Publish; what is not confirmed counts neither as lost nor as doubled, so each text is used once."""
    with connection_factory(url).create_context() as context:
        producer, topic = context.create_producer(), context.create_topic(TOPIC)
        number = 0
        while len(published) < messages:
            number += 1
            try:
                producer.send(topic, f"m{number}")
            except JMSError:
                time.sleep(0.1)
                continue
            published.append(f"m{number}")


def _until(condition: object, deadline: float) -> None:
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise TimeoutError("the run did not come to its end in time")
        time.sleep(0.02)


def main() -> int:
    """Run it, print what was seen, and return 1 when the contract was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--member", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--kills", type=int, default=5, help="of each member")
    parser.add_argument("--broker-kills", type=int, default=2)
    parser.add_argument("--limit-s", type=float, default=900.0)
    parser.add_argument("--speed-messages", type=int, default=5_000, help="0 measures no speed")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if asked.member is not None:
        member(asked.member)
        return 0
    # A broker that is given for other tests must not be killed.
    given = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("JMSAPI_") and name.endswith("_URLS")}
    try:
        broker = launch("classic", ready_s=300)
    finally:
        os.environ.update(given)
    with broker:
        for wire in WIRES if asked.speed_messages else ():
            for live in (True, False):
                plain, shared = (speed(broker, wire, asked.speed_messages, shared=one, live=live) for one in (False, True))
                what = "as they are published" if live else "that waited"
                print(f"{wire}, messages {what}: {plain:.0f}/s plain, {shared:.0f}/s shared: {shared / plain:.2f}", flush=True)
        seen = run(broker, asked.messages, asked.members, asked.kills, asked.broker_kills, asked.limit_s, asked.seed)
    waits, back = sorted(seen.takeover_s) or [0.0], max(seen.broker_back_s, default=0.0)
    print(
        f"{seen.published} published, {seen.kills} members killed, broker killed {seen.broker_kills} times: {seen.lost} lost, "
        f"{seen.doubled} doubled in {seen.seconds:.0f} s; the next message after the kill of a member came within "
        f"{waits[len(waits) // 2]:.2f} s in half of the cases and within {waits[-1]:.2f} s at the latest, and within "
        f"{back:.1f} s when the broker was back"
    )
    return 0 if seen.good else 1


if __name__ == "__main__":
    sys.exit(main())
