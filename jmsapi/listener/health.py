"""How a deployment and its endpoints are: for a health check, with reasons in words.

Spec: field report B16.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["DeploymentHealth", "EndpointHealth", "EndpointState"]


class EndpointState(Enum):
    """Where an endpoint is in its life."""

    READY = "ready"
    """Made, not started."""
    RUNNING = "running"
    """The container takes messages."""
    RETRYING = "retrying"
    """Its connection or consumer has failed, and is made again after a wait."""
    STOPPING = "stopping"
    """The container takes no more messages, and waits for the callbacks that run."""
    STOPPED = "stopped"
    """The container was stopped, and has ended."""
    FAILED = "failed"
    """The container has given up after an error."""


@dataclass(frozen=True, slots=True)
class EndpointHealth:
    """How one endpoint is.

    Args:
        name: The endpoint's.
        state: Where it is in its life.
        reason: Why it does not take messages; empty if it does.
        consumers: How many consumers it has.
        busy: How many of them run the callback.
        waiting: Messages that wait here for a consumer.
        awaiting_redelivery: Messages that wait for their redelivery delay.
        delivered: How often the callback has returned or raised.
        failed: How often it was a failure that led to a rollback or a redelivery.
        given_up: Messages that were forwarded, deleted or rejected at the redelivery limit.
        last_error: The last failure, of a callback or of a connection; None if there was none.
    """

    name: str
    state: EndpointState
    reason: str
    consumers: int
    busy: int
    waiting: int
    awaiting_redelivery: int
    delivered: int
    failed: int
    given_up: int
    last_error: BaseException | None

    @property
    def healthy(self) -> bool:
        """Whether it takes messages."""
        return self.state is EndpointState.RUNNING and not self.reason


@dataclass(frozen=True, slots=True)
class DeploymentHealth:
    """How the endpoints of a deployment are.

    Args:
        endpoints: In the order of their definitions.
    """

    endpoints: tuple[EndpointHealth, ...]

    @property
    def healthy(self) -> bool:
        """Whether all of them take messages."""
        return all(one.healthy for one in self.endpoints)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why not, an entry for each endpoint that does not."""
        return tuple(f"{one.name}: {one.state.value}: {one.reason or 'not started'}" for one in self.endpoints if not one.healthy)
