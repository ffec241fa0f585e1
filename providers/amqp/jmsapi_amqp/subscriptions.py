"""Named subscriptions on brokers that follow the JMS mapping: link names, and what of JMS' rules the client must watch.

Names are those of the Apache Qpid JMS client, so that a subscription made by one can be used by the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from jmsapi.spi import Address, ConsumerSpec, DestinationKind, ErrorKind, ProviderError
from jmsapi_amqp.attach import Source, attach_receiver, end_link, end_session, open_wire_session
from jmsapi_amqp.auxiliary import unsubscribe_on_auxiliary
from jmsapi_amqp.context import ConnectionContext
from jmsapi_amqp.links import ReceiverLink, WireSession
from jmsapi_brokers.names import check_text
from jmsapi_brokers.subscriptions import SUBSCRIPTIONS, SubscriptionKey

__all__ = ["LinkSubscriptions", "SubscriptionPlace"]


class SubscriptionPlace(NamedTuple):
    """One consumer's place in a subscription."""

    key: SubscriptionKey
    number: int
    """Among the consumers of the subscription on this connection, from 1."""
    replaces: bool
    """The subscription was known with another topic or selector and is idle: what it kept is not for this consumer."""


class LinkSubscriptions:
    """The named subscriptions of one connection.

    Args:
        broker: The broker's number (``BrokerRegistry``).
        client_id: The connection's.
        name_at_broker: From a subscription's name to what the broker is to know it by.
    """

    def __init__(self, broker: int, client_id: str | None, name_at_broker: Callable[[str], str]) -> None:
        self._broker = broker
        self._client_id = client_id
        self._name_at_broker = name_at_broker
        self._numbers: dict[SubscriptionKey, set[int]] = {}

    def _key(self, name: str, *, durable: bool) -> SubscriptionKey:
        return SubscriptionKey(self._broker, self._client_id, name, durable)

    def is_shared(self, name: str) -> bool:
        """Whether the durable subscription is a shared one, as far as this process knows."""
        return SUBSCRIPTIONS.shared(self._key(name, durable=True)) is True

    def active(self, name: str) -> bool:
        """Whether a consumer is on the durable subscription, as far as this process knows."""
        return SUBSCRIPTIONS.active(self._key(name, durable=True))

    def elsewhere(self, spec: ConsumerSpec) -> bool:
        """Whether the durable subscription is idle and had another topic, as far as this process knows."""
        return SUBSCRIPTIONS.elsewhere(self._key(spec.subscription or "", durable=True), spec.address)

    def quiet_for(self, spec: ConsumerSpec) -> float | None:
        """Return for how many seconds a shared non-durable subscription has been without consumers of this process.

        Returns:
            None when it has some, or had none lately.
        """
        if not spec.shared or spec.durable:
            return None
        return SUBSCRIPTIONS.quiet_for(self._key(spec.subscription or "", durable=False))

    async def attach(self, context: ConnectionContext, session: WireSession, spec: ConsumerSpec, source: Source) -> ReceiverLink:
        """Attach a consumer to its subscription.

        Raises:
            ProviderError: IN_USE or MISMATCH, by our own knowledge or by the broker's answer.
        """
        name = spec.subscription or ""
        asked = f"subscribe {name!r} to {spec.address.name!r}"
        if "|" in name:
            raise ProviderError(ErrorKind.MISMATCH, f"{asked}: a subscription's name must not contain '|' on this wire")
        private = self._client_id is not None
        if spec.durable and not spec.shared and not private:
            raise ProviderError(ErrorKind.CLIENT_ID, f"{asked}: an unshared durable subscription needs a client id")
        place = await self.enter(context, spec, asked)
        capabilities = source.capabilities
        if spec.shared:
            capabilities += ("shared",) if private else ("shared", "global")
        filled = replace(
            source,
            name=_link_name(self._name_at_broker(name), spec, place.number, private=private),
            capabilities=capabilities,
            selector=_remembering(source.selector, spec.terms) if spec.durable else source.selector,
            durable=spec.durable,
            copy=spec.durable and not spec.shared,
        )
        try:
            link = await attach_receiver(context, session, filled, spec.address, asked)
        except ProviderError:
            self.drop(place)
            raise
        self.joined(link, place)
        return link

    async def enter(self, context: ConnectionContext, spec: ConsumerSpec, asked: str) -> SubscriptionPlace:
        """Take a place in a subscription of a broker that does not tell the two kinds of durable ones apart.

        Raises:
            ProviderError: IN_USE or MISMATCH.
        """
        name = spec.subscription or ""
        key = self._key(name, durable=spec.durable)
        known = SUBSCRIPTIONS.shared(key)
        if known is not None and known is not spec.shared and not SUBSCRIPTIONS.active(key):
            # Somebody else may have ended it since.
            if await _is_there(context, self._name_at_broker(name)):
                kind = "an unshared" if spec.shared else "a shared"
                raise ProviderError(ErrorKind.MISMATCH, f"{asked}: there is {kind} durable subscription of that name")
            SUBSCRIPTIONS.forget(key)
        return self.take_place(spec, asked)

    def take_place(self, spec: ConsumerSpec, asked: str) -> SubscriptionPlace:
        """Take a place in a subscription, by the rules that the consumers of this process keep among each other.

        Raises:
            ProviderError: IN_USE, MISMATCH; DESTINATION when the name is none.
        """
        name = spec.subscription or ""
        check_text(name, f"{asked}: the name", ErrorKind.DESTINATION)
        key = self._key(name, durable=spec.durable)
        replaces = SUBSCRIPTIONS.enter(key, spec, asked)
        numbers = self._numbers.setdefault(key, set())
        number = next(n for n in range(1, 1 << 30) if n not in numbers)
        numbers.add(number)
        return SubscriptionPlace(key, number, replaces)

    def joined(self, link: ReceiverLink, place: SubscriptionPlace) -> None:
        """Tie a place to the link that has it, until the link ends."""
        link.on_gone = lambda: self.drop(place)
        SUBSCRIPTIONS.opened(place.key)

    def ended(self, name: str) -> None:
        """Forget a durable subscription that was ended."""
        SUBSCRIPTIONS.forget(self._key(name, durable=True))

    def drop(self, place: SubscriptionPlace) -> None:
        """Give a place up."""
        self._numbers[place.key].discard(place.number)
        SUBSCRIPTIONS.leave(place.key)

    async def unsubscribe_global(self, context: ConnectionContext, name: str) -> None:
        """End a shared durable subscription that belongs to no client id.

        Artemis finds it by the link's name on a connection without a container id; the wish ``global`` that the Java
        client sends on the link instead cannot be sent through proton's engine (0.40).
        """
        await unsubscribe_on_auxiliary(context, f"{self._name_at_broker(name)}:global", name)


