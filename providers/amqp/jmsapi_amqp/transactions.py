"""Local transactions through the broker's coordinator. Runs on the I/O thread; a transaction's handle holds bytes only.

The next transaction is declared right behind the end of the last one, so that beginning it costs no round trip.

Spec: AMQP 1.0 part 4.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, cast

from jmsapi.spi import ErrorKind, Handle, ProviderError
from jmsapi_amqp import engine
from jmsapi_amqp.codec import Described, encode_value
from jmsapi_amqp.codec.types import ULong
from jmsapi_amqp.errors import Cause, to_error
from jmsapi_amqp.links import Ask, SenderLink, WireSession
from jmsapi_amqp.tasks import Promise

if TYPE_CHECKING:
    from jmsapi_amqp.connection import Connection

__all__ = ["Coordinator", "TxHandle"]

_DECLARE: Final = b"\x00\x53\x77\x00\x53\x31\x45"
_DISCHARGE: Final = ULong(0x32)
_ACCEPTED: Final = Described(ULong(0x24), [])


class TxHandle(Handle):
    """A local transaction, by the broker's id for it."""

    __slots__ = ("ack_state", "send_state", "session", "tx_id")

    def __init__(self, session: int, tx_id: bytes) -> None:
        self.session = session
        self.tx_id = tx_id
        self.send_state = encode_value([tx_id])
        """The transactional state of a message sent in it."""
        self.ack_state = encode_value([tx_id, _ACCEPTED])
        """The transactional state of a delivery accepted in it."""


class Coordinator:
    """The transactions of one session."""

    def __init__(self, connection: Connection, session: int, wire: WireSession) -> None:
        self._connection = connection
        self._session = session
        self._wire = wire
        self._link: SenderLink | None = None
        self._next: Promise[bytes] | None = None

    async def begin(self) -> TxHandle:
        """Begin a transaction."""
        if self._link is None or self._link.pointer is None:
            self._link = await self._connection.book.open_coordinator(self._connection, self._wire)
            self._next = None
        asked, self._next = self._next, None
        return TxHandle(self._session, await (asked or self._declare(self._link)))

    def _declare(self, link: SenderLink) -> Promise[bytes]:
        promise: Promise[bytes] = self._connection.add_promise(Promise())

        def answered(state: int, data: object) -> None:
            tx_id = _first(data)
            if state == engine.DECLARED and isinstance(tx_id, bytes):
                promise.keep(tx_id)
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
        broken = self._connection.broken
        lost = broken.lost(tx) if commit else None
        try:
            if lost is None:
                await self._discharge(tx, commit=commit)
                late = broken.lost(tx) if commit else None
                if late is not None:
                    text = f"the transaction is committed, but what was received in it may come again: {late.message}"
                    raise ProviderError(ErrorKind.IN_DOUBT, text)
                return
            with contextlib.suppress(ProviderError):  # without it the broker cannot commit
                await self._discharge(tx, commit=False)
        finally:
            broken.over(tx)
        text = f"something that was received in the transaction is lost to it, so it is rolled back: {lost.message}"
        raise ProviderError(ErrorKind.ROLLED_BACK, text)

    async def _discharge(self, tx: TxHandle, *, commit: bool) -> None:
        link = self._link
        asked = "commit" if commit else "roll back"
        if link is None or link.pointer is None:
            text = "the session's coordinator link has ended, and the transaction with it"
            raise ProviderError(ErrorKind.ROLLED_BACK, text)
        if not commit:
            self._forget_unsent(tx)
        promise: Promise[None] = Promise()

        def answered(state: int, data: object) -> None:
            if state == engine.ACCEPTED:
                promise.keep(None)
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

    def _forget_unsent(self, tx: TxHandle) -> None:
        """Answer the transaction's messages that wait for credit: they must not arrive after its end."""
        for link in self._connection.links.values():
            if isinstance(link, SenderLink) and any(state is tx.send_state for _, state, _ in link.waiting):
                kept = [item for item in link.waiting if item[1] is not tx.send_state]
                error = ProviderError(ErrorKind.ROLLED_BACK, f"{link.asked}: the transaction was rolled back before it was sent")
                self._connection.sent.extend((token, error) for _, state, token in link.waiting if state is tx.send_state)
                link.waiting.clear()
                link.waiting.extend(kept)


def _first(data: object) -> object:
    """Return the first field of a state's list."""
    fields = cast("list[object]", data) if isinstance(data, list) else []
    return fields[0] if fields else None


def _refused(data: object, asked: str) -> ProviderError:
    return to_error(data if isinstance(data, Cause) else Cause("amqp:internal-error"), asked)
