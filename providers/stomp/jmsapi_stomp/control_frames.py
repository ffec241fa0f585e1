"""Control frames (SUBSCRIBE, UNSUBSCRIBE, COMMIT, ABORT): which waits for its turn, which for its answer.

- Where an ERROR may name no frame they go one at a time: a nameless ERROR belongs to the oldest frame without an answer.
- Only the ERROR's words tell whether it really does. A COMMIT that it does not name is in doubt: the broker may have refused
  another frame, or one part of the transaction.
- A frame that is given up, because no answer came in time or a nameless ERROR was taken for it, may have been obeyed all the
  same. Its answer is still awaited, and ``late`` is called, so that nothing is left behind at the broker.

All of it runs on the I/O thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi.wire import IoLoop, Scheduled
from jmsapi_stomp.answers import Done
from jmsapi_stomp.frames import command_frame

__all__ = ["ControlFrame", "ControlFrames"]


class ControlFrame:
    """A control frame that waits for its turn or its answer.

    Args:
        asked: What is asked, for error texts.
        command: The frame's command.
        headers: Its headers but the receipt.
        done: Called with None, or with the error.
        doubtful: A lost answer leaves the outcome unknown.
        first: A frame to be written just before, in the same write.
        late: Called when the broker confirms the frame after ``done`` had to be called with an error.
    """

    __slots__ = ("asked", "blamed", "command", "done", "doubtful", "first", "given_up", "headers", "late", "receipt", "timer")

    def __init__(
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
        self.asked = asked
        self.command = command
        self.headers = headers
        self.first = first
        self.done = done
        self.doubtful = doubtful
        self.late = late
        self.receipt = ""
        self.timer: Scheduled | None = None
        self.given_up = False
        """Its sender has its error; the broker may still answer."""
        self.blamed = False
        """A nameless ERROR was taken for its answer."""

    def named_in(self, text: str) -> bool:
        """Return whether the broker's words name this transaction."""
        name = next((value for header, value in self.headers if header == "transaction"), None)
        return name is not None and name in text


class ControlFrames:
    """The control frames of one connection.

    Args:
        loop: For deadlines.
        timeout: Seconds that an answer may take.
        queue: Writes a frame.
        ids: Where receipts get their numbers from.
    """

    def __init__(self, loop: IoLoop, timeout: float, queue: Callable[[bytes], object], ids: Iterator[int]) -> None:
        self._loop = loop
        self._timeout = timeout
        self._queue = queue
        self._ids = ids
        self._waiting: deque[ControlFrame] = deque()
        self._unanswered: dict[str, ControlFrame] = {}
        """Frames that were written and have no answer, in their order, those given up among them."""
        self._pending: ControlFrame | None = None
        self._ended: ProviderError | None = None
        self.one_at_a_time = True

    def ask(self, frame: ControlFrame) -> None:
        """Write a frame, or have it wait for its turn; one that no frame can carry is refused."""
        broken = next((name for name, value in frame.headers if "\0" in value), None)
        if broken is not None:
            kind = ErrorKind.SELECTOR if broken == "selector" else ErrorKind.DESTINATION
            frame.done(ProviderError(kind, f"the header {broken!r} would hold a NUL, which STOMP cannot carry"))
        elif self._pending is None or not self.one_at_a_time:
            self._start(frame)
        else:
            self._waiting.append(frame)

    def _start(self, frame: ControlFrame) -> None:
        frame.receipt = receipt = str(next(self._ids))
        if self.one_at_a_time:
            self._pending = frame
        self._unanswered[receipt] = frame
        frame.timer = self._loop.later(self._timeout, lambda: self._too_late(frame))
        self._queue(frame.first + command_frame(frame.command, [*frame.headers, ("receipt", receipt)]))

    def _too_late(self, frame: ControlFrame) -> None:
        kind = ErrorKind.IN_DOUBT if frame.doubtful else ErrorKind.TIMEOUT
        self._give_up(frame, ProviderError(kind, "the broker gave no answer in time"))

    def _give_up(self, frame: ControlFrame, cause: ProviderError) -> None:
        frame.given_up = True
        self._finish(frame, cause)

    def answered(self, receipt: str, cause: ProviderError | None) -> bool:
        """Take the answer that names a frame; False when no control frame has that receipt."""
        frame = self._unanswered.pop(receipt, None)
        if frame is None:
            return False
        if self.one_at_a_time:
            # Answers come in order: what was written before will get none any more.
            for earlier in [name for name in self._unanswered if int(name) < int(receipt)]:
                del self._unanswered[earlier]
        if not frame.given_up:
            self._finish(frame, cause)
        elif cause is None and frame.late is not None:
            frame.late()
        return True

    def blame(self, error: ProviderError, text: str) -> bool:
        """Take a nameless ERROR for the answer of the oldest frame without one; False when there is no such frame.

        Args:
            error: The ERROR.
            text: All of its words.
        """
        if not self.one_at_a_time:
            return False
        frame = next((one for one in self._unanswered.values() if not one.blamed), None)
        if frame is None:
            return False
        frame.blamed = True
        named = frame.named_in(text)
        if named or (error.kind is not ErrorKind.PROTOCOL and not frame.doubtful):
            # A refusal in known words. RabbitMQ may send a RECEIPT as well, which then means nothing.
            frame.late = None
        if frame.given_up:
            return True
        if frame.doubtful and not named:
            text = f"{error.message}; whether it was done is not known, for the broker does not say what failed"
            error = ProviderError(ErrorKind.IN_DOUBT, text, fatal=error.fatal)
        self._give_up(frame, error)
        return True

    def values(self) -> list[str]:
        """Return the values of the headers of those without an answer: what an ERROR may repeat of our words."""
        return [value for frame in self._unanswered.values() for _, value in frame.headers]

    def _finish(self, frame: ControlFrame, cause: ProviderError | None) -> None:
        if frame.timer is not None:
            frame.timer.cancel()
        if self._pending is frame:
            self._pending = None
        if cause is not None:
            cause = ProviderError(cause.kind, f"{frame.asked}: {cause.message}", fatal=cause.fatal)
        frame.done(cause)
        if self._pending is None and self._waiting and self._ended is None:
            self._start(self._waiting.popleft())

    def end(self, cause: ProviderError) -> None:
        """Fail all: the connection is lost."""
        self._ended = cause
        written, self._unanswered = self._unanswered, {}
        waiting, self._waiting = self._waiting, deque()
        for frame in written.values():
            if frame.given_up:
                continue
            if frame.doubtful:
                self._finish(frame, ProviderError(ErrorKind.IN_DOUBT, f"no answer; {cause.message}", fatal=True))
            else:
                self._finish(frame, cause)
        for frame in waiting:
            frame.done(cause)
