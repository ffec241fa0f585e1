"""Apache Artemis: everything of JMS but XA. Run against 2.56.0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jmsapi.spi import Capabilities, ConsumerSpec, ErrorKind, Level, ProviderError, Support, emulated, none
from jmsapi_amqp.attach import Source, Target, attach_sender, end_link
from jmsapi_amqp.brokers.base import Broker
from jmsapi_amqp.draining import pause

if TYPE_CHECKING:
    from jmsapi_amqp.connection import Connection
    from jmsapi_amqp.links import ReceiverLink, WireSession

__all__ = ["Artemis"]

DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
_GOING_S: Final = 1.0
"""How long the broker is given to delete a subscription's queue, in seconds.

It says neither that it has nor that it will: a consumer who comes too early stays attached, to a queue that is gone. Looking
for the queue is no way out, since that is one more consumer whose end deletes the queue by its name, at some later time. Seen
on 2.56.0 with two processors and forty processes that wanted them: after 5 ms 3 of 30 subscriptions were dead, after 50 ms 2
of 30, after 100 ms none of 30, after 300 ms none of 100.
"""


class Artemis(Broker):
    """Follows the JMS mapping; kinds of destinations are told by capabilities, never by prefixes."""

    product = "artemis"

    def capabilities(self) -> Capabilities:
        """Return what Artemis can do."""
        return Capabilities(
            provider="amqp",
            broker=self.product,
            version=self.version,
            no_local=none("kept by the client: the broker's own filter hides messages of STOMP senders"),
            temporary_owner_only=emulated("the client lets only its own connection consume"),
            redelivered_flag=none("right after an orderly end; the broker does not count every delivery whose link was lost"),
            shared_subscription=emulated("within this process its name rests for a moment when it has ended"),
            shared_durable_subscription=emulated("that its name is an unshared one's is known within this process only"),
            duplicate_detection=Support(Level.NATIVE, f"by the property {DUPLICATE_ID}, of its last 20,000 unless configured"),
            xa=none("AMQP 1.0 has no XA"),
            rollback_returns=True,
            duplicate_property=DUPLICATE_ID,
        )

    async def attach_consumer(
        self, connection: Connection, session: WireSession, spec: ConsumerSpec, source: Source, asked: str
    ) -> ReceiverLink:
        """Attach; when the address is only of the other kind so far, make it one of both.

        A sender's attach adds its kind to an address, a receiver's does not (2.56.0).

        The queue of a shared non-durable subscription goes a while after the answer to its last consumer's close. Who comes
        before that gets a queue that goes with all that is sent to it or, with another topic or selector, loses the connection.
        """
        quiet = self.subscriptions.quiet_for(spec)
        if quiet is not None and quiet < _GOING_S:
            await pause(connection, _GOING_S - quiet)
        try:
            return await super().attach_consumer(connection, session, spec, source, asked)
        except ProviderError as error:
            if "is not configured for" not in error.message:
                raise
        opener = await attach_sender(connection, session, Target(source.address, source.capabilities), asked)
        await end_link(connection, opener)
        return await super().attach_consumer(connection, session, spec, source, asked)

    def selector(self, text: str | None) -> str | None:
        """Return the selector, converting text to numbers when asked to (messages of STOMP senders)."""
        if text is not None and self.options.amqp_selector_conversion:
            return "convert_string_expressions:" + text
        return text

    async def unsubscribe(self, connection: Connection, session: WireSession, name: str) -> None:
        """End a durable subscription; without a client id it is a shared one that any connection may end."""
        if connection.options.client_id is not None:
            await super().unsubscribe(connection, session, name)
            return
        if self.subscriptions.active(name):
            text = f"unsubscribe {name!r}: a consumer is active on it; close it first"
            raise ProviderError(ErrorKind.IN_USE, text)
        await self.subscriptions.unsubscribe_global(connection, name)
