"""Objects as data, by registered classes, and by pickle where the application allows it."""

from __future__ import annotations

import datetime
import json
import math
import pickle
import sys
import uuid
from collections import OrderedDict
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from enum import Enum, Flag, IntEnum
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jmsapi
from jmsapi import register_class
from jmsapi._core.object_codec import DATA_TYPE, JAVA_TYPE, PICKLE_TYPE, ObjectCodec
from jmsapi.errors import IllegalArgumentException, MessageFormatException
from jmsapi.values import Byte, Char, Double, Float, Int, Long, Short

CODEC = ObjectCodec()


@register_class
@dataclass
class Order:
    number: int
    lines: list[Line] = field(default_factory=list)
    total: float = field(init=False, default=0.0)


@register_class
@dataclass(frozen=True, slots=True)
class Line:
    what: str
    price: Decimal

    def __post_init__(self) -> None:
        if self.price < 0:
            raise ValueError("no such price")


@register_class(name="colour-v1")
class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@register_class
class Rights(Flag):
    READ = 1
    WRITE = 2
    BOTH = 3
    SHOW = 4


@register_class
@dataclass
class Priced:
    net: Decimal
    tax: InitVar[Decimal] = Decimal("0.19")

    def __post_init__(self, tax: Decimal) -> None:
        self.net += self.net * tax


@dataclass
class Unregistered:
    x: int


class Plain:
    def __init__(self, x: int) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plain) and other.x == self.x

    __hash__ = None  # type: ignore[assignment]


