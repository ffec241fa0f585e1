"""From options to a connection: where to connect and as whom, and which broker it turns out to be."""

from __future__ import annotations

import logging
from typing import Final

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_stomp.artemis import Artemis
from jmsapi_stomp.classic import Classic
from jmsapi_stomp.dialect import Dialect
from jmsapi_stomp.loopback import Loopback
from jmsapi_stomp.options import StompOptions
from jmsapi_stomp.rabbitmq import RabbitMQ
from jmsapi_stomp.registry import CLIENT_IDS, Key
from jmsapi_stomp.settings import LinkSettings
from jmsapi_stomp.steps import Steps
from jmsapi_stomp.tls import tls_context
from jmsapi_stomp.wiring import Wiring

__all__ = ["ClientIdClaim", "choose_dialect", "link_settings"]

_LOG: Final = logging.getLogger("jmsapi.stomp")
_DIALECTS: Final[dict[str, type[Dialect]]] = {
    "artemis": Artemis,
    "classic": Classic,
    "loopback": Loopback,
    "rabbitmq": RabbitMQ,
}
_SERVERS: Final = {"ActiveMQ-Artemis": "artemis", "ActiveMQ": "classic", "RabbitMQ": "rabbitmq", "jmsapi-loopback": "loopback"}
_PORTS: Final = {"stomp": 61613, "stomp+ssl": 61614}
_UNESCAPING: Final = frozenset({"classic", "rabbitmq"})


def link_settings(options: StompOptions) -> LinkSettings:
    """Return how to connect.

    Raises:
        ProviderError: SECURITY; a credential cannot be sent.
    """
    passcode = None if options.password is None else options.password.get_secret_value()
    texts = {"user": options.user, "password": passcode, "client_id": options.client_id, "vhost": options.vhost}
    for what, text in texts.items():
        if text is not None and any(char in text for char in "\n\r\0"):
            raise ProviderError(ErrorKind.SECURITY, f"the {what} has a line end or a NUL, which STOMP's CONNECT cannot carry")
        if text is not None and "\\" in text and options.broker is None:
            _LOG.warning("the %s has a backslash: set the option broker, for brokers read it differently", what)
    return LinkSettings(
        address=(options.host or "localhost", options.port if options.port is not None else _PORTS[options.scheme]),
        tls=(lambda: tls_context(options)) if options.scheme == "stomp+ssl" else None,
        login=_connect_text(options, options.user),
        passcode=_connect_text(options, passcode),
        vhost=options.vhost or "/",
        client_id=_connect_text(options, options.client_id),
        heartbeat_ms=options.heartbeat_ms,
        connect_timeout=options.connect_timeout_ms / 1000,
        request_timeout=options.request_timeout_ms / 1000,
    )


def _connect_text(options: StompOptions, text: str | None) -> str | None:
    """Return text for CONNECT, which is sent as it is; Classic and RabbitMQ undo escapes in it, Artemis does not."""
    return text.replace("\\", "\\\\") if text is not None and options.broker in _UNESCAPING else text


def choose_dialect(options: StompOptions, server: str) -> Dialect:
    """Return the dialect of the broker that names itself ``server``.

    Raises:
        ProviderError: UNSUPPORTED; it is none we know, or hides its name.
    """
    product, _, rest = server.partition("/")
    name = options.broker or _SERVERS.get(product)
    if name is None:
        text = f"the broker names itself {server!r}: say which it is by the option broker (artemis, classic or rabbitmq)"
        raise ProviderError(ErrorKind.UNSUPPORTED, text, fatal=True)
    return _DIALECTS[name](options, rest.split(" ")[0])


class ClientIdClaim:
    """A connection's hold on its client id, as far as the broker lets us have one."""

    def __init__(self) -> None:
        self._key: Key | None = None

    def take(self, wiring: Wiring) -> Steps[None]:
        """See that no other connection has the client id.

        Raises:
            ProviderError: CLIENT_ID; another one has it.
        """
        client_id, dialect, link = wiring.client_id, wiring.dialect, wiring.link
        if client_id is None:
            return
        if not dialect.checks_client_ids:
            key = (*wiring.place, client_id)
            CLIENT_IDS.claim(key)
            self._key = key
        headers = dialect.client_id_lock(client_id)
        if headers is not None:
            try:
                yield lambda done: link.request(f"cannot use the client id {client_id!r}", "SUBSCRIBE", headers, done)
            except ProviderError as cause:
                kind = ErrorKind.CLIENT_ID if cause.kind is ErrorKind.IN_USE else cause.kind
                raise ProviderError(kind, cause.message, fatal=True) from cause

    def drop(self) -> None:
        """Let go of the client id in this process; the broker's lock goes with the connection."""
        key, self._key = self._key, None
        if key is not None:
            CLIENT_IDS.release(key)
