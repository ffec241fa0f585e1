"""One consumer, with the deliveries that it holds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from jmsapi.spi import ConsumerSpec, Delivery, Envelope
from jmsapi_brokers.subscriptions import SubscriptionKey
from jmsapi_stomp.answers import Done
from jmsapi_stomp.connection import StompConnection
from jmsapi_stomp.frame_collector import FrameCollector
from jmsapi_stomp.frames import Frame
from jmsapi_stomp.handles import ConsumerHandle, StompTag
from jmsapi_stomp.subscribe_plan import SubscribePlan

__all__ = ["StompConsumer"]


class StompConsumer:
    """One consumer, with the deliveries that it holds.

    It may have several subscriptions: when acknowledgements come late and the broker's window is full of what the
    application holds, a further SUBSCRIBE with the same headers makes room.
    """

    __slots__ = (
        "abandoned",
        "arrived",
        "awaiting",
        "browsed",
        "buffer",
        "closing",
        "collector",
        "connection",
        "credit",
        "drains",
        "ending",
        "handle",
        "handler",
        "held",
        "key",
        "lock",
        "member",
        "names",
        "open",
        "plan",
        "rejecting",
        "requeued",
        "rest_check",
        "room",
        "settled_elsewhere",
        "size",
        "spec",
        "unsettled",
        "waits_since",
        "wants",
        "when_settled",
    )

    def __init__(self, handle: ConsumerHandle, spec: ConsumerSpec, plan: SubscribePlan, connection: StompConnection) -> None:
        self.handle = handle
        self.spec = spec
        self.plan = plan
        self.connection = connection
        self.lock: StompConnection | None = None
        """A connection that holds the subscription's lock."""
        self.key: SubscriptionKey | None = None
        self.member: StompConsumer | None = None
        """An auxiliary consumer by which others know that this one is there."""
        self.handler: Callable[[Frame], bool] | None = None
        """Takes its messages, and returns whether to acknowledge them; what is not acknowledged stays until the consumer ends."""
        self.collector: FrameCollector | None = None
        """Whose ``take`` the handler is, if somebody waits for messages."""
        self.wants: Callable[[], None] | None = None
        """Called when there is credit and nothing here: the messages are fetched by the behaviour, not sent by the broker."""
        self.names: list[str] = []
        """The ids of its subscriptions."""
        self.size = 0
        """The sum of all windows, in messages."""
        self.room = 0
        """The sum of all windows, in the broker's unit."""
        self.held = 0
        """How much of ``room`` is taken."""
        self.credit = 0
        self.buffer: deque[Delivery] = deque()
        self.unsettled: dict[StompTag, Envelope] = {}
        self.settled_elsewhere: deque[int] = deque()
        """The window costs of deliveries that other threads settled, still to be taken off ``held``."""
        self.requeued: list[StompTag] = []
        """Deliveries that go back to the broker in a moment."""
        self.drains: list[Future[None]] = []
        self.arrived = 0.0
        self.rest_check = False
        """A timer will look whether the broker has stopped dispatching."""
        self.waits_since = 0.0
        """When the oldest delivery in the buffer came."""
        self.rejecting = 0
        """Deliveries whose copies are on their way to the dead letter queue."""
        self.when_settled: list[Callable[[], None]] = []
        self.awaiting: set[Done] = set()
        """Calls that wait for the broker's answers to acknowledgements."""
        self.open = False
        self.closing = False
        """Its deliveries go back to the broker; none can be settled."""
        self.ending: set[str] = set()
        """Subscriptions of this consumer that the broker was asked to end."""
        self.abandoned = False
        """The core has no such consumer: it was refused or has ended. The broker may still have it."""
        self.browsed = False
        """A browser has shown everything."""

    @property
    def auxiliary(self) -> bool:
        """Whether the core does not know it."""
        return self.handle.serial < 0

    @property
    def unusual(self) -> bool:
        """Whether its messages need a look before they are filed."""
        return self.abandoned or self.handler is not None or self.plan.bound_to is not None

    @property
    def extensible(self) -> bool:
        """Whether a full window may be made larger by a further subscription.

        Where acknowledgements come at once, up to what the core asked for: the first window may have been smaller.
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

    def count_settled_elsewhere(self) -> None:
        """Take off ``held`` what other threads settled."""
        while self.settled_elsewhere:
            self.held -= self.settled_elsewhere.popleft()
