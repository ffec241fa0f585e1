"""Functions with listener annotations, what they say, and whether they would be deployed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import jmsapi
from jmsapi import Message, Queue, Topic
from jmsapi.listener import DeploymentException, JMSListener, activation_properties, deploy
from jmsapi_conformance.backend import Backend

__all__ = ["QUEUE", "TOPIC", "Decorator", "binding", "bound", "decorated", "properties", "refused"]

QUEUE, TOPIC = JMSListener.Type.QUEUE, JMSListener.Type.TOPIC
Decorator = Callable[[Any], Any]


def decorated(*decorators: Decorator) -> Callable[..., None]:
    """Give a function of its own with decorators, the first one topmost."""

    def on_message(message: Message) -> None: ...

    return functools.reduce(lambda target, decorator: decorator(target), reversed(decorators), on_message)


def properties(*decorators: Decorator) -> dict[str, object]:
    """Give the activation properties of a function with decorators."""
    return dict(activation_properties(decorated(*decorators)))


def refused(*targets: object) -> str:
    """Give the text of a deployment error; nothing is active."""
    with pytest.raises(DeploymentException) as caught:
        deploy(*targets, factory="inproc://refused")
    return str(caught.value)


@pytest.fixture
def bound(queue: Queue, backend: Backend) -> Iterator[str]:
    """Give the name that a queue is bound to."""
    with binding(queue, backend) as name:
        yield name


@contextmanager
def binding(destination: Queue | Topic, backend: Backend) -> Generator[str]:
    """Bind a destination to a name for a while."""
    name = f"java:global/{backend.unique('bound')}"
    jmsapi.register_object(name, destination)
    try:
        yield name
    finally:
        jmsapi.register_object(name, None)
