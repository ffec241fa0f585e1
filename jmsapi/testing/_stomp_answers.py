"""The answers to a client's frames, in the order of the frames.

The broker answers when it is done, which may be late and from another thread: a message that has to be on the disk takes its
time, and one behind it that has not does not. STOMP has a client take a receipt for all frames before that one, too.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from jmsapi.spi import ProviderError
from jmsapi.testing._stomp_reading import broken, error_frame, receipt_frame

__all__ = ["AnswerPlace", "AnswerQueue"]


class AnswerPlace:
    """One frame's place in the line of answers.

    Args:
        receipt: What names the frame in its answer; None when it wants none.
    """

    __slots__ = ("answer", "receipt", "then")

    def __init__(self, receipt: bytes | None) -> None:
        self.receipt = receipt
        self.answer: bytes | None = None
        """The frame that answers it, nothing if it wants none; None until it is known."""
        self.then: Callable[[], object] | None = None
        """Called when it is answered."""


class AnswerQueue:
    """The line.

    Args:
        put: Queues bytes for the client.
        fail: Ends the connection, with a reason and what names the frame.
    Threads: any for ``tell``; ``line_up`` has the order of the frames, so it is for the thread that reads them.
    """

    def __init__(self, put: Callable[[bytes], None], fail: Callable[[ProviderError, bytes | None], None]) -> None:
        self._put = put
        self._fail = fail
        self._lock = threading.Lock()
        self._places: deque[AnswerPlace] = deque()
        self._ended = False

    def line_up(self, receipt: bytes | None) -> AnswerPlace:
        """Take the next place."""
        place = AnswerPlace(receipt)
        with self._lock:
            self._places.append(place)
        return place

    def tell(self, place: AnswerPlace, cause: BaseException | None) -> None:
        """Answer a frame that is done or was refused, once those before it are answered.

        Who wanted no answer, or has broken the rules, is told of a refusal by the end of the connection.
        """
        receipt = place.receipt
        if cause is None:
            self._give(place, b"" if receipt is None else receipt_frame(receipt))
            return
        refused = cause if isinstance(cause, ProviderError) else broken(f"a fault of the server: {cause!r}")
        if receipt is None or refused.fatal:
            self._fail(refused, receipt)
        else:
            self._give(place, error_frame(refused, receipt))

    def _give(self, place: AnswerPlace, answer: bytes) -> None:
        with self._lock:
            place.answer = answer
            while self._places and self._places[0].answer is not None and not self._ended:
                first = self._places.popleft()
                if first.answer:
                    self._put(first.answer)
                if first.then is not None:
                    first.then()

    def end(self) -> None:
        """Give no answers any more: what the client was told last is the last word."""
        with self._lock:
            self._ended = True
            self._places.clear()
