"""The objects of the specification as abstract classes, one file each, without behaviour."""

from __future__ import annotations

from jmsapi.api.bytes_message import BytesMessage
from jmsapi.api.completion_listener import CompletionListener
from jmsapi.api.connection import Connection
from jmsapi.api.connection_consumer import ConnectionConsumer
from jmsapi.api.connection_factory import ConnectionFactory
from jmsapi.api.connection_meta_data import ConnectionMetaData
from jmsapi.api.delivery_mode import DeliveryMode
from jmsapi.api.destination import Destination
from jmsapi.api.exception_listener import ExceptionListener, ExceptionListenerLike
from jmsapi.api.jms_connection_factory import JMSConnectionFactory
from jmsapi.api.jms_connection_factory_definition import JMSConnectionFactoryDefinition
from jmsapi.api.jms_connection_factory_definitions import JMSConnectionFactoryDefinitions
from jmsapi.api.jms_consumer import JMSConsumer
from jmsapi.api.jms_context import JMSContext
from jmsapi.api.jms_destination_definition import JMSDestinationDefinition
from jmsapi.api.jms_destination_definitions import JMSDestinationDefinitions
from jmsapi.api.jms_password_credential import JMSPasswordCredential
from jmsapi.api.jms_producer import JMSProducer
from jmsapi.api.jms_session_mode import JMSSessionMode
from jmsapi.api.map_message import MapMessage
from jmsapi.api.message import Message
from jmsapi.api.message_consumer import MessageConsumer
from jmsapi.api.message_listener import MessageListener, MessageListenerLike
from jmsapi.api.message_producer import MessageProducer
from jmsapi.api.object_message import ObjectMessage
from jmsapi.api.queue import Queue
from jmsapi.api.queue_browser import QueueBrowser
from jmsapi.api.queue_connection import QueueConnection
from jmsapi.api.queue_connection_factory import QueueConnectionFactory
from jmsapi.api.queue_receiver import QueueReceiver
from jmsapi.api.queue_requestor import QueueRequestor
from jmsapi.api.queue_sender import QueueSender
from jmsapi.api.queue_session import QueueSession
from jmsapi.api.server_session import ServerSession
from jmsapi.api.server_session_pool import ServerSessionPool
from jmsapi.api.session import Session
from jmsapi.api.stream_message import StreamMessage
from jmsapi.api.temporary_queue import TemporaryQueue
from jmsapi.api.temporary_topic import TemporaryTopic
from jmsapi.api.text_message import TextMessage
from jmsapi.api.topic import Topic
from jmsapi.api.topic_connection import TopicConnection
from jmsapi.api.topic_connection_factory import TopicConnectionFactory
from jmsapi.api.topic_publisher import TopicPublisher
from jmsapi.api.topic_requestor import TopicRequestor
from jmsapi.api.topic_session import TopicSession
from jmsapi.api.topic_subscriber import TopicSubscriber
from jmsapi.api.xa_connection import XAConnection
from jmsapi.api.xa_connection_factory import XAConnectionFactory
from jmsapi.api.xa_jms_context import XAJMSContext
from jmsapi.api.xa_queue_connection import XAQueueConnection
from jmsapi.api.xa_queue_connection_factory import XAQueueConnectionFactory
from jmsapi.api.xa_queue_session import XAQueueSession
from jmsapi.api.xa_resource import XAResource, Xid
from jmsapi.api.xa_session import XASession
from jmsapi.api.xa_topic_connection import XATopicConnection
from jmsapi.api.xa_topic_connection_factory import XATopicConnectionFactory
from jmsapi.api.xa_topic_session import XATopicSession

__all__ = [
    "BytesMessage",
    "CompletionListener",
    "Connection",
    "ConnectionConsumer",
    "ConnectionFactory",
    "ConnectionMetaData",
    "DeliveryMode",
    "Destination",
    "ExceptionListener",
    "ExceptionListenerLike",
    "JMSConnectionFactory",
    "JMSConnectionFactoryDefinition",
    "JMSConnectionFactoryDefinitions",
    "JMSConsumer",
    "JMSContext",
    "JMSDestinationDefinition",
    "JMSDestinationDefinitions",
    "JMSPasswordCredential",
    "JMSProducer",
    "JMSSessionMode",
    "MapMessage",
    "Message",
    "MessageConsumer",
    "MessageListener",
    "MessageListenerLike",
    "MessageProducer",
    "ObjectMessage",
    "Queue",
    "QueueBrowser",
    "QueueConnection",
    "QueueConnectionFactory",
    "QueueReceiver",
    "QueueRequestor",
    "QueueSender",
    "QueueSession",
    "ServerSession",
    "ServerSessionPool",
    "Session",
    "StreamMessage",
    "TemporaryQueue",
    "TemporaryTopic",
    "TextMessage",
    "Topic",
    "TopicConnection",
    "TopicConnectionFactory",
    "TopicPublisher",
    "TopicRequestor",
    "TopicSession",
    "TopicSubscriber",
    "XAConnection",
    "XAConnectionFactory",
    "XAJMSContext",
    "XAQueueConnection",
    "XAQueueConnectionFactory",
    "XAQueueSession",
    "XAResource",
    "XASession",
    "XATopicConnection",
    "XATopicConnectionFactory",
    "XATopicSession",
    "Xid",
]
