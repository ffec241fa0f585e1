"""Local transactions through the broker's coordinator. Runs on the I/O thread; a transaction's handle holds bytes only.

The next transaction is declared right behind the end of the last one, so that beginning it costs no round trip.

Spec: AMQP 1.0 part 4.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, Final, cast

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi.wire import Promise
from jmsapi_amqp import engine
from jmsapi_amqp.codec import Described, encode_value
from jmsapi_amqp.codec.types import ULong
from jmsapi_amqp.context import ConnectionContext
from jmsapi_amqp.draining import pause
from jmsapi_amqp.errors import Cause, to_error
from jmsapi_amqp.links import Ask, SenderLink
from jmsapi_amqp.transaction_handle import TxHandle

__all__ = ["TransactionCoordinator"]

_DECLARE: Final = b"\x00\x53\x77\x00\x53\x31\x45"
_DISCHARGE: Final = ULong(0x32)
_CREDIT_S: Final = 0.005
"""How often a commit looks whether the messages of its transaction have all been sent, in seconds."""


class TransactionCoordinator:
    """The transactions of one session.

    Args:
        context: The connection's.
        session: The number of the application's session.
        attach: Attaches the link to the broker's coordinator.
    """

    def __init__(self, context: ConnectionContext, session: int, attach: Callable[[], Coroutine[Any, None, SenderLink]]) -> None:
        self._context = context
        self._session = session
        self._attach = attach
        self._link: SenderLink | None = None
        self._next: Promise[bytes] | None = None

    async def begin(self) -> TxHandle:
        """Begin a transaction."""
        if self._link is None or self._link.pointer is None:
            self._link = await self._attach()
            self._next = None
        asked, self._next = self._next, None
        return TxHandle(self._session, await (asked or self._declare(self._link)))

    def _declare(self, link: SenderLink) -> Promise[bytes]:
        promise: Promise[bytes] = self._context.add_promise(Promise())

        def answered(state: int, data: object) -> None:
            tx_id = _first(data)
            if state == engine.DECLARED and isinstance(tx_id, bytes):
                promise.resolve(tx_id)
            else:
                promise.fail(_refused(data, "begin a transaction"))

        link.offer(_DECLARE, None, Ask(answered, promise.fail))
        return promise

    async def end(self, tx: TxHandle, *, commit: bool) -> None:
        """Commit or roll back.

        Raises:
            ProviderError: ROLLED_BACK, also when the broker ended a consumer with deliveries in it before; IN_DOUBT when it did
                so since, or the answer to a commit was lost.
        """
        closed = self._context.closed_links
        lost = closed.lost(tx) if commit else None
        try:
            if lost is None:
                await self._discharge(tx, commit=commit)
                late = closed.lost(tx) if commit else None
                if late is not None:
                    text = f"the transaction is committed, but what was received in it may come again: {late.message}"
                    raise ProviderError(ErrorKind.IN_DOUBT, text)
                return
            with contextlib.suppress(ProviderError):  # without it the broker cannot commit
                await self._discharge(tx, commit=False)
        finally:
            closed.over(tx)
        text = f"something that was received in the transaction is lost to it, so it is rolled back: {lost.message}"
        raise ProviderError(ErrorKind.ROLLED_BACK, text)

    async def _discharge(self, tx: TxHandle, *, commit: bool) -> None:
        link = self._link
        asked = "commit" if commit else "roll back"
        if link is None or link.pointer is None:
            text = "the session's coordinator link has ended, and the transaction with it"
            raise ProviderError(ErrorKind.ROLLED_BACK, text)
        if commit:
            await self._all_sent(tx)
        else:
            self._forget_unsent(tx)
        promise: Promise[None] = Promise()

        def answered(state: int, data: object) -> None:
            if state == engine.ACCEPTED:
                promise.resolve(None)
            elif commit:
                reason = data if isinstance(data, Cause) else "without a reason"
                text = f"the broker rolled the transaction back, {reason}"
                promise.fail(ProviderError(ErrorKind.ROLLED_BACK, text))
            else:
                promise.fail(_refused(data, asked))

        def failed(error: ProviderError) -> None:
            if commit:
                text = f"{error.message}; whether the transaction was committed is not known"
                promise.fail(ProviderError(ErrorKind.IN_DOUBT, text, fatal=error.fatal))
            else:
                promise.fail(error)

        body = b"\x00\x53\x77" + encode_value(Described(_DISCHARGE, [tx.tx_id, not commit]))
        link.offer(body, None, Ask(answered, failed))
        self._next = self._declare(link)
        await promise

    async def _all_sent(self, tx: TxHandle) -> None:
        """Wait for credit for the transaction's messages: those that come behind its end would be lost with what they answer."""
        links = self._context.links
        while any(isinstance(link, SenderLink) and link.has_unsent(tx.send_state) for link in list(links.values())):
            await pause(self._context, _CREDIT_S)
        if self._link is None or self._link.pointer is None:
            text = "the session's coordinator link has ended, and the transaction with it"
            raise ProviderError(ErrorKind.ROLLED_BACK, text)

    def _forget_unsent(self, tx: TxHandle) -> None:
        """Answer the transaction's messages that wait for credit: they must not arrive after its end."""
        for link in self._context.links.values():
            if isinstance(link, SenderLink) and any(state is tx.send_state for _, state, _ in link.waiting):
                kept = [item for item in link.waiting if item[1] is not tx.send_state]
                error = ProviderError(ErrorKind.ROLLED_BACK, f"{link.asked}: the transaction was rolled back before it was sent")
                self._context.traffic.sent.extend((token, error) for _, state, token in link.waiting if state is tx.send_state)
                link.waiting.clear()
                link.waiting.extend(kept)


def _first(data: object) -> object:
    """Return the first field of a state's list."""
    fields = cast("list[object]", data) if isinstance(data, list) else []
    return fields[0] if fields else None


def _refused(data: object, asked: str) -> ProviderError:
    return to_error(data if isinstance(data, Cause) else Cause("amqp:internal-error"), asked)
