"""The parts of an open connection, put together once it is known which broker is at the other end."""

from __future__ import annotations

from jmsapi_stomp.auxiliary_connections import AuxiliaryConnections
from jmsapi_stomp.connection_access import ConnectionAccess
from jmsapi_stomp.consumer_release import ConsumerRelease
from jmsapi_stomp.consumer_table import ConsumerTable
from jmsapi_stomp.context import StompContext
from jmsapi_stomp.delivery_flow import DeliveryFlow
from jmsapi_stomp.sender import StompSender
from jmsapi_stomp.settlement import StompSettlement
from jmsapi_stomp.subscriber import Subscriber
from jmsapi_stomp.transaction import StompTransactions

__all__ = ["OpenConnection"]


class OpenConnection:
    """The parts of an open connection."""

    def __init__(self, context: StompContext, connections: AuxiliaryConnections) -> None:
        self.context = context
        self.connections = connections
        self.consumers = ConsumerTable()
        self.settlement = StompSettlement(context, self.consumers)
        self.release = ConsumerRelease(context, self.consumers, self.settlement)
        self.flow = DeliveryFlow(context, self.consumers, self.settlement, self.release)
        access = ConnectionAccess(context, connections, self.flow, self.release, self.settlement)
        self.subscriber = Subscriber(context, access, self.release)
        self.transactions = StompTransactions(context, self.settlement)
        self.sender = StompSender(context, self.settlement, self.transactions)
