"""The loopback server of ``jmsapi.testing`` over STOMP: both sides of that wire, for the server reads and writes by it too.

The server passes on the in-process broker's answers, so nearly all is the broker's own. Its frames are those of STOMP 1.2, with
these headers of its own:

- SUBSCRIBE: ``window``, how many messages may be unsettled; ``widen:true``, the subscription of this id is there, and its
  window grows by ``window``; ``selector``, ``no-local``, ``browser``; ``subscription`` names a subscription, which
  ``durable`` and ``shared`` describe. ``/temp-queue/`` or ``/temp-topic/`` without a name makes a temporary destination:
  one MESSAGE tells its name, before the RECEIPT.
- UNSUBSCRIBE: ``remove-subscription`` or ``remove-destination`` ends a durable subscription or a temporary destination.
- NACK: ``outcome`` is ``failed``, ``released`` or ``rejected``; ``failures`` is how often the application saw a failed one.
- MESSAGE: ``delivery-count``; the last one of a browser is empty and has ``browser:end``.
- ERROR: its message begins with the kind, ``[in-use] ...``; one that has a ``receipt-id`` does not end the connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from jmsapi.spi import (
    PERSISTENT,
    Address,
    Capabilities,
    ConsumerSpec,
    DestinationKind,
    Envelope,
    ErrorKind,
    MessageKind,
    ProviderError,
    none,
)
from jmsapi_stomp.access import BrokerAccess
from jmsapi_stomp.behaviour import SendsInTransaction, StompBehaviour, group_of, number
from jmsapi_stomp.consumer import StompConsumer
from jmsapi_stomp.errors import named_kind
from jmsapi_stomp.frames import Frame
from jmsapi_stomp.subscribe_plan import Headers, SubscribePlan

__all__ = ["LoopbackStomp"]

_PREFIXES: Final = {
    DestinationKind.QUEUE: "/queue/",
    DestinationKind.TOPIC: "/topic/",
    DestinationKind.TEMPORARY_QUEUE: "/temp-queue/",
    DestinationKind.TEMPORARY_TOPIC: "/temp-topic/",
}
_COUNT: Final = b"\ndelivery-count:"


class LoopbackStomp(StompBehaviour):
    """The loopback server: what the in-process broker can do, and what a push wire cannot."""

    name: ClassVar[str] = "loopback"
    transactions: ClassVar[Literal["native", "sends-first"]] = "native"
    every_error_ends: ClassVar[bool] = False
    one_at_a_time: ClassVar[bool] = False
    sends_in_transaction: SendsInTransaction = SendsInTransaction.CONFIRMED
    negative_ack_returns: ClassVar[bool] = True
    names_outcomes: ClassVar[bool] = True
    widens: ClassVar[bool] = True
    checks_subscriptions: ClassVar[bool] = True
    checks_client_ids: ClassVar[bool] = True
    rejects_by_copy: ClassVar[bool] = False
    closing_returns: ClassVar[bool] = True
    nul_in_headers: ClassVar[bool] = False
    says_users: ClassVar[bool] = False
    hidden: ClassVar[frozenset[str]] = StompBehaviour.hidden | {"delivery-count"}
    frame_limit: ClassVar[int] = 16 * 1024 * 1024

    def capabilities(self) -> Capabilities:
        """Return what the in-process broker can do, but for what a wire without credit cannot."""
        return Capabilities(
            provider="stomp",
            broker=self.name,
            version=self.version,
            receive_no_wait_exact=none("STOMP cannot ask what is on its way; a grace period is waited"),
            missing_queue_reported=none("a queue comes into being when it is first named"),
            xa=none("STOMP has no XA transactions"),
            user_id=none("the in-process broker knows no users"),
            rollback_returns=False,
            broker_credit=False,
            release_while_open=True,
            unsettled_window=None,
            max_message=self.max_frame,
        )

    def kind_of_error(self, text: str, detail: str, default: ErrorKind) -> ErrorKind:
        """Return the kind that the server's message begins with."""
        return named_kind(text) or default

    def check(self, address: Address) -> None:
        """Refuse what no header can hold; the in-process broker takes any name."""
        if "\0" in address.name or not address.name:
            raise ProviderError(ErrorKind.DESTINATION, f"{address.name!r} is no name for a destination")

    def destination(self, address: Address) -> str:
        """Return the name with its prefix."""
        return _PREFIXES[address.kind] + address.name

    def reply_to(self, address: Address) -> Headers:
        """Return JMSReplyTo as the name with its prefix."""
        return [("reply-to", self.destination(address))]

    def read_address(self, text: str) -> Address | None:
        """Read a prefixed name; one without a prefix is a queue's."""
        for kind, prefix in _PREFIXES.items():
            if text.startswith(prefix):
                return Address(kind, text[len(prefix) :])
        return Address(DestinationKind.QUEUE, text) if text else None

    def read_destination(self, headers: Mapping[str, str], subscribed: Address) -> Address:
        """Return JMSDestination: a dead letter keeps the one it was sent to."""
        return self.read_address(headers.get("destination", "")) or subscribed

    def send_lines(self, envelope: Envelope, name: str | None, now_ms: int) -> str:
        """Return mode, times and group."""
        lines = "persistent:true\n" if envelope.delivery_mode == PERSISTENT else ""
        if envelope.timestamp:
            lines += f"timestamp:{envelope.timestamp}\n"
        if envelope.expiration:
            lines += f"expires:{envelope.expiration}\n"
        if envelope.properties:
            group, position = group_of(envelope)
            if group is not None:
                lines += f"JMSXGroupID:{group}\n"
            if position is not None:
                lines += f"JMSXGroupSeq:{position}\n"
        return lines

    def body_lines(self, kind: MessageKind, body: bytes) -> str:
        """Return the length."""
        return f"content-length:{len(body)}\n"

    def plan(self, spec: ConsumerSpec, client_id: str | None) -> SubscribePlan:
        """Return what was asked for, in headers."""
        headers: Headers = []
        if spec.selector is not None:
            headers.append(("selector", spec.selector))
        if spec.no_local:
            headers.append(("no-local", "true"))
        if spec.browse:
            headers.append(("browser", "true"))
        if spec.subscription is not None:
            headers += [("subscription", spec.subscription), ("durable", _word(spec.durable)), ("shared", _word(spec.shared))]
        return SubscribePlan(self.destination(spec.address), headers, shareable=not spec.browse, browse=spec.browse)

    def deletion(self, name: str) -> Headers:
        """Return what ends a durable subscription."""
        return [("remove-subscription", name)]

    async def make_temporary(self, access: BrokerAccess, kind: DestinationKind) -> Address:
        """Have the server make a destination: it names it in a message."""
        addresses: list[Address] = []

        async def read(consumer: StompConsumer) -> None:
            addresses.extend(envelope.destination for envelope in consumer.unsettled.values())

        await access.with_consumer(SubscribePlan(_PREFIXES[kind]), read)
        if not addresses:
            raise ProviderError(ErrorKind.PROTOCOL, "the server made a temporary destination and did not name it")
        return addresses[0]

    async def remove_temporary(self, access: BrokerAccess, address: Address) -> None:
        """Delete the destination; the server refuses while somebody uses it."""
        await access.delete([("remove-destination", self.destination(address))])

    def window(self, size: int | None, *, deferred: bool) -> Headers:
        """Return the window in messages; none is without end."""
        return [] if size is None else [("window", str(max(size, 1)))]

    def delivery_count(self, frame: Frame) -> int:
        """Return the broker's count."""
        count = frame.raw(_COUNT)
        return int(count) if count is not None and count.isdigit() else super().delivery_count(frame)

    def read_timestamp(self, headers: Mapping[str, str]) -> int:
        """Return the timestamp, which is kept as it was sent."""
        return number(headers, "timestamp")

    def read_times(self, headers: Mapping[str, str]) -> tuple[int, int, int]:
        """Return the times, which are kept as they were sent."""
        return self.read_timestamp(headers), number(headers, "expires"), number(headers, "JMS_PY_due")

    def native_message_id(self, headers: Mapping[str, str]) -> str | None:
        """Return the id that the server gave a message of another client; a client of ours that gave none wanted none."""
        return None if "JMS_PY_type" in headers else headers.get("message-id")

    def wants_receipt(self, envelope: Envelope) -> bool:
        """Return True: what the broker refuses must have a name, or it would end the connection."""
        return True


def _word(flag: bool) -> str:
    return "true" if flag else "false"
