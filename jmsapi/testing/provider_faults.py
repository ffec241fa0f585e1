"""Faults that a test plans: which call of the application goes wrong, when, and how."""

from __future__ import annotations

import threading
from enum import Enum
from typing import Final, Literal, get_args

from jmsapi.errors import IllegalArgumentException
from jmsapi.spi import ErrorKind, ProviderError

__all__ = ["Operation", "PlannedFault", "ProviderFaults", "Way"]

Operation = Literal[
    "connect",
    "create_session",
    "create_consumer",
    "create_browser",
    "create_producer",
    "create_temporary",
    "delete_temporary",
    "unsubscribe",
    "send",
    "deliver",
    "acknowledge",
    "begin",
    "prepare",
    "commit",
    "rollback",
]
"""What an application does with a broker; ``deliver`` is what the broker does."""

_OPERATIONS: Final[tuple[str, ...]] = get_args(Operation)
_DROPPED: Final = ("send", "deliver", "acknowledge")
_USUAL: Final[dict[str, ErrorKind]] = {"connect": ErrorKind.CONNECTION, "commit": ErrorKind.ROLLED_BACK}


class Way(Enum):
    """What a fault does to a call."""

    FAIL = "fail"
    DROP = "drop"
    DELAY = "delay"
    CUT = "cut"


class PlannedFault:
    """One planned fault. ``hits`` says how often it has come."""

    def __init__(
        self,
        way: Way,
        operation: Operation,
        *,
        nth: int,
        times: int | None,
        destination: str | None,
        after: bool = False,
        kind: ErrorKind = ErrorKind.RESOURCE,
        message: str | None = None,
        seconds: float = 0.0,
    ) -> None:
        self.way = way
        self.operation = operation
        self.after = after
        self.seconds = seconds
        self.hits = 0
        self.calls = 0
        """How many calls it has looked at."""
        self._nth = nth
        self._times = times
        self._destination = destination
        self._kind = kind
        self._message = message

    def concerns(self, operation: str, destination: str | None) -> bool:
        """Return whether a call is one of those that it counts."""
        return self.operation == operation and self._destination in (None, destination)

    def met(self) -> bool:
        """Count one more call, and return whether this is one that goes wrong."""
        self.calls += 1
        if self.calls < self._nth or (self._times is not None and self.calls >= self._nth + self._times):
            return False
        self.hits += 1
        return True

    def error(self) -> ProviderError:
        """Make the error of the call that is going wrong."""
        text = self._message or f"{self.operation} number {self.calls} goes wrong because the test asks for it"
        return ProviderError(self._kind, text, fatal=self._kind is ErrorKind.CONNECTION)

    def __str__(self) -> str:
        where = f" at {self._destination!r}" if self._destination is not None else ""
        many = "" if self._times == 1 else " and all later ones" if self._times is None else f", {self._times} times"
        return f"{self.way.value} {self.operation}{where}, number {self._nth}{many} ({self.calls} calls so far)"

    def __repr__(self) -> str:
        return f"<PlannedFault {self}>"


