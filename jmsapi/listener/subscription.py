"""Which kind of subscription an endpoint for a topic has, and its name, which is generated where none is given.

Spec: 12.1.1 to 12.1.2.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import Enum
from typing import Final

from jmsapi.listener.activation_spec import ActivationSpec
from jmsapi.listener.errors import DeploymentException
from jmsapi.listener.server_instance import ServerInstance
from jmsapi.listener.subscription_name import generated_name

__all__ = ["Subscription", "SubscriptionKind", "subscription_of"]

_PROCESS: Final = uuid.uuid4().hex
"""Stands for a server without a name: its subscriptions end with the process, since they may not be durable."""


class SubscriptionKind(Enum):
    """The four kinds, each named by the method of a session that makes its consumer."""

    UNSHARED = "create_consumer"
    SHARED = "create_shared_consumer"
    UNSHARED_DURABLE = "create_durable_consumer"
    SHARED_DURABLE = "create_shared_durable_consumer"


@dataclass(frozen=True, slots=True)
class Subscription:
    """What an endpoint subscribes with.

    Args:
        kind: Which kind it is. Unshared ones have one consumer.
        name: Its name; None for ``UNSHARED`` alone.
    """

    kind: SubscriptionKind
    name: str | None


def subscription_of(spec: ActivationSpec, endpoint: str, server: ServerInstance) -> Subscription | None:
    """Tell what an endpoint subscribes with.

    Args:
        spec: What is asked for.
        endpoint: The endpoint's own name.
        server: Where it is deployed.
    Returns:
        None if its destination is a queue.
    Raises:
        DeploymentException: A durable name has to be generated and the server has no name (``no-server-name``).
    Threads: any.
    Spec: 12.1-14 to 12.1-22, 12.1.1.2-1, 12.1.1.2-2.
    """
    if not spec.for_topic:
        return None
    if spec.subscription_scope is None:
        if spec.durable:
            kind = SubscriptionKind.UNSHARED_DURABLE if spec.client_id is not None else SubscriptionKind.SHARED_DURABLE
            return Subscription(kind, spec.subscription_name)
        if spec.max_consumers == 1:
            return Subscription(SubscriptionKind.UNSHARED, None)
    kind = SubscriptionKind.SHARED_DURABLE if spec.durable else SubscriptionKind.SHARED
    clustered = server.cluster is not None
    if spec.cluster_scope:
        if spec.subscription_name is not None:
            return Subscription(kind, spec.subscription_name)
        if clustered:
            return Subscription(kind, generated_name(endpoint, str(server.cluster)))
    if server.name is None and spec.durable:
        raise DeploymentException(
            f"{endpoint}: the name of its durable subscription is made from the server's, and this server has none; set"
            " JMSAPI_SERVER_NAME, or give deploy() a ServerInstance with a name",
            error_code="no-server-name",
        )
    own = spec.subscription_name if spec.subscription_name is not None else endpoint
    parts = [own, server.name if server.name is not None else _PROCESS]
    return Subscription(kind, generated_name(*parts, *([str(server.cluster)] if clustered else [])))
