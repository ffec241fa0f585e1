"""What all clients of a loopback server have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jmsapi.spi import Clock, Provider
from jmsapi_stomp.loopback import LoopbackStomp

__all__ = ["Setting"]


@dataclass(frozen=True, slots=True)
class Setting:
    """What all clients of a server share.

    Attributes:
        make: Makes an unopened provider connection for a client id.
        clock: The broker's.
        behaviour: How the wire is read and written.
        login: The user name and password that clients must give, or None.
        word: Begins the ids of messages whose clients give none.
    """

    make: Callable[[str | None], Provider]
    clock: Clock
    behaviour: LoopbackStomp
    login: tuple[str, str] | None
    word: str
