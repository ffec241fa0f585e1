"""ActiveMQ Classic 6 with ``transformer=jms``. Run against 6.3.1."""

from __future__ import annotations

from typing import Final

from jmsapi.spi import Address, Capabilities, ConsumerSpec, DestinationKind, ErrorKind, ProviderError
from jmsapi_amqp.attach import Source, end_link, end_session, open_wire_session
from jmsapi_amqp.behaviour import Behaviour
from jmsapi_amqp.brokers.base import AmqpBroker
from jmsapi_amqp.brokers.classic_virtual import attach_member, empty_unless_used, prove_copying
from jmsapi_amqp.context import ConnectionContext
from jmsapi_amqp.draining import pause
from jmsapi_amqp.links import ReceiverLink, SenderLink, WireSession
from jmsapi_brokers import artemis, classic

__all__ = ["Classic"]

_TEMPORARY_QUEUE = "temp-queue://"
_TEMPORARY_TOPIC = "temp-topic://"
_SESSION_ENDS_S: Final = 0.25
"""How long a consumer's end waits for that of its session, in seconds."""


class Classic(AmqpBroker):
    """Tells queues from topics by prefixes and does not look at capabilities."""

    product = classic.PRODUCT
    says_users = True
    # Classic 6.3.1 pages 200 messages in and looks for more only at an ack or a flow: a consumer that holds its acks and
    # was given 1000 at once gets 200 and then nothing (tests/brokers/test_promises.py).
    behaviour = Behaviour(credit_window=100, fails_with_session=True, forgets_drains=False)

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.queue_prefix = self.queue_prefix or "queue://"
        self.topic_prefix = self.topic_prefix or "topic://"
        self._copies = False
        """Virtual topics were seen to work."""

    def check_address(self, address: Address) -> None:
        """Refuse what is no name for a destination at Classic, which over AMQP cuts off the spaces around one."""
        classic.check_address(address)
        if address.name != address.name.strip(" "):
            raise ProviderError(ErrorKind.DESTINATION, f"{address.name!r}: Classic cuts off the spaces around a name over AMQP")

    def to_wire(self, address: Address) -> str:
        """Return the address with its prefix; the name of a temporary destination has one, however it was come by."""
        if address.name.startswith((_TEMPORARY_QUEUE, _TEMPORARY_TOPIC)):
            return address.name
        if address.kind is DestinationKind.TOPIC and self.options.classic_virtual_topics:
            return self.topic_prefix + classic.virtual_topic(address.name)
        return super().to_wire(address)

    async def attach_consumer(
        self, context: ConnectionContext, session: WireSession, spec: ConsumerSpec, source: Source, asked: str
    ) -> ReceiverLink:
        """Attach, unless transacted on a session of the consumer's own, which can be ended with what the consumer failed to do.

        Transacted consumers stay with their coordinator: a rollback returns nothing to other sessions (6.3.1).
        """
        if session.transacted:
            return await self._attach(context, session, spec, source, asked)
        own = open_wire_session(context)
        try:
            link = await self._attach(context, own, spec, source, asked)
        except ProviderError:
            end_session(context, own)
            raise
        link.own_session = True
        return link

    async def _attach(
        self, context: ConnectionContext, session: WireSession, spec: ConsumerSpec, source: Source, asked: str
    ) -> ReceiverLink:
        if not spec.shared:
            if spec.durable and self.subscriptions.is_shared(spec.subscription or ""):
                text = f"{asked}: there is a shared durable subscription of that name"
                raise ProviderError(ErrorKind.MISMATCH, text)
            if spec.durable and self.options.classic_virtual_topics and self.subscriptions.elsewhere(spec):
                await self._end_if_there(context, session, spec.subscription or "")
            return await super().attach_consumer(context, session, spec, source, asked)
        place = await self.subscriptions.enter(context, spec, asked)
        try:
            if not self._copies:
                await prove_copying(context, session, self, asked)
                self._copies = True
            if place.replaces:
                await empty_unless_used(context, session, self, spec, asked)
            link = await attach_member(context, session, spec, source, self.queue_prefix, asked)
        except ProviderError:
            self.subscriptions.drop(place)
            raise
        self.subscriptions.joined(link, place)
        return link

    async def _end_if_there(self, context: ConnectionContext, session: WireSession, name: str) -> None:
        """End a durable subscription before it is made anew with another topic.

        The broker does so by itself, but for virtual topics: there the subscription keeps what it has of the old topic (6.3.1).
        """
        try:
            await super().unsubscribe(context, session, name)
        except ProviderError as error:
            if error.kind is not ErrorKind.SUBSCRIPTION:
                raise

    async def unsubscribe(self, context: ConnectionContext, session: WireSession, name: str) -> None:
        """End a durable subscription, unless it is one of a virtual topic."""
        if self.subscriptions.is_shared(name) and not self.subscriptions.active(name):
            raise classic.refused_unsubscribe(name, "AMQP")
        await super().unsubscribe(context, session, name)

    async def release(self, context: ConnectionContext, link: SenderLink | ReceiverLink) -> None:
        """End a link; with deliveries that failed by ending its session, for a closed link counts no delivery (6.3.1).

        A transacted session is not ours to end for one consumer. When the application closes the session, its end is asked for
        right behind that of its consumers, so such a link waits for it a moment.
        """
        if isinstance(link, ReceiverLink) and link.failed:
            if link.own_session:
                end_session(context, link.session)
                return
            await pause(context, _SESSION_ENDS_S)
        if isinstance(link, ReceiverLink) and link.companion is not None:
            await end_link(context, link.companion)
        await super().release(context, link)

    def parse(self, text: str, kind: int | None, near: Address) -> Address:
        """Return the destination; temporary ones keep their prefix, which is part of what the broker wants back."""
        if text.startswith(_TEMPORARY_QUEUE):
            return Address(DestinationKind.TEMPORARY_QUEUE, text)
        if text.startswith(_TEMPORARY_TOPIC):
            return Address(DestinationKind.TEMPORARY_TOPIC, text)
        found = super().parse(text, kind, near)
        if not self.options.classic_virtual_topics:
            return found
        if near.kind is DestinationKind.TOPIC and found.name.endswith(classic.virtual_topic(near.name)):
            return near  # as the application calls it: the name of a virtual topic, or of the queue behind a subscription
        if found.kind is DestinationKind.TOPIC:
            return Address(found.kind, found.name.removeprefix(classic.VIRTUAL_TOPIC_PREFIX))
        return found

    def capabilities(self) -> Capabilities:
        """Return what Classic can do."""
        return classic.amqp_capabilities(
            self.version, virtual_topics=self.options.classic_virtual_topics, scheduler=self.options.classic_scheduler
        )

    def selector(self, text: str | None) -> str | None:
        """Return the selector, converting text to numbers when asked to (messages of STOMP senders)."""
        if text is not None and self.options.amqp_selector_conversion:
            return artemis.CONVERT_STRINGS + text
        return text
