"""The annotation ``JMSConnectionFactoryDefinition``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from jmsapi.api._annotation import annotate, require_class

__all__ = ["JMSConnectionFactoryDefinition"]

_Target = TypeVar("_Target")


@dataclass(frozen=True, slots=True, kw_only=True)
class JMSConnectionFactoryDefinition:
    """Asks for a connection factory under a name; it decorates a class, several times if need be.

    Printing it does not show the password.

    Args:
        name: The name to look it up by.
        description: Words about it.
        interface_name: Which kind of factory, such as ``QueueConnectionFactory``.
        class_name: The provider's class for it, if one must be chosen.
        resource_adapter: The provider that it belongs to, if one must be chosen.
        user: Name to sign in with; empty for none.
        password: Password to sign in with; empty for none.
        client_id: Client id of its connections; empty for none.
        properties: Further settings, each as ``name=value``.
        transactional: Whether its connections join the transactions of the container.
        max_pool_size: The most connections it keeps; -1 for the provider's own number.
        min_pool_size: The fewest connections it keeps; -1 for the provider's own number.
    Threads: any number at once; it is frozen.
    Spec: 4.2-2, 4.2.2-1, 4.3.2-1.
    """

    name: str
    description: str = ""
    interface_name: str = "ConnectionFactory"
    class_name: str = ""
    resource_adapter: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    client_id: str = ""
    properties: Sequence[str] = ()
    transactional: bool = True
    max_pool_size: int = -1
    min_pool_size: int = -1

    def __post_init__(self) -> None:
        object.__setattr__(self, "properties", tuple(self.properties))

    def __call__(self, target: _Target) -> _Target:
        """Decorate a class and give it back.

        Raises:
            TypeError: The target is no class.
        """
        require_class(target, self)
        annotate(target, self)
        return target
