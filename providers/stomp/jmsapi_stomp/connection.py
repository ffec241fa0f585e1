"""One STOMP connection: CONNECT, receipts, control frames, errors, heart-beats.

All of it runs on the I/O thread, but ``connect``, which blocks, ``write_now`` and ``confirmed_now``. Rules:

- Control frames go one at a time where an ERROR may name no frame (``control_frames``).
- What one read brings is handed on in its order: answers first, then the ERROR that ends the connection behind them.
- The owner sees an ERROR without a name first and may know it. Else it is taken for the answer to the pending control frame,
  and one that belongs to no frame ends the connection.
- A frame that breaks the protocol ends the connection with an error of kind PROTOCOL that names the frame by its number.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from itertools import count
from typing import Final, Protocol

from jmsapi.spi import DONE, Clock, ErrorKind, ProviderError, SendResult
from jmsapi.wire import IoLoop, Scheduled, answer_of
from jmsapi_stomp.answers import Done, finish
from jmsapi_stomp.connection_settings import ConnectionSettings
from jmsapi_stomp.control_frames import ControlFrame, ControlFrames
from jmsapi_stomp.errors import broker_error, lost, shown, unknown, unknown_broker_kind, without
from jmsapi_stomp.frames import Frame, UnreadableMessage
from jmsapi_stomp.heartbeats import Heartbeats
from jmsapi_stomp.pending_writes import PendingWrites
from jmsapi_stomp.transport import StompTransport, StompyConnection
from jmsapi_stomp.wire_behaviour import WireBehaviour

__all__ = ["ConnectionOwner", "StompConnection"]

_WIRE_LOG: Final = logging.getLogger("jmsapi.wire.stomp")
_PART: Final = 100
_SEND_VALUES: Final = re.compile("^[^:\n]*:(.*)$", re.MULTILINE)
_HEART_BEAT: Final = re.compile("([0-9]{1,9}),([0-9]{1,9})")
"""Each at most eleven days, which the system's timers can take."""


class ConnectionOwner(Protocol):
    """Whoever takes what comes over a connection. All calls are made on the I/O thread."""

    def on_messages(self, connection: StompConnection, frames: list[Frame]) -> None:
        """Take the MESSAGE frames that one read brought."""

    def on_receipts(self, results: list[SendResult]) -> None:
        """Take the answers to sends that one read brought."""

    def on_stray_error(self, connection: StompConnection, headers: Mapping[str, str], text: str, error: ProviderError) -> bool:
        """Take an ERROR that names no frame of ours; True when it answers none that asks for it, and the connection may go on."""
        ...

    def on_connection_lost(self, connection: StompConnection, cause: ProviderError) -> None:
        """Take the end of the connection; everything pending on it has failed."""


