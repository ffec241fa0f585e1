"""ActiveMQ Classic 6 with ``transformer=jms``. Run against 6.3.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jmsapi.spi import NATIVE, Address, Capabilities, ConsumerSpec, DestinationKind, ErrorKind, ProviderError, emulated, none
from jmsapi_amqp.attach import Source, end_link, end_session, open_wire_session
from jmsapi_amqp.brokers.base import Broker
from jmsapi_amqp.brokers.classic_virtual import attach_member, prove_copying, refuse_unsubscribe, virtual_name
from jmsapi_amqp.draining import pause
from jmsapi_amqp.links import ReceiverLink, SenderLink, WireSession

if TYPE_CHECKING:
    from jmsapi_amqp.connection import Connection

__all__ = ["Classic"]

_TEMPORARY_QUEUE = "temp-queue://"
_TEMPORARY_TOPIC = "temp-topic://"
_SESSION_ENDS_S: Final = 0.25
"""How long a consumer's end waits for that of its session, in seconds."""


class Classic(Broker):
    """Tells queues from topics by prefixes and does not look at capabilities."""

    product = "classic"
    # Classic 6.3.1 pages 200 messages in and looks for more only at an ack or a flow: a consumer that holds its acks and
    # was given 1000 at once gets 200 and then nothing (tests/brokers/test_promises.py).
    credit_window = 100
    fails_with_session = True

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.queue_prefix = self.queue_prefix or "queue://"
        self.topic_prefix = self.topic_prefix or "topic://"
        self._copies = False
        """Virtual topics were seen to work."""

    def to_wire(self, address: Address) -> str:
        """Return the address with its prefix; the name of a temporary destination has one, however it was come by."""
        if address.name.startswith((_TEMPORARY_QUEUE, _TEMPORARY_TOPIC)):
            return address.name
        if address.kind is DestinationKind.TOPIC and self.options.classic_virtual_topics:
            return self.topic_prefix + virtual_name(address.name)
        return super().to_wire(address)

    async def attach_consumer(
        self, connection: Connection, session: WireSession, spec: ConsumerSpec, source: Source, asked: str
    ) -> ReceiverLink:
        """Attach, unless transacted on a session of the consumer's own, which can be ended with what the consumer failed to do.

        Transacted consumers stay with their coordinator: a rollback returns nothing to other sessions (6.3.1).
        """
        if session.transacted:
            return await self._attach(connection, session, spec, source, asked)
        own = open_wire_session(connection)
        try:
            link = await self._attach(connection, own, spec, source, asked)
        except ProviderError:
            end_session(connection, own)
            raise
        link.own_session = True
        return link

    async def _attach(
        self, connection: Connection, session: WireSession, spec: ConsumerSpec, source: Source, asked: str
    ) -> ReceiverLink:
        if not spec.shared:
            if spec.durable and self.subscriptions.is_shared(spec.subscription or ""):
                text = f"{asked}: there is a shared durable subscription of that name"
                raise ProviderError(ErrorKind.MISMATCH, text)
            return await super().attach_consumer(connection, session, spec, source, asked)
        place = await self.subscriptions.enter(connection, spec, asked)
        try:
            if not self._copies:
                await prove_copying(connection, session, asked)
                self._copies = True
            link = await attach_member(connection, session, spec, source.selector, asked)
        except ProviderError:
            self.subscriptions.drop(place)
            raise
        self.subscriptions.joined(link, place)
        return link

    async def unsubscribe(self, connection: Connection, session: WireSession, name: str) -> None:
        """End a durable subscription, unless it is one of a virtual topic."""
        if self.subscriptions.is_shared(name) and not self.subscriptions.active(name):
            raise refuse_unsubscribe(name)
        await super().unsubscribe(connection, session, name)

    async def release(self, connection: Connection, link: SenderLink | ReceiverLink) -> None:
        """End a link; with deliveries that failed by ending its session, for a closed link counts no delivery (6.3.1).

        A transacted session is not ours to end for one consumer. When the application closes the session, its end is asked for
        right behind that of its consumers, so such a link waits for it a moment.
        """
        if isinstance(link, ReceiverLink) and link.failed:
            if link.own_session:
                end_session(connection, link.session)
                return
            await pause(connection, _SESSION_ENDS_S)
        if isinstance(link, ReceiverLink) and link.companion is not None:
            await end_link(connection, link.companion)
        await super().release(connection, link)

    def parse(self, text: str, kind: int | None, near: Address) -> Address:
        """Return the destination; temporary ones keep their prefix, which is part of what the broker wants back."""
        if text.startswith(_TEMPORARY_QUEUE):
            return Address(DestinationKind.TEMPORARY_QUEUE, text)
        if text.startswith(_TEMPORARY_TOPIC):
            return Address(DestinationKind.TEMPORARY_TOPIC, text)
        if near.kind is DestinationKind.TOPIC and text.endswith(virtual_name(near.name)) and self.options.classic_virtual_topics:
            return near  # as the application calls it: the name of a virtual topic, or of the queue behind a subscription
        return super().parse(text, kind, near)

    def capabilities(self) -> Capabilities:
        """Return what Classic can do."""
        shared = "Classic 6.3 takes a shared link and gives every message to each consumer"
        lacking = none(f"{shared}; say ?classic.virtual_topics=true where VirtualTopic.> is configured (the broker's default)")
        virtual = self.options.classic_virtual_topics
        delay = (
            NATIVE
            if self.options.classic_scheduler
            else none("works only where the broker has schedulerSupport, which it does not tell: say ?classic.scheduler=true")
        )
        return Capabilities(
            provider="amqp",
            broker=self.product,
            version=self.version,
            no_local=none("kept by the client: the broker's own filter works by connection, also where JMS has none"),
            shared_subscription=none(f"{shared}, and the queue of a virtual topic would outlive its consumers"),
            shared_durable_subscription=(
                emulated("consumers of a virtual topic's queue, which outlives them") if virtual else lacking
            ),
            shared_unsubscribe=none("AMQP cannot delete a virtual topic's queue") if virtual else lacking,
            delivery_delay=delay,
            delivery_count_exact=emulated("a closed link does not count"),
            priority_order=none("needs prioritizedMessages in the broker's destination policy"),
            xa=none("AMQP 1.0 has no XA"),
            rollback_returns=True,
            release_while_open=False,
            # 6.1: whatever transaction ends, it ends for all that was accepted on a link in any of them.
            transactions_apart=False,
        )

    def selector(self, text: str | None) -> str | None:
        """Return the selector, converting text to numbers when asked to (messages of STOMP senders)."""
        if text is not None and self.options.amqp_selector_conversion:
            return "convert_string_expressions:" + text
        return text
