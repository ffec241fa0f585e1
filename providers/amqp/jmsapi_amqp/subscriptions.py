"""Named subscriptions on brokers that follow the JMS mapping: link names, and what of JMS' rules the client must watch.

Names are those of the Apache Qpid JMS client, so that a subscription made by one can be used by the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from jmsapi.spi import Address, ConsumerSpec, DestinationKind, ErrorKind, ProviderError
from jmsapi_amqp.attach import Source, attach_receiver, end_link, end_session, open_wire_session
from jmsapi_amqp.links import ReceiverLink, SenderLink, WireSession
from jmsapi_amqp.process import DURABLE, SHARED

if TYPE_CHECKING:
    from jmsapi_amqp.brokers.base import Broker
    from jmsapi_amqp.connection import Connection

__all__ = ["Place", "Subscriptions"]


_MISMATCH: Final = "{asked}: the shared subscription is active with another topic or selector"


@dataclass(slots=True)
class _Active:
    """One subscription with consumers on this connection."""

    address: Address
    selector: str | None
    shared: bool
    numbers: set[int] = field(default_factory=set[int])


class Place(NamedTuple):
    """One consumer's place in a subscription."""

    name: str
    durable: bool
    number: int


class Subscriptions:
    """The active named subscriptions of one connection."""

    def __init__(self, owner: tuple[object, ...]) -> None:
        """Begin with none.

        Args:
            owner: Broker and client id, for what must be known across the connections of this process.
        """
        self._owner = owner
        self._active: dict[tuple[str, bool], _Active] = {}
        self._by_link: dict[int, Place] = {}

    def is_shared(self, name: str) -> bool:
        """Whether the durable subscription is a shared one, as far as this process knows."""
        return DURABLE.differs((*self._owner, name), shared=False)

    def active(self, name: str) -> bool:
        """Whether a consumer is on the durable subscription, as far as this process knows."""
        return (name, True) in self._active or SHARED.is_active((*self._owner, name, True))

    def quiet_for(self, spec: ConsumerSpec) -> float | None:
        """Return for how many seconds a shared non-durable subscription has been without consumers of this process.

        Returns:
            None when it has some, or had none lately.
        """
        if not spec.shared or spec.durable:
            return None
        return SHARED.quiet_for((*self._owner, spec.subscription or "", False))

    async def attach(
        self, broker: Broker, connection: Connection, session: WireSession, spec: ConsumerSpec, source: Source
    ) -> ReceiverLink:
        """Attach a consumer to its subscription.

        Raises:
            ProviderError: IN_USE or MISMATCH, by our own knowledge or the broker's word.
        """
        name = spec.subscription or ""
        asked = f"subscribe {name!r} to {spec.address.name!r}"
        if "|" in name:
            raise ProviderError(ErrorKind.MISMATCH, f"{asked}: a subscription's name must not contain '|' on this wire")
        private = connection.options.client_id is not None
        if spec.durable and not spec.shared and not private:
            raise ProviderError(ErrorKind.CLIENT_ID, f"{asked}: an unshared durable subscription needs a client id")
        place = await self.enter(connection, spec, asked)
        capabilities = source.capabilities
        if spec.shared:
            capabilities += ("shared",) if private else ("shared", "global")
        filled = replace(
            source,
            name=_link_name(name, spec, place.number, private=private),
            capabilities=capabilities,
            selector=_remembering(source.selector, spec.terms) if spec.durable else source.selector,
            durable=spec.durable,
            copy=spec.durable and not spec.shared,
        )
        try:
            link = await attach_receiver(connection, session, filled, spec.address, asked)
        except ProviderError:
            self.drop(place)
            raise
        self.joined(link, place)
        return link

    async def enter(self, connection: Connection, spec: ConsumerSpec, asked: str) -> Place:
        """Take a place in a subscription of a broker that does not tell the two kinds of durable ones apart.

        Raises:
            ProviderError: IN_USE or MISMATCH.
        """
        name = spec.subscription or ""
        key = (*self._owner, name)
        if spec.durable and (name, True) not in self._active and DURABLE.differs(key, shared=spec.shared):
            # Somebody else may have ended it since.
            if SHARED.is_active((*key, True)) or await _is_there(connection, name):
                kind = "an unshared" if spec.shared else "a shared"
                raise ProviderError(ErrorKind.MISMATCH, f"{asked}: there is {kind} durable subscription of that name")
            DURABLE.forget(key)
        return self.take_place(spec, asked)

    def take_place(self, spec: ConsumerSpec, asked: str) -> Place:
        """Take a place in a subscription, by the rules that the consumers of this process keep among each other.

        Raises:
            ProviderError: IN_USE or MISMATCH.
        """
        name = spec.subscription or ""
        key = (name, spec.durable)
        active = self._active.get(key)
        if active is not None:
            self._check(active, spec, asked)
        if spec.shared and not SHARED.enter((*self._owner, name, spec.durable), spec.address, _terms(spec)):
            raise ProviderError(ErrorKind.MISMATCH, _MISMATCH.format(asked=asked))
        if active is None:
            active = self._active[key] = _Active(spec.address, _terms(spec), spec.shared)
        number = next(n for n in range(1, 1 << 30) if n not in active.numbers)
        active.numbers.add(number)
        return Place(name, spec.durable, number)

    def joined(self, link: ReceiverLink, place: Place) -> None:
        """Tie a place to the link that has it, until the link ends."""
        self._by_link[link.number] = place
        if place.durable:
            DURABLE.note((*self._owner, place.name), shared=self._active[place.name, True].shared)

    def ended(self, name: str) -> None:
        """Forget a durable subscription that was ended."""
        DURABLE.forget((*self._owner, name))

    def _check(self, active: _Active, spec: ConsumerSpec, asked: str) -> None:
        if not active.shared or not spec.shared:
            raise ProviderError(ErrorKind.IN_USE, f"{asked}: the subscription has an active consumer")
        if active.address != spec.address or active.selector != _terms(spec):
            raise ProviderError(ErrorKind.MISMATCH, _MISMATCH.format(asked=asked))

    def leave(self, link: SenderLink | ReceiverLink) -> None:
        """Note that a consumer has gone."""
        place = self._by_link.pop(link.number, None)
        if place is not None:
            self.drop(place)

    def drop(self, place: Place) -> None:
        """Give a place up."""
        key = (place.name, place.durable)
        active = self._active.get(key)
        if active is not None:
            active.numbers.discard(place.number)
            if active.shared:
                SHARED.leave((*self._owner, place.name, place.durable))
            if not active.numbers:
                del self._active[key]

    async def unsubscribe_global(self, connection: Connection, name: str) -> None:
        """End a shared durable subscription that belongs to no client id.

        Artemis finds it by the link's name on a connection without a container id; the wish ``global`` that the Java
        client sends on the link instead cannot be sent through proton's engine (0.40).
        """
        from jmsapi_amqp.aside import unsubscribe_aside

        await unsubscribe_aside(connection, f"{name}:global", name)


async def _is_there(connection: Connection, name: str) -> bool:
    """Ask for the subscription of a link name, without a source of our own; detaching leaves it as it is."""
    # On a session of its own: the engine tells links of one name and session apart only when the older one is forgotten.
    session = open_wire_session(connection)
    near = Address(DestinationKind.TOPIC, "")
    try:
        link = await attach_receiver(connection, session, Source(None, name), near, f"look for {name!r}")
        link.keeps = True
        await end_link(connection, link)
    except ProviderError as error:
        if error.kind is ErrorKind.DESTINATION:
            return False
        if error.kind is ErrorKind.IN_USE:
            return True
        raise
    finally:
        end_session(connection, session)
    return True


def _terms(spec: ConsumerSpec) -> str | None:
    return spec.terms or spec.selector


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
