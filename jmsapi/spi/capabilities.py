"""What a provider on a broker can do: stated once, here, and read by the core, the decorators and the conformance suite."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jmsapi_selector.dialects import Dialect

__all__ = ["EMULATED", "NATIVE", "NONE", "Capabilities", "Level", "ProviderTraits", "Support", "emulated", "none"]


class Level(Enum):
    """How a feature comes."""

    NATIVE = "native"
    EMULATED = "emulated"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Support:
    """One feature or quality: how it comes, and why so."""

    level: Level
    note: str = ""
    """The reason, for people: why not, or what the emulation does."""
    emulate: str | None = None
    """The word for ``?emulate=`` that would supply it with a weaker promise."""

    def __bool__(self) -> bool:
        return self.level is not Level.NONE


NATIVE: Final = Support(Level.NATIVE)
EMULATED: Final = Support(Level.EMULATED)
NONE: Final = Support(Level.NONE)


_MANNERS: Final = ("rollback_returns", "release_while_open", "broker_credit", "unsettled_window", "transactions_apart")
"""Fields that the core reads once, when a connection opens."""

Quality = Support
"""A promise that a broker keeps or not, as the type of a field: the annotation is what tells qualities from features."""


def emulated(note: str) -> Support:
    """Return an EMULATED support with its reason."""
    return Support(Level.EMULATED, note)


def none(note: str, *, emulate: str | None = None) -> Support:
    """Return a NONE support with its reason, and the word that would ask for a weaker one."""
    return Support(Level.NONE, note, emulate)


@dataclass(frozen=True, slots=True)
class ProviderTraits:
    """What is known of a provider before any broker is reached."""

    in_process: bool = False
    """Its brokers live in this process: other processes reach others of the same name, and a fork copies them."""
    xa: bool = False
    """Its connections may have distributed transactions; whether a broker has them, its ``Capabilities`` say."""
    exact_selectors: bool = False
    """Its brokers evaluate selectors and no-local as ``jmsapi_selector`` does, so nothing need stand before it for that."""
    installing: str = ""
    """What a system needs before the wire's library can be installed, for people whose installation fails."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """All that is known of a provider once it is open.

    *Features* that are NONE are refused with ``UnsupportedFeatureException`` before any traffic. *Qualities* that are NONE
    refuse nothing; they make their requirements not applicable in a certificate, with the note as the reason.
    """

    provider: str
    """The provider's name: inproc, stomp, amqp."""
    broker: str
    """The broker's product: jmsapi in-process, artemis, classic, rabbitmq."""
    version: str = ""
    """The broker's own version text."""

    # features
    transactions: Support = NATIVE
    queue_selector: Support = NATIVE
    topic_selector: Support = NATIVE
    no_local: Support = NATIVE
    durable_subscription: Support = NATIVE
    shared_subscription: Support = NATIVE
    shared_durable_subscription: Support = NATIVE
    unsubscribe: Support = NATIVE
    shared_unsubscribe: Support = NATIVE
    """Ending a shared durable subscription, where there are such."""
    browser: Support = NATIVE
    temporary_queue: Support = NATIVE
    temporary_topic: Support = NATIVE
    delivery_delay: Support = NATIVE
    map_message: Support = NATIVE
    stream_message: Support = NATIVE
    object_message: Support = NATIVE
    plain_message: Support = NATIVE
    xa: Support = NONE

    # qualities
    transactions_atomic: Quality = NATIVE
    client_id_exclusive: Quality = NATIVE
    delivery_count_exact: Quality = NATIVE
    redelivered_flag: Quality = NATIVE
    delay_keeps_subscribers: Quality = NATIVE
    """A delayed message to a topic goes to those who are subscribed when it is sent, not when it falls due."""
    priority_order: Quality = NATIVE
    message_groups: Quality = NATIVE
    receive_no_wait_exact: Quality = NATIVE
    temporary_owner_only: Quality = NATIVE
    missing_queue_reported: Quality = NATIVE
    dead_letter: Quality = NATIVE
    durable_exclusive: Quality = NATIVE
    subscription_change_detected: Quality = NATIVE
    unknown_subscription_reported: Quality = NATIVE
    same_name_queue_and_topic: Quality = NATIVE
    expiry_in_broker: Quality = NATIVE
    user_id: Quality = NONE
    duplicate_detection: Quality = NONE
    """The broker knows a message that it has already by an id, and drops the copy; ``duplicate_property`` bears that id."""

    # behaviour and limits
    rollback_returns: bool = False
    """Settled acks of a rolled back transaction come back from the broker by themselves."""
    redelivery_policy: bool = False
    """What a rolled back transaction had accepted, and what is FAILED, comes back in its order, counted, delayed and
    dead-lettered as the broker is set up. So the core gives it back at a rollback, at a recover and when a listener fails,
    where it else hands out again by itself. Only with ``rollback_returns`` and ``release_while_open``."""
    release_while_open: bool = True
    """RELEASED and FAILED give the message to others before the consumer is released."""
    unused_credit_reorders: bool = False
    """What a consumer gives back while it has credit left comes behind older messages that went back before it. So its credit is
    taken back first, which brings those older ones to it as well."""
    settle_answered: bool = True
    """``settle`` is done when the broker has answered; else when it is written, and a link that breaks then may undo it."""
    broker_credit: bool = True
    """Credit is kept by the broker; else the provider may hold messages ahead that nobody else can have."""
    unsettled_window: int | None = None
    """The broker stops delivering at this many unsettled deliveries a consumer; None: credit alone decides."""
    transactions_apart: bool = True
    """Deliveries of one consumer can be accepted in several transactions at a time; else the first that ends, ends it for all."""
    forwards_shared: bool = False
    """The broker has no shared subscriptions, but what they can be made of: durable subscriptions, client ids that only one
    connection can have, browsers, and transactions that hold sends and acknowledgements."""
    browser_shows_expired: bool = False
    """A browser shows what has expired until the broker gets round to removing it; the client leaves it out."""
    user: str | None = field(default=None, repr=False)
    """What ``user_id`` says of this connection's messages: JMSXUserID, which the core sets on each; None: it has none."""
    assigns_message_id: bool = False
    """The broker gives a message that comes without an id one of its own, so the hint that ids are not needed is not taken."""
    max_message: int | None = None
    """Bytes; the largest message the broker takes."""
    delay_trial: str | None = None
    """The broker may ignore a delivery delay without a word, so the first one of a connection is tried; why a delay is refused
    when the trial shows that. None: ``delivery_delay`` tells all."""
    duplicate_property: str | None = None
    """The property of a message that has its id for ``duplicate_detection``."""
    selectors: Dialect | None = None
    """How the broker evaluates selectors, where it does; None: as the specification says."""

    def of(self, feature: str) -> Support:
        """Return the support of a feature or quality by its field name.

        Raises:
            KeyError: No such feature.
        """
        value = getattr(self, feature, None)
        if not isinstance(value, Support):
            raise KeyError(feature)
        return value

    def supports(self) -> dict[str, Support]:
        """Return every feature and quality by name, in the order of this class."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Support)}

    def is_quality(self, name: str) -> bool:
        """Return whether a support is a quality: NONE then refuses nothing.

        Raises:
            KeyError: No such feature or quality.
        """
        self.of(name)
        return next(item.type for item in fields(self) if item.name == name) == "Quality"

    def missing_at(self, other: Capabilities) -> list[str]:
        """Return by name what holds here and does not at another broker, so that nobody can go on there as he was.

        Qualities are left out: without them things go on, only less well.
        """
        own, others = self.supports(), other.supports()
        gone = [name for name, support in own.items() if support and not others[name] and not self.is_quality(name)]
        return gone + [name for name in _MANNERS if getattr(self, name) != getattr(other, name)]

    def with_(self, **changes: Support) -> Capabilities:
        """Return a copy in which some features are changed; decorators use it."""
        return replace(self, **changes)  # type: ignore[arg-type]
