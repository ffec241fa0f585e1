"""The name of a transaction, and how it is written into transfers and dispositions."""

from __future__ import annotations

from typing import Final

from jmsapi.spi import Handle
from jmsapi_amqp.codec import Described, encode_value
from jmsapi_amqp.codec.types import ULong

__all__ = ["TxHandle"]

_ACCEPTED: Final = Described(ULong(0x24), [])


class TxHandle(Handle):
    """A local transaction, by the broker's id for it."""

    __slots__ = ("ack_state", "send_state", "session", "tx_id")

    def __init__(self, session: int, tx_id: bytes) -> None:
        self.session = session
        self.tx_id = tx_id
        self.send_state = encode_value([tx_id])
        """The transactional state of a message sent in it."""
        self.ack_state = encode_value([tx_id, _ACCEPTED])
        """The transactional state of a delivery accepted in it."""
