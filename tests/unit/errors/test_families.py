"""The two families of exceptions: apart, alike, and translated into each other."""

from __future__ import annotations

import inspect

import pytest

from jmsapi import errors
from jmsapi.errors import (
    IllegalArgumentException,
    IllegalStateException,
    InvalidDestinationException,
    InvalidDestinationRuntimeException,
    InvalidSelectorException,
    JMSError,
    JMSException,
    JMSRuntimeException,
    MessageEOFException,
    MessageFormatException,
    MessageNotReadableException,
    NullPointerException,
    NumberFormatException,
    UnsupportedFeatureException,
    UnsupportedFeatureRuntimeException,
    UnsupportedOperationException,
    to_checked,
    to_runtime,
)

EVERY = [getattr(errors, name) for name in errors.__all__ if isinstance(getattr(errors, name), type)]
CHECKED: list[type[JMSException]] = [kind for kind in EVERY if issubclass(kind, JMSException)]
RUNTIME: list[type[JMSRuntimeException]] = [kind for kind in EVERY if issubclass(kind, JMSRuntimeException)]
REFUSALS = (UnsupportedFeatureException, UnsupportedFeatureRuntimeException)
STANDARD = [kind for kind in CHECKED + RUNTIME if kind not in REFUSALS]


def make(kind: type[JMSError], *more: object) -> JMSError:
    if kind in REFUSALS:
        return kind("delayed delivery", "stomp")
    return kind("reason", *more)  # type: ignore[arg-type]


@pytest.mark.requirement("7.2-1", "7.2-2", "7.2-3")
def test_no_exception_belongs_to_both_families_and_every_one_to_one() -> None:
    assert len(CHECKED) == 14
    assert len(RUNTIME) == 12
    assert not set(CHECKED) & set(RUNTIME)
    named = [kind for kind in EVERY if issubclass(kind, JMSError) and kind is not JMSError]
    assert set(named) == set(CHECKED) | set(RUNTIME)


def test_only_the_simplified_family_is_a_runtime_error() -> None:
    assert all(issubclass(kind, RuntimeError) for kind in RUNTIME)
    assert not any(issubclass(kind, RuntimeError) for kind in CHECKED)


def test_no_exception_is_an_os_error_because_retry_loops_catch_those() -> None:
    assert not any(issubclass(kind, OSError) for kind in EVERY)


@pytest.mark.requirement("7.2-8", "7.2-9", "7.2-10", "7.2-11", "7.2-14")
@pytest.mark.parametrize("kind", STANDARD)
def test_reason_code_and_cause_can_be_given_and_read(kind: type[JMSError]) -> None:
    cause = ValueError("below")
    full = make(kind, "E42", cause)
    assert (str(full), full.error_code, full.linked_exception, full.__cause__) == ("reason", "E42", cause, cause)
    assert make(kind, "E42").error_code == "E42"
    short = make(kind)
    assert (str(short), short.linked_exception, short.__cause__) == ("reason", None, None)


@pytest.mark.requirement("7.2-9")
@pytest.mark.parametrize("base", [JMSException, JMSRuntimeException])
def test_the_bases_have_no_code_of_their_own(base: type[JMSError]) -> None:
    assert make(base).error_code is None


@pytest.mark.requirement("7.2-10")
def test_a_linked_exception_can_be_set_and_removed_later() -> None:
    cause = OSError("cut")
    error = JMSException("reason")
    error.linked_exception = cause
    assert error.linked_exception is cause
    assert error.__cause__ is cause
    error.linked_exception = None
    assert error.__cause__ is None


@pytest.mark.requirement("7.2-12")
def test_raising_from_an_error_links_it() -> None:
    cause = OSError("cut")
    with pytest.raises(JMSException) as caught:
        raise JMSException("lost") from cause
    assert caught.value.linked_exception is cause


