"""Sessions and producers of a connection, as the core holds them."""

from __future__ import annotations

from weakref import ReferenceType, ref

from jmsapi.spi import Handle
from jmsapi_inproc.messages import SendingConnection
from jmsapi_inproc.queue import BrokerQueue, Browser, QueueConsumer
from jmsapi_inproc.subscriptions import BrokerTopic
from jmsapi_inproc.transaction import InProcessTransaction

__all__ = ["InProcessSession", "Producer"]


class Producer(Handle):
    """Sends to one destination, or with None to that of each envelope."""

    __slots__ = ("closed", "target")

    def __init__(self, target: BrokerQueue | BrokerTopic | None) -> None:
        self.target = target
        self.closed = False


class InProcessSession(Handle):
    """Owns what was opened through it, and its open transaction.

    Args:
        sender: Its connection.
        transacted: Whether it works in transactions.
    """

    __slots__ = ("_begun", "_used", "children", "closed", "sender", "transacted")

    def __init__(self, sender: SendingConnection, *, transacted: bool) -> None:
        self.sender = sender
        self.transacted = transacted
        self.closed = False
        self.children: set[Producer | QueueConsumer | Browser] = set()
        self._begun: ReferenceType[InProcessTransaction] | None = None
        """A transaction that nothing has been done in ends with its handle: a begin that was interrupted leaves none behind."""
        self._used: InProcessTransaction | None = None

    @property
    def transaction(self) -> InProcessTransaction | None:
        """The transaction that is open, if any."""
        transaction = self._begun() if self._begun is not None else None
        return transaction if transaction is not None and transaction.open else None

    def begin(self) -> InProcessTransaction:
        """Open a transaction."""
        self._used = None
        transaction = InProcessTransaction(self.sender, self._keep)
        self._begun = ref(transaction)
        return transaction

    def _keep(self, transaction: InProcessTransaction) -> None:
        self._used = transaction
