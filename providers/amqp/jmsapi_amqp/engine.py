"""The part of proton's engine that we drive, by its C names and with types.

``cproton`` is the module that proton's own Python classes stand on; its names are those of the documented C API. We call
it directly for two reasons. A wrapper object per delivery and event costs more than the rest of the work on a message.
And wrappers free C memory in whichever thread drops them last, which crashed 5 runs of 14 when one got into another
thread: bare pointers have no such life of their own. All of it is used on the I/O thread only.

Importing this module raises ImportError when proton is not installed.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NewType

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_amqp.codec import decode_value
from jmsapi_amqp.codec.types import AmqpValue, Symbol
from jmsapi_amqp.codec.writing import encode_symbol

__all__ = ["Output", "Pointer", "link_recv", "read_data", "symbols", "write_data"]

Pointer = NewType("Pointer", object)
"""A C pointer: hashable, equal by address, dead when its owner is freed."""

_c: Final[Any] = import_module("cproton")
_lib: Final[Any] = _c.lib
_ffi: Final[Any] = _c.ffi
_LITTLE: Final = 4096

# connection, session, transport
new_connection: Callable[[], Pointer] = _c.pn_connection
new_transport: Callable[[], Pointer] = _c.pn_transport
new_collector: Callable[[], Pointer] = _c.pn_collector
free_collector: Callable[[Pointer], None] = _c.pn_collector_free
release_collector: Callable[[Pointer], None] = _c.pn_collector_release
decref: Callable[[Pointer], int] = _c.pn_decref
connection_collect: Callable[[Pointer, Pointer | None], None] = _c.pn_connection_collect
connection_set_container: Callable[[Pointer, str], None] = _c.pn_connection_set_container
connection_set_hostname: Callable[[Pointer, str], None] = _c.pn_connection_set_hostname
connection_set_user: Callable[[Pointer, str], None] = _c.pn_connection_set_user
connection_set_password: Callable[[Pointer, str], None] = _c.pn_connection_set_password
connection_desired: Callable[[Pointer], Pointer] = _c.pn_connection_desired_capabilities
connection_offered: Callable[[Pointer], Pointer] = _c.pn_connection_remote_offered_capabilities
connection_properties: Callable[[Pointer], Pointer] = _c.pn_connection_properties
connection_remote_properties: Callable[[Pointer], Pointer] = _c.pn_connection_remote_properties
connection_condition: Callable[[Pointer], Pointer] = _c.pn_connection_remote_condition
connection_open: Callable[[Pointer], None] = _c.pn_connection_open
connection_close: Callable[[Pointer], None] = _c.pn_connection_close
connection_release: Callable[[Pointer], None] = _c.pn_connection_release
transport_bind: Callable[[Pointer, Pointer], int] = _c.pn_transport_bind
transport_unbind: Callable[[Pointer], int] = _c.pn_transport_unbind
transport_capacity: Callable[[Pointer], int] = _c.pn_transport_capacity
transport_push: Callable[[Pointer, bytes | memoryview], int] = _c.pn_transport_push
transport_pending: Callable[[Pointer], int] = _c.pn_transport_pending
transport_pop: Callable[[Pointer, int], None] = _c.pn_transport_pop
transport_close_tail: Callable[[Pointer], int] = _c.pn_transport_close_tail
transport_close_head: Callable[[Pointer], int] = _c.pn_transport_close_head
transport_channel_max: Callable[[Pointer], int] = _c.pn_transport_get_channel_max
"""The highest channel that both sides allow; one session more is a fault after which the engine writes nothing."""
transport_closed: Callable[[Pointer], bool] = _c.pn_transport_closed
transport_condition: Callable[[Pointer], Pointer] = _c.pn_transport_condition
transport_tick: Callable[[Pointer, int], int] = _c.pn_transport_tick
transport_set_max_frame: Callable[[Pointer, int], None] = _c.pn_transport_set_max_frame
transport_set_idle_timeout: Callable[[Pointer, int], None] = _c.pn_transport_set_idle_timeout
transport_trace: Callable[[Pointer, int], None] = _c.pn_transport_trace
transport_set_tracer: Callable[[Pointer, Callable[[Pointer, str], None]], None] = _c.pn_transport_set_pytracer
transport_attachments: Callable[[Pointer], Pointer] = _c.pn_transport_attachments
record_def: Callable[[Pointer], None] = _c.pn_record_def_py
record_set: Callable[[Pointer, dict[str, object]], None] = _c.pn_record_set_py
sasl: Callable[[Pointer], Pointer] = _c.pn_sasl
sasl_allowed: Callable[[Pointer, str], None] = _c.pn_sasl_allowed_mechs
sasl_allow_insecure: Callable[[Pointer, bool], None] = _c.pn_sasl_set_allow_insecure_mechs
sasl_outcome: Callable[[Pointer], int] = _c.pn_sasl_outcome
SASL_FAULTS: Final = frozenset({2, 4})
"""SASL's outcomes "sys" and "sys-temp": no refusal, but a fault of the broker's that may be gone a moment later."""
new_session: Callable[[Pointer], Pointer] = _c.pn_session
session_open: Callable[[Pointer], None] = _c.pn_session_open
session_close: Callable[[Pointer], None] = _c.pn_session_close
session_free: Callable[[Pointer], None] = _c.pn_session_free
session_condition: Callable[[Pointer], Pointer] = _c.pn_session_remote_condition
session_set_incoming_capacity: Callable[[Pointer, int], None] = _c.pn_session_set_incoming_capacity

# links
new_sender: Callable[[Pointer, str], Pointer] = _c.pn_sender
new_receiver: Callable[[Pointer, str], Pointer] = _c.pn_receiver
link_open: Callable[[Pointer], None] = _c.pn_link_open
link_close: Callable[[Pointer], None] = _c.pn_link_close
link_detach: Callable[[Pointer], None] = _c.pn_link_detach
link_free: Callable[[Pointer], None] = _c.pn_link_free
link_is_sender: Callable[[Pointer], bool] = _c.pn_link_is_sender
link_state: Callable[[Pointer], int] = _c.pn_link_state
link_source: Callable[[Pointer], Pointer] = _c.pn_link_source
link_target: Callable[[Pointer], Pointer] = _c.pn_link_target
link_remote_source: Callable[[Pointer], Pointer] = _c.pn_link_remote_source
link_remote_target: Callable[[Pointer], Pointer] = _c.pn_link_remote_target
link_condition: Callable[[Pointer], Pointer] = _c.pn_link_remote_condition
link_properties: Callable[[Pointer], Pointer] = _c.pn_link_properties
link_set_snd_settle_mode: Callable[[Pointer, int], None] = _c.pn_link_set_snd_settle_mode
link_set_rcv_settle_mode: Callable[[Pointer, int], None] = _c.pn_link_set_rcv_settle_mode
link_remote_max_message: Callable[[Pointer], int] = _c.pn_link_remote_max_message_size
link_credit: Callable[[Pointer], int] = _c.pn_link_credit
link_queued: Callable[[Pointer], int] = _c.pn_link_queued
link_flow: Callable[[Pointer, int], None] = _c.pn_link_flow
link_set_drain: Callable[[Pointer, bool], None] = _c.pn_link_set_drain
link_drain: Callable[[Pointer, int], None] = _c.pn_link_drain
link_current: Callable[[Pointer], Pointer] = _c.pn_link_current
link_advance: Callable[[Pointer], bool] = _c.pn_link_advance
link_send: Callable[[Pointer, bytes | memoryview], int] = _c.pn_link_send
terminus_type: Callable[[Pointer], int] = _c.pn_terminus_get_type
terminus_set_type: Callable[[Pointer, int], int] = _c.pn_terminus_set_type
terminus_set_address: Callable[[Pointer, str], int] = _c.pn_terminus_set_address
terminus_set_durability: Callable[[Pointer, int], int] = _c.pn_terminus_set_durability
terminus_set_expiry: Callable[[Pointer, int], int] = _c.pn_terminus_set_expiry_policy
terminus_set_dynamic: Callable[[Pointer, bool], int] = _c.pn_terminus_set_dynamic
terminus_set_mode: Callable[[Pointer, int], int] = _c.pn_terminus_set_distribution_mode
terminus_capabilities: Callable[[Pointer], Pointer] = _c.pn_terminus_capabilities
terminus_outcomes: Callable[[Pointer], Pointer] = _c.pn_terminus_outcomes
terminus_filter: Callable[[Pointer], Pointer] = _c.pn_terminus_filter
terminus_properties: Callable[[Pointer], Pointer] = _c.pn_terminus_properties

# deliveries
new_delivery: Callable[[Pointer, bytes], Pointer] = _c.pn_delivery
delivery_link: Callable[[Pointer], Pointer] = _c.pn_delivery_link
delivery_partial: Callable[[Pointer], bool] = _c.pn_delivery_partial
delivery_aborted: Callable[[Pointer], bool] = _c.pn_delivery_aborted
delivery_pending: Callable[[Pointer], int] = _c.pn_delivery_pending
delivery_settled: Callable[[Pointer], bool] = _c.pn_delivery_settled
delivery_settle: Callable[[Pointer], None] = _c.pn_delivery_settle
delivery_update: Callable[[Pointer, int], None] = _c.pn_delivery_update
delivery_local: Callable[[Pointer], Pointer] = _c.pn_delivery_local
delivery_remote: Callable[[Pointer], Pointer] = _c.pn_delivery_remote
delivery_remote_state: Callable[[Pointer], int] = _c.pn_delivery_remote_state
disposition_data: Callable[[Pointer], Pointer] = _c.pn_disposition_data
disposition_condition: Callable[[Pointer], Pointer] = _c.pn_disposition_condition
disposition_set_failed: Callable[[Pointer, bool], None] = _c.pn_disposition_set_failed
disposition_set_undeliverable: Callable[[Pointer, bool], None] = _c.pn_disposition_set_undeliverable

# events
event_peek: Callable[[Pointer], Pointer] = _c.pn_collector_peek
event_pop: Callable[[Pointer], bool] = _c.pn_collector_pop
event_type: Callable[[Pointer], int] = _c.pn_event_type
event_link: Callable[[Pointer], Pointer] = _c.pn_event_link
event_session: Callable[[Pointer], Pointer] = _c.pn_event_session
event_delivery: Callable[[Pointer], Pointer] = _c.pn_event_delivery

# conditions and data
condition_is_set: Callable[[Pointer], bool] = _c.pn_condition_is_set
condition_info: Callable[[Pointer], Pointer] = _c.pn_condition_info
data_decode: Callable[[Pointer, bytes], int] = _c.pn_data_decode
data_encode: Callable[[Pointer, int], tuple[int, bytearray]] = _c.pn_data_encode
data_clear: Callable[[Pointer], None] = _c.pn_data_clear
is_null: Callable[[Pointer], bool] = _c.isnull

# constants
EOS: Final[int] = _c.PN_EOS
CONNECTION_REMOTE_OPEN: Final[int] = _c.PN_CONNECTION_REMOTE_OPEN
CONNECTION_REMOTE_CLOSE: Final[int] = _c.PN_CONNECTION_REMOTE_CLOSE
SESSION_REMOTE_OPEN: Final[int] = _c.PN_SESSION_REMOTE_OPEN
SESSION_REMOTE_CLOSE: Final[int] = _c.PN_SESSION_REMOTE_CLOSE
LINK_REMOTE_OPEN: Final[int] = _c.PN_LINK_REMOTE_OPEN
LINK_REMOTE_CLOSE: Final[int] = _c.PN_LINK_REMOTE_CLOSE
LINK_REMOTE_DETACH: Final[int] = _c.PN_LINK_REMOTE_DETACH
LINK_FLOW: Final[int] = _c.PN_LINK_FLOW
DELIVERY: Final[int] = _c.PN_DELIVERY
TRANSPORT_ERROR: Final[int] = _c.PN_TRANSPORT_ERROR
TRANSPORT_TAIL_CLOSED: Final[int] = _c.PN_TRANSPORT_TAIL_CLOSED
LOCAL_UNINIT: Final[int] = _c.PN_LOCAL_UNINIT
REMOTE_ACTIVE: Final[int] = _c.PN_REMOTE_ACTIVE
RECEIVED: Final[int] = _c.PN_RECEIVED
ACCEPTED: Final[int] = _c.PN_ACCEPTED
REJECTED: Final[int] = _c.PN_REJECTED
RELEASED: Final[int] = _c.PN_RELEASED
MODIFIED: Final[int] = _c.PN_MODIFIED
DECLARED: Final = 0x33
TRANSACTIONAL: Final = 0x34
TERMINUS_NONE: Final[int] = _c.PN_UNSPECIFIED
TERMINUS_COORDINATOR: Final[int] = _c.PN_COORDINATOR
DURABLE_STATE: Final[int] = _c.PN_DELIVERIES
EXPIRE_NEVER: Final[int] = _c.PN_EXPIRE_NEVER
EXPIRE_WITH_LINK: Final[int] = _c.PN_EXPIRE_WITH_LINK
MODE_COPY: Final[int] = _c.PN_DIST_MODE_COPY
SND_UNSETTLED: Final[int] = _c.PN_SND_UNSETTLED
SND_SETTLED: Final[int] = _c.PN_SND_SETTLED
RCV_FIRST: Final[int] = _c.PN_RCV_FIRST
TRACE_FRAMES: Final[int] = _c.PN_TRACE_FRM
SASL_NONE: Final[int] = _c.PN_SASL_NONE
SASL_OK: Final[int] = _c.PN_SASL_OK


def _peers_text(read: Callable[[Pointer], Any]) -> Callable[[Pointer], str | None]:
    """Return a reader of what the peer wrote as text, which need not be UTF-8."""

    def text(place: Pointer) -> str | None:
        found = read(place)
        return None if found == _ffi.NULL else bytes(_ffi.string(found)).decode("utf-8", "backslashreplace")

    return text


terminus_address: Final = _peers_text(_lib.pn_terminus_get_address)
condition_name: Final = _peers_text(_lib.pn_condition_get_name)
condition_description: Final = _peers_text(_lib.pn_condition_get_description)


def link_recv(link: Pointer, size: int) -> bytes:
    """Take the next bytes, ``size`` of them at most, of a link's current delivery; copies them once."""
    room = bytearray(size)
    got: int = _lib.pn_link_recv(link, _ffi.from_buffer(room), size)
    return bytes(room) if got == size else bytes(room[: max(got, 0)])