def test_a_cause_that_is_no_exception_is_not_shown_as_linked() -> None:
    error = JMSRuntimeException("stopped", None, KeyboardInterrupt())
    assert isinstance(error.__cause__, KeyboardInterrupt)
    assert error.linked_exception is None


@pytest.mark.parametrize(
    ("kind", "python"),
    [
        (InvalidSelectorException, ValueError),
        (InvalidDestinationException, ValueError),
        (MessageEOFException, EOFError),
        (MessageFormatException, TypeError),
        (IllegalArgumentException, ValueError),
        (NumberFormatException, IllegalArgumentException),
        (NullPointerException, TypeError),
        (UnsupportedOperationException, NotImplementedError),
    ],
)
def test_each_exception_is_also_the_python_error_it_resembles(kind: type[Exception], python: type[Exception]) -> None:
    assert issubclass(kind, python)


@pytest.mark.requirement("7.3-31")
def test_every_exception_has_a_runtime_twin_but_the_two_that_java_leaves_out() -> None:
    without = [kind.__name__ for kind in CHECKED if not hasattr(errors, kind.__name__.replace("Exception", "RuntimeException"))]
    assert sorted(without) == ["MessageEOFException", "MessageNotReadableException"]


@pytest.mark.requirement("7.3-31")
@pytest.mark.parametrize("kind", CHECKED)
def test_translating_keeps_kind_text_code_and_links_the_original(kind: type[JMSException]) -> None:
    old = make(kind)
    assert isinstance(old, JMSException)
    new = to_runtime(old)
    twin = kind.__name__.replace("Exception", "RuntimeException")
    assert type(new).__name__ == (twin if hasattr(errors, twin) else "JMSRuntimeException")
    assert (str(new), new.error_code, new.__cause__) == (str(old), old.error_code, old)
    assert old.__cause__ is None


@pytest.mark.parametrize("kind", RUNTIME)
def test_translating_back_keeps_kind_text_and_code(kind: type[JMSRuntimeException]) -> None:
    new = make(kind, "E42")
    assert isinstance(new, JMSRuntimeException)
    old = to_checked(new)
    assert type(old).__name__ == kind.__name__.replace("RuntimeException", "Exception")
    assert (str(old), old.error_code, old.__cause__) == (str(new), new.error_code, new)


def test_an_exception_without_a_twin_keeps_its_code() -> None:
    new = to_runtime(MessageNotReadableException("write-only"))
    assert type(new) is JMSRuntimeException
    assert new.error_code == "message-not-readable"


@pytest.mark.requirement("7.3-2")
def test_an_exception_of_the_applications_own_translates_like_its_nearest_base() -> None:
    class NoSuchRegion(InvalidDestinationException):
        pass

    assert type(to_runtime(NoSuchRegion("far away"))) is InvalidDestinationRuntimeException


def test_a_refusal_names_feature_provider_broker_and_the_way_out() -> None:
    error = UnsupportedFeatureException("selectors on queues", "stomp", "RabbitMQ 4.1.0", "queue-selector")
    text = str(error)
    for word in ("selectors on queues", "stomp", "RabbitMQ 4.1.0", "?emulate=queue-selector"):
        assert word in text
    new = to_runtime(error)
    assert isinstance(new, UnsupportedFeatureRuntimeException)
    assert (new.feature, new.provider, new.broker, new.emulate) == (
        "selectors on queues",
        "stomp",
        "RabbitMQ 4.1.0",
        "queue-selector",
    )


def test_a_refusal_without_a_substitute_offers_none() -> None:
    error = UnsupportedFeatureException("XA", "amqp")
    assert str(error) == "the provider amqp does not offer XA"
    assert (error.broker, error.emulate) == (None, None)
    assert str(UnsupportedFeatureException("XA", "amqp", reason="ask for another")) == "ask for another"


def test_errors_do_not_import_anything_of_the_project() -> None:
    assert "import jmsapi" not in (source := inspect.getsource(errors))
    assert "from jmsapi" not in source
    assert IllegalStateException("x").error_code == "illegal-state"
