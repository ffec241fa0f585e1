"""One STOMP connection: CONNECT, receipts, control frames one at a time, errors, heart-beats.

All of it runs on the I/O thread, but ``connect``, which blocks. Rules:

- Control frames go one at a time, for an ERROR of RabbitMQ names no frame, nor does Artemis' for a SUBSCRIBE (``control``).
- What one read brings is told in its order: answers before the ERROR, or whatever else, that ends the link behind them.
- An ERROR without a name is shown to the owner first, who may know it; then it is the pending control frame's; one that
  belongs to nothing ends the link.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from itertools import count
from typing import Final, Protocol

from jmsapi.spi import Clock, ErrorKind, ProviderError, SendResult
from jmsapi_stomp.beats import Beats
from jmsapi_stomp.control import Control, Done, Request
from jmsapi_stomp.dialect import Dialect
from jmsapi_stomp.errors import broker_error, lost, unknown
from jmsapi_stomp.frames import Frame
from jmsapi_stomp.loop import IoLoop, Scheduled
from jmsapi_stomp.settings import LinkSettings
from jmsapi_stomp.transport import StompConnection, StompTransport
from jmsapi_stomp.written import Written

__all__ = ["Link", "LinkOwner"]

_LOG: Final = logging.getLogger("jmsapi.stomp")
_WIRE_LOG: Final = logging.getLogger("jmsapi.wire.stomp")
_INBOUND_LIMIT: Final = 1 << 30
_PART: Final = 100


class LinkOwner(Protocol):
    """Who is told what comes over a link. All on the I/O thread."""

    def on_messages(self, link: Link, frames: list[Frame]) -> None:
        """Take the MESSAGE frames that one read brought."""

    def on_receipts(self, results: list[SendResult]) -> None:
        """Take the answers to sends that one read brought."""

    def on_stray_error(self, link: Link, headers: Mapping[str, str], text: str) -> bool:
        """Take an ERROR that names no frame of ours; True when it is known, answers nothing, and the link may live on."""
        ...

    def on_link_lost(self, link: Link, cause: ProviderError) -> None:
        """Take note that the link is dead; everything pending on it has failed."""


class Link:
    """A connection to the broker."""

    def __init__(self, loop: IoLoop, clock: Clock, settings: LinkSettings, owner: LinkOwner) -> None:
        self._loop = loop
        self._settings = settings
        self._owner = owner
        self._transport = StompTransport(
            loop,
            self,
            settings.address,
            tls=settings.tls,
            timeout=settings.connect_timeout,
            limit=_INBOUND_LIMIT,
            vhost=settings.vhost,
        )
        self._connection = StompConnection(self._transport)
        self._connecting: Done | None = None
        self._sends: dict[str, list[object]] = {}
        self._receipts: dict[str, Done] = {}
        self._receipt_ids = count(1)
        self._control = Control(loop, settings.request_timeout, self._transport.queue, self._receipt_ids)
        self._written = Written()
        self._error: ProviderError | None = None
        self._late: Scheduled | None = None
        self._beats = Beats(loop, clock, self._transport, self.end)
        self.dead: ProviderError | None = None
        """Why the link is of no more use; None while it is."""
        self.closing = False
        self.unanswered = False
        """Whether the peer closed the connection without a word in answer to CONNECT."""
        self._every_error_ends = False
        self.connected_headers: dict[str, str] = {}
        """What the broker said of itself."""

    def adapt(self, dialect: Dialect) -> None:
        """Keep to a broker's manners."""
        self._every_error_ends = dialect.every_error_ends
        self._control.one_at_a_time = dialect.one_at_a_time
        if dialect.frames_end_in_line_feed:
            self._transport.frames_end_in_line_feed()

    # connecting and leaving

    def connect(self, done: Done) -> None:
        """Connect and send CONNECT; ``done`` is called on the I/O thread with the broker's answer. Blocks; any thread."""
        settings = self._settings
        headers = {"heart-beat": f"{settings.heartbeat_ms},{settings.heartbeat_ms}"}
        if settings.client_id is not None:
            headers["client-id"] = settings.client_id
        self._connecting = done
        try:
            self._connection.connect(settings.login, settings.passcode, wait=False, headers=headers, with_connect_command=True)
        except ProviderError as cause:
            self._loop.post(self.end, cause)
            return
        self._loop.post(self._await_connected)

    @property
    def connecting(self) -> bool:
        """Whether the broker has not answered CONNECT yet."""
        return self._connecting is not None

    def _await_connected(self) -> None:
        if self.dead is not None:
            # Ended while it was connecting, when there was no socket to close yet.
            self._transport.disconnect_socket()
        elif self._connecting is not None:
            late = ProviderError(ErrorKind.TIMEOUT, "the broker did not answer CONNECT in time", fatal=True)
            self._late = self._loop.later(self._settings.connect_timeout, lambda: self.end(late))

    def _connect_answered(self) -> None:
        if self._late is not None:
            self._late.cancel()

    def disconnect(self, done: Done) -> None:
        """Leave in order: what was sent is written, the broker's answer awaited."""
        if self.dead is not None:
            done(None)
            return
        self.closing = True
        receipt = f"bye-{next(self._receipt_ids)}"

        def left(_: ProviderError | None) -> None:
            self._receipts.pop(receipt, None)
            if self.dead is None:
                self.end(ProviderError(ErrorKind.CLOSED, "the connection is closed", fatal=True))
            done(None)

        self._receipts[receipt] = left
        self._connection.disconnect(receipt)

    def end(self, cause: ProviderError) -> None:
        """End the link at once: everything pending fails, the socket closes."""
        if self.dead is not None:
            return
        self.dead = cause
        self._connect_answered()
        self._beats.stop()
        self._transport.disconnect_socket()
        connecting, self._connecting = self._connecting, None
        self._fail_all(cause)
        if connecting is not None:
            connecting(cause)
        else:
            self._owner.on_link_lost(self, cause)

    def _fail_all(self, why: ProviderError) -> None:
        cause, doubt = lost(why), unknown(why)
        results = self._written.fail(cause, doubt)
        results += [(token, doubt) for tokens in self._sends.values() for token in tokens]
        self._sends.clear()
        if results:
            self._owner.on_receipts(results)
        receipts, self._receipts = self._receipts, {}
        for done in receipts.values():
            done(cause)
        self._control.end(cause)

    # writing

    def write(self, data: bytes, written: Done | None = None) -> None:
        """Queue bytes without waiting for an answer; ``written`` is called when they have left."""
        if self.dead is None:
            self._transport.queue(data)
            if written is not None:
                self._written.await_done(self._transport.queued, written)
        elif written is not None:
            written(lost(self.dead))

    def write_now(self, data: bytes) -> bool:
        """Write at once if the I/O thread has nothing to do; False when nothing was written. Any thread."""
        return self._loop.quiet and self._transport.write_now(data)

    def send(self, frame: bytes, token: object, *, more: str = "", confirm: bool) -> None:
        """Queue a SEND frame; its token is answered when it is written, or when it is confirmed.

        Args:
            frame: The whole frame.
            token: What ``on_receipts`` is to name.
            more: Further header lines.
            confirm: Ask for a receipt.
        """
        if self.dead is not None:
            self._owner.on_receipts([(token, lost(self.dead))])
            return
        if confirm:
            receipt = str(next(self._receipt_ids))
            self._sends[receipt] = [token]
            self._transport.queue(f"SEND\n{more}receipt:{receipt}\n".encode() + frame[5:])
        else:
            self._transport.queue(f"SEND\n{more}".encode() + frame[5:] if more else frame)
            self._written.await_sends(self._transport.queued, [token])

    def send_unconfirmed(self, sends: list[tuple[bytes, object]]) -> None:
        """Queue SEND frames with their tokens, which are answered when they are written."""
        if self.dead is not None:
            cause = lost(self.dead)
            self._owner.on_receipts([(token, cause) for _, token in sends])
            return
        for start in range(0, len(sends), _PART):
            part = sends[start : start + _PART]  # so that the sender goes on while the rest is being written
            self._transport.queue_all([frame for frame, _ in part])
            self._written.await_sends(self._transport.queued, [token for _, token in part])

    def confirmed(self, frame: bytes, done: Done) -> None:
        """Queue a frame that is no control frame, with a receipt; ``done`` is called with None or what went wrong."""
        if self.dead is not None:
            done(lost(self.dead))
            return
        receipt = str(next(self._receipt_ids))
        self._receipts[receipt] = done
        command, _, rest = frame.partition(b"\n")
        self._transport.queue(b"%b\nreceipt:%b\n%b" % (command, receipt.encode(), rest))

    def request(
        self,
        asked: str,
        command: str,
        headers: list[tuple[str, str]],
        done: Done,
        *,
        doubtful: bool = False,
        first: bytes = b"",
        late: Callable[[], object] | None = None,
    ) -> None:
        """Queue a control frame; see ``Request``."""
        if self.dead is not None:
            done(lost(self.dead))
        else:
            self._control.ask(Request(asked, command, headers, done, doubtful=doubtful, first=first, late=late))

    # the transport's news

    def on_alive(self) -> None:
        """Take note that the peer lives."""
        self._beats.alive()

    def on_written(self, total: int) -> None:
        """Answer what needed only to be written."""
        results = self._written.left(total)
        if results:
            self._owner.on_receipts(results)

    def on_end(self, cause: ProviderError) -> None:
        """Take note that the stream ended; an ERROR seen before is the better reason."""
        if self.closing and cause.kind is ErrorKind.CONNECTION:
            cause = ProviderError(ErrorKind.CLOSED, "the connection is closed", fatal=True)
        elif self._error is not None:
            cause = ProviderError(self._error.kind, self._error.message, fatal=True)
        elif self._connecting is not None and cause.kind is ErrorKind.CONNECTION:
            self.unanswered = self._transport.parted
            cause = ProviderError(cause.kind, f"{cause.message} (without an answer to CONNECT)", fatal=True)
        self.end(cause)

    def on_frames(self, frames: list[Frame]) -> None:
        """Sort what one read brought: messages and answers in batches, in order where order counts."""
        messages: list[Frame] = []
        results: list[SendResult] = []
        for frame in frames:
            if frame.command == b"MESSAGE" and self.connected_headers:
                messages.append(frame)
                continue
            receipt = ""
            if frame.command == b"RECEIPT":
                receipt = frame.find(b"\nreceipt-id:") or ""
                tokens = self._sends.pop(receipt, None)
                if tokens is not None:
                    results += [(token, None) for token in tokens]
                    continue
            # Whatever this one is may end the link, and what came before it was answered before.
            messages, results = self._hand_over(messages, results)
            if self.dead is not None:
                return
            if frame.command == b"RECEIPT":
                self._answered(receipt, None)
            elif frame.command == b"ERROR":
                self._on_error(frame)
            elif frame.command == b"CONNECTED" and self._connecting is not None:
                self._on_connected(frame)
            else:
                word = frame.command[:40].decode("ascii", "replace")
                self.end(ProviderError(ErrorKind.PROTOCOL, f"the peer sent {word!r}, which was not expected", fatal=True))
            if self.dead is not None:
                return
        self._hand_over(messages, results)

    def _hand_over(self, messages: list[Frame], results: list[SendResult]) -> tuple[list[Frame], list[SendResult]]:
        if results or messages:
            self._error = None  # the link lived on, so that ERROR is not why it will end
        if results:
            self._owner.on_receipts(results)
        if messages and self.dead is None:
            self._owner.on_messages(self, messages)
        return [], []

    def _answered(self, receipt: str, cause: ProviderError | None) -> bool:
        """Pass on an answer that names a frame other than a send outside a transaction; False when nobody waits for it."""
        done = self._receipts.pop(receipt, None)
        if done is None:
            return self._control.answered(receipt, cause)
        done(cause)
        return True

    def _on_connected(self, frame: Frame) -> None:
        try:
            headers = frame.headers
            version = headers.get("version")
            if version != "1.2":
                raise ProviderError(ErrorKind.PROTOCOL, f"the broker speaks STOMP {version}, not 1.2", fatal=True)
            sends, wants = (int(part) for part in headers.get("heart-beat", "0,0").split(","))
        except (ProviderError, ValueError) as fault:
            cause = fault if isinstance(fault, ProviderError) else None
            self.end(cause or ProviderError(ErrorKind.PROTOCOL, "the broker's CONNECTED cannot be read", fatal=True))
            return
        self.connected_headers = headers
        self._connect_answered()
        self._transport.set_connected(True)
        self._beats.start(self._settings.heartbeat_ms, sends_ms=sends, wants_ms=wants)
        done, self._connecting = self._connecting, None
        if done is not None:
            done(None)

    def _on_error(self, frame: Frame) -> None:
        headers = _readable(frame)
        detail = frame.body.decode("utf-8", "replace").strip()
        text = headers.get("message", "")
        if detail and detail not in text:
            text = f"{text}: {detail.splitlines()[0]}" if text else detail
        _WIRE_LOG.debug("ERROR: %s", text)
        if self._connecting is not None:
            asked = f"cannot connect to {self._settings.address[0]}:{self._settings.address[1]}"
            # Words that say nothing of credentials may be those of a broker that is just starting or stopping.
            self.end(broker_error(text, detail, asked=asked, default=ErrorKind.CONNECTION, fatal=True))
            return
        error = broker_error(text, detail)  # what was refused hears why; that the link ends with it is told by itself
        receipt = headers.get("receipt-id", "")
        tokens = self._sends.pop(receipt, None)
        if tokens is not None:
            self._owner.on_receipts([(token, error) for token in tokens])
            known = True
        elif receipt:
            known = self._answered(receipt, error)
        else:
            known = self._owner.on_stray_error(self, headers, text) or self._control.blame(error, f"{text} {detail}")
        asked = "the broker ended the connection"
        self._error = end = broker_error(text, detail, asked=asked, default=ErrorKind.CONNECTION, fatal=True)
        if self._every_error_ends or not known:
            self.end(end)


def _readable(frame: Frame) -> dict[str, str]:
    try:
        return frame.headers
    except ProviderError:
        return {"message": frame.head.decode("utf-8", "replace")}
