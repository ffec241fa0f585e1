"""``Message.acknowledge`` in CLIENT mode, when a connection was lost and another one has taken its place.

What the broker had handed out by the lost connection, or by a consumer that it has ended, it hands out again. An acknowledgement
of it has no meaning any more, which is raised once to the caller that asks for it; nothing is raised where nothing was lost.

Spec: 4.4.7-2, 4.4.11-1.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from jmsapi._core.acknowledgement.ledger import CLIENT, Entry, SettlementPlan
from jmsapi._core.acknowledgement.settlement import Settlement
from jmsapi._core.session_state import SessionState
from jmsapi._core.telemetry import observed_steps
from jmsapi._core.waiting import Steps
from jmsapi.errors import IllegalStateException, JMSException
from jmsapi.spi import ErrorKind, ProviderError

__all__ = ["ClientAcknowledgement"]


class ClientAcknowledgement:
    """Acknowledges what one session has delivered. Its state is guarded by the session's lock.

    Args:
        state: The session's.
        settlement: The session's.
        in_listener: Whether the calling thread runs a listener, which keeps all services while its session closes.
        check_open: Raises when the session cannot be used.
        run: Runs an operation of the session.
    """

    def __init__(
        self,
        state: SessionState,
        settlement: Settlement,
        in_listener: Callable[[], bool],
        check_open: Callable[[], None],
        run: Callable[[Steps[None]], None],
    ) -> None:
        self.state = state
        self._settlement = settlement
        self._in_listener = in_listener
        self._check_open = check_open
        self.run = run
        self._lost: ProviderError | None = None
        """Why something that was delivered cannot be acknowledged; None also once it was raised."""
        self._acknowledge = _Acknowledge(self)

    def lost(self, count: int, cause: ProviderError) -> None:
        """So many deliveries that waited for ``acknowledge`` are lost, with their connection or consumer. With the lock held."""
        if self.state.mode == CLIENT:
            if count:
                self._lost = self._acknowledge.lost = cause
            self._acknowledge = _Acknowledge(self)

    def acknowledge_of(self, entry: Entry) -> Callable[[], None]:
        """Return what a message's ``acknowledge()`` does: it knows by which connection the message came."""
        acknowledge = self._acknowledge
        if entry.lost and acknowledge.lost is None:
            # Lost between being taken and becoming a message.
            acknowledge = _Acknowledge(self)
            acknowledge.lost = self._lost
        return acknowledge

    def acknowledge_steps(self) -> Steps[None]:
        """Acknowledge all that the session has delivered, in CLIENT mode; nothing in the others (4.4.11-5)."""
        state = self.state
        if state.closed or (state.closing and not self._in_listener()):
            raise IllegalStateException("acknowledge: the session that received the message is closed", "closed")
        if state.mode != CLIENT:
            return
        self._check_open()
        with state.lock:
            lost, self._lost = self._lost, None
            if lost is not None:
                raise comes_again(lost)
            plan = state.ledger.acknowledge()
        if plan is not None:
            with self._noting_refusals():
                yield from self._tell_steps(plan)

    def _tell_steps(self, plan: SettlementPlan) -> Steps[None]:
        steps = self._settlement.carry_out_steps(plan, "acknowledge")
        telemetry = self.state.link.telemetry
        if telemetry is None:
            return steps
        envelopes = [entry.delivery.envelope for entry in plan.settled]
        return observed_steps(lambda: telemetry.settling("acknowledge", envelopes), steps)

    @contextmanager
    def _noting_refusals(self) -> Generator[None]:
        """Record that an acknowledgement failed: it has not been done then, however often it is asked for again."""
        try:
            yield
        except JMSException as error:
            cause = error.__cause__
            why = cause.message if isinstance(cause, ProviderError) else str(error)
            refused = ProviderError(ErrorKind.PROTOCOL, f"an acknowledgement of it failed, {why}")
            with self.state.lock:
                self._lost = self._acknowledge.lost = refused
                self._acknowledge = _Acknowledge(self)
            raise

    def forget_lost(self) -> None:
        """Forget the lost acknowledgements: their error is about to be raised, or all that came since is acknowledged."""
        with self.state.lock:
            self._lost = None


class _Acknowledge:
    """``Message.acknowledge`` for the messages of one connection to the provider."""

    __slots__ = ("_client", "lost")

    def __init__(self, client: ClientAcknowledgement) -> None:
        self._client = client
        self.lost: ProviderError | None = None
        """Why messages of this connection cannot be acknowledged any more."""

    def __call__(self) -> None:
        client = self._client
        if not client.state.closed:
            client.forget_lost()
            if self.lost is not None and not client.state.closing:
                raise comes_again(self.lost)
        client.run(client.acknowledge_steps())


def comes_again(cause: ProviderError) -> JMSException:
    """Return the error of an acknowledgement that comes too late."""
    error = JMSException(
        f"acknowledge: what it came by cannot take it any more ({cause.message}); unless it was taken before, it comes again",
        "redelivered",
    )
    error.__cause__ = cause
    return error
