"""By which queues of a broker a shared durable subscription is kept, in their real names (SHS-53).

A name that a test guesses proves nothing: no queue has it. The names stand here as the brokers' own tools show them, written down
once more and not asked of the code that makes them. Of Classic's virtual topics none is named, since every client of Classic may
consume ``Consumer.app.VirtualTopic.t``: a documented limit, which the note of SHS-53 allows.
"""

from __future__ import annotations

from jmsapi.spi import Capabilities

__all__ = ["queues_behind"]


def queues_behind(has: Capabilities, client_id: str | None, name: str, topic: str) -> list[str]:
    """Return the names of the queues behind a shared durable subscription; none where a broker keeps it in no queue.

    Args:
        has: What the backend can do, and what it is.
        client_id: Of the subscription, letters, digits and dots; None for one without.
        name: The subscription's, likewise.
        topic: What is subscribed to.
    """
    owner = client_id or ""
    if has.forwards_shared:
        kept = f"jmsapi.shared.durable.{owner.replace('.', '_2e_')}.{name.replace('.', '_2e_')}"
        return [kept, f"{kept}.members", f"{kept}.leader"]
    match has.provider, has.broker:
        case (("amqp" | "stomp"), "rabbitmq"):
            return [f"jms.s.{owner.replace('.', '!1')}.{name}"]
        case "stomp", "artemis":
            return [f"{topic}::{client_id or 'jmsapi-global'}.{name}"]
        case "amqp", "artemis":
            return [f"{topic}::{client_id}.{name}" if client_id else f"{topic}::{name}:global"]
        case _:
            return []