class Weapon:
    """What an attacker would like to have loaded."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)


def there_and_back(value: Any, codec: ObjectCodec = CODEC) -> Any:
    data, content_type = codec.encode(value)
    assert type(data) is bytes
    return codec.decode(data, content_type)


VALUES: list[Any] = [
    True,
    0,
    -1,
    2**63 - 1,
    -(2**63),
    2**63,
    -(2**200),
    0.0,
    -0.0,
    0.1,
    math.inf,
    -math.inf,
    "",
    "grüß €😀\0\n",
    b"",
    b"\x00\xff",
    bytearray(b"a"),
    [],
    [1, [2, None]],
    (),
    (1, (2,)),
    {},
    {"a": 1, "b": {"c": [True]}},
    {1: "a", None: "b", (1, 2): "c", "$x": 1, b"k": 2},
    {"$bytes": "looks like a tag"},
    {"": 1},
    set(),
    {1, "a", (2, 3)},
    frozenset({1, frozenset({2})}),
    datetime.datetime(2024, 2, 29, 12, 30, 1, 5),
    datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC),
    datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=-3, minutes=-30))),
    datetime.date(1, 1, 1),
    datetime.time(23, 59, 59, 999999),
    datetime.timedelta(days=-1, microseconds=5),
    Decimal("1.50"),
    Decimal("-Infinity"),
    uuid.UUID(int=5),
    Byte(-1),
    Short(5),
    Int(5),
    Long(5),
    Float(0.1),
    Float(math.inf),
    Double(0.1),
    Char("x"),
    Char("\ud800"),
    Colour.RED,
    [Order(1, [Line("a", Decimal("1.5"))]), {"k": Colour.BLUE}],
]


# Names that do not depend on the order of a set's members: workers must find the same tests.
@pytest.mark.parametrize("value", VALUES, ids=[f"{type(one).__name__}-{number}" for number, one in enumerate(VALUES)])
def test_a_value_comes_back_equal_and_of_the_same_type(value: Any) -> None:
    got = there_and_back(value)
    assert got == value
    assert type(got) is type(value)
    assert repr(got)[:200] == repr(value)[:200] or isinstance(value, set | frozenset)
    assert CODEC.encode(value)[1] == DATA_TYPE


def test_nan_comes_back() -> None:
    assert math.isnan(there_and_back(math.nan))
    assert type(there_and_back(Float(math.nan))) is Float


def test_plain_data_is_plain_json_in_ascii() -> None:
    value = {"name": "gr\u00fcn \U0001f600", "list": [1, 2.5, True, None]}
    data, _ = CODEC.encode(value)
    assert json.loads(data) == value
    assert data == rb'{"name":"gr\u00fcn \ud83d\ude00","list":[1,2.5,true,null]}'


def test_fields_that_init_does_not_take_come_back() -> None:
    order = Order(1)
    order.total = 9.5
    assert there_and_back(order) == order
    assert there_and_back(order).total == 9.5


def test_the_object_is_copied_both_ways() -> None:
    value = {"a": [1]}
    data, content_type = CODEC.encode(value)
    value["a"].append(2)
    first, second = CODEC.decode(data, content_type), CODEC.decode(data, content_type)
    first["a"].append(3)
    assert second == {"a": [1]}


def loop() -> list[Any]:
    it: list[Any] = []
    it.append(it)
    return it


def deep(levels: int) -> list[Any]:
    it: list[Any] = []
    for _ in range(levels):
        it = [it]
    return it


REFUSED: list[Any] = [
    object(),
    Unregistered(1),
    Plain(1),
    int,
    len,
    1j,
    range(3),
    OrderedDict(a=1),
    IntEnum("n", "A").A,  # type: ignore[attr-defined]
    [1, {"a": object()}],
    {(1, object()): 2},
    "\ud800",
    {"\udfff": 1},
    datetime.time(12, tzinfo=ZoneInfo("Europe/Berlin")),
    memoryview(b"a"),
    Path(),
    loop(),
    deep(250),
]


@pytest.mark.parametrize("value", REFUSED, ids=lambda it: type(it).__name__)
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(MessageFormatException, match="cannot hold this object"):
        CODEC.encode(value)


@pytest.mark.parametrize(
    "around",
    [lambda it: [it], lambda it: (it,), lambda it: {"a": it}, lambda it: {1: it}, lambda it: frozenset((it,))],
    ids=["list", "tuple", "dict", "dict of pairs", "frozenset"],
)
def test_nesting_is_limited_but_not_shallow(around: Any) -> None:
    it: Any = frozenset()
    for _ in range(190):
        it = around(it)
    assert there_and_back(it) == it
    for _ in range(20):
        it = around(it)
    with pytest.raises(MessageFormatException, match="deep"):
        CODEC.encode(it)


def test_running_out_of_stack_is_a_format_exception() -> None:
    limit = sys.getrecursionlimit()

    def at_depth(levels: int) -> None:
        if levels:
            at_depth(levels - 1)
        else:
            CODEC.encode(deep(190))

    with pytest.raises(MessageFormatException, match="deep"):
        at_depth(limit - len_of_stack() - 120)


def len_of_stack() -> int:
    frame, count = sys._getframe(), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1  # type: ignore[assignment]
    return count


DAMAGED = [
    b"",
    b"{",
    b"\xff",
    b"NaN",
    b"Infinity",
    b"[1]x",
    b'{"$nothing":1}',
    b'{"$bytes":"a"}',
    b'{"$bytes":5}',
    b'{"$bytes":"YQ==","x":1}',
    b'{"a":1,"$bytes":"YQ=="}',
    b'{"$tuple":1}',
    b'{"$set":[[1]]}',
    b'{"$dict":[[1]]}',
    b'{"$dict":5}',
    b'{"$int":"x"}',
    b'{"$int":5}',
    b'{"$float":"x"}',
    b'{"$datetime":"2024"}',
    b'{"$datetime":5}',
    b'{"$timedelta":["x"]}',
    b'{"$decimal":"x"}',
    b'{"$decimal":[]}',
    b'{"$uuid":"x"}',
    b'{"$java":["byte","999"]}',
    b'{"$java":["char","ab"]}',
    b'{"$java":["int",5]}',
    b'{"$java":["thing","5"]}',
    b'{"$java":5}',
    b'{"$object":["builtins.object",{}]}',
    b'{"$object":["os.system",{"command":"id"}]}',
    b'{"$object":[["colour-v1"],{}]}',
    b'{"$object":["colour-v1",{}]}',
    b'{"$object":5}',
    b'{"$enum":["colour-v1","GREEN"]}',
    b'{"$enum":["colour-v1",[]]}',
    b'{"$enum":["nobody","RED"]}',
    b"9" * 5000,
    b"[" * 100_000,
    b'{"a":' * 100_000,
]


@pytest.mark.parametrize("data", DAMAGED, ids=lambda it: repr(it[:30]))
def test_damaged_data_is_a_format_exception(data: bytes) -> None:
    with pytest.raises(MessageFormatException, match="cannot be read"):
        CODEC.decode(data, DATA_TYPE)


def name_of(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"what": "a"},
        {"what": "a", "price": 1, "more": 2},
        {"what": "a", "price": {"$decimal": "-1"}},
        {"what": "a", "price": None},
        [],
    ],
)
def test_a_class_refuses_fields_that_do_not_fit(fields: Any) -> None:
    data = json.dumps({"$object": [name_of(Line), fields]}).encode()
    with pytest.raises(MessageFormatException):
        CODEC.decode(data, DATA_TYPE)


def test_a_dataclass_is_not_read_as_enum_nor_the_other_way() -> None:
    with pytest.raises(MessageFormatException):
        CODEC.decode(json.dumps({"$enum": [name_of(Line), "RED"]}).encode(), DATA_TYPE)


def test_a_subclass_of_a_registered_class_is_refused() -> None:
    @dataclass
    class Special(Order):
        pass

    with pytest.raises(MessageFormatException, match="Special"):
        CODEC.encode(Special(1))


def test_what_a_class_makes_of_its_arguments_is_not_made_twice() -> None:
    priced = Priced(Decimal(100))
    assert priced.net == 119
    assert there_and_back(priced) == priced


@pytest.mark.parametrize("rights", [Rights(0), Rights.READ, Rights.BOTH, Rights.READ | Rights.SHOW, ~Rights.SHOW])
def test_flags_come_back_as_they_were_joined(rights: Rights) -> None:
    assert there_and_back(rights) is rights


@pytest.mark.parametrize("member", ["8", "true", "1.5", "null", '"NONE"'])
def test_what_is_no_flag_is_refused(member: str) -> None:
    name = f"{Rights.__module__}.{Rights.__qualname__}"
    with pytest.raises(MessageFormatException):
        CODEC.decode(f'{{"$enum": ["{name}", {member}]}}'.encode(), DATA_TYPE)


def test_the_text_of_a_refusal_names_a_function_that_takes_the_class() -> None:
    with pytest.raises(MessageFormatException, match=r"jmsapi\.register_class"):
        CODEC.encode(Unregistered(1))
    assert jmsapi.register_class is register_class


def test_a_class_must_be_a_dataclass_or_an_enum() -> None:
    with pytest.raises(IllegalArgumentException, match="neither"):
        register_class(Plain)


def test_a_dataclass_that_needs_more_than_its_fields_is_refused() -> None:
    @dataclass
    class Needy:
        x: int
        seed: InitVar[int]

    with pytest.raises(IllegalArgumentException, match="seed"):
        register_class(Needy)


def test_a_name_belongs_to_one_class() -> None:
    @dataclass
    class Impostor:
        x: int

    with pytest.raises(IllegalArgumentException, match="taken"):
        register_class(Impostor, name="colour-v1")


def test_a_class_defined_again_replaces_the_old_one() -> None:
    def define(default: int) -> type[Any]:
        @register_class
        @dataclass
        class Again:
            x: int = default

        return Again

    old, new = define(1), define(2)
    assert type(there_and_back(new())) is new
    with pytest.raises(MessageFormatException):
        CODEC.encode(old())


# ---- pickle


def test_pickle_is_off_by_default(tmp_path: Path) -> None:
    target = tmp_path / "written"
    attack = pickle.dumps(Weapon(target))
    with pytest.raises(MessageFormatException, match="object_allow"):
        CODEC.decode(attack, PICKLE_TYPE)
    with pytest.raises(MessageFormatException):
        CODEC.decode(pickle.dumps([1]), PICKLE_TYPE)
    assert not target.exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_class_that_is_not_allowed_is_not_loaded(tmp_path: Path, protocol: int) -> None:
    target = tmp_path / "written"
    codec = ObjectCodec(frozenset((name_of(Plain),)))
    with pytest.raises(MessageFormatException, match="not in the list"):
        codec.decode(pickle.dumps(Weapon(target), protocol), PICKLE_TYPE)
    with pytest.raises(MessageFormatException, match="not in the list"):
        codec.decode(pickle.dumps(Unregistered(1), protocol), PICKLE_TYPE)
    assert not target.exists()


def test_an_allowed_class_travels() -> None:
    codec = ObjectCodec(frozenset((name_of(Plain), "builtins.complex")))
    assert codec.encode([Plain(1)])[1] == PICKLE_TYPE
    assert there_and_back([Plain(1), 1j], codec) == [Plain(1), 1j]


def test_the_data_form_is_preferred() -> None:
    codec = ObjectCodec(frozenset((name_of(Plain),)))
    assert codec.encode({"a": (1,)})[1] == DATA_TYPE


@pytest.mark.parametrize(
    "value", [Unregistered(1), len, int, [Plain(1), Path()], lambda: 1, iter([1])], ids=lambda it: type(it).__name__
)
def test_a_sender_cannot_pickle_what_is_not_allowed(value: Any) -> None:
    codec = ObjectCodec(frozenset((name_of(Plain),)))
    with pytest.raises(MessageFormatException, match="cannot hold"):
        codec.encode(value)


@pytest.mark.parametrize("data", [b"", b"garbage", b"\x80\x04", pickle.dumps([1])[:-1], b"cos\nsystem\n(S'id'\ntR.", b"Pid\n."])
def test_damaged_pickle_is_a_format_exception(data: bytes) -> None:
    with pytest.raises(MessageFormatException, match="cannot be read"):
        ObjectCodec(frozenset((name_of(Plain),))).decode(data, PICKLE_TYPE)


def test_a_java_object_is_named_as_such() -> None:
    with pytest.raises(MessageFormatException, match=r"Java object.*get_body\(bytes\)"):
        CODEC.decode(b"\xac\xed\x00\x05t\x00\x01a", JAVA_TYPE)


@pytest.mark.parametrize("content_type", [None, "", "text/plain", "application/json"])
def test_an_unknown_content_type_is_refused(content_type: str | None) -> None:
    with pytest.raises(MessageFormatException, match="not one of ours"):
        CODEC.decode(b"[1]", content_type)
    assert not CODEC.knows(content_type)


def test_content_types_are_compared_as_media_types_are() -> None:
    assert CODEC.decode(b"[1]", "Application/vnd.JMSAPI.object+json ; charset=utf-8") == [1]


def test_what_the_codec_knows() -> None:
    with_pickle = ObjectCodec(frozenset(("a.B",)))
    assert (CODEC.knows(DATA_TYPE), CODEC.knows(PICKLE_TYPE), CODEC.knows(JAVA_TYPE)) == (True, False, False)
    assert (with_pickle.knows(DATA_TYPE), with_pickle.knows(PICKLE_TYPE), with_pickle.knows(JAVA_TYPE)) == (True, True, False)


HASHABLE = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8")) | st.binary()
)
DATA = st.recursive(
    HASHABLE | st.decimals(allow_nan=False) | st.datetimes() | st.dates() | st.times() | st.timedeltas() | st.uuids(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(HASHABLE, inner) | st.frozensets(HASHABLE),
    max_leaves=20,
)


@given(DATA)
def test_any_data_comes_back_equal(value: Any) -> None:
    assert there_and_back(value) == value


@given(st.binary() | st.text().map(str.encode) | DATA.map(lambda value: CODEC.encode(value)[0][:-1]))
def test_any_bytes_give_an_object_or_a_format_exception(data: bytes) -> None:
    try:
        CODEC.decode(data, DATA_TYPE)
    except MessageFormatException:
        return


def test_a_whole_number_may_have_any_size() -> None:
    assert there_and_back(-(10**5000)) == -(10**5000)
