"""Tools for testing what is built on jmsapi, and for users to test what they build.

``EmbeddedBroker`` is a broker of a test's own, with a clock that is moved by hand, faults that are planned, and assertions about
what was sent; as fixtures of pytest it comes by the plug-in ``jmsapi.testing.pytest_plugin``, loaded by name. ``FaultProxy``
stands between a client and a broker and breaks their link in every way a link breaks. ``LoopbackServer`` serves the in-process
broker to other processes over STOMP; ``python -m jmsapi.testing`` starts one. None of them needs pytest.
"""

from jmsapi.testing.clock import HandClock
from jmsapi.testing.destinations import ANY, DestinationProbe, QueueProbe, TopicProbe
from jmsapi.testing.embedded import EmbeddedBroker
from jmsapi.testing.faults import BOTH, TO_BROKER, TO_CLIENT, Direction, End, FaultProxy, Side
from jmsapi.testing.loopback import LoopbackServer
from jmsapi.testing.provider_faults import Operation, PlannedFault, ProviderFaults

__all__ = [
    "ANY",
    "BOTH",
    "TO_BROKER",
    "TO_CLIENT",
    "DestinationProbe",
    "Direction",
    "EmbeddedBroker",
    "End",
    "FaultProxy",
    "HandClock",
    "LoopbackServer",
    "Operation",
    "PlannedFault",
    "ProviderFaults",
    "QueueProbe",
    "Side",
    "TopicProbe",
]
