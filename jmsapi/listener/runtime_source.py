"""Where an endpoint's messages come from, and where those go that nobody can handle.

Spec: 12.1-3 to 12.1-22.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jmsapi._core.endpoint import PoolObserver, ReceiverTerms, SharedReceiver
from jmsapi.api import Queue, Topic

if TYPE_CHECKING:
    from jmsapi.api import Connection, ConnectionFactory, Destination, MessageConsumer, Session
    from jmsapi.errors import JMSException
    from jmsapi.listener.activation_spec import ActivationSpec
    from jmsapi.listener.subscription import Subscription

__all__ = ["ActivationSource"]


@dataclass(frozen=True, slots=True)
class ActivationSource:
    """What an activation says of it, looked up.

    Args:
        spec: The activation.
        factory: Makes its connections.
        destination: Where its messages come from; None: made from the provider's own name in the activation.
        subscription: What it subscribes with; None for a queue.
        dead_letters: Where to forward to; None: made from the provider's own name.
    Threads: any.
    """

    spec: ActivationSpec
    factory: ConnectionFactory
    destination: Destination | None = None
    subscription: Subscription | None = None
    dead_letters: Destination | None = None

    def connect(self, told: Callable[[JMSException], None], observer: PoolObserver) -> tuple[Connection, SharedReceiver]:
        """Connect and make the consumer. Nothing is taken before the connection is started.

        Args:
            told: The connection's exception listener.
            observer: Told what workers there should be.
        Raises:
            JMSException: It cannot be done; nothing is left open.
        """
        spec = self.spec
        connection = self.factory.create_connection()
        try:
            if spec.client_id is not None and connection.client_id != spec.client_id:
                connection.client_id = spec.client_id
            connection.exception_listener = told
            return connection, SharedReceiver(connection, self._consumer, self._terms(observer))
        except BaseException:
            connection.close()
            raise

    def _terms(self, observer: PoolObserver) -> ReceiverTerms:
        spec = self.spec
        room = max(spec.prefetch, spec.batch_size) * spec.max_consumers if spec.prefetch else 0
        return ReceiverTerms(room, spec.batch_size, spec.max_consumers, spec.ordered_by_group, observer)

    def _consumer(self, session: Session) -> MessageConsumer:
        spec, subscription, destination = self.spec, self.subscription, self.destination
        if destination is None:
            destination = _named(session, str(spec.destination), topic=spec.for_topic)
        if subscription is None or subscription.name is None:
            return session.create_consumer(destination, spec.message_selector)
        make: Callable[..., MessageConsumer] = getattr(session, subscription.kind.value)
        return make(destination, subscription.name, spec.message_selector)

    @property
    def comes_back(self) -> bool:
        """Whether what is forwarded would come from here again."""
        spec = self.spec
        if spec.dead_letter_destination is None:
            return False
        own = _place(self.destination, str(spec.destination), topic=spec.for_topic)
        dead = _place(self.dead_letters, spec.dead_letter_destination, topic=spec.dead_letter_type.value.endswith("Topic"))
        return own == dead

    def dead_letters_of(self, session: Session) -> Destination:
        """Return where to forward what nobody can handle."""
        if self.dead_letters is not None:
            return self.dead_letters
        return _named(session, str(self.spec.dead_letter_destination), topic=self.spec.dead_letter_type.value.endswith("Topic"))

    def __str__(self) -> str:
        return f"{'topic' if self.spec.for_topic else 'queue'} {self.spec.destination or self.spec.destination_lookup}"


def _place(found: Destination | None, name: str, *, topic: bool) -> tuple[bool, str]:
    """Return whether it is a topic, and its name."""
    if isinstance(found, Topic):
        return True, found.topic_name
    return (False, found.queue_name) if isinstance(found, Queue) else (topic, name)


def _named(session: Session, name: str, *, topic: bool) -> Destination:
    return session.create_topic(name) if topic else session.create_queue(name)
