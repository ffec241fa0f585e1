"""Apache Qpid Broker-J: topics are keys of one exchange; else it follows the JMS mapping."""

from __future__ import annotations

from jmsapi.spi import Address, Capabilities, DestinationKind, ErrorKind, ProviderError
from jmsapi_amqp.attach import Source, attach_receiver, end_link
from jmsapi_amqp.behaviour import Behaviour
from jmsapi_amqp.brokers.base import AmqpBroker
from jmsapi_amqp.context import ConnectionContext
from jmsapi_amqp.links import WireSession
from jmsapi_brokers import broker_j

__all__ = ["BrokerJ"]


class BrokerJ(AmqpBroker):
    """Follows the JMS mapping, with the topics of one exchange."""

    product = broker_j.PRODUCT
    behaviour = Behaviour(rejected_returns=True)
    topic_prefix = broker_j.TOPIC_PREFIX

    def check_address(self, address: Address) -> None:
        """Refuse what is no name for a destination at Broker-J."""
        broker_j.check_address(address)

    def to_wire(self, address: Address) -> str:
        """Return the address of a topic's key, or of a queue."""
        return broker_j.address_of(address)

    def parse(self, text: str, kind: int | None, near: Address) -> Address:
        """Return the destination that an address names."""
        return broker_j.named_by(text, super().parse(text, kind, near).kind)

    def capabilities(self) -> Capabilities:
        """Return what Broker-J can do."""
        return broker_j.amqp_capabilities(self.version)

    async def unsubscribe(self, context: ConnectionContext, session: WireSession, name: str) -> None:
        """End a durable subscription; without a client id it is a shared one that any connection may end.

        Of such a one the broker asks for a link with the wish ``global``, which proton's engine (0.40) cannot send. Who
        subscribes to it with another topic has it made anew, and a subscription's own link may be closed. Whether there was one
        before is not told.
        """
        if context.options.client_id is not None:
            await super().unsubscribe(context, session, name)
            return
        asked = f"unsubscribe {name!r}"
        if self.subscriptions.active(name):
            raise ProviderError(ErrorKind.IN_USE, f"{asked}: a consumer is active on it; close it first")
        near = Address(DestinationKind.TOPIC, "")
        other = Source(
            address=broker_j.UNSUBSCRIBING,
            name=f"{name}|global",
            capabilities=("topic", "shared", "global"),
            durable=True,
        )
        link = await attach_receiver(context, session, other, near, asked)
        await end_link(context, link, delete=True)
        self.subscriptions.ended(name)
