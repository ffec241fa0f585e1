"""Tools for testing what is built on jmsapi, and for users to test what they build.

``FaultProxy`` stands between a client and a broker and breaks their link in every way a link breaks.
"""

from jmsapi.testing.faults import BOTH, TO_BROKER, TO_CLIENT, Direction, End, FaultProxy, Side

__all__ = ["BOTH", "TO_BROKER", "TO_CLIENT", "Direction", "End", "FaultProxy", "Side"]