class StompConnection:
    """A connection to the broker."""

    def __init__(self, loop: IoLoop, clock: Clock, settings: ConnectionSettings, owner: ConnectionOwner) -> None:
        self._loop = loop
        self._settings = settings
        self._owner = owner
        self._transport = StompTransport(
            loop,
            self,
            settings.address,
            tls=settings.tls,
            timeout=settings.connect_timeout,
            limit=settings.max_received,
            vhost=settings.vhost,
        )
        self._stompy = StompyConnection(self._transport)
        self._connecting: Done | None = None
        self._sends: dict[str, tuple[object, str]] = {}
        """The token of a send that waits for its receipt, and the beginning of its header lines."""
        self._receipts: dict[str, Done] = {}
        self._receipt_ids = count(1)
        self._leaving: list[Done] = []
        """Who waits for the broker's answer to DISCONNECT."""
        self._control = ControlFrames(loop, settings.request_timeout, self._transport.queue, self._receipt_ids)
        self._written = PendingWrites()
        self._error: ProviderError | None = None
        self._connect_timer: Scheduled | None = None
        self._heartbeats = Heartbeats(loop, clock, self._transport, self.end)
        self._taking = 0
        """Index of the frame that is being handled, among those of one read."""
        self._every_error_ends = False
        self._kind_of_error: Callable[[str, str, ErrorKind], ErrorKind] = unknown_broker_kind
        self._reason: Callable[[str, str], str] = lambda text, _: text
        self._refused_declaration: Callable[[str], tuple[str, str] | None] = lambda _: None
        self.dead: ProviderError | None = None
        """Why the connection is of no more use; None while it is open."""
        self.closing = False
        self.unanswered = False
        """The peer closed the connection without any answer to CONNECT."""
        self.sent_unconfirmed = False
        """Sends outside transactions were written without a receipt, so an ERROR without a name may be theirs."""
        self.connected_headers: dict[str, str] = {}
        """The headers of CONNECTED."""

    def adapt(self, behaviour: WireBehaviour) -> None:
        """Follow the broker's behaviour on this wire."""
        self._every_error_ends = behaviour.every_error_ends
        self._kind_of_error = behaviour.kind_of_error
        self._reason = behaviour.reason
        self._refused_declaration = behaviour.refused_declaration
        self._control.one_at_a_time = behaviour.one_at_a_time
        self._transport.adapt(behaviour)

    # connecting and leaving

    def connect(self, done: Done) -> None:
        """Connect and send CONNECT; ``done`` is called on the I/O thread with the broker's answer. Blocks; any thread."""
        settings = self._settings
        headers = {"heart-beat": f"{settings.heartbeat_ms},{settings.heartbeat_ms}"}
        if settings.client_id is not None:
            headers["client-id"] = settings.client_id
        self._connecting = done
        try:
            self._stompy.connect(settings.login, settings.passcode, wait=False, headers=headers, with_connect_command=True)
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
            self._connect_timer = self._loop.later(self._settings.connect_timeout, lambda: self.end(late))

    def _stop_connect_timer(self) -> None:
        if self._connect_timer is not None:
            self._connect_timer.cancel()

    def disconnect(self, done: Done) -> None:
        """Leave in order: what was sent is written, and the broker's answer is awaited."""
        if self.dead is not None:
            done(None)
            return
        self._leaving.append(done)
        if len(self._leaving) > 1:
            # It is asked already.
            return
        self.closing = True
        receipt = f"bye-{next(self._receipt_ids)}"

        def left(_: ProviderError | None) -> None:
            self._receipts.pop(receipt, None)
            if self.dead is None:
                self.end(ProviderError(ErrorKind.CLOSED, "the connection is closed", fatal=True))
            for one in self._leaving:
                one(None)

        self._receipts[receipt] = left
        self._stompy.disconnect(receipt)

    def end(self, cause: ProviderError) -> None:
        """End the connection at once: everything pending fails, the socket closes."""
        if self.dead is not None:
            return
        self.dead = cause
        self._stop_connect_timer()
        self._heartbeats.stop()
        self._transport.disconnect_socket()
        connecting, self._connecting = self._connecting, None
        self._fail_all(cause)
        if connecting is not None:
            connecting(cause)
        else:
            self._owner.on_connection_lost(self, cause)

    def _fail_all(self, why: ProviderError) -> None:
        cause, doubt = lost(why), unknown(why)
        results = self._written.fail(cause, doubt)
        results += [(token, doubt) for token, _ in self._sends.values()]
        self._sends.clear()
        if results:
            self._owner.on_receipts(results)
        receipts, self._receipts = self._receipts, {}
        for done in receipts.values():
            done(cause)
        self._control.end(cause)

    # writing

    def write(self, data: bytes, written: Done | None = None) -> None:
        """Queue bytes without waiting for an answer; ``written`` is called when they have been written."""
        if self.dead is None:
            self._transport.queue(data)
            if written is not None:
                self._written.await_done(self._transport.queued, written)
        elif written is not None:
            written(lost(self.dead))

    def write_now(self, data: bytes) -> Future[None] | None:
        """Write at once if the I/O thread has nothing to do. Any thread.

        Returns:
            None when nothing was written; else a future, done when the last byte has left, which it most often has already.
        """
        sent = self._transport.write_now(data) if self._loop.quiet else None
        if not sent:
            return None
        if sent == len(data):
            return DONE
        future: Future[None] = Future()
        self._loop.post(self.write, b"", finish(future))  # an empty piece is written behind the rest
        return future

    def confirmed_now(self, frame: bytes, done: Done) -> bool:
        """Do what ``confirmed`` does at once if the I/O thread has nothing to do. Any thread.

        Returns:
            Whether it is done; if not, ``done`` is not called.
        """
        if not self._loop.quiet:
            return False
        receipt = str(next(self._receipt_ids))
        data = _with_receipt(frame, receipt)
        sent = self._transport.write_now(data, lambda: self._receipts.__setitem__(receipt, done))
        if sent == 0:
            self._loop.post(self.write, data)
        return sent is not None

    def send(self, frame: bytes, token: object, *, more: str = "", start: str = "", confirm: bool) -> None:
        """Queue a SEND frame; its token is answered when it is written, or when it is confirmed.

        Args:
            frame: The whole frame.
            token: What ``on_receipts`` is to name.
            more: Further header lines.
            start: The beginning of its header lines, which names the destination.
            confirm: Ask for a receipt.
        """
        if self.dead is not None:
            self._owner.on_receipts([(token, lost(self.dead))])
            return
        if confirm:
            receipt = str(next(self._receipt_ids))
            self._sends[receipt] = (token, start)
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
        self.sent_unconfirmed = True
        for start in range(0, len(sends), _PART):
            part = sends[start : start + _PART]  # so that the sender goes on while the rest is being written
            self._transport.queue_all([frame for frame, _ in part])
            self._written.await_sends(self._transport.queued, [token for _, token in part])

    def confirmed(self, frame: bytes, done: Done) -> None:
        """Queue a frame that is no control frame, with a receipt; ``done`` is called with None or the error."""
        if self.dead is not None:
            done(lost(self.dead))
            return
        receipt = str(next(self._receipt_ids))
        self._receipts[receipt] = done
        self._transport.queue(_with_receipt(frame, receipt))

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
        """Queue a control frame; see ``ControlFrame``."""
        if self.dead is not None:
            done(lost(self.dead))
        else:
            self._control.ask(ControlFrame(asked, command, headers, done, doubtful=doubtful, first=first, late=late))

    async def command(
        self,
        asked: str,
        command: str,
        headers: list[tuple[str, str]],
        *,
        first: bytes = b"",
        late: Callable[[], object] | None = None,
    ) -> None:
        """Send a control frame and wait for its answer; see ``ControlFrame``.

        Raises:
            ProviderError: The broker's refusal, TIMEOUT, or why the connection is lost.
        """
        await answer_of(partial(self.request, asked, command, headers, first=first, late=late))

    async def confirm(self, frame: bytes) -> None:
        """Send a frame that is no control frame and wait for its receipt.

        Raises:
            ProviderError: The broker's refusal, or why the connection is lost.
        """
        await answer_of(partial(self.confirmed, frame))

    # what the transport reports

    def on_alive(self) -> None:
        """Record that the peer lives."""
        self._heartbeats.alive()

    def on_written(self, total: int) -> None:
        """Answer what needed only to be written."""
        results = self._written.written(total)
        if results:
            self._owner.on_receipts(results)

    def on_end(self, cause: ProviderError) -> None:
        """Take the end of the stream; an ERROR that came before it is the better reason."""
        if self.closing and cause.kind is ErrorKind.CONNECTION:
            cause = ProviderError(ErrorKind.CLOSED, "the connection is closed", fatal=True)
        elif self._error is not None:
            cause = ProviderError(self._error.kind, self._error.message, fatal=True)
        elif self._connecting is not None and cause.kind is ErrorKind.CONNECTION:
            self.unanswered = self._transport.ended_in_order
            cause = ProviderError(cause.kind, f"{cause.message} (without an answer to CONNECT)", fatal=True)
        self.end(cause)

    def on_frames(self, frames: list[Frame]) -> None:
        """Take what one read brought; a frame that cannot be read ends the connection."""
        first = self._transport.frames_cut - len(frames) + 1
        try:
            self._take(frames)
        except ProviderError as fault:
            if isinstance(fault, UnreadableMessage):
                self._taking = next(number for number, frame in enumerate(frames) if frame is fault.frame)
            place = f"frame {first + self._taking} of the connection"
            text = f"the peer sent a frame that cannot be read: {fault.message} ({place})"
            self.end(ProviderError(ErrorKind.PROTOCOL, text, fatal=True))

    def _take(self, frames: list[Frame]) -> None:
        """Sort frames: messages and answers in batches, in order where order counts."""
        messages: list[Frame] = []
        results: list[SendResult] = []
        for number, frame in enumerate(frames):
            if frame.command == b"MESSAGE" and self.connected_headers:
                messages.append(frame)
                continue
            self._taking = number
            receipt = ""
            if frame.command == b"RECEIPT":
                receipt = frame.find(b"\nreceipt-id:") or ""
                sent = self._sends.pop(receipt, None)
                if sent is not None:
                    results.append((sent[0], None))
                    continue
            # Whatever this frame is may end the connection, and what came before it was answered before.
            messages, results = self._hand_over(messages, results)
            if self.dead is None:
                self._take_other(frame, receipt)
            if self.dead is not None:
                return
        self._hand_over(messages, results)

    def _take_other(self, frame: Frame, receipt: str) -> None:
        if frame.command == b"RECEIPT":
            self._answered(receipt, None)
        elif frame.command == b"ERROR":
            self._on_error(frame)
        elif frame.command == b"CONNECTED" and self._connecting is not None:
            self._on_connected(frame)
        else:
            raise ProviderError(ErrorKind.PROTOCOL, f"{shown(frame.command[:40].decode('ascii', 'replace'))!r} was not expected")

    def _hand_over(self, messages: list[Frame], results: list[SendResult]) -> tuple[list[Frame], list[SendResult]]:
        if results or messages:
            self._error = None  # the connection outlived that ERROR, so the ERROR is not why it will end
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
        headers = frame.headers
        version = headers.get("version", "1.0")  # STOMP 1.0 has no such header
        if version != "1.2":
            self.end(_too_old(version))
            return
        beats = _HEART_BEAT.fullmatch(headers.get("heart-beat", "0,0"))
        if beats is None:
            raise ProviderError(ErrorKind.PROTOCOL, "its heart-beat is not two numbers of milliseconds")
        self.connected_headers = headers
        self._stop_connect_timer()
        self._transport.set_connected(True)
        self._heartbeats.start(self._settings.heartbeat_ms, sends_ms=int(beats[1]), wants_ms=int(beats[2]))
        done, self._connecting = self._connecting, None
        if done is not None:
            done(None)

    def _on_error(self, frame: Frame) -> None:
        headers = _readable(frame)
        detail = frame.body.decode("utf-8", "replace").strip()
        text = headers.get("message", "")
        if detail and detail not in text:
            text = f"{text}: {detail.splitlines()[0]}" if text else detail
        text = self._reason(text, detail)
        _WIRE_LOG.debug("ERROR: %s", text)
        if self._connecting is not None:
            asked = f"cannot connect to {self._settings.address[0]}:{self._settings.address[1]}"
            # Words that do not speak of credentials may be those of a broker that is just starting or stopping.
            kind = self._kind_of(text, detail, ErrorKind.CONNECTION)
            versions = headers.get("version", "1.2")
            old = kind is ErrorKind.CONNECTION and "1.2" not in versions.split(",")
            self.end(_too_old(versions) if old else broker_error(text, kind, asked=asked, fatal=True))
            return
        kind, end_kind = (self._kind_of(text, detail, default) for default in (ErrorKind.PROTOCOL, ErrorKind.CONNECTION))
        error = broker_error(text, kind)  # the refused frame's error: that the connection may end is reported by itself
        receipt = headers.get("receipt-id", "")
        sent = self._sends.pop(receipt, None)
        if sent is not None:
            self._owner.on_receipts([(sent[0], error)])
            known = True
        elif receipt:
            known = self._answered(receipt, error)
        else:
            known = self._take_nameless(headers, text, f"{text} {detail}", error)
        asked = "the broker ended the connection"
        self._error = end = broker_error(text, end_kind, asked=asked, fatal=True)
        if self._every_error_ends or not known:
            self.end(end)

    def _kind_of(self, text: str, detail: str, default: ErrorKind) -> ErrorKind:
        """Return the kind of an ERROR by the broker's words, not by those of ours that it repeats, such as a queue's name."""
        ours = [self._settings.login, self._settings.client_id, *self._control.values()]
        ours += [value for _, start in self._sends.values() for value in _SEND_VALUES.findall(start)]
        return self._kind_of_error(without(text, ours), without(detail, ours), default)

    def _take_nameless(self, headers: Mapping[str, str], text: str, words: str, error: ProviderError) -> bool:
        """Find the frame that an ERROR without a receipt's name belongs to; False when there is none."""
        if self._owner.on_stray_error(self, headers, text, error):
            return True
        refused = self._refused_declaration(words)
        if refused is not None:
            start, why = refused
            error = ProviderError(ErrorKind.DESTINATION, f"{why}; {error.message}", fatal=error.fatal)
            receipts = [receipt for receipt, (_, begin) in self._sends.items() if begin.startswith(start)]
            if receipts:
                self._owner.on_receipts([(self._sends.pop(receipt)[0], error) for receipt in receipts])
                return False
        return self._control.blame(error, words)


def _with_receipt(frame: bytes, receipt: str) -> bytes:
    command, _, rest = frame.partition(b"\n")
    return b"%b\nreceipt:%b\n%b" % (command, receipt.encode(), rest)


def _too_old(versions: str) -> ProviderError:
    """Return the error for a broker that has no STOMP 1.2."""
    text = f"the broker speaks STOMP {shown(versions)}, not 1.2: it is too old"
    return ProviderError(ErrorKind.UNSUPPORTED, text, fatal=True)


def _readable(frame: Frame) -> dict[str, str]:
    try:
        return frame.headers
    except ProviderError:
        return {"message": frame.head.decode("utf-8", "replace")}
