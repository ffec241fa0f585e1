"""One consumer and what is held of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from jmsapi.spi import ConsumerSpec, Delivery
from jmsapi_stomp.codec import StompEnvelope
from jmsapi_stomp.control import Done
from jmsapi_stomp.frames import Frame
from jmsapi_stomp.link import Link
from jmsapi_stomp.plans import Plan
from jmsapi_stomp.registry import Key
from jmsapi_stomp.wiring import ConsumerHandle, StompTag

__all__ = ["Consumer"]


class Consumer:
    """One consumer and what is held of it.

    It may have several subscriptions: when acknowledgements come late and the broker's window is full of what the
    application holds, a further SUBSCRIBE of the same makes room.
    """

    __slots__ = (
        "abandoned",
        "arrived",
        "awaiting",
        "buffer",
        "closing",
        "credit",
        "drains",
        "ending",
        "given_back",
        "handle",
        "held",
        "key",
        "link",
        "lock",
        "member",
        "names",
        "open",
        "plan",
        "rejecting",
        "room",
        "settled_aside",
        "shown",
        "size",
        "spec",
        "told",
        "unsettled",
        "waits_since",
        "watched",
        "when_settled",
    )

    def __init__(self, handle: ConsumerHandle, spec: ConsumerSpec, plan: Plan, link: Link) -> None:
        self.handle = handle
        self.spec = spec
        self.plan = plan
        self.link = link
        self.lock: Link | None = None
        self.key: Key | None = None
        self.member: Consumer | None = None
        """By which others know that it is there."""
        self.told: Callable[[Frame], bool] | None = None
        """Takes its messages, and says whether to acknowledge them; what is not stays until it ends."""
        self.names: list[str] = []
        """The ids of its subscriptions."""
        self.size = 0
        """Messages that all windows are for."""
        self.room = 0
        """The windows together, in the broker's unit."""
        self.held = 0
        """How much of them is taken."""
        self.credit = 0
        self.buffer: deque[Delivery] = deque()
        self.unsettled: dict[StompTag, StompEnvelope] = {}
        self.settled_aside: deque[int] = deque()
        """What other threads settled takes no more of the windows: to be taken off ``held``."""
        self.given_back: list[StompTag] = []
        self.drains: list[Future[None]] = []
        self.arrived = 0.0
        self.watched = False
        """Somebody will look whether the broker rests."""
        self.waits_since = 0.0
        """When the oldest in the buffer came."""
        self.rejecting = 0
        """Deliveries whose copies are on their way to the dead letter queue."""
        self.when_settled: list[Callable[[], None]] = []
        self.awaiting: set[Done] = set()
        """Who waits for the broker's answers to acknowledgements."""
        self.open = False
        self.closing = False
        """What it holds goes back; nothing of it can be settled."""
        self.ending: set[str] = set()
        """Those of its subscriptions that the broker is asked to end."""
        self.abandoned = False
        """The core has no such consumer: it was told that it could not be had, or that it has ended. The broker may have it."""
        self.shown = False
        """A browser has shown everything."""

    @property
    def extensible(self) -> bool:
        """Whether a full window may be made larger by a further subscription.

        Where acknowledgements come at once that is up to what the core asked for: the first window may have been smaller.
        """
        if not self.plan.shareable or not self.open or self.closing:
            return False
        return self.spec.deferred_acks or self.size < self.spec.prefetch

    def settled(self, tag: StompTag, cost: int) -> bool:
        """Take a delivery off what is unsettled; False when it was not there."""
        if self.unsettled.pop(tag, None) is None:
            return False
        self.held -= cost
        return True

    def take_in(self) -> None:
        """Take note of what other threads settled."""
        while self.settled_aside:
            self.held -= self.settled_aside.popleft()
