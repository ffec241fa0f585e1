"""One look at a queue of Artemis over STOMP, which has no browsers: management lists what is there, and copies it to us.

A page of the list at a time is copied to a private queue, from which the copies come as to any consumer, whole and in order. The
queue itself is only read: nothing in it is taken, marked or moved. What has come since the look began is left out, by the
broker's numbers, so that a look ends however much is sent meanwhile.

A page is found by places in the queue, which change while others receive. So each page begins with the last message of the one
before, and when nothing that was listed before is in it, one further in front is asked for.
"""

from __future__ import annotations

import re
from typing import Final

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_brokers import artemis, artemis_management
from jmsapi_brokers.artemis_management import ListedMessage
from jmsapi_brokers.error_words import ANY_BROKER, kind_of
from jmsapi_stomp.access import BrokerAccess
from jmsapi_stomp.artemis_questions import ArtemisQuestions
from jmsapi_stomp.consumer import StompConsumer
from jmsapi_stomp.frames import Frame

__all__ = ["ArtemisBrowsing"]

_PAGE: Final = 100
_SIZES: Final = range(_PAGE // 2, 2 * _PAGE)
_NUMBER: Final = re.compile(rb"\nmessage-id:[^\n,]*,(\d+)")


class ArtemisBrowsing:
    """One look at a queue. I/O thread only.

    Args:
        access: The connection.
        consumer: The browser, whose plan names the private queue.
        queue: The queue's name, which is most often that of its address as well.
    """

    def __init__(self, access: BrokerAccess, consumer: StompConsumer, queue: str) -> None:
        self._access = access
        self._consumer = consumer
        self._queue = self._address = queue
        self._selector = consumer.spec.selector
        self._copies = access.collect(consumer)
        self._listed: set[int] = set()
        """The numbers of the messages listed so far."""
        self._place = 0
        """Where in the queue the next message is, unless others have received before it."""
        self._newest = 0
        """The number of a message of about the time when the look began."""
        self._first: list[ListedMessage] | None = None
        """The first page, which is listed when the look begins."""
        self._working = False

    async def begin(self) -> None:
        """Get ready, and list the first page, so that what is refused is refused at once.

        Raises:
            ProviderError: SECURITY, the user may not manage the broker; SELECTOR; why the connection is lost.
        """
        access, consumer = self._access, self._consumer
        questions = await ArtemisQuestions.begin(access)
        consumer.connection = consumer.lock = questions.connection
        consumer.member = questions.replies
        self._questions = questions
        private = ("broker", artemis_management.create_private_queue(consumer.plan.destination))
        [made] = await questions.ask_frames([private])
        number = _NUMBER.search(made.head)
        self._newest = 0 if number is None else int(number[1])
        await access.subscribe(consumer)
        self._first = await self._next_page()
        if not self._first:
            await self._look_elsewhere()
        consumer.wants = self._want

    async def _look_elsewhere(self) -> None:
        """Find the queue of an address that an operator has given another name."""
        request = ("broker", artemis_management.queues_of_address(self._address))
        [answer] = await self._questions.ask([request])
        name = artemis_management.queue_in(answer)
        if name is not None and name != self._queue:
            self._queue = name
            self._first = await self._next_page()

    # listing

    async def _list(self, page: int, size: int) -> list[ListedMessage]:
        """Return a page of the queue; a queue that does not exist is empty."""
        request = (
            artemis_management.queue_resource(self._queue),
            artemis_management.page_of_messages(page, size, self._selector),
        )
        memory = (f"address.{self._address}", artemis_management.is_paging())
        paging, answer = await self._questions.ask([memory, request])
        if paging is True:
            # Seen on 2.56: for each copy the broker reads its files from the start, and does nothing else meanwhile.
            text = "Artemis keeps a part of the messages outside its memory, where to copy each would keep it from all else"
            raise ProviderError(ErrorKind.UNSUPPORTED, text)
        if isinstance(answer, str):
            if artemis_management.UNKNOWN_RESOURCE in answer:
                return []
            raise ProviderError(kind_of(answer, (artemis.ERRORS, ANY_BROKER), ErrorKind.PROTOCOL), f"Artemis answers: {answer}")
        return artemis_management.messages_of(answer)

    async def _next_page(self) -> list[ListedMessage]:
        """Return the next messages that were there when the look began; none at the end."""
        place = self._place
        while True:
            page, size = _page_with(max(place - 1, 0))
            start = (page - 1) * size
            found = await self._list(page, size)
            seen = [at for at, one in enumerate(found) if one.number in self._listed]
            if not seen and start:
                place = start - _PAGE
                continue
            new = found[seen[-1] + 1 :] if seen else found
            place = self._place = start + len(found)
            self._listed.update(one.number for one in new)
            old = [one for one in new if not self._newest or one.number <= self._newest]
            if old or len(found) < size:
                return old
            if new:
                # Here are only later messages. Older ones can be behind them only if they are less urgent.
                lowest = new[-1].priority
                if lowest == 0:
                    return []
                self._selector = artemis.less_urgent(self._consumer.spec.selector, lowest)
                place = self._place = 0

    # copying

    def _want(self) -> None:
        if not self._working and not self._consumer.browsed and not self._consumer.closing:
            self._working = True
            self._access.show_by(self._consumer, self._more())

    async def _more(self) -> list[Frame]:
        """Return the next messages; none at the end."""
        self._working = True
        try:
            while True:
                page, self._first = self._first, None
                if page is None:
                    page = await self._next_page()
                if not page:
                    return []
                shown = await self._copy(page)
                if shown:
                    return shown
        finally:
            self._working = False

    async def _copy(self, page: list[ListedMessage]) -> list[Frame]:
        resource = artemis_management.queue_resource(self._queue)
        private = self._consumer.plan.destination
        requests = [(resource, artemis_management.copy_message(one.number, private)) for one in page]
        answers = await self._questions.ask(requests)
        for answer in answers:
            if isinstance(answer, str) and artemis_management.UNKNOWN_RESOURCE not in answer:
                raise ProviderError(ErrorKind.PROTOCOL, f"Artemis answers: {answer}")
        there = [one for one, answer in zip(page, answers, strict=True) if answer is True]
        frames = await self._copies.next(len(there), "copies of messages")
        return [_as_in_queue(frame, one) for frame, one in zip(frames, there, strict=True)]


def _page_with(place: int) -> tuple[int, int]:
    """Return number and size of the page that has the message at a place and the most behind it."""
    size = max(_SIZES, key=lambda one: one - place % one)
    return place // size + 1, size


def _as_in_queue(copy: Frame, message: ListedMessage) -> Frame:
    """Return a copy with what is the message's own: the copy has a number of its own, does not expire and is new."""
    return copy.with_values(
        {
            b"message-id": b"0,%d" % message.number,
            b"expires": b"%d" % message.expiration,
            b"redelivered": b"true" if message.redelivered else b"false",
        }
    )
