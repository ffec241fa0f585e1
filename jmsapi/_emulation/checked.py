"""The contract of the provider interface, asserted from both sides, in tests and certification runs (``?checked=true``).

It changes nothing. What it sees broken it logs as an error of ``jmsapi.contract`` with the number of the rule in
``jmsapi.spi.provider``; a test run turns each such record into a failure. It costs about as much as the core itself.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from jmsapi.spi import (
    Address,
    Capabilities,
    ConsumerSpec,
    Delivery,
    Envelope,
    ErrorKind,
    Events,
    Handle,
    Outcome,
    Provider,
    ProviderError,
    SendResult,
    Tag,
    TakesBack,
    answered,
    stop_consumer,
)

if TYPE_CHECKING:
    from jmsapi.spi.options import ProviderOptions

__all__ = ["Checked"]

T = TypeVar("T")
_log = logging.getLogger("jmsapi.contract")


class _CheckedConsumer:
    """What is known of one consumer: its credit, whether it is released, which thread is filing deliveries of it."""

    __slots__ = ("browse", "credit", "filing", "released", "tags")

    def __init__(self, browse: bool) -> None:
        self.browse = browse
        self.credit = 0
        self.released = False
        self.filing: int | None = None
        self.tags: set[Tag] = set()


class Checked:
    """A provider that watches another one, and the core that uses it.

    Args:
        provider: The one that does the work.
        options: For ``max_in_flight``.
    """

    def __init__(self, provider: Provider, options: ProviderOptions) -> None:
        self._provider = provider
        self._limit = options.max_in_flight
        self._guard = threading.Lock()
        self._events: Events | None = None
        self._capabilities: Capabilities | None = None
        self._consumers: dict[Handle, _CheckedConsumer] = {}
        self._unsettled: dict[Tag, _CheckedConsumer] = {}
        self._in_transaction: dict[Handle, list[Tag]] = {}
        self._tokens: set[int] = set()
        self._lost = False
        """A link was lost: what is settled may be of that one, and is void."""
        self._given_up = False
        self._inside = threading.local()

    # ---- calls of the core ----------------------------------------------------------------------------------------
    def open(self, events: Events) -> Future[Capabilities]:
        """Pass on, and stand between the provider and its events."""
        self._calling("open")
        self._events = events
        return self._watched("open", self._provider.open(self), self._learn)

    def close(self) -> Future[None]:
        """Pass on."""
        self._calling("close")
        return self._watched("close", self._provider.close())

    def open_session(self, *, transacted: bool) -> Future[Handle]:
        """Check that transactions are there when asked for."""
        self._calling("open_session")
        if transacted:
            self._need("transactions")
        return self._watched("open_session", self._provider.open_session(transacted=transacted))

    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        """Check that what the consumer needs is there, and begin to watch it."""
        self._calling("open_consumer")
        for feature in _needs(spec):
            self._need(feature)
        return self._watched("open_consumer", self._provider.open_consumer(session, spec), lambda handle: self._add(handle, spec))

    def open_producer(self, session: Handle, destination: Address | None) -> Future[Handle]:
        """Pass on."""
        self._calling("open_producer")
        return self._watched("open_producer", self._provider.open_producer(session, destination))

    def release(self, handle: Handle) -> Future[None]:
        """Stop watching a consumer: what it has unsettled goes back by the release."""
        self._calling("release")
        return self._watched("release", self._provider.release(handle), lambda _: self._forget(handle))

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        """Count what is unanswered."""
        self._calling("send")
        with self._guard:
            if id(token) in self._tokens:
                self._broken(6, "a token is used for two sends at the same time")
            self._tokens.add(id(token))
            if len(self._tokens) > self._limit:
                self._broken(6, f"{len(self._tokens)} sends are unanswered, the limit is {self._limit}")
        try:
            self._provider.send(producer, envelope, tx, token)
        except BaseException as error:
            with self._guard:
                self._tokens.discard(id(token))
            self._check_error("send", error)
            raise

    def take_back(self, token: object) -> None:
        """Pass down, where sends can be taken back."""
        if isinstance(self._provider, TakesBack):
            self._provider.take_back(token)

    def credit(self, consumer: Handle, n: int) -> Future[None]:
        """Add to what may be delivered."""
        self._calling("credit")
        with self._guard:
            watched = self._consumers.get(consumer)
            if watched is not None:
                watched.credit += n
        if n <= 0:
            self._broken(3, f"credit of {n}")
        return self._watched("credit", self._provider.credit(consumer, n))

    def drain(self, consumer: Handle) -> Future[None]:
        """Nothing may be delivered once it is done."""
        self._calling("drain")
        return self._watched("drain", self._provider.drain(consumer), lambda _: self._drained(consumer))

    def stop(self, consumer: Handle) -> Future[None]:
        """Nothing may be delivered once it is done."""
        self._calling("stop")
        return self._watched("stop", stop_consumer(self._provider, consumer), lambda _: self._drained(consumer))

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        """Check that each tag is known and settled once."""
        self._calling("settle")
        if tx is not None and outcome is not Outcome.ACCEPTED:
            self._broken(3, f"{outcome.value} in a transaction")
        if failures and (outcome is not Outcome.FAILED or len(failures) != len(tags) or min(failures) < 1):
            self._broken(3, f"{len(tags)} tags are settled as {outcome.value} with the failures {list(failures)}")
        with self._guard:
            for tag in tags:
                watched = self._unsettled.pop(tag, None)
                if watched is None:
                    if not self._lost:
                        self._broken(3, f"a tag is settled as {outcome.value} that is not delivered, or settled already")
                    continue
                watched.tags.discard(tag)
                if tx is not None:
                    self._in_transaction.setdefault(tx, []).append(tag)
                    watched.tags.add(tag)
        return self._watched("settle", self._provider.settle(tags, outcome, tx, failures))

    def begin(self, session: Handle) -> Future[Handle]:
        """Check that there are transactions."""
        self._calling("begin")
        self._need("transactions")
        return self._watched("begin", self._provider.begin(session))

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        """After a rollback the tags of the transaction may be settled again."""
        self._calling("end")
        ended = self._provider.end(tx, commit=commit)
        return self._watched("end", ended, lambda _: self._ended(tx, commit), lambda: self._ended(tx, False))

    def create_temporary(self, session: Handle, *, topic: bool) -> Future[Address]:
        """Check that there are temporary destinations."""
        self._calling("create_temporary")
        self._need("temporary_topic" if topic else "temporary_queue")
        return self._watched("create_temporary", self._provider.create_temporary(session, topic=topic))

    def remove(self, session: Handle, what: Address | str) -> Future[None]:
        """Pass on."""
        self._calling("remove")
        if isinstance(what, str):
            self._need("unsubscribe")
        return self._watched("remove", self._provider.remove(session, what))

    # ---- events of the provider -----------------------------------------------------------------------------------
    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Check credit, order of threads, and that each tag is new."""
        me = threading.get_ident()
        with self._guard:
            watched = self._consumers.get(consumer)
            if watched is None or watched.released:
                self._broken(3, f"{len(deliveries)} deliveries for a consumer that is released or was never opened")
            else:
                if watched.filing is not None:
                    self._broken(1, "two threads bring deliveries of one consumer at the same time")
                watched.filing = me
                watched.credit -= len(deliveries)
                if watched.credit < 0:
                    self._broken(3, f"{-watched.credit} deliveries more than there was credit for")
                    watched.credit = 0
                for delivery in deliveries:
                    if delivery.tag in self._unsettled:
                        self._broken(3, "a tag is delivered twice")
                    if delivery.delivery_count < 1:
                        self._broken(3, f"a delivery count of {delivery.delivery_count}")
                    if not watched.browse:
                        self._unsettled[delivery.tag] = watched
                        watched.tags.add(delivery.tag)
        try:
            self._tell().on_deliveries(consumer, deliveries)
        finally:
            self._reported()
            if watched is not None:
                watched.filing = None

    def on_sent(self, results: Sequence[SendResult]) -> None:
        """Check that each token is answered once."""
        with self._guard:
            for token, error in results:
                if id(token) not in self._tokens:
                    self._broken(6, "a send is answered that is not open, or was answered already")
                self._tokens.discard(id(token))
                if error is not None:
                    self._check_error("on_sent", error)
        try:
            self._tell().on_sent(results)
        finally:
            self._reported()

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        """Pass on."""
        self._check_error("on_closed", cause)
        try:
            self._tell().on_closed(handle, cause)
        finally:
            self._reported()

    def on_lost(self, cause: ProviderError) -> None:
        """Check that it is reported once."""
        if self._given_up:
            self._broken(8, "the link is lost for good, and then lost again")
        self._lost, self._given_up = True, cause.fatal
        with self._guard:
            # What came by it is void: it comes again, and settling it has no effect.
            for watched in self._consumers.values():
                watched.tags.clear()
            self._unsettled.clear()
        self._check_error("on_lost", cause)
        try:
            self._tell().on_lost(cause)
        finally:
            self._reported()

    def on_resumed(self) -> None:
        """Pass on; the one event from inside of which the core may call."""
        if self._events is not None:
            self._events.on_resumed()

    # ---- what is checked ------------------------------------------------------------------------------------------
    def _broken(self, rule: int, words: str) -> None:
        _log.error("rule %d of the provider interface is broken: %s", rule, words, stack_info=True)

    def _calling(self, call: str) -> None:
        if getattr(self._inside, "depth", 0):
            self._broken(2, f"{call} is called from inside a callback")

    def _tell(self) -> Events:
        self._inside.depth = getattr(self._inside, "depth", 0) + 1
        if self._events is None:
            raise ProviderError(ErrorKind.PROTOCOL, "an event before open was called")
        return self._events

    def _reported(self) -> None:
        self._inside.depth -= 1

    def _need(self, feature: str) -> None:
        if self._capabilities is not None and not self._capabilities.of(feature):
            self._broken(5, f"{feature} is asked for, which the capabilities call NONE")

    def _check_error(self, call: str, error: BaseException) -> None:
        if not isinstance(error, ProviderError):
            self._broken(8, f"{call} failed with {type(error).__name__}, not ProviderError: {error}")

    def _watched(
        self, call: str, future: Future[T], then: Callable[[T], None] | None = None, failed: Callable[[], None] | None = None
    ) -> Future[T]:
        def value(inner: T) -> T:
            if then is not None:
                then(inner)
            return inner

        def refused(error: BaseException) -> BaseException:
            self._check_error(call, error)
            if failed is not None:
                failed()
            return error

        return answered(future, value, refused)

    def _learn(self, capabilities: Capabilities) -> None:
        self._capabilities = capabilities

    def _add(self, handle: Handle, spec: ConsumerSpec) -> None:
        with self._guard:
            self._consumers[handle] = _CheckedConsumer(spec.browse)

    def _forget(self, handle: Handle) -> None:
        with self._guard:
            watched = self._consumers.get(handle)
            if watched is not None:
                watched.released = True
                for tag in watched.tags:
                    self._unsettled.pop(tag, None)

    def _drained(self, consumer: Handle) -> None:
        with self._guard:
            watched = self._consumers.get(consumer)
            if watched is not None:
                watched.credit = 0

    def _ended(self, tx: Handle, commit: bool) -> None:
        with self._guard:
            tags = self._in_transaction.pop(tx, [])
            again = not commit and self._capabilities is not None and not self._capabilities.rollback_returns
            for consumer in self._consumers.values():
                for tag in tags:
                    if tag in consumer.tags:
                        if again and not consumer.released:
                            self._unsettled[tag] = consumer
                        else:
                            consumer.tags.discard(tag)


def _needs(spec: ConsumerSpec) -> list[str]:
    needs: list[str] = []
    topic = spec.address.kind.is_topic
    if spec.selector is not None:
        needs.append("topic_selector" if topic else "queue_selector")
    if spec.no_local:
        needs.append("no_local")
    if spec.browse:
        needs.append("browser")
    if spec.subscription is not None:
        kind = ("shared_" if spec.shared else "") + ("durable_subscription" if spec.durable else "subscription")
        needs.append(kind)
    return needs
