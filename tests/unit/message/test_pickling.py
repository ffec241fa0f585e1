"""A message as a value, for a process pool or a cache: the copy has everything but the place where it was received."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

import jmsapi
from jmsapi._core.message import received
from jmsapi._core.object_codec import ObjectCodec
from jmsapi.errors import IllegalStateException, MessageFormatException, MessageNotWriteableException
from jmsapi.spi import Address, Delivery, DestinationKind, ErrorKind, MessageKind, PlainEnvelope, ProviderError, Tag

from .conftest import Bench

HERE = Address(DestinationKind.QUEUE, "here")


class Unshippable(Tag):
    """What a provider keeps of a delivery belongs to its process."""

    def __reduce__(self) -> Any:
        raise TypeError("a tag cannot be pickled")


def delivered(envelope: Any, **more: Any) -> Any:
    return received(Delivery(Unshippable(), envelope, 1), 0, more.get("acknowledge"), ObjectCodec(), more.get("owner"))


class Owner:
    """A connection, as far as temporary destinations know it."""

    def delete_temporary(self, address: Address) -> None:
        raise AssertionError(address)

    def __reduce__(self) -> Any:
        raise TypeError("a connection cannot be pickled")


def body_in_another_process(message: jmsapi.Message) -> tuple[str | None, str]:
    return message.get_body(str), repr(message.jms_reply_to)


@pytest.mark.program
def test_a_message_goes_to_a_pool_of_processes_with_the_temporary_queue_that_it_is_to_be_answered_on() -> None:
    answers = Address(DestinationKind.TEMPORARY_QUEUE, "answers")
    message = delivered(PlainEnvelope(MessageKind.TEXT, HERE, "x", reply_to=answers), owner=Owner(), acknowledge=Owner())
    assert message.jms_reply_to is not None
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(body_in_another_process, message).result(60) == ("x", "<temporary queue 'answers'>")
    with pytest.raises(jmsapi.JMSException, match="only be deleted by"):
        pickle.loads(pickle.dumps(message)).jms_reply_to.delete()


@pytest.mark.parametrize("acknowledge", [None, lambda: None], ids=["automatic", "by the client"])
def test_a_pickled_copy_cannot_acknowledge_and_says_so(acknowledge: Any) -> None:
    message = delivered(PlainEnvelope(MessageKind.TEXT, HERE, "x"), acknowledge=acknowledge)
    for one in (pickle.loads(pickle.dumps(message)), pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(message))))):
        with pytest.raises(IllegalStateException, match="only the session that received the message"):
            one.acknowledge()


def test_a_copy_in_the_process_acknowledges_as_its_original_does() -> None:
    times: list[int] = []
    message = delivered(PlainEnvelope(MessageKind.TEXT, HERE, "x"), acknowledge=lambda: times.append(1))
    for one in (copy.copy(message), copy.deepcopy([message])[0]):
        one.acknowledge()
    assert times == [1, 1]


@pytest.mark.parametrize("kind", list(MessageKind), ids=lambda kind: kind.name)
def test_a_pickled_message_that_was_created_has_nothing_to_acknowledge(bench: Bench, kind: MessageKind) -> None:
    message = pickle.loads(pickle.dumps(bench.new(kind)))
    message.acknowledge()
    message.set_int_property("n", 1)
    assert message.get_int_property("n") == 1


def test_what_was_read_only_is_read_only_in_the_copy() -> None:
    message = pickle.loads(pickle.dumps(delivered(PlainEnvelope(MessageKind.TEXT, HERE, "x", {"n": 1}))))
    with pytest.raises(MessageNotWriteableException):
        message.text = "y"
    with pytest.raises(MessageNotWriteableException):
        message.set_int_property("n", 2)
    message.clear_body()
    message.text = "y"
    assert message.get_body(str) == "y"


def test_a_copy_is_at_the_place_where_its_original_was_being_read_or_written(bench: Bench) -> None:
    message = delivered(PlainEnvelope(MessageKind.BYTES, HERE, b"abc"))
    message.read_byte()
    assert pickle.loads(pickle.dumps(message)).read_byte() == ord("b")
    stream = delivered(PlainEnvelope(MessageKind.STREAM, HERE, ["a", b"bc"]))
    stream.read_string()
    assert pickle.loads(pickle.dumps(stream)).read_object() == b"bc"
    written = bench.new(MessageKind.BYTES)
    written.write_bytes(b"ab")
    again = pickle.loads(pickle.dumps(written))
    again.write_bytes(b"c")
    assert (again.get_body(bytes), written.get_body(bytes)) == (b"abc", b"ab")


class Damaged:
    """An envelope whose body cannot be decoded."""

    def __getattr__(self, name: str) -> Any:
        if name == "body":
            raise ProviderError(ErrorKind.FORMAT, "no UTF-8")
        return getattr(PlainEnvelope(MessageKind.TEXT, HERE, "x", {"n": 1}), name)


def test_a_part_that_cannot_be_decoded_raises_the_same_in_the_copy() -> None:
    message = pickle.loads(pickle.dumps(delivered(Damaged())))
    assert message.get_int_property("n") == 1
    with pytest.raises(MessageFormatException, match="no UTF-8"):
        message.get_body(str)
