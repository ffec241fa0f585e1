"""Listener containers: classes and functions that are called with each message of a queue or topic.

Spec: MDB-1 to MDB-79, 12.1.
"""

from __future__ import annotations

from jmsapi._core.container import container_mode
from jmsapi.listener.activation_properties import activation_properties
from jmsapi.listener.activation_spec import (
    AcknowledgeMode,
    ActivationSpec,
    DestinationType,
    Durability,
    RedeliveryAction,
    SubscriptionScope,
)
from jmsapi.listener.annotations import (
    Acknowledge,
    ClientId,
    JMSDestinationListener,
    JMSDurableTopicListener,
    JMSListener,
    JMSListenerProperties,
    JMSListenerProperty,
    JMSMessageDrivenBean,
    JMSNonDurableTopicListener,
    JMSQueueListener,
    MessageDriven,
    MessageSelector,
    SubscriptionDurability,
    SubscriptionName,
)
from jmsapi.listener.arguments import MessageHeader, MessageProperty
from jmsapi.listener.definitions import definitions
from jmsapi.listener.deployment import Deployment, deploy
from jmsapi.listener.endpoint_definition import EndpointDefinition
from jmsapi.listener.errors import ApplicationException, DeploymentException, EJBException
from jmsapi.listener.health import DeploymentHealth, EndpointHealth, EndpointState
from jmsapi.listener.message_driven_context import MessageDrivenContext, UserTransaction, message_driven_context
from jmsapi.listener.runtime_context import ContainerTransactions
from jmsapi.listener.runtime_endpoint import MessageEndpoint
from jmsapi.listener.server_instance import ServerInstance
from jmsapi.listener.subscription import Subscription, SubscriptionKind, subscription_of
from jmsapi.listener.transaction_attribute import TransactionAttribute

__all__ = [
    "Acknowledge",
    "AcknowledgeMode",
    "ActivationSpec",
    "ApplicationException",
    "ClientId",
    "ContainerTransactions",
    "Deployment",
    "DeploymentException",
    "DeploymentHealth",
    "DestinationType",
    "Durability",
    "EJBException",
    "EndpointDefinition",
    "EndpointHealth",
    "EndpointState",
    "JMSDestinationListener",
    "JMSDurableTopicListener",
    "JMSListener",
    "JMSListenerProperties",
    "JMSListenerProperty",
    "JMSMessageDrivenBean",
    "JMSNonDurableTopicListener",
    "JMSQueueListener",
    "MessageDriven",
    "MessageDrivenContext",
    "MessageEndpoint",
    "MessageHeader",
    "MessageProperty",
    "MessageSelector",
    "RedeliveryAction",
    "ServerInstance",
    "Subscription",
    "SubscriptionDurability",
    "SubscriptionKind",
    "SubscriptionName",
    "SubscriptionScope",
    "TransactionAttribute",
    "UserTransaction",
    "activation_properties",
    "container_mode",
    "definitions",
    "deploy",
    "message_driven_context",
    "subscription_of",
]