async def _is_there(context: ConnectionContext, name: str) -> bool:
    """Ask for the subscription of a link name, without a source of our own; detaching leaves it as it is."""
    # On a session of its own: the engine tells links of one name and session apart only when the older one is forgotten.
    session = open_wire_session(context)
    near = Address(DestinationKind.TOPIC, "")
    try:
        link = await attach_receiver(context, session, Source(None, name), near, f"look for {name!r}")
        link.keeps = True
        await end_link(context, link)
    except ProviderError as error:
        if error.kind is ErrorKind.DESTINATION:
            return False
        if error.kind is ErrorKind.IN_USE:
            return True
        raise
    finally:
        end_session(context, session)
    return True


def _remembering(selector: str | None, terms: str | None) -> str | None:
    """Return a selector that also says under which terms a subscription was made.

    The broker compares selectors as texts, and makes a durable subscription anew when they differ. What the client evaluates
    itself would not show there, so it goes in as a comparison that is always true.
    """
    if terms is None or terms == selector:
        return selector
    text = "'" + terms.replace("'", "''") + "'"
    return f"{text} = {text}" if selector is None else f"({selector}) AND {text} = {text}"


def _link_name(name: str, spec: ConsumerSpec, number: int, *, private: bool) -> str:
    if not spec.shared:
        return name
    if spec.durable:
        if private:
            return name if number == 1 else f"{name}|{number}"
        return f"{name}|global" if number == 1 else f"{name}|global{number}"
    return f"{name}|volatile{number}" if private else f"{name}|global-volatile{number}"
