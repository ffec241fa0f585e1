"""Markers and definitions: as decorators, and as metadata of Annotated."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, get_args

import pytest

from jmsapi.api import (
    JMSConnectionFactory,
    JMSConnectionFactoryDefinition,
    JMSConnectionFactoryDefinitions,
    JMSContext,
    JMSDestinationDefinition,
    JMSDestinationDefinitions,
    JMSPasswordCredential,
    JMSSessionMode,
)
from jmsapi.api._annotation import annotations_of

ORDERS = JMSDestinationDefinition(name="orders", interface_name="Queue")
PRICES = JMSDestinationDefinition(name="prices", interface_name="Topic")
MARKERS: list[Any] = [
    JMSConnectionFactory("main"),
    JMSSessionMode(),
    JMSPasswordCredential(user_name="u", password="p"),
]


@pytest.mark.requirement("11.3.3-2", "11.3.3-4", "11.3.3-6")
@pytest.mark.parametrize("marker", MARKERS, ids=lambda marker: type(marker).__name__)
def test_a_marker_decorates_classes_and_functions_and_gives_them_back(marker: Any) -> None:
    class Plain:
        def method(self) -> None: ...

    def function() -> None: ...

    for target in (Plain, Plain.method, function):
        assert marker(target) is target
        assert annotations_of(target, type(marker)) == (marker,)


@pytest.mark.parametrize("marker", MARKERS, ids=lambda marker: type(marker).__name__)
def test_a_marker_is_metadata_of_an_annotated_type(marker: Any) -> None:
    assert get_args(Annotated[JMSContext, marker]) == (JMSContext, marker)
    assert hash(marker) == hash(dataclasses.replace(marker))


@pytest.mark.parametrize("marker", [*MARKERS, ORDERS], ids=lambda marker: type(marker).__name__)
def test_what_cannot_be_decorated_is_refused(marker: Any) -> None:
    with pytest.raises(TypeError, match=type(marker).__name__):
        marker("text")


@pytest.mark.requirement("11.3.3-7")
def test_the_session_mode_is_auto_acknowledge_unless_given() -> None:
    assert JMSSessionMode().value == JMSContext.AUTO_ACKNOWLEDGE
    assert JMSSessionMode(JMSContext.DUPS_OK_ACKNOWLEDGE).value == 3


def test_passwords_are_not_printed() -> None:
    secret = "correct horse"
    for annotation in (
        JMSPasswordCredential(user_name="u", password=secret),
        JMSConnectionFactoryDefinition(name="main", user="u", password=secret),
        JMSConnectionFactoryDefinitions([JMSConnectionFactoryDefinition(name="main", password=secret)]),
    ):
        assert secret not in repr(annotation)


def test_definitions_are_found_in_the_order_of_the_source() -> None:
    @ORDERS
    @PRICES
    @JMSConnectionFactoryDefinition(name="main")
    class Application:
        pass

    assert annotations_of(Application, JMSDestinationDefinition) == (ORDERS, PRICES)
    assert [one.name for one in annotations_of(Application, JMSConnectionFactoryDefinition)] == ["main"]


def test_several_definitions_in_one_are_the_same_as_several_decorators() -> None:
    factories = [JMSConnectionFactoryDefinition(name=name) for name in "ab"]

    @JMSDestinationDefinitions([ORDERS, PRICES])
    @JMSConnectionFactoryDefinitions(factories)
    class Application:
        pass

    assert annotations_of(Application, JMSDestinationDefinition) == (ORDERS, PRICES)
    assert annotations_of(Application, JMSConnectionFactoryDefinition) == tuple(factories)


def test_definitions_are_not_inherited_and_leave_the_base_alone() -> None:
    @ORDERS
    class Base:
        pass

    class Bare(Base):
        pass

    @PRICES
    class Decorated(Base):
        pass

    assert annotations_of(Bare, JMSDestinationDefinition) == ()
    assert annotations_of(Decorated, JMSDestinationDefinition) == (PRICES,)
    assert annotations_of(Base, JMSDestinationDefinition) == (ORDERS,)


@pytest.mark.parametrize("definition", [ORDERS, JMSConnectionFactoryDefinition(name="main")], ids=["queue", "factory"])
def test_a_definition_decorates_classes_only(definition: Any) -> None:
    def function() -> None: ...

    with pytest.raises(TypeError, match="can decorate a class"):
        definition(function)
    assert annotations_of(function, object) == ()


def test_a_definition_is_frozen_even_if_it_was_given_a_list() -> None:
    properties = ["a=1"]
    definition = JMSDestinationDefinition(name="orders", interface_name="Queue", properties=properties)
    properties.append("b=2")
    assert definition.properties == ("a=1",)
    assert definition in {definition}
    with pytest.raises(dataclasses.FrozenInstanceError):
        definition.name = "other"  # type: ignore[misc]