class Output:
    """What one transport has to write; little of it, such as one acknowledgement, in a room that is used again and again.

    Args:
        transport: Of the engine.
    """

    def __init__(self, transport: Pointer) -> None:
        self._transport = transport
        self._room = bytearray(_LITTLE)
        self._view = memoryview(self._room)
        self._pointer = _ffi.from_buffer(self._room)

    def peek(self, size: int) -> memoryview | None:
        """Return the first ``size`` bytes, good until the next call; None when the engine has closed its side."""
        view, pointer = self._view, self._pointer
        if size > _LITTLE:
            room = bytearray(size)
            view, pointer = memoryview(room), _ffi.from_buffer(room)
        got: int = _lib.pn_transport_peek(self._transport, pointer, size)
        return None if got < 0 else view[:got]


def write_data(place: Pointer, encoded: bytes) -> None:
    """Put encoded AMQP into a place of the engine that takes any data, replacing what was there."""
    data_clear(place)
    data_decode(place, encoded)


def read_data(place: Pointer) -> AmqpValue:
    """Return what the peer put into such a place, or None when it is empty.

    Raises:
        ProviderError: PROTOCOL; it cannot be read.
    """
    if is_null(place):
        return None
    size = 1024
    while True:
        status, found = data_encode(place, size)
        if status >= 0:
            return _value(bytes(found)) if found else None
        if size > 1 << 24:
            return None
        size *= 4


def _value(encoded: bytes) -> AmqpValue:
    try:
        return decode_value(encoded)[0]
    except ProviderError as error:
        text = f"the peer sent a frame that cannot be read: {error.message}"
        raise ProviderError(ErrorKind.PROTOCOL, text, fatal=True) from error


def symbols(names: tuple[str, ...]) -> bytes:
    """Return an encoded array of symbols."""
    parts = b"".join(len(name).to_bytes(1) + Symbol(name).encode("ascii") for name in names)
    if not names:
        return b"\x40"
    if len(names) == 1:
        return encode_symbol(names[0])
    return b"\xf0" + (len(parts) + 5).to_bytes(4) + len(names).to_bytes(4) + b"\xa3" + parts
