"""A decorator of the SPI that lets the planned faults come.

Nothing below is called while ``_up`` is held: the broker calls up under a lock of its own.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Final, NoReturn, TypeVar

from jmsapi._emulation.forwarding import Forwarding
from jmsapi.spi import (
    DONE,
    Address,
    Capabilities,
    Clock,
    ConsumerSpec,
    Delivery,
    Envelope,
    ErrorKind,
    Events,
    Handle,
    Outcome,
    ProviderError,
    SendResult,
    Tag,
    answered,
    failed,
    stop_consumer,
)
from jmsapi.testing._line import Line
from jmsapi.testing._record import Record
from jmsapi.testing._recording import Recording
from jmsapi.testing.provider_faults import Operation, PlannedFault, ProviderFaults, Way

__all__ = ["Faulty"]

T = TypeVar("T")
_IN_DOUBT: Final = ("send", "commit")


class _OnItsWay:
    """A delivery that is held up, or behind one that is."""

    __slots__ = ("delivery", "ready")

    def __init__(self, delivery: Delivery, ready: bool) -> None:
        self.delivery = delivery
        self.ready = ready


class Faulty(Forwarding):
    """One connection.

    Args:
        tap: What is below.
        record: Told what is held up.
        faults: What is planned.
        clock: By which delays last.
    """

    def __init__(self, tap: Recording, record: Record, faults: ProviderFaults, clock: Clock) -> None:
        super().__init__(tap)
        self._tap = tap
        self._record = record
        self._faults = faults
        self._clock = clock
        self._line = Line(clock, record.late)
        self._up = threading.RLock()
        self._opened = False
        self._lost = False
        self._ways: dict[Handle, deque[_OnItsWay]] = {}
        self._instead: dict[int, ProviderError] = {}
        """By token of a send: what is answered though the broker took it."""

    # ---- calls ----------------------------------------------------------------------------------------------------
    def open(self, events: Events) -> Future[Capabilities]:
        """Connect, unless that is to fail."""
        fault = self._faults.meet("connect")
        if fault is None:
            opened = super().open(events)
            self._opened = True
            return opened
        if fault.after:
            super().open(events).result()
        self._tap.close()
        return failed(fault.error())

    def close(self) -> Future[None]:
        """End all delays, then close."""
        self._line.flush()
        return self.below.close()

    def open_session(self, *, transacted: bool) -> Future[Handle]:
        """Pass down."""
        return self._ask("create_session", None, lambda: self.below.open_session(transacted=transacted))

    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        """Pass down."""
        operation: Operation = "create_browser" if spec.browse else "create_consumer"
        return self._ask(operation, spec.address.name, lambda: self.below.open_consumer(session, spec))

    def open_producer(self, session: Handle, destination: Address | None) -> Future[Handle]:
        """Pass down."""
        name = None if destination is None else destination.name
        return self._ask("create_producer", name, lambda: self.below.open_producer(session, destination))

    def release(self, handle: Handle) -> Future[None]:
        """End all delays, then release."""
        self._line.flush()
        released = self.below.release(handle)
        with self._up:
            for consumer in list(self._ways):
                if self._tap.spec_of(consumer) is None:
                    self._record.late(-len(self._ways.pop(consumer)))
        return released

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        """Send, unless it is to go wrong."""
        if self._lost:
            raise _no_link()
        fault = self._faults.meet("send", self._tap.target_of(producer, envelope).name)

        def answer(error: ProviderError | None) -> None:
            self._instead.pop(id(token), None)
            self.above.on_sent(((token, error),))

        def at_once() -> Future[None]:
            self.below.send(producer, envelope, tx, token)
            return DONE

        def later() -> Future[None]:
            # Its caller has gone on: what it raises is its answer.
            try:
                return at_once()
            except ProviderError as error:
                answer(error)
                return DONE

        if fault is None:
            self._line.call(at_once, behind=later, lost=answer)
        elif fault.way is Way.DROP:
            answer(None)
        elif fault.way is Way.DELAY:
            self._line.call(later, fault.seconds, lost=answer)
        else:
            error = _in_doubt("send") if fault.way is Way.CUT and tx is None else fault.error()
            if fault.after:
                self._instead[id(token)] = error
                self._line.call(later, lost=answer)
            else:
                answer(error)
            if fault.way is Way.CUT:
                self.cut()

    def drain(self, consumer: Handle) -> Future[None]:
        """Take credit back; what is held up on its way goes back to the broker, for nobody has seen it."""
        return self._given_back(consumer, self.below.drain(consumer))

    def stop(self, consumer: Handle) -> Future[None]:
        """Take credit back; as for a drain."""
        return self._given_back(consumer, stop_consumer(self.below, consumer))

    def _given_back(self, consumer: Handle, taken_back: Future[None]) -> Future[None]:
        with self._up:
            tags = [one.delivery.tag for one in self._ways.pop(consumer, ())]
        if tags:
            self._record.late(-len(tags))
            self.below.settle(tags, Outcome.RELEASED)
        return taken_back

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        """Settle; an acceptance outside of a transaction is what can go wrong."""
        if tx is None and outcome is Outcome.ACCEPTED:
            where = self._tap.destination_of(tags)
            return self._ask("acknowledge", where, lambda: self.below.settle(tags, outcome))
        return self._in_line(lambda: self.below.settle(tags, outcome, tx, failures))

    def begin(self, session: Handle) -> Future[Handle]:
        """Pass down."""
        return self._ask("begin", None, lambda: self.below.begin(session))

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        """Commit or roll back; a commit that fails by plan rolls back."""
        operation: Operation = "commit" if commit else "rollback"
        return self._ask(operation, None, lambda: self.below.end(tx, commit=commit), lambda: self.below.end(tx, commit=False))

    def create_temporary(self, session: Handle, *, topic: bool) -> Future[Address]:
        """Pass down."""
        return self._ask("create_temporary", None, lambda: self.below.create_temporary(session, topic=topic))

    def remove(self, session: Handle, what: Address | str) -> Future[None]:
        """Pass down."""
        if isinstance(what, str):
            return self._ask("unsubscribe", None, lambda: self.below.remove(session, what))
        return self._ask("delete_temporary", what.name, lambda: self.below.remove(session, what))

    # ---- events ---------------------------------------------------------------------------------------------------
    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Pass up what is neither dropped nor held up."""
        spec = self._tap.spec_of(consumer)
        with self._up:
            if self._lost:
                return
            if deliveries and spec is not None and not spec.browse:
                deliveries = self._sifted(consumer, spec.address.name, deliveries)
                if not deliveries:
                    return
            self.above.on_deliveries(consumer, deliveries)

    def on_sent(self, results: Sequence[SendResult]) -> None:
        """Pass up, or say otherwise."""
        if self._instead:
            results = [(token, self._instead.pop(id(token), error)) for token, error in results]
        self.above.on_sent(results)

    def on_lost(self, cause: ProviderError) -> None:
        """Pass up."""
        self._lost = True
        self._line.abandon(_no_link)
        self.above.on_lost(cause)

    # ---- faults ---------------------------------------------------------------------------------------------------
    def cut(self) -> None:
        """Lose the link; there is none to lose before it is open."""
        with self._up:
            if self._lost or not self._opened:
                return
            self._lost = True
            self._record.late(-sum(map(len, self._ways.values())))
            self._ways.clear()
        self._line.abandon(_no_link)
        self._tap.sever()
        self.above.on_lost(_no_link())

    def _ask(
        self,
        operation: Operation,
        destination: str | None,
        act: Callable[[], Future[T]],
        undo: Callable[[], Future[T]] | None = None,
    ) -> Future[T]:
        fault = None if self._lost else self._faults.meet(operation, destination)
        if fault is None:
            return self._in_line(act)
        match fault.way:
            case Way.DELAY:
                return self._line.call(act, fault.seconds)
            case Way.DROP:
                # Only what has no result can get lost; see ProviderFaults.drop.
                return DONE  # type: ignore[return-value]  # pyright: ignore[reportReturnType]
            case Way.CUT:
                if fault.after:
                    self._line.call(act)
                self.cut()
                return failed(_in_doubt(operation) if operation in _IN_DOUBT else _no_link())
            case Way.FAIL:
                if fault.after:
                    return answered(self._line.call(act), partial(_fail, fault))
                if undo is not None:
                    self._line.call(undo)
                return failed(fault.error())

    def _in_line(self, act: Callable[[], Future[T]]) -> Future[T]:
        return failed(_no_link()) if self._lost else self._line.call(act)

    def _sifted(self, consumer: Handle, name: str, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        """Return what comes through now."""
        passed: list[Delivery] = []
        for delivery in deliveries:
            fault = self._faults.meet("deliver", name)
            way = self._ways.get(consumer)
            if fault is None and not way:
                passed.append(delivery)
            elif fault is None or fault.way is Way.DELAY:
                self._hold_up(consumer, delivery, 0.0 if fault is None else fault.seconds)
            elif fault.way is Way.CUT:
                # The broker is in the middle of handing out, and cutting changes what it has.
                threading.Thread(target=self.cut, name="jmsapi-testing-cut", daemon=True).start()
                break
            else:
                self._record.drop(delivery.tag)
        return passed

    def _hold_up(self, consumer: Handle, delivery: Delivery, seconds: float) -> None:
        one = _OnItsWay(delivery, not seconds)
        self._ways.setdefault(consumer, deque()).append(one)
        self._record.late(1)
        if not seconds:
            return

        def due() -> None:
            one.ready = True
            with self._up:
                way = self._ways.get(consumer, deque())
                arrived: list[Delivery] = []
                while way and way[0].ready:
                    arrived.append(way.popleft().delivery)
                if arrived:
                    self.above.on_deliveries(consumer, arrived)
            self._record.late(-len(arrived))

        self._clock.call_later(seconds, due)


def _no_link() -> ProviderError:
    return ProviderError(ErrorKind.CONNECTION, "the link was cut because the test asks for it", fatal=True)


def _in_doubt(operation: str) -> ProviderError:
    text = f"the link was cut during {operation} because the test asks for it; whether the broker did it is not known"
    return ProviderError(ErrorKind.IN_DOUBT, text, fatal=True)


def _fail(fault: PlannedFault, _: object) -> NoReturn:
    """Have a call that has gone well go wrong."""
    raise fault.error()
