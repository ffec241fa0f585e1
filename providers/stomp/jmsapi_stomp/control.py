"""Control frames (SUBSCRIBE, UNSUBSCRIBE, COMMIT, ABORT): which waits for its turn, which for its answer.

- Where an ERROR may name no frame they go one at a time: a nameless one belongs to the oldest that has no answer yet.
- Whether it really does, only its words tell. A COMMIT that it does not name is in doubt: what the broker had in hand
  may have been another frame, or one part of the transaction.
- What is given up, because no answer came in time or a nameless ERROR was taken for it, may have been done all the
  same. Its answer is still waited for, and whoever asked is told, so that nothing is left behind at the broker.

All on the I/O thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_stomp.frames import command_frame
from jmsapi_stomp.loop import IoLoop, Scheduled

__all__ = ["Control", "Done", "Request"]

Done = Callable[[ProviderError | None], object]
"""Told that something is done, or what went wrong."""


class Request:
    """A control frame that waits for its turn or its answer.

    Args:
        asked: What is asked, for error texts.
        command: The frame's command.
        headers: Its headers but the receipt.
        done: Called with None, or with what went wrong.
        doubtful: A lost answer leaves the outcome unknown.
        first: A frame to be written just before, in the same write.
        late: Called when the broker says that it was done, after ``done`` had to be told otherwise.
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
        """Its asker has been told that it failed; the broker has not."""
        self.blamed = False
        """An ERROR without a name was taken for its answer."""

    def named_in(self, text: str) -> bool:
        """Return whether words of the broker speak of this transaction."""
        name = next((value for header, value in self.headers if header == "transaction"), None)
        return name is not None and name in text


class Control:
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
        self._waiting: deque[Request] = deque()
        self._unanswered: dict[str, Request] = {}
        """Those written, in their order; the ones given up among them."""
        self._pending: Request | None = None
        self._ended: ProviderError | None = None
        self.one_at_a_time = True

    def ask(self, request: Request) -> None:
        """Write a frame, or have it wait for its turn."""
        if self._pending is None or not self.one_at_a_time:
            self._start(request)
        else:
            self._waiting.append(request)

    def _start(self, request: Request) -> None:
        request.receipt = receipt = str(next(self._ids))
        if self.one_at_a_time:
            self._pending = request
        self._unanswered[receipt] = request
        request.timer = self._loop.later(self._timeout, lambda: self._too_late(request))
        self._queue(request.first + command_frame(request.command, [*request.headers, ("receipt", receipt)]))

    def _too_late(self, request: Request) -> None:
        kind = ErrorKind.IN_DOUBT if request.doubtful else ErrorKind.TIMEOUT
        self._give_up(request, ProviderError(kind, "the broker gave no answer in time"))

    def _give_up(self, request: Request, cause: ProviderError) -> None:
        request.given_up = True
        self._tell(request, cause)

    def answered(self, receipt: str, cause: ProviderError | None) -> bool:
        """Take the answer that names a frame; False when it is none of these."""
        request = self._unanswered.pop(receipt, None)
        if request is None:
            return False
        if self.one_at_a_time:
            # Answers come in order: what was written before will get none any more.
            for earlier in [name for name in self._unanswered if int(name) < int(receipt)]:
                del self._unanswered[earlier]
        if not request.given_up:
            self._tell(request, cause)
        elif cause is None and request.late is not None:
            request.late()
        return True

    def blame(self, error: ProviderError, text: str) -> bool:
        """Take an ERROR that names no frame for the answer of the oldest that has none; False when there is no such frame.

        Args:
            error: What it says.
            text: Its words, all of them.
        """
        if not self.one_at_a_time:
            return False
        request = next((one for one in self._unanswered.values() if not one.blamed), None)
        if request is None:
            return False
        request.blamed = True
        named = request.named_in(text)
        if named or (error.kind is not ErrorKind.PROTOCOL and not request.doubtful):
            # A refusal in words that are known. RabbitMQ may send a RECEIPT as well: it counts no more.
            request.late = None
        if request.given_up:
            return True
        if request.doubtful and not named:
            text = f"{error.message}; whether it was done is not known, for the broker does not say what failed"
            error = ProviderError(ErrorKind.IN_DOUBT, text, fatal=error.fatal)
        self._give_up(request, error)
        return True

    def _tell(self, request: Request, cause: ProviderError | None) -> None:
        if request.timer is not None:
            request.timer.cancel()
        if self._pending is request:
            self._pending = None
        if cause is not None:
            cause = ProviderError(cause.kind, f"{request.asked}: {cause.message}", fatal=cause.fatal)
        request.done(cause)
        if self._pending is None and self._waiting and self._ended is None:
            self._start(self._waiting.popleft())

    def end(self, cause: ProviderError) -> None:
        """Fail all: the link is lost."""
        self._ended = cause
        written, self._unanswered = self._unanswered, {}
        waiting, self._waiting = self._waiting, deque()
        for request in written.values():
            if request.given_up:
                continue
            if request.doubtful:
                self._tell(request, ProviderError(ErrorKind.IN_DOUBT, f"no answer; {cause.message}", fatal=True))
            else:
                self._tell(request, cause)
        for request in waiting:
            request.done(cause)
