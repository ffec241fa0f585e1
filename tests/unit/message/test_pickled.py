"""Pickle by allow-list makes objects of allowed classes, and changes nothing else of the process."""

from __future__ import annotations

import collections
import enum
import pickle
import pickletools
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jmsapi._core import object_data
from jmsapi._core.object_codec import PICKLE_TYPE, ObjectCodec
from jmsapi.errors import MessageFormatException

from ...data.colliding_numbers import colliding_numbers


class Order:
    tax = 19

    def __init__(self, n: int) -> None:
        self.n = n

    def total(self) -> int:
        return self.n


class Slotted:
    __slots__ = ("a", "b")

    @property
    def c(self) -> int:
        return 1

    @c.setter
    def c(self, value: int) -> None:
        raise AssertionError("a setter was called")


class Own:
    def __init__(self, given: Any) -> None:
        self.given = given

    def __reduce__(self) -> Any:
        return Own, (self.given,), {"more": 1}

    def __setstate__(self, state: Any) -> None:
        self.more = state["more"]


class ListOf(list[Any]):
    pass


class Colour(enum.Enum):
    RED = 1


class Meta(type):
    pass


class Keyed:
    def __new__(cls, *, n: int) -> Keyed:
        made = super().__new__(cls)
        made.n = n
        return made

    n: int

    def __getnewargs_ex__(self) -> Any:
        return (), {"n": self.n}


def function(*_: object) -> None:
    raise AssertionError("a function was called")


def name(of: Any) -> str:
    return f"{of.__module__}.{of.__qualname__}"


ALLOWED = [
    Order,
    Slotted,
    Own,
    ListOf,
    Colour,
    Meta,
    Keyed,
    collections.OrderedDict,
    collections.defaultdict,
    complex,
    list,
    dict,
]
CODEC = ObjectCodec(frozenset([*map(name, ALLOWED), name(function), "builtins.getattr", "builtins.eval", "builtins.type"]))


def text(value: str) -> bytes:
    return b"\x8c" + bytes([len(value)]) + value.encode()


def named(of: Any) -> bytes:
    return text(of.__module__) + text(of.__qualname__) + b"\x93"


def pickled(*steps: bytes) -> bytes:
    return b"\x80\x04" + b"".join(steps) + b"."


ATTACKS = {
    "state of a class": pickled(named(Order), b"}", text("tax"), b"K\x00sb"),
    "method of a class": pickled(named(Order), b"}", text("total"), text("gone"), b"sb"),
    "slots of a class": pickled(named(Order), b"N}", text("total"), text("gone"), b"s\x86b"),
    "item of a class": pickled(named(Order), text("tax"), b"K\x00s"),
    "more for a class": pickled(named(Order), b"(K\x00e"),
    "state of a member": pickled(named(Colour), b"K\x01\x85R}", text("_value_"), b"K\x02sb"),
    "class of an instance": pickled(named(Order), b")\x81N}", text("__class__"), named(Own), b"s\x86b"),
    "special name": pickled(named(Order), b")\x81}", text("__class__"), named(Own), b"sb"),
    "property": pickled(named(Slotted), b")\x81N}", text("c"), b"K\x01s\x86b"),
    "a new class": pickled(text("builtins"), text("type"), b"\x93", text("X"), b")}\x87R"),
    "a class of classes": pickled(named(Meta), text("X"), b")}\x87R"),
    "function": pickled(named(function), b")R"),
    "function that is made": pickled(named(function), b")\x81"),
    "getattr": pickled(text("builtins"), text("getattr"), b"\x93", named(Order), text("__init__"), b"\x86R"),
    "eval": pickled(text("builtins"), text("eval"), b"\x93", text("1"), b"\x85R"),
    "dotted": pickled(text(Order.__module__), text("Order.__init__.__globals__"), b"\x93"),
    "an instance that is called": pickled(named(Order), b"K\x01\x85R)R"),
    "persistent": b"Pid\n.",
    "extension": b"\x80\x04\x82\x01.",
    "no value": pickled(b"K"),
    "no mark": pickled(b"e"),
    "mark as a value": pickled(b"(\x85"),
    "nothing kept": pickled(b"h\x05"),
    "no pair": pickled(b"}(K\x01u"),
    "state of text": pickled(named(Order), b")\x81", text("x"), b"b"),
    "state of a list": pickled(b"]}b"),
}


