"""What is left of transacted sends when the broker is ended with kill -9 in the middle of them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest

from jmsapi import JMSContext, JMSError, connection_factory
from jmsapi_conformance.brokers import Broker, BrokerKind, Wire

BATCH = 100
COMMITTED_BEFORE_THE_KILL = 5
CLOSE_S = 20.0
DEADLINE_S = 60.0

# The pairs whose transactions are the broker's own; of STOMP on Artemis only the sends are, and it must be asked for by name.
PAIRS: list[tuple[Wire, BrokerKind, str]] = [
    ("amqp", "artemis", ""),
    ("amqp", "classic", ""),
    ("stomp", "classic", ""),
    ("stomp", "artemis", "?emulate=tx"),
]


@pytest.mark.parametrize(
    ("wire", "kind", "options"),
    [
        pytest.param(wire, kind, options, id=f"{wire}-{kind}", marks=pytest.mark.xdist_group(f"restarts of {kind}"))
        for wire, kind, options in PAIRS
    ],
)
def test_committed_messages_survive_and_no_transaction_survives_in_part(
    wire: Wire, kind: BrokerKind, options: str, restarted_broker: Callable[[BrokerKind], Broker]
) -> None:
    broker = restarted_broker(kind)
    url = broker.url(wire) + options
    time_to_kill = threading.Event()

    def kill() -> None:
        time_to_kill.wait(DEADLINE_S)
        broker.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        committed, in_doubt, error, close_s = _send_until_it_breaks(url, time_to_kill)
    finally:
        time_to_kill.set()
        killer.join()

    assert isinstance(error, JMSError)
    assert len(committed) >= COMMITTED_BEFORE_THE_KILL
    assert close_s < CLOSE_S

    broker.restart()
    found = _drain(url)
    assert {batch for batch, count in found.items() if count != BATCH} == set(), "a transaction survived in part"
    assert committed <= set(found)
    assert set(found) <= committed | in_doubt


def _send_until_it_breaks(url: str, time_to_kill: threading.Event) -> tuple[set[int], set[int], BaseException | None, float]:
    """Commit batch after batch; tell what was committed, what was asked to be, the error, and how long closing took."""
    committed: set[int] = set()
    in_doubt: set[int] = set()
    error: BaseException | None = None
    context = connection_factory(url).create_context(JMSContext.SESSION_TRANSACTED)
    try:
        queue = context.create_queue("jmsapi.kill")
        producer = context.create_producer()
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            batch = len(committed)
            for _ in range(BATCH):
                producer.send(queue, str(batch))
            in_doubt = {batch}
            context.commit()
            committed, in_doubt = committed | in_doubt, set()
            if len(committed) == COMMITTED_BEFORE_THE_KILL:
                time_to_kill.set()
    except JMSError as caught:
        error = caught
    finally:
        began = time.monotonic()
        context.close()
        close_s = time.monotonic() - began
    return committed, in_doubt, error, close_s


def _drain(url: str) -> Counter[int]:
    with connection_factory(url).create_context() as context:
        consumer = context.create_consumer(context.create_queue("jmsapi.kill"))
        # A marker behind what is there: the queue is empty when it has come.
        context.create_producer().send(context.create_queue("jmsapi.kill"), "-1")
        found: Counter[int] = Counter()
        while (body := consumer.receive_body(str, 20_000)) != "-1":
            assert body is not None, f"the marker did not come; before it came {found}"
            found[int(body)] += 1
        return found
