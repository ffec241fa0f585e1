"""Which kind of subscription an endpoint for a topic has, and its name; names that are not given are generated here.

A generated name is made from the names of the endpoint, the server and the cluster: readable parts, and a digest of the whole
that keeps names apart that look alike once they are shortened. No clock and no chance has part in it, so a durable
subscription is found again after a restart. It keeps to the characters and the length that every provider takes.

Spec: 12.1.1 to 12.1.2.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from jmsapi.listener.errors import DeploymentException
from jmsapi.listener.server_instance import ServerInstance

if TYPE_CHECKING:
    from jmsapi.listener.activation_spec import ActivationSpec

__all__ = ["LONGEST_NAME", "VALID_NAME", "Subscription", "SubscriptionKind", "generated_name", "subscription_of"]

LONGEST_NAME: Final = 128
VALID_NAME: Final = re.compile(r"[A-Za-z0-9_.\-]{1,128}")
_ODD: Final = re.compile(r"[^A-Za-z0-9_.\-]+")
_DIGEST: Final = 16
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


def generated_name(*parts: str) -> str:
    """Make a valid subscription name that is the same for the same parts, and another for any others.

    Args:
        parts: What is to be told apart, the most telling first.
    Returns:
        At most 128 characters: the parts as far as they fit and can be written, and a digest.
    Spec: 12.1.1.5-1 to 12.1.1.5-3.
    """
    whole = "\0".join(f"{len(part)}:{part}" for part in parts)
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    room = (LONGEST_NAME - _DIGEST) // len(parts) - 1
    return "-".join([*(_ODD.sub("_", part)[:room] for part in parts), digest])


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
