"""Opening a connection at the engine: identity, credentials, desired capabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_amqp import engine
from jmsapi_amqp.codec import Symbol, encode_value
from jmsapi_amqp.context import ConnectionContext
from jmsapi_amqp.trace import trace_frames
from jmsapi_brokers.names import check_text

__all__ = ["check_identity", "prepare"]

if TYPE_CHECKING:
    from jmsapi_amqp.options import AmqpOptions

_SASL_FRAME: Final = 512
"""Bytes, the largest frame of a login (AMQP 1.0, 5.3.1). Classic ends the connection at a larger one; Artemis 2.56.0 answers
nothing and has one of its few network threads turn for ever."""
_SASL_FRAME_RABBITMQ: Final = 8192
_SASL_REST: Final = 48
"""Bytes of such a frame beside the host, the user and the password."""
_LONGEST_ID: Final = 4096
_WISHES: Final = ("sole-connection-for-container", "DELAYED_DELIVERY", "ANONYMOUS-RELAY", "SHARED-SUBS")


def check_identity(options: AmqpOptions) -> None:
    """Refuse what the engine, or the login, would cut short, as both end a text at a NUL, and what is too long for a broker.

    Raises:
        ProviderError: CLIENT_ID, SECURITY or OPTION.
    """
    password = "" if options.password is None else options.password.get_secret_value()
    check_text(options.client_id or "", "the client id", ErrorKind.CLIENT_ID, fatal=True)
    check_text(options.user or "", "the user's name", ErrorKind.SECURITY, fatal=True)
    check_text(password, "the password", ErrorKind.SECURITY, fatal=True)
    check_text(options.vhost or "", "the option vhost", ErrorKind.OPTION, fatal=True)
    if len((options.client_id or "").encode()) > _LONGEST_ID:
        raise ProviderError(ErrorKind.CLIENT_ID, f"the client id takes more than {_LONGEST_ID} bytes", fatal=True)
    host = f"vhost:{options.vhost}" if options.vhost is not None else options.host
    size = _SASL_REST + len(f"{host}{options.user or ''}{password}".encode())
    if options.broker != "rabbitmq" and size > _SASL_FRAME:
        text = f"the user's name and password make a login of {size} bytes; AMQP allows {_SASL_FRAME}"
        raise ProviderError(ErrorKind.SECURITY, f"{text}, and RabbitMQ more, to clients that say broker=rabbitmq", fatal=True)
    if size > _SASL_FRAME_RABBITMQ:
        text = f"the user's name and password make a login of {size} bytes; RabbitMQ allows {_SASL_FRAME_RABBITMQ}"
        raise ProviderError(ErrorKind.SECURITY, text, fatal=True)


def prepare(context: ConnectionContext) -> None:
    """Set up the engine's connection and transport, and bind them."""
    options = context.options
    pointer = context.engine_connection
    transport = context.traffic.transport
    engine.connection_collect(pointer, context.collector)
    engine.connection_set_container(pointer, context.container)
    engine.connection_set_hostname(pointer, _hostname(context))
    # Without a client id nobody needs the exclusive container, and Artemis' check costs a look at every connection.
    wishes = _WISHES if context.container == options.client_id else _WISHES[1:]
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
    trace_frames(transport, context.name)
    engine.transport_bind(transport, pointer)
    engine.connection_open(pointer)


def _hostname(context: ConnectionContext) -> str:
    options = context.options
    if context.hostname is not None:
        return context.hostname
    if options.vhost is None:
        return options.host
    # RabbitMQ, alone in having virtual hosts, reads their name behind this word; which broker it is shows only later.
    return f"vhost:{options.vhost}" if options.broker in (None, "rabbitmq") else options.vhost
