"""``jmsapi demo``: a shop takes orders, two desks pick theirs by selector, a worker fails once and recovers."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Annotated, Final, NamedTuple

import typer

import jmsapi
from jmsapi import ConnectionFactory, JMSContext, JMSException, Long, Message, Queue, TextMessage, Topic
from jmsapi.cli._target import factory_for
from jmsapi.cli._terminal import Styled, say_styled

__all__ = ["demo"]

DEADLINE_MS: Final = 10_000


class DemoOrder(NamedTuple):
    """One order of the story."""

    number: int
    what: str
    country: str
    total: int


ORDERS: Final = (
    DemoOrder(1, "a kettle", "DE", 40),
    DemoOrder(2, "a piano", "FR", 4_200),
    DemoOrder(3, "two chairs", "DE", 180),
    DemoOrder(4, "a tractor", "DE", 61_000),
    DemoOrder(5, "a book", "JP", 15),
)
DESKS: Final = {
    "big orders": ("cyan", "total >= 1000", [2, 4]),
    "abroad": ("magenta", "country <> 'DE'", [2, 5]),
}
"""Name to colour, selector, and the orders that it must get."""
FAILS_AT: Final = 3


class _Desk:
    """A subscriber that keeps the numbers of its orders."""

    def __init__(self, say: Callable[[str, str, str], None], name: str, colour: str) -> None:
        self._say, self._name, self._colour = say, name, colour
        self._changed = threading.Condition()
        self.numbers: list[int] = []

    def on_message(self, message: Message) -> None:
        """Take an order; called in the context's own thread."""
        self._say(self._name, self._colour, f"takes {_text(message)}")
        with self._changed:
            self.numbers.append(message.get_int_property("number"))
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        """Wait until so many orders have come."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.numbers) >= count, DEADLINE_MS / 1000):
                raise JMSException(f"demo: only {len(self.numbers)} of {count} orders reached the desk {self._name!r}")


def demo(
    url: Annotated[
        str, typer.Option("--url", "-u", help="Broker to play on; the default lives in this process.")
    ] = "inproc://demo",
) -> None:
    """Process orders: a producer, two subscribers with different selectors, a transacted worker that fails once and recovers."""
    factory = factory_for(url)
    run = secrets.token_hex(3)

    def say(who: str, colour: str, what: str) -> None:
        say_styled(Styled(f"{who:>12}", f"bold {colour}"), f"  {what}")

    with factory.create_context() as shop:
        has = jmsapi.capabilities(shop)
        say("jmsapi", "white", f"the broker is {has.broker} {has.version}".rstrip() + f", reached by {has.provider}")
        announcements: Topic = shop.create_topic(f"demo.{run}.orders")
        work: Queue = shop.create_queue(f"demo.{run}.work")
        shipments: Queue = shop.create_queue(f"demo.{run}.shipments")
        desks = {name: _Desk(say, name, colour) for name, (colour, _, _) in DESKS.items()}
        with factory.create_context() as big_orders, factory.create_context() as abroad:
            for context, (name, desk) in zip((big_orders, abroad), desks.items(), strict=True):
                selector = DESKS[name][1]
                say(name, DESKS[name][0], f"subscribes to orders where {selector}")
                context.create_consumer(announcements, selector).message_listener = desk
            _take_orders(shop, announcements, work, say)
            for name, desk in desks.items():
                desk.wait_for(len(DESKS[name][2]))
        _work(factory, work, shipments, say)
        shipped = _ship(shop, shipments, say)
    for name, desk in desks.items():
        _expect(f"the desk {name!r}", desk.numbers, DESKS[name][2])
    _expect("shipping", shipped, [order.number for order in ORDERS])
    say("done", "green", "each order was announced, picked by selector, and shipped exactly once")


def _take_orders(shop: JMSContext, topic: Topic, work: Queue, say: Callable[[str, str, str], None]) -> None:
    for order in ORDERS:
        producer = shop.create_producer().set_property("number", order.number)
        producer.set_property("country", order.country).set_property("total", Long(order.total))
        text = f"order {order.number}: {order.what} to {order.country} for {order.total}"
        producer.send(topic, text)
        producer.send(work, text)
        say("shop", "yellow", f"{text}: announced, and queued for the worker")


def _work(factory: ConnectionFactory, work: Queue, shipments: Queue, say: Callable[[str, str, str], None]) -> None:
    with factory.create_context(session_mode=JMSContext.SESSION_TRANSACTED) as worker:
        consumer, producer = worker.create_consumer(work), worker.create_producer()
        done = 0
        while done < len(ORDERS):
            message = consumer.receive(DEADLINE_MS)
            if message is None:
                raise JMSException(f"demo: only {done} of {len(ORDERS)} orders reached the worker")
            number = message.get_int_property("number")
            attempt = message.get_int_property("JMSXDeliveryCount")
            producer.set_property("number", number).send(shipments, f"parcel for {_text(message)}")
            try:
                _pack(number, attempt)
            except RuntimeError as error:
                worker.rollback()
                say("worker", "red", f"order {number}: {error}; rolled back: nothing is shipped, the order comes again")
                continue
            worker.commit()
            done += 1
            again = f" (delivery {attempt}, marked redelivered: {message.jms_redelivered})" if attempt > 1 else ""
            say("worker", "blue", f"order {number} is packed and committed{again}")


def _pack(number: int, attempt: int) -> None:
    if number == FAILS_AT and attempt == 1:
        raise RuntimeError("the tape ran out")


def _ship(shop: JMSContext, shipments: Queue, say: Callable[[str, str, str], None]) -> list[int]:
    shipped: list[int] = []
    consumer = shop.create_consumer(shipments)
    for _ in ORDERS:
        message = consumer.receive(DEADLINE_MS)
        if message is None:
            break
        shipped.append(message.get_int_property("number"))
        say("shipping", "green", _text(message))
    # One more would be a parcel of the attempt that was rolled back.
    extra = consumer.receive(200)
    if extra is not None:
        shipped.append(extra.get_int_property("number"))
    return shipped


def _text(message: Message) -> str:
    return (message.text if isinstance(message, TextMessage) else None) or "?"


def _expect(who: str, got: list[int], due: list[int]) -> None:
    if got != due:
        raise JMSException(f"demo: {who} got the orders {got}, not {due}")
