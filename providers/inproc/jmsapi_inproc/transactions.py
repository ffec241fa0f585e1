"""A local transaction: what it sends and accepts takes effect at its commit, all at once.

Every method is called under the broker's lock.

Spec: 4.4.7-1 to 4.4.7-8.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

from jmsapi.spi import DONE, Envelope, ErrorKind, Handle, ProviderError, answered
from jmsapi_inproc.filing import forget, recount
from jmsapi_inproc.messages import InprocTag, Message
from jmsapi_inproc.store_filing import Filing

if TYPE_CHECKING:
    from jmsapi_inproc.broker import Broker
    from jmsapi_inproc.handles import Consumer, Session
    from jmsapi_inproc.queues import Queue
    from jmsapi_inproc.store import Store
    from jmsapi_inproc.topics import Topic

__all__ = ["Accepted", "Transaction"]


class Accepted(NamedTuple):
    """A delivery that its consumer accepted in the transaction."""

    consumer: Consumer
    tag: InprocTag
    message: Message


class Transaction(Handle):
    """What one session did since its last commit or rollback."""

    __slots__ = ("_accepted", "_sent", "open", "session")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.open = True
        self._sent: list[tuple[Queue | Topic, Envelope]] = []
        self._accepted: list[Accepted] = []

    def send(self, target: Queue | Topic, envelope: Envelope) -> None:
        """Keep a message for the commit."""
        self._sent.append((target, envelope))

    def accept(self, accepted: Accepted) -> None:
        """Keep an acceptance for the commit."""
        accepted.consumer.queue.enlisted += 1
        self._accepted.append(accepted)

    def hand_over(self) -> tuple[list[tuple[Queue | Topic, Envelope]], list[Accepted]]:
        """Return what was sent and accepted, for the branch it belongs to; the transaction has ended."""
        self.open = False
        self.session.transaction = None
        return self._sent, self._accepted

    def commit(self, broker: Broker) -> Future[None]:
        """File what was sent, in its order, and forget what was accepted. What went to a removed destination is lost with it.

        Returns:
            Done when it is on disk, if it has to be. It fails when there is no room: then it is rolled back.
        """
        if broker.store is not None:
            return self._write(broker.store)
        self._end()
        sender = self.session.connection
        with broker.batched():
            for target, envelope in self._sent:
                if not target.gone:
                    target.publish(envelope, sender)
        return DONE

    def roll_back(self) -> None:
        """Drop what was sent; what was accepted is its consumer's again, or goes back if that is gone."""
        self._end()
        self._return()

    def _write(self, store: Store) -> Future[None]:
        self.open = False
        self.session.transaction = None
        filing = Filing()
        for target, envelope in self._sent:
            if not target.gone:
                target.plan(envelope, self.session.connection, filing)
        for consumer, _, message in self._accepted:
            forget(consumer.queue, message, filing)
        filing.then(self._count_down)
        filing.otherwise(self._count_down)
        filing.otherwise(self._return)
        written = filing.awaited()
        if not store.submit(filing):
            return DONE
        return answered(written, lambda _: None, _refused)

    def _return(self) -> None:
        returned: dict[Queue, list[Message]] = {}
        for consumer, tag, message in self._accepted:
            if consumer.closed:
                message.count += 1
                recount(message, consumer.queue)
                returned.setdefault(consumer.queue, []).append(message)
            else:
                consumer.taken[tag] = message
        for queue, messages in returned.items():
            queue.give_back(messages)
            queue.share()

    def _end(self) -> None:
        self.open = False
        self.session.transaction = None
        self._count_down()

    def _count_down(self) -> None:
        for accepted in self._accepted:
            accepted.consumer.queue.enlisted -= 1


def _refused(error: BaseException) -> BaseException:
    if not isinstance(error, ProviderError) or error.kind is not ErrorKind.RESOURCE:
        return error
    rolled_back = ProviderError(ErrorKind.ROLLED_BACK, f"{error.message}; all of it is rolled back")
    rolled_back.__cause__ = error
    return rolled_back
