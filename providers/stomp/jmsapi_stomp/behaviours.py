"""Which broker is at the other end, and how it behaves."""

from __future__ import annotations

from typing import Final

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_stomp.artemis import ArtemisStomp
from jmsapi_stomp.behaviour import StompBehaviour
from jmsapi_stomp.classic import ClassicStomp
from jmsapi_stomp.errors import shown
from jmsapi_stomp.loopback import LoopbackStomp
from jmsapi_stomp.options import StompOptions
from jmsapi_stomp.rabbitmq import RabbitStomp

__all__ = ["behaviour_named", "choose_behaviour"]

_BEHAVIOURS: Final[dict[str, type[StompBehaviour]]] = {
    one.name: one for one in (ArtemisStomp, ClassicStomp, LoopbackStomp, RabbitStomp)
}
_SERVERS: Final = {"ActiveMQ-Artemis": "artemis", "ActiveMQ": "classic", "RabbitMQ": "rabbitmq", "jmsapi-loopback": "loopback"}


def behaviour_named(name: str) -> type[StompBehaviour]:
    """Return the behaviour of a broker by the word of this library."""
    return _BEHAVIOURS[name]


def choose_behaviour(options: StompOptions, server: str) -> StompBehaviour:
    """Return the behaviour of the broker that names itself ``server``.

    Raises:
        ProviderError: OPTION; it is an unknown broker, or hides its name, and the option `broker` does not tell it.
    """
    product, _, rest = server.partition("/")
    name = options.broker or _SERVERS.get(product)
    if name is None:
        text = f"the broker names itself '{shown(server)}': set the option broker (artemis, classic or rabbitmq)"
        raise ProviderError(ErrorKind.OPTION, text, fatal=True)
    return _BEHAVIOURS[name](options, rest.split(" ")[0])
