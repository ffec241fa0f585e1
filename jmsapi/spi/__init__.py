"""The seam between the core, which knows JMS, and providers, which know a wire."""

from jmsapi.spi._errors import ErrorKind, ProviderError
from jmsapi.spi.answers import answered
from jmsapi.spi.capabilities import EMULATED, NATIVE, NONE, Capabilities, Level, Support, emulated, none
from jmsapi.spi.clock import Clock, SystemClock, Timer
from jmsapi.spi.given_back import GivenBack
from jmsapi.spi.model import (
    EMPTY_PROPERTIES,
    NON_PERSISTENT,
    PERSISTENT,
    Address,
    Body,
    BodyValue,
    ConsumerSpec,
    Delivery,
    DestinationKind,
    Envelope,
    Handle,
    MessageKind,
    Outcome,
    PlainEnvelope,
    Tag,
)
from jmsapi.spi.provider import DONE, VERSION, Events, KeepsTime, Provider, ProviderEntry, SendResult, completed, failed
from jmsapi.spi.quick_ack import acknowledge_at_once
from jmsapi.spi.view import HeaderView
from jmsapi.spi.xa import BranchError, BranchId, XAProvider

__all__ = [
    "DONE",
    "EMPTY_PROPERTIES",
    "EMULATED",
    "NATIVE",
    "NONE",
    "NON_PERSISTENT",
    "PERSISTENT",
    "VERSION",
    "Address",
    "Body",
    "BodyValue",
    "BranchError",
    "BranchId",
    "Capabilities",
    "Clock",
    "ConsumerSpec",
    "Delivery",
    "DestinationKind",
    "Envelope",
    "ErrorKind",
    "Events",
    "GivenBack",
    "Handle",
    "HeaderView",
    "KeepsTime",
    "Level",
    "MessageKind",
    "Outcome",
    "PlainEnvelope",
    "Provider",
    "ProviderEntry",
    "ProviderError",
    "SendResult",
    "Support",
    "SystemClock",
    "Tag",
    "Timer",
    "XAProvider",
    "acknowledge_at_once",
    "answered",
    "completed",
    "emulated",
    "failed",
    "none",
]
