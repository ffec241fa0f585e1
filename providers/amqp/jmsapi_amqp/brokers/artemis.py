"""Apache Artemis: everything of JMS but XA. Run against 2.56.0."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING

from jmsapi.spi import Address, Capabilities, ConsumerSpec, Envelope, ErrorKind, ProviderError
from jmsapi_amqp.attach import Source, Target, attach_sender, end_link
from jmsapi_amqp.brokers.base import NO_MARKS, AmqpBroker
from jmsapi_amqp.context import ConnectionContext
from jmsapi_amqp.draining import pause
from jmsapi_brokers import artemis

if TYPE_CHECKING:
    from jmsapi_amqp.links import ReceiverLink, WireSession

__all__ = ["Artemis"]


class Artemis(AmqpBroker):
    """Follows the JMS mapping; capabilities, never prefixes, tell queues from topics."""

    product = artemis.PRODUCT
    says_users = True

    def check_address(self, address: Address) -> None:
        """Refuse what is no name for a destination at Artemis, or has options there: receivers and senders would part."""
        artemis.check_address(address)
        if "?" in address.name:
            raise ProviderError(ErrorKind.DESTINATION, f"{address.name!r}: '?' begins options in Artemis' names over AMQP")

    def marks(self, envelope: Envelope) -> Mapping[str, str]:
        """Return a binary correlation id as text: over STOMP the broker shows that of Java's array and not the bytes."""
        correlation = envelope.correlation_id
        if not isinstance(correlation, bytes):
            return NO_MARKS
        return {"JMS_PY_corr": base64.b64encode(correlation).decode()}

    def subscription_name(self, name: str) -> str:
        """Return the name that keeps the queues of two owners apart."""
        return artemis.subscription_name(self.options.client_id, name)

    def capabilities(self) -> Capabilities:
        """Return what Artemis can do."""
        return artemis.amqp_capabilities(self.version)

    async def attach_consumer(
        self, context: ConnectionContext, session: WireSession, spec: ConsumerSpec, source: Source, asked: str
    ) -> ReceiverLink:
        """Attach; when the address is only of the other kind so far, make it one of both.

        A sender's attach adds its kind to an address, a receiver's does not (2.56.0).

        The queue of a shared non-durable subscription goes a while after the answer to its last consumer's close. Who comes
        before that gets a queue that goes with all that is sent to it or, with another topic or selector, loses the connection.
        """
        quiet = self.subscriptions.quiet_for(spec)
        if quiet is not None and quiet < artemis.SUBSCRIPTION_REST_S:
            await pause(context, artemis.SUBSCRIPTION_REST_S - quiet)
        try:
            return await super().attach_consumer(context, session, spec, source, asked)
        except ProviderError as error:
            if not artemis.is_of_other_routing_type(error.message):
                raise
        opener = await attach_sender(context, session, Target(source.address, source.capabilities), asked)
        await end_link(context, opener)
        return await super().attach_consumer(context, session, spec, source, asked)

    def selector(self, text: str | None) -> str | None:
        """Return the selector, converting text to numbers when asked to (messages of STOMP senders)."""
        if text is not None and self.options.amqp_selector_conversion:
            return artemis.CONVERT_STRINGS + text
        return text

    async def unsubscribe(self, context: ConnectionContext, session: WireSession, name: str) -> None:
        """End a durable subscription; without a client id it is a shared one that any connection may end."""
        if context.options.client_id is not None:
            await super().unsubscribe(context, session, name)
            return
        if self.subscriptions.active(name):
            text = f"unsubscribe {name!r}: a consumer is active on it; close it first"
            raise ProviderError(ErrorKind.IN_USE, text)
        await self.subscriptions.unsubscribe_global(context, name)
