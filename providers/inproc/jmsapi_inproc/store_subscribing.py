"""How durable subscriptions of a stored broker come, take another's place and go: each by one filing, or not at all.

Until that is written both the old and the new one are there and get what is published, so that neither has missed anything,
whichever stays. The subscription itself is its place in the file; what waits in one that is gone is taken out afterwards, a
part at a time, and when the file is opened again what is left of it.

Every function is called under the broker's lock.

Spec: 6.11.3-8, 6.11.3-10, 6.11.3-11.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

from jmsapi.spi import DONE, Handle, answered, completed
from jmsapi_inproc.store_filing import Filing

if TYPE_CHECKING:
    from collections.abc import Callable

    from jmsapi_inproc.handles import Consumer
    from jmsapi_inproc.topics import Subscription, Subscriptions

__all__ = ["attached", "ended"]


def attached(
    subscriptions: Subscriptions, subscription: Subscription, consumer: Consumer, let_go: Callable[[], None]
) -> Future[Handle]:
    """Return the consumer of a durable subscription when the file has that.

    Args:
        subscriptions: Of the broker.
        subscription: New, or there already.
        consumer: Its consumer.
        let_go: Closes the consumer, when the subscription cannot be written.
    """
    shelf = subscription.queue.shelf
    if shelf is None or shelf.known:
        return completed(consumer)
    filing = Filing()
    shelf.store.add_place(filing, shelf.place)
    filing.then(shelf.noted)
    old = subscription.replaces
    if old is not None and old.queue.shelf is not None:
        shelf.store.remove_place(filing, old.queue.shelf.place)
    subscription.filings += 1
    filing.then(lambda: subscriptions.settled(subscription))
    filing.otherwise(let_go)
    filing.otherwise(lambda: subscriptions.settled(subscription))
    answer: Future[Handle] = answered(filing.awaited(), lambda _: consumer)
    shelf.store.submit(filing)
    return answer


def ended(subscriptions: Subscriptions, subscription: Subscription) -> Future[None]:
    """End a durable subscription; done when the file has it no more. It stays as it was if that cannot be written."""
    shelf = subscription.queue.shelf
    if shelf is None:
        subscriptions.end(subscription)
        return DONE
    subscription.ending = True
    filing = Filing()
    shelf.store.remove_place(filing, shelf.place)
    filing.then(lambda: subscriptions.end(subscription))
    filing.otherwise(lambda: setattr(subscription, "ending", False))
    answer = filing.awaited()
    shelf.store.submit(filing)
    return answer
