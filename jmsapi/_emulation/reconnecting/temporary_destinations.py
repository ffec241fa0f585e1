"""Temporary destinations of a connection that may be made again: what they are called on the link of the moment."""

from __future__ import annotations

from dataclasses import replace

from jmsapi._emulation.reconnecting.records import SessionRecord, altered
from jmsapi.spi import Address, ConsumerSpec, Envelope, ErrorKind, ProviderError

__all__ = ["TemporaryDestinations"]


class TemporaryDestinations:
    """Those that the core knows, with the names that they have now. The connection's guard is held where a method says so."""

    def __init__(self) -> None:
        self._makers: dict[Address, SessionRecord] = {}
        """The session that made each, by the address that the core has."""
        self._names: dict[Address, Address] = {}
        """Their addresses on the link of the moment, where they differ."""
        self._gone: set[Address] = set()
        """Temporary destinations that ended with an earlier link."""

    def add(self, session: SessionRecord, address: Address) -> None:
        """Note a new one. With the guard held."""
        self._makers[address] = session

    def remove(self, address: Address) -> None:
        """Forget one that was deleted. With the guard held."""
        self._makers.pop(address, None)
        self._names.pop(address, None)

    def lost(self, *, recreate: bool) -> list[tuple[Address, SessionRecord]]:
        """Return those that are to be made again on a new link, which are none unless that was asked for. With the guard held."""
        if not recreate:
            self._gone.update(self._makers)
            self._makers.clear()
        return list(self._makers.items())

    def recreated(self, address: Address, now: Address) -> None:
        """Note the name that one has on the new link."""
        self._names[address] = now

    def here(self, address: Address) -> Address:
        """Return the name that a destination has on the link of the moment.

        Raises:
            ProviderError: DESTINATION; it ended with a link.
        """
        if address in self._gone:
            text = f"the temporary destination {address.name!r} ended with a link that was lost"
            raise ProviderError(ErrorKind.DESTINATION, text)
        return self._names.get(address, address)

    def renamed(self, envelope: Envelope) -> Envelope:
        """Return a message with the names that destinations have on the link of the moment.

        Raises:
            ProviderError: DESTINATION; it goes to one that ended with a link.
        """
        if not self._names and not self._gone:
            return envelope
        destination, reply_to = self.here(envelope.destination), envelope.reply_to
        answer = reply_to if reply_to is None else self._names.get(reply_to, reply_to)
        if destination == envelope.destination and answer == reply_to:
            return envelope
        return altered(envelope, destination=destination, reply_to=answer)

    def spec_here(self, spec: ConsumerSpec) -> ConsumerSpec:
        """Return what is asked of the link of the moment; see ``here``."""
        address = self.here(spec.address)
        return spec if address is spec.address else replace(spec, address=address)
