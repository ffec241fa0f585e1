"""What can be said of one endpoint: the activation properties of JMS 2.0, and the library's own.

Each has two names: the one in camelCase that the specification gives or would give it (``destinationLookup``), and the same in
snake_case. Values may be text, as in a deployment descriptor. What is wrong is said with the name of the property and the fix.

Spec: 12.1-1 to 12.1-22.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Final, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel

from jmsapi._validation import closest
from jmsapi.errors import InvalidSelectorException
from jmsapi.listener.errors import DeploymentException
from jmsapi.listener.subscription_name import LONGEST_NAME, VALID_NAME
from jmsapi.listener.transaction_attribute import TransactionAttribute
from jmsapi.selector import compile_selector

__all__ = ["AcknowledgeMode", "ActivationSpec", "DestinationType", "Durability", "RedeliveryAction", "SubscriptionScope"]

_CONCURRENCY: Final = re.compile(r"\s*([0-9]{1,6})\s*(?:-\s*([0-9]{1,6})\s*)?")
_Milliseconds = Annotated[int, Field(ge=0, le=1_000_000_000_000)]


class DestinationType(Enum):
    """What messages come from; ``jakarta.jms`` and the bare word are read, too."""

    QUEUE = "javax.jms.Queue"
    TOPIC = "javax.jms.Topic"


class AcknowledgeMode(Enum):
    """How a message is acknowledged where the container has no transaction."""

    AUTO = "Auto-acknowledge"
    DUPS_OK = "Dups-ok-acknowledge"


class Durability(Enum):
    """Whether a subscription keeps messages while nobody is there."""

    DURABLE = "Durable"
    NON_DURABLE = "NonDurable"


class SubscriptionScope(Enum):
    """Whose subscription it is: that of this server, or that of all servers of the cluster together."""

    INSTANCE = "Instance"
    CLUSTER = "Cluster"


class RedeliveryAction(Enum):
    """What becomes of a message at the redelivery limit."""

    DELETE = "Delete"
    FORWARD = "Forward"


def _destination_type(value: object) -> object:
    return f"javax.jms.{value.rpartition('.')[2].capitalize()}" if isinstance(value, str) and _known_type(value) else value


def _known_type(text: str) -> bool:
    package, _, kind = text.rpartition(".")
    return package in ("", "javax.jms", "jakarta.jms") and (
        kind in ("Queue", "Topic") or (not package and kind in ("queue", "topic"))
    )


def _scope(value: object) -> object:
    return value.capitalize() if isinstance(value, str) else value


class ActivationSpec(BaseModel):
    """How one endpoint gets its messages. Times are milliseconds.

    ``from_properties`` makes one for a deployment and reports what is wrong as a deployment error; the class itself reports it
    as pydantic does.

    Threads: any; it is frozen.
    Spec: 12.1-1.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)

    # ---- the nine of JMS 2.0
    destination_lookup: str | None = Field(default=None, min_length=1)
    """Name of the queue or topic, for ``jmsapi.lookup``."""
    destination_type: Annotated[DestinationType, BeforeValidator(_destination_type)]
    """``javax.jms.Queue`` or ``javax.jms.Topic``."""
    connection_factory_lookup: str | None = Field(default=None, min_length=1)
    """Name of the connection factory, for ``jmsapi.lookup``; None for the deployment's own."""
    acknowledge_mode: AcknowledgeMode = AcknowledgeMode.AUTO
    """Counts where the container has no transaction."""
    message_selector: str | None = None
    """Selector of the messages to receive; None for all."""
    subscription_durability: Durability = Durability.NON_DURABLE
    client_id: str | None = Field(default=None, min_length=1)
    """Client id of the endpoint's connection; not with a scope."""
    subscription_name: str | None = None
    """Needed if durable without a scope."""
    subscription_scope: Annotated[SubscriptionScope, BeforeValidator(_scope)] | None = None
    """None, ``Instance`` or ``Cluster``; with a scope the subscription is shared, and its name generated where none is given."""

    # ---- ours
    destination: str | None = Field(default=None, min_length=1)
    """The provider's own name of the queue or topic, in place of ``destination_lookup``."""
    transaction_attribute: TransactionAttribute = TransactionAttribute.REQUIRED
    """``Required``, ``NotSupported`` or ``Bean``."""
    concurrency: str = "1"
    """Messages handled at a time: a number, or the fewest and the most, as in ``2-10`` (``min_consumers``, ``max_consumers``)."""
    idle_timeout_ms: _Milliseconds = 10_000
    """How long a consumer above the fewest is idle before it ends."""
    max_instances: int | None = Field(default=None, ge=1)
    """The most instances of the class, over all of its callbacks; None for as many as run. It is the same for all of a class."""
    prefetch: int = Field(default=10, ge=0, le=1_000_000)
    """The most messages here for each consumer, that in its hand included; 0 fetches each when it can be handled."""
    batch_size: int = Field(default=1, ge=1, le=1_000_000)
    """The most messages in one call of a callback that takes a list."""
    batch_wait_ms: _Milliseconds = 100
    """How long a batch that is not full waits for more, from its first message."""
    ordered_by_group: bool = False
    """Whether messages of one ``JMSXGroupID`` are handled one after the other, in order."""
    redelivery_delay_ms: _Milliseconds = 0
    """The wait before a message that failed comes again; 0 for at once."""
    redelivery_backoff: float = Field(default=1.0, ge=1.0, le=1000.0, allow_inf_nan=False)
    """Factor by which the wait for the next redelivery grows each time."""
    redelivery_max_delay_ms: _Milliseconds = 60_000
    """The longest wait."""
    redelivery_jitter: float = Field(default=0.0, ge=0.0, le=1.0, allow_inf_nan=False)
    """The share of the wait that is left to chance, so that messages that failed together do not come again together."""
    redelivery_limit: int | None = Field(default=None, ge=0)
    """The most redeliveries; None for no limit of the container's own. Needs an action."""
    redelivery_action: RedeliveryAction | None = None
    """``Delete`` or ``Forward``; a dead letter destination alone means ``Forward``."""
    dead_letter_destination: str | None = Field(default=None, min_length=1)
    """Where to forward to: a name for ``jmsapi.lookup``, or else the provider's own name."""
    dead_letter_type: Annotated[DestinationType, BeforeValidator(_destination_type)] = DestinationType.QUEUE
    """What the provider's own name in ``dead_letter_destination`` names."""
    stop_deadline_ms: _Milliseconds = 30_000
    """How long a stop waits for callbacks that run."""
    connection_retry_delay_ms: _Milliseconds = 1_000
    """The wait before a connection or consumer that failed is made again."""
    connection_retry_backoff: float = Field(default=2.0, ge=1.0, le=1000.0, allow_inf_nan=False)
    """Factor by which the wait for the next attempt to connect grows each time, until one succeeds."""
    connection_retry_max_delay_ms: _Milliseconds = 30_000
    """The longest such wait."""
    connection_retry_limit: int | None = Field(default=None, ge=0)
    """The most such attempts in a row; None for ever."""

    # ---- what follows from them
    @property
    def for_topic(self) -> bool:
        """Whether messages come from a topic."""
        return self.destination_type is DestinationType.TOPIC

    @property
    def durable(self) -> bool:
        """Whether the subscription is durable."""
        return self.subscription_durability is Durability.DURABLE

    @property
    def cluster_scope(self) -> bool:
        """Whether the subscription is that of the whole cluster."""
        return self.subscription_scope is SubscriptionScope.CLUSTER

    @property
    def min_consumers(self) -> int:
        """The fewest consumers; at least 1."""
        return self._range()[0]

    @property
    def max_consumers(self) -> int:
        """The most consumers."""
        return self._range()[1]

    def _range(self) -> tuple[int, int]:
        fewest, _, most = self.concurrency.partition("-")
        return int(fewest), int(most or fewest)

    # ---- what is wrong
    @field_validator("concurrency", mode="before")
    @classmethod
    def _check_concurrency(cls, value: object) -> str:
        found = _CONCURRENCY.fullmatch(str(value)) if isinstance(value, int | str) else None
        fewest = int(found[1]) if found else 0
        most = int(found[2] or found[1]) if found else 0
        if not 1 <= fewest <= most:
            raise ValueError("is a number from 1, or two of them with the smaller first, as in '2-10'")
        return str(most) if fewest == most else f"{fewest}-{most}"

    @field_validator("message_selector")
    @classmethod
    def _check_selector(cls, value: str | None) -> str | None:
        try:
            compile_selector(value)
        except InvalidSelectorException as error:
            raise ValueError(str(error)) from error
        return value if value and value.strip() else None

    @field_validator("subscription_name")
    @classmethod
    def _check_name(cls, value: str | None) -> str | None:
        if value is not None and not VALID_NAME.fullmatch(value):
            raise ValueError(f"has 1 to {LONGEST_NAME} characters: letters, digits, underscore, dot, minus")
        return value

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        wrong = self._destination_wrong() or self._subscription_wrong() or self._redelivery_wrong()
        if wrong:
            raise ValueError(wrong)
        return self

    def _destination_wrong(self) -> str | None:
        if self.destination_lookup is None and self.destination is None:
            return "says no destination: set destinationLookup (for jmsapi.lookup), or destination (the provider's own name)"
        if self.destination_lookup is not None and self.destination is not None:
            return "says destinationLookup and destination: leave one of them out"
        return None

    def _subscription_wrong(self) -> str | None:
        if not self.for_topic:
            given = {"subscription_name", "subscription_scope"} & {name for name in self.model_fields_set if getattr(self, name)}
            if self.durable:
                given.add("subscription_durability")
            return (
                f"{to_camel(min(given))} is for topics: leave it out, or set destinationType to javax.jms.Topic"
                if given
                else None
            )
        if self.subscription_scope is not None:
            scoped = "clientId and subscriptionScope exclude each other: leave out clientId; the name of a shared subscription"
            return f"{scoped} needs none" if self.client_id is not None else None
        if self.durable and self.subscription_name is None:
            return "a durable subscription needs subscriptionName, or a subscriptionScope to have its name generated"
        if self.durable and self.client_id is not None and self.max_consumers > 1:
            return (
                "a durable subscription with clientId has one consumer: set concurrency to 1, or leave out clientId to have a"
                " shared subscription"
            )
        return None

    def _redelivery_wrong(self) -> str | None:
        forward = self.redelivery_action is RedeliveryAction.FORWARD
        if forward and self.dead_letter_destination is None:
            return "redeliveryAction Forward needs deadLetterDestination"
        if self.redelivery_action is RedeliveryAction.DELETE and self.dead_letter_destination is not None:
            return "redeliveryAction Delete and deadLetterDestination exclude each other: leave one of them out"
        if self.redelivery_limit is not None and self.action_at_limit is None:
            return "redeliveryLimit needs what to do then: set deadLetterDestination, or redeliveryAction to Delete"
        if self.redelivery_limit is None and self.action_at_limit is not None:
            return "redeliveryAction and deadLetterDestination need redeliveryLimit: set it to the most redeliveries"
        return None

    @property
    def action_at_limit(self) -> RedeliveryAction | None:
        """What becomes of a message at the redelivery limit; None if there is no limit."""
        if self.redelivery_action is None and self.dead_letter_destination is not None:
            return RedeliveryAction.FORWARD
        return self.redelivery_action

    @classmethod
    def from_properties(cls, properties: Mapping[str, object], what: str) -> ActivationSpec:
        """Make one from properties by name.

        Args:
            properties: By either name; a property may be given once.
            what: What is deployed, to begin an error with.
        Raises:
            DeploymentException: A property is unknown (``unknown-property``), or its value is wrong or does not fit the others
                (``bad-activation``).
        Threads: any.
        Spec: 12.1-2, MDB-76.
        """
        aliases = {name: to_camel(name) for name in cls.model_fields}
        known = set(aliases.values())
        given: dict[str, object] = {}
        for name, value in properties.items():
            alias = aliases.get(name, name)
            if alias not in known:
                raise DeploymentException(
                    f"{what}: unknown activation property {name!r}{closest(name, known, 'properties')}",
                    error_code="unknown-property",
                )
            if alias in given:
                raise DeploymentException(f"{what}: {alias} is given twice, by both of its names", error_code="bad-activation")
            given[alias] = value
        if given.get("destinationType") is None:
            raise DeploymentException(
                f"{what}: destinationType is missing: set it to javax.jms.Queue or javax.jms.Topic", error_code="bad-activation"
            )
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            problems = [
                ": ".join([*map(str, one["loc"][:1]), one["msg"].removeprefix("Value error, ")])
                for one in error.errors(include_url=False, include_context=False)
            ]
            raise DeploymentException(f"{what}: " + "; ".join(problems), error_code="bad-activation") from error
