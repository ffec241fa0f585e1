"""What is said of ourselves when a connection opens: identity, credentials, wishes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jmsapi_amqp import engine
from jmsapi_amqp.codec import Symbol, encode_value
from jmsapi_amqp.trace import trace_frames

if TYPE_CHECKING:
    from jmsapi_amqp.connection import Connection

__all__ = ["prepare"]

_WISHES: Final = ("sole-connection-for-container", "DELAYED_DELIVERY", "ANONYMOUS-RELAY", "SHARED-SUBS")


def prepare(connection: Connection) -> None:
    """Set up the engine's connection and transport, and bind them."""
    options = connection.options
    pointer = connection.engine_connection
    transport = connection.transport
    engine.connection_collect(pointer, connection.collector)
    engine.connection_set_container(pointer, connection.container)
    engine.connection_set_hostname(pointer, _hostname(connection))
    # Without a client id nobody needs the exclusive container, and Artemis' check costs a look at every connection.
    wishes = _WISHES if connection.container == options.client_id else _WISHES[1:]
    engine.write_data(engine.connection_desired(pointer), engine.symbols(wishes))
    engine.write_data(engine.connection_properties(pointer), encode_value({Symbol("product"): "jmsapi"}))
    if options.user is not None:
        engine.connection_set_user(pointer, options.user)
        password = options.password
        engine.connection_set_password(pointer, "" if password is None else password.get_secret_value())
    mechanisms = options.sasl_mechanisms or ({"PLAIN"} if options.user else {"EXTERNAL"} if options.tls_cert else {"ANONYMOUS"})
    sasl = engine.sasl(transport)
    engine.sasl_allowed(sasl, " ".join(sorted(mechanisms)))
    # The socket's own TLS protects it, which the engine cannot see; without TLS it is what the user asked for.
    engine.sasl_allow_insecure(sasl, True)
    engine.transport_set_max_frame(transport, options.max_frame)
    engine.transport_set_idle_timeout(transport, options.idle_timeout_ms)
    trace_frames(transport, connection.name)
    engine.transport_bind(transport, pointer)
    engine.connection_open(pointer)


def _hostname(connection: Connection) -> str:
    options = connection.options
    if connection.hostname is not None:
        return connection.hostname
    if options.vhost is None:
        return options.host
    # RabbitMQ, alone in having virtual hosts, reads their name behind this word; which broker it is shows only later.
    return f"vhost:{options.vhost}" if options.broker in (None, "rabbitmq") else options.vhost