class ProviderFaults:
    """Plans what goes wrong between an application and its broker, call by call.

    Calls are counted from the moment a fault is planned, over all connections of the broker, those of the test's own
    hand (``queue(...).send``, ``jms_context`` is the application's) left out.

    Threads: any.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[PlannedFault] = []

    def fail(
        self,
        operation: Operation,
        nth: int = 1,
        *,
        times: int | None = 1,
        error: ErrorKind | str | None = None,
        message: str | None = None,
        after: bool = False,
        destination: str | None = None,
    ) -> PlannedFault:
        """Let the nth call fail, as if the broker had refused it.

        Args:
            operation: See ``Operation``; not ``deliver``.
            nth: 1 is the next one.
            times: How many in a row from the nth on; None: all of them.
            error: A kind of ``jmsapi.spi.ErrorKind`` or its word, such as ``"resource"``, ``"security"``, ``"in-doubt"``; left
                out: ``connection`` for ``connect``, ``rolled-back`` for ``commit``, else ``resource``.
            message: The error's text.
            after: The broker does what was asked, and only then is it said to have failed: with ``"in-doubt"`` the answer
                that was lost.
            destination: Count only the calls for this queue or topic.
        Returns:
            The fault, to look at its ``hits``.
        Raises:
            IllegalArgumentException: No such operation or error, or a number below 1.
        """
        if operation == "deliver":
            raise IllegalArgumentException("fail: a delivery is no call that can fail; drop, delay or cut it")
        kind = _kind(error) if error is not None else _USUAL.get(operation, ErrorKind.RESOURCE)
        return self._plan(
            PlannedFault(
                Way.FAIL,
                operation,
                nth=nth,
                times=times,
                destination=destination,
                after=after,
                kind=kind,
                message=message,
            ),
            nth,
            times,
        )

    def drop(self, operation: Operation, nth: int = 1, *, times: int | None = 1, destination: str | None = None) -> PlannedFault:
        """Let the nth one get lost, and nobody hear of it.

        A dropped ``send`` is said to have succeeded; a dropped ``deliver`` stays with its consumer until that closes; after a
        dropped ``acknowledge`` the message comes again when its consumer has closed.

        Args:
            operation: ``send``, ``deliver`` or ``acknowledge``; the others are answered, so ``fail`` them.
            nth: See ``fail``.
            times: See ``fail``.
            destination: See ``fail``.
        Returns:
            The fault.
        Raises:
            IllegalArgumentException: An operation that cannot be dropped, or a number below 1.
        """
        if operation not in _DROPPED:
            raise IllegalArgumentException(f"drop: {', '.join(_DROPPED)} can get lost; {operation!r} cannot, so let it fail")
        return self._plan(PlannedFault(Way.DROP, operation, nth=nth, times=times, destination=destination), nth, times)

    def delay(
        self, operation: Operation, seconds: float, nth: int = 1, *, times: int | None = 1, destination: str | None = None
    ) -> PlannedFault:
        """Let the nth one take so many seconds of the broker's clock: it waits for ``jms_clock.advance``.

        What the connection does meanwhile waits behind it, as on a slow line; so does closing, as long as ``close_timeout_ms``.

        Args:
            operation: See ``Operation``; not ``connect``.
            seconds: More than 0.
            nth: See ``fail``.
            times: See ``fail``.
            destination: See ``fail``.
        Returns:
            The fault.
        Raises:
            IllegalArgumentException: No such operation, or a number that is too small.
        """
        if operation == "connect":
            raise IllegalArgumentException("delay: a connection cannot be held up before it is there; let connect fail")
        if not 0 < seconds < 1e12:
            raise IllegalArgumentException(f"delay: {seconds!r} is no number of seconds above 0")
        return self._plan(
            PlannedFault(Way.DELAY, operation, nth=nth, times=times, destination=destination, seconds=seconds), nth, times
        )

    def cut(self, operation: Operation, nth: int = 1, *, after: bool = False, destination: str | None = None) -> PlannedFault:
        """Let the connection that makes the nth call lose its link in the middle of it.

        What it held unsettled goes back to the broker and comes again as redelivered; its open transactions are rolled back.
        With a ``failover:`` URL the application connects again.

        Args:
            operation: See ``Operation``.
            nth: See ``fail``.
            after: The broker has done what was asked, and only the answer is lost: a send or commit is in doubt.
            destination: See ``fail``.
        Returns:
            The fault.
        Raises:
            IllegalArgumentException: No such operation, or a number below 1.
        """
        fault = PlannedFault(
            Way.CUT, operation, nth=nth, times=1, destination=destination, after=after, kind=ErrorKind.CONNECTION
        )
        return self._plan(fault, nth, 1)

    def clear(self) -> None:
        """Plan nothing any more."""
        with self._lock:
            self._faults.clear()

    @property
    def pending(self) -> list[PlannedFault]:
        """Return the planned faults that have not happened yet."""
        with self._lock:
            return [fault for fault in self._faults if not fault.hits]

    def assert_all_came(self) -> None:
        """Fail if a planned fault never came: the test then shows nothing about it.

        Raises:
            AssertionError: It lists them.
        """
        __tracebackhide__ = True
        pending = self.pending
        if pending:
            raise AssertionError("planned, but it never came: " + "; ".join(map(str, pending)))

    def meet(self, operation: Operation, destination: str | None = None) -> PlannedFault | None:
        """Return the fault that this call meets, if any; every fault that it concerns counts it."""
        if not self._faults:
            return None
        with self._lock:
            met = [fault for fault in self._faults if fault.concerns(operation, destination) and fault.met()]
            for other in met[1:]:
                other.hits -= 1
        return met[0] if met else None

    def _plan(self, fault: PlannedFault, nth: int, times: int | None) -> PlannedFault:
        if fault.operation not in _OPERATIONS:
            raise IllegalArgumentException(f"there is no operation {fault.operation!r}; there are {', '.join(_OPERATIONS)}")
        if nth < 1 or (times is not None and times < 1):
            raise IllegalArgumentException(f"{fault.operation}: nth and times are at least 1")
        with self._lock:
            self._faults.append(fault)
        return fault


def _kind(error: ErrorKind | str) -> ErrorKind:
    if isinstance(error, ErrorKind):
        return error
    try:
        return ErrorKind(error)
    except ValueError:
        words = ", ".join(kind.value for kind in ErrorKind)
        raise IllegalArgumentException(f"there is no error {error!r}; there are {words}") from None
