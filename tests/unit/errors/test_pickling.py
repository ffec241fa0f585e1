"""Exceptions travel between processes with all they know."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest

from jmsapi import errors
from jmsapi.errors import (
    IllegalStateException,
    InvalidSelectorException,
    JMSError,
    JMSException,
    JMSRuntimeException,
    PickledCause,
    UnsupportedFeatureException,
    to_runtime,
)

KINDS = [
    kind
    for name in errors.__all__
    if isinstance(kind := getattr(errors, name), type)
    and issubclass(kind, JMSException | JMSRuntimeException)
    and "Feature" not in name
]
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


class Unpicklable(Exception):
    """Like many errors of libraries: its arguments are not what its constructor takes, and it holds a lock."""

    def __init__(self, code: int, where: str) -> None:
        super().__init__(f"code {code} at {where}")
        self.lock = threading.Lock()


class Odd(InvalidSelectorException):
    """An exception of an application, with a constructor of its own."""

    def __init__(self, span: tuple[int, int]) -> None:
        super().__init__(f"bad at {span[0]}", "odd")
        self.span = span


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_exception_keeps_class_text_and_code(kind: type[JMSError], protocol: int) -> None:
    for code in (None, "E42"):
        back = pickle.loads(pickle.dumps(kind("reason", code), protocol))
        assert type(back) is kind
        assert (str(back), back.args, back.error_code) == ("reason", ("reason",), code or kind.default_error_code)
        assert back.__cause__ is None


def test_a_cause_that_cannot_be_pickled_travels_as_text() -> None:
    error = JMSException("lost", None, Unpicklable(7, "here"))
    assert error.linked_exception is not None
    error.linked_exception.__cause__ = OSError("cut")
    back = pickle.loads(pickle.dumps(error))
    assert isinstance(back.linked_exception, PickledCause)
    assert str(back.linked_exception) == "Unpicklable: code 7 at here, from OSError: cut"
    again = pickle.loads(pickle.dumps(back))
    assert str(again.linked_exception) == str(back.linked_exception)


def test_causes_that_form_a_circle_end_nowhere_else() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    back = pickle.loads(pickle.dumps(JMSException("lost", None, first)))
    assert str(back.__cause__) == "ValueError: a, from ValueError: b"


def test_a_cause_of_our_own_travels_whole() -> None:
    back = pickle.loads(pickle.dumps(to_runtime(IllegalStateException("closed", "E1"))))
    assert type(back.__cause__) is IllegalStateException
    assert back.__cause__.error_code == back.error_code == "E1"


def test_a_refusal_keeps_its_fields() -> None:
    back = pickle.loads(pickle.dumps(UnsupportedFeatureException("delays", "stomp", "RabbitMQ 4.1.0", "delay")))
    assert (back.feature, back.provider, back.broker, back.emulate) == ("delays", "stomp", "RabbitMQ 4.1.0", "delay")
    assert back.error_code == "unsupported-feature"


def test_a_subclass_with_other_arguments_and_fields_survives() -> None:
    error = Odd((3, 5))
    error.add_note("seen twice")
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is Odd
    assert (str(back), back.span, back.error_code, back.__notes__) == ("bad at 3", (3, 5), "odd", ["seen twice"])


def test_a_copy_is_equal_and_apart() -> None:
    error = IllegalStateException("closed", "E1")
    twin = copy.copy(error)
    assert twin is not error
    assert (type(twin), str(twin), twin.error_code) == (IllegalStateException, "closed", "E1")
