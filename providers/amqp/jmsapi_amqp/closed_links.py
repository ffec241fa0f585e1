"""Links that the broker has closed by itself, and what the application loses by that: deliveries, and transactions with them.

A broker that closes a consumer (it was too slow, its queue has moved) gives what that one has not settled to others. AMQP lets a
receiver settle it all the same, and the broker does not tell that this had no effect; so it is reported from here. Used under the
engine's lock.

Spec: AMQP 1.0 part 2, section 6.
"""

from __future__ import annotations

from collections.abc import Iterable

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_amqp.transaction_handle import TxHandle

__all__ = ["ClosedLinks", "not_settled"]


class ClosedLinks:
    """The links of one connection that its broker has closed."""

    def __init__(self) -> None:
        self.links: dict[int, ProviderError] = {}
        """Why the broker ended links that the core has not released yet, by their numbers."""
        self._taken_back: dict[int, int] = {}
        """Deliveries of theirs that nobody has settled, with the link of each."""
        self._enlisted: dict[TxHandle, set[int]] = {}
        """Links with deliveries that are accepted in transactions."""
        self._lost: dict[TxHandle, ProviderError] = {}

    def link(self, number: int, error: ProviderError, unsettled: Iterable[int]) -> None:
        """The broker has ended a link.

        Args:
            number: Of the link.
            error: Why.
            unsettled: Its deliveries that were not settled.
        """
        self.links[number] = error
        self._taken_back.update(dict.fromkeys(unsettled, number))
        for tx, links in self._enlisted.items():
            if number in links:
                # Whether the broker had read of the acceptance before it ended the link is not known.
                self._lost.setdefault(tx, error)

    def forget(self, number: int) -> None:
        """The core has released a link: it settles nothing of it any more."""
        if self.links.pop(number, None) is not None:
            self._taken_back = {delivery: link for delivery, link in self._taken_back.items() if link != number}

    def took_back(self, delivery: int) -> ProviderError | None:
        """Return why something cannot be settled any more, once; None when it is not known, or was never to be settled."""
        link = self._taken_back.pop(delivery, None)
        return None if link is None else self.links.get(link)

    def enlisted(self, tx: TxHandle) -> set[int]:
        """Return the links with deliveries in a transaction, to be added to."""
        return self._enlisted.setdefault(tx, set())

    def lose(self, tx: TxHandle, error: ProviderError) -> None:
        """Something that was to be accepted in a transaction cannot be."""
        self._lost.setdefault(tx, error)

    def lost(self, tx: TxHandle) -> ProviderError | None:
        """Return why something of a transaction is lost, or may be."""
        return self._lost.get(tx)

    def over(self, tx: TxHandle) -> None:
        """A transaction has ended."""
        self._enlisted.pop(tx, None)
        self._lost.pop(tx, None)


def not_settled(cause: ProviderError, *, transacted: bool) -> ProviderError:
    """Return the error for whoever settles what the broker has taken back.

    Args:
        cause: Why the broker ended the link.
        transacted: It is settled in a transaction.
    """
    text = f"the broker has ended the consumer that brought it, and gives it out again: {cause.message}"
    return ProviderError(ErrorKind.ROLLED_BACK if transacted else ErrorKind.CLOSED, text)
