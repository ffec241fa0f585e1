"""The API is the table's: each type, member, parameter, default and constant, of the right kind."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import jmsapi
from jmsapi import api, errors

from .table import BEYOND, Member, Parameter, additions, members, normal, parse, signature_of, table, types

INTERFACES = [name for name, entry in types().items() if entry["kind"] == "interface"]
EXCEPTIONS = [name for name, entry in types().items() if entry["kind"] == "exception"]
ANNOTATIONS = [name for name, entry in types().items() if entry["kind"] == "annotation"]
CONSTANTS = [(name, constant) for name, entry in types().items() for constant in entry.get("constants", [])]
WITHOUT_METHODS = {"Destination", "DeliveryMode"}
LISTENERS = {"CompletionListener", "ExceptionListener", "MessageListener"}


def named(name: str) -> Any:
    return getattr(errors if name in EXCEPTIONS else api, name)


def test_the_table_has_81_types_and_319_members() -> None:
    assert table()["counts"]["types"] == len(types()) == 81
    assert table()["counts"]["python_members"] == len(members()) == 319


@pytest.mark.parametrize("name", types())
def test_every_type_is_a_public_name_of_the_library(name: str) -> None:
    assert getattr(jmsapi, name) is named(name)
    assert name in jmsapi.__all__
    assert name in (errors if name in EXCEPTIONS else api).__all__


@pytest.mark.parametrize("name", types())
def test_every_type_has_the_bases_of_the_table(name: str) -> None:
    python = types()[name]["python"]
    if types()[name]["kind"] == "annotation" or "(" not in python:
        return
    bases = python.partition("(")[2].removesuffix(")").split(",")
    builtin = {"Exception": Exception, "RuntimeError": RuntimeError}
    for base in (word.strip() for word in bases):
        assert issubclass(named(name), builtin.get(base) or named(base)), base


@pytest.mark.parametrize("member", members(), ids=str)
def test_every_member_has_the_kind_and_signature_of_the_table(member: Member) -> None:
    found = inspect.getattr_static(named(member.owner), member.name)
    if member.kind == "property":
        assert isinstance(found, property)
        annotation = normal(member.signature.partition(":")[2].strip())
        assert signature_of(found.fget, member.owner) == ([Parameter("self", "POSITIONAL_OR_KEYWORD", "", "")], annotation)
        assert (found.fset is not None) == (member.access == "rw")
        if found.fset is not None:
            _, value = signature_of(found.fset, member.owner)[0]
            assert value.annotation == annotation
    else:
        assert inspect.isfunction(found)
        assert signature_of(found, member.owner) == parse(member.signature)


@pytest.mark.parametrize("member", additions(), ids=str)
def test_every_addition_for_python_has_the_signature_of_the_table(member: Member) -> None:
    found = inspect.getattr_static(named(member.owner), member.name)
    assert inspect.isfunction(found)
    assert signature_of(found, member.owner) == parse(member.signature)


@pytest.mark.requirement("11.2.2-1")
@pytest.mark.parametrize(("owner", "constant"), CONSTANTS, ids=lambda value: value if isinstance(value, str) else value["name"])
def test_every_constant_has_the_value_of_the_table(owner: str, constant: dict[str, Any]) -> None:
    assert getattr(named(owner), constant["name"]) == constant["value"]
    assert named(owner).__annotations__[constant["name"]] == "Final[int]"


@pytest.mark.parametrize("name", INTERFACES)
def test_an_interface_is_abstract_and_has_no_members_beyond_the_table(name: str) -> None:
    kind = named(name)
    assert inspect.isabstract(kind) or name in WITHOUT_METHODS | LISTENERS
    assert getattr(kind, "_is_protocol", False) == (name in LISTENERS)
    allowed = {member.name for member in members() if issubclass(kind, named(member.owner)) and member.kind != "dunder"}
    allowed |= {beyond for owner, more in BEYOND.items() if issubclass(kind, named(owner)) for beyond in more}
    allowed |= {constant["name"] for owner, constant in CONSTANTS if issubclass(kind, named(owner))}
    assert {public for public in dir(kind) if not public.startswith("_")} == allowed


@pytest.mark.parametrize("name", [name for name in INTERFACES if name not in WITHOUT_METHODS | LISTENERS])
def test_every_member_of_an_interface_is_without_behaviour(name: str) -> None:
    kind = named(name)
    own = {member.name for member in members() if issubclass(kind, named(member.owner))}
    assert own == {public for public in kind.__abstractmethods__ if public in own}


@pytest.mark.requirement("7.2-14")
@pytest.mark.parametrize("name", [*EXCEPTIONS, "QueueRequestor", "TopicRequestor"])
def test_every_constructor_has_the_signature_of_the_table(name: str) -> None:
    assert signature_of(named(name).__init__, name) == parse(types()[name]["python_init"])


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_every_annotation_takes_the_arguments_of_the_table(name: str) -> None:
    python = types()[name]["python"]
    wanted, _ = parse("def " + python.removeprefix("class "))
    assert signature_of(named(name), name)[0] == wanted
    assert len(wanted) == len(types()[name]["elements"])


def test_a_difference_would_be_found() -> None:
    class Wrong:
        def receive(self, timeout_ms: float = 0) -> None: ...

    wanted = next(member for member in members() if str(member) == "MessageConsumer.receive")
    assert signature_of(Wrong.receive, "Wrong") != parse(wanted.signature)
    assert signature_of(api.MessageConsumer.receive, "MessageConsumer") == parse(wanted.signature)
