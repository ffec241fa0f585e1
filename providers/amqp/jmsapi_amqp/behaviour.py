"""How a broker behaves on this wire, where the parts of a connection have to know it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Behaviour"]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a connection does otherwise for one broker than for another."""

    acquirer_tells: bool = False
    """The broker's annotation ``x-opt-delivery-count`` or the header's ``first-acquirer`` tells of an earlier delivery."""
    max_sessions: int | None = None
    """AMQP sessions that a connection may have; beyond, the application's sessions share them."""
    max_links: int | None = None
    """Links that an AMQP session may have; the engine writes nothing more after one that the broker has no handle for."""
    keeps_sessions: bool = False
    """AMQP sessions are used again rather than ended."""
    fails_with_session: bool = False
    """A FAILED outcome counts only when the session ends with the delivery unsettled."""
    returns_at_once: bool = False
    """What a consumer gives back comes back to it at once while it has credit, and the broker counts how often."""
    rejected_returns: bool = False
    """The broker delivers again what is rejected; only what is called undeliverable stays away from a consumer."""
    credit_window: int | None = None
    """The most credit that a consumer's link is given at one time."""
    forgets_drains: bool = True
    """A drain may stay without an answer and has to be asked for again; False: asking again does harm."""
