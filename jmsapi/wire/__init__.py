"""What a provider of any wire needs beside its protocol: an I/O thread, coroutines on it, connecting, TLS, kinds of faults.

For authors of providers. Nothing here knows a protocol or a broker.
"""

from jmsapi.wire.connecting import connect
from jmsapi.wire.coroutines import Promise, Wait, Waitable, Waits, answer_of, run, spawn
from jmsapi.wire.faults import connection_fault
from jmsapi.wire.loop import Channel, IoLoop, Scheduled
from jmsapi.wire.recently_closed import ASK_AGAIN_S, RecentlyClosedClientIds
from jmsapi.wire.tls import tls_context

__all__ = [
    "ASK_AGAIN_S",
    "Channel",
    "IoLoop",
    "Promise",
    "RecentlyClosedClientIds",
    "Scheduled",
    "Wait",
    "Waitable",
    "Waits",
    "answer_of",
    "connect",
    "connection_fault",
    "run",
    "spawn",
    "tls_context",
]