@pytest.mark.parametrize("data", ATTACKS.values(), ids=ATTACKS.keys())
def test_nothing_but_new_objects_is_changed_by_what_is_read(data: bytes) -> None:
    before = {kind: dict(vars(kind)) for kind in ALLOWED}
    with pytest.raises(MessageFormatException, match="cannot be read"):
        CODEC.decode(data, PICKLE_TYPE)
    assert {kind: dict(vars(kind)) for kind in ALLOWED} == before
    assert Colour.RED.value == 1


def test_the_parts_of_an_attack_are_read_where_they_are_no_attack() -> None:
    data = pickled(named(Order), b")\x81}", text("tax"), b"K\x00sb")
    made = CODEC.decode(data, PICKLE_TYPE)
    assert (made.tax, Order.tax, type(made)) == (0, 19, Order)


def slotted(a: object) -> Slotted:
    made = Slotted()
    made.a = a
    return made


def shown(value: Any) -> Any:
    if isinstance(value, Slotted):
        return ("slotted", value.a, hasattr(value, "b"))
    return (type(value), getattr(value, "__dict__", None), repr(list(value)) if isinstance(value, list | dict) else None)


@pytest.mark.parametrize(
    "value",
    [
        Order(5),
        slotted([1, 2]),
        Own({"x": b"y"}),
        ListOf([1, "2", 3.5]),
        collections.OrderedDict(a=1, b=(2, 3)),
        Keyed(n=7),
        Order({1: {2, 3}, "f": frozenset((4, 5)), "big": 2**100, "b": b"x", "n": None, "t": True}),  # type: ignore[arg-type]
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("protocol", range(4, pickle.HIGHEST_PROTOCOL + 1))
def test_objects_of_allowed_classes_are_read_as_pickle_reads_them(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    assert shown(CODEC.decode(data, PICKLE_TYPE)) == shown(pickle.loads(data))


def test_an_enumeration_gives_its_member() -> None:
    codec = ObjectCodec(frozenset((name(Colour), name(Order))))
    read = codec.decode(pickle.dumps(Order(Colour.RED), 4), PICKLE_TYPE)  # type: ignore[arg-type]
    assert read.n is Colour.RED


def test_what_refers_to_itself_is_read() -> None:
    order: Any = Order(1)
    order.itself = [order]
    data, kind = ObjectCodec(frozenset((name(Order),))).encode(order)
    read = CODEC.decode(data, kind)
    assert read.itself[0] is read


def test_a_function_is_not_pickled_even_if_it_is_named() -> None:
    with pytest.raises(MessageFormatException, match="is a function"):
        CODEC.encode([Order(function)])  # type: ignore[arg-type]


def test_a_few_bytes_take_no_memory_by_what_they_refer_to() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(MessageFormatException):
            CODEC.decode(pickled(b"N", b"r" + (200_000_000).to_bytes(4, "little")), PICKLE_TYPE)
        with pytest.raises(MessageFormatException):
            CODEC.decode(pickled(b"\x8d" + (2**60).to_bytes(8, "little")), PICKLE_TYPE)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("size", "taken"), [(9_999, True), (10_000, False)])
def test_a_key_has_ten_thousand_values_in_it_at_most(size: int, taken: bool) -> None:
    data = pickle.dumps({tuple(range(size)): 1}, 4)
    if taken:
        assert CODEC.decode(data, PICKLE_TYPE) == {tuple(range(size)): 1}
        return
    with pytest.raises(MessageFormatException, match="a key has more than"):
        CODEC.decode(data, PICKLE_TYPE)


def test_the_work_of_hashing_is_bounded() -> None:
    doubled = b"K\x01\x85\x94" + b"".join(b"h" + bytes([n]) + b"\x86\x94" for n in range(60))
    begun = time.process_time()
    with pytest.raises(MessageFormatException, match="a key has more than"):
        CODEC.decode(pickled(b"}", doubled, b"K\x01s"), PICKLE_TYPE)
    numbers = [n * (2**61 - 1) for n in range(4_000)]
    for data in (pickle.dumps(dict.fromkeys(numbers), 4), pickle.dumps(frozenset(numbers), 4), pickle.dumps(set(numbers), 4)):
        with pytest.raises(MessageFormatException, match="the same hash"):
            CODEC.decode(data, PICKLE_TYPE)
    assert time.process_time() - begun < 20  # most of it is this test's own work


@pytest.mark.parametrize("form", ['{{"$set": {}}}', '{{"$frozenset": {}}}', '{{"$dict": {}}}'])
def test_the_work_of_hashing_is_bounded_in_the_data_form(form: str) -> None:
    numbers = [[n * (2**61 - 1), 1] if "dict" in form else n * (2**61 - 1) for n in range(20_000)]
    with pytest.raises(object_data.NotData, match="the same hash"):
        object_data.load(form.format(numbers).encode())
    assert len(object_data.load(form.format([[n, 1] if "dict" in form else n for n in range(20_000)]).encode())) == 20_000


def test_numbers_that_stand_in_each_others_way_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsapi.spi.hashing._SPARE_S", 0.0)
    numbers = colliding_numbers()
    data = b'{"$dict": %s}' % str([[number, 0] for number in numbers]).encode()
    with pytest.raises(object_data.NotData, match="in each other's way"):
        object_data.load(data)
    plain = pickle.dumps(dict.fromkeys(numbers), 4)  # made once: it costs this test what it is to spare others
    with pytest.raises(MessageFormatException, match="in each other's way"):
        CODEC.decode(plain, PICKLE_TYPE)
    with pytest.raises(MessageFormatException, match="in each other's way"):
        CODEC.decode(plain.replace(b"}\x94(", pickle.dumps(collections.OrderedDict(), 4)[11:-1] + b"("), PICKLE_TYPE)
    for container in (set, frozenset):
        monkeypatch.setattr("jmsapi.spi.hashing._PER_KEY_S", 0.0)
        with pytest.raises(MessageFormatException, match="in each other's way"):
            CODEC.decode(pickle.dumps(container(range(10_000)), 4), PICKLE_TYPE)


def test_places_to_refer_to_are_counted_as_pickle_counts_them() -> None:
    with pytest.raises(MessageFormatException, match="is kept before"):
        CODEC.decode(pickled(b"N", b"r" + (7).to_bytes(4, "little")), PICKLE_TYPE)
    shared = Order(1)
    for data in (pickle.dumps([shared, shared], 2), pickletools.optimize(pickle.dumps([shared, shared], 4))):
        assert len(CODEC.decode(data, PICKLE_TYPE)) == 2


def test_the_work_of_looking_into_keys_is_bounded_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsapi._core.pickled._MOST_STEPS", 100_000)
    key = tuple(range(5_000))
    CODEC.decode(pickle.dumps({key: 1}, 4), PICKLE_TYPE)
    with pytest.raises(MessageFormatException, match="or all keys"):
        CODEC.decode(pickled(b"}", pickle.dumps(key, 4)[11:-1], b"K\x01s", b"h\x00K\x01s" * 30), PICKLE_TYPE)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_damaged_bytes_give_an_object_or_a_format_exception(data: st.DataObject) -> None:
    whole = bytearray(pickle.dumps([Order(1), ListOf([1]), {"a": Own(2)}, slotted(3)], 4))
    for place in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=6)):
        whole[place] = data.draw(st.integers(0, 255))
    try:
        CODEC.decode(bytes(whole), PICKLE_TYPE)
    except MessageFormatException:
        return
