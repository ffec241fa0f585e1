"""Tools for testing what is built on jmsapi, and for users to test what they build.

``FaultProxy`` stands between a client and a broker and breaks their link in every way a link breaks. ``LoopbackServer`` serves
the in-process broker to other processes over STOMP; ``python -m jmsapi.testing`` starts one.
"""

from jmsapi.testing.faults import BOTH, TO_BROKER, TO_CLIENT, Direction, End, FaultProxy, Side
from jmsapi.testing.loopback import LoopbackServer

__all__ = ["BOTH", "TO_BROKER", "TO_CLIENT", "Direction", "End", "FaultProxy", "LoopbackServer", "Side"]
