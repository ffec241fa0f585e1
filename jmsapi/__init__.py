"""JMS 2.0 for Python: one messaging API over in-process, STOMP and AMQP 1.0 providers.

    import jmsapi

    factory = jmsapi.connection_factory("inproc://demo")
    with factory.create_context() as context:
        queue = context.create_queue("greetings")
        context.create_producer().send(queue, "hello")
        print(context.create_consumer(queue).receive_body(str, 1000))

Importing this package loads no wire library, no pydantic and no pyspark.
"""

from __future__ import annotations

import logging as _logging

from jmsapi import api as _api
from jmsapi import errors as _errors
from jmsapi._core.listener_notifier import ConnectionListener
from jmsapi._core.object_data import register_class
from jmsapi._core.wire_message import WireMessage
from jmsapi._entry import (
    capabilities,
    connection_factory,
    known_providers,
    lookup,
    register_object,
    register_provider,
    set_connection_listener,
    wire_bytes,
    wire_form,
    wire_reader,
    wire_receiver,
)
from jmsapi._url import redact_url
from jmsapi._version import __version__
from jmsapi.api import *  # noqa: F403
from jmsapi.errors import *  # noqa: F403
from jmsapi.values import Byte, Char, Double, Float, Int, Long, PropertyType, Short, Value

__all__ = [
    "Byte",
    "Char",
    "ConnectionListener",
    "Double",
    "Float",
    "Int",
    "Long",
    "PropertyType",
    "Short",
    "Value",
    "WireMessage",
    "__version__",
    "capabilities",
    "connection_factory",
    "known_providers",
    "lookup",
    "redact_url",
    "register_class",
    "register_object",
    "register_provider",
    "set_connection_listener",
    "wire_bytes",
    "wire_form",
    "wire_reader",
    "wire_receiver",
]
__all__ += _api.__all__
__all__ += _errors.__all__

# A library is silent unless the program says where its log goes.
_logging.getLogger("jmsapi").addHandler(_logging.NullHandler())
