"""AMQP values that RabbitMQ hands to STOMP readers as they were encoded."""

from __future__ import annotations

import random
from typing import Any

import pytest

from jmsapi.spi import ErrorKind, MessageKind, ProviderError
from jmsapi_stomp.amqp_values import read_value

# As RabbitMQ 4.0.5 handed them out.
RECORDED: list[tuple[bytes, MessageKind, Any]] = [
    (b"\x00Sw\xa1\ngr\xc3\xbc\xc3\x9f \xe2\x82\xac", MessageKind.TEXT, "grüß €"),
    (b"\x00Sw\xa1\x00", MessageKind.TEXT, ""),
    (b"\x00Sw@", MessageKind.MESSAGE, None),
    (b"\x00Sw\xc1\x0c\x04\xa1\x01aT\x01\xa1\x01b\xa1\x01x", MessageKind.MAP, {"a": 1, "b": "x"}),
    (b"\x00Sw\xc0\x06\x02T\x01\xa1\x01y", MessageKind.STREAM, [1, "y"]),
    (b"\x00Sw\xb1\x00\x00\x00\x02hi", MessageKind.TEXT, "hi"),
    (b"\x00Sw\xa0\x02\x00\xff", MessageKind.BYTES, b"\x00\xff"),
    (b"\x00SwE", MessageKind.STREAM, []),
]


@pytest.mark.parametrize(("data", "kind", "body"), RECORDED)
def test_recorded_values_are_read(data: bytes, kind: MessageKind, body: Any) -> None:
    assert read_value(data) == (kind, body)


def test_every_primitive_type_is_read_as_proton_writes_it() -> None:
    proton = pytest.importorskip("proton")
    data = proton.Data()
    values = [
        True, False, None, "text", b"\x00", 7, 2**40, proton.byte(-3), proton.short(-300), proton.int32(5), proton.ubyte(9),
        proton.ushort(900), proton.uint(70_000), proton.ulong(2**40), proton.float32(0.5), 1.25, proton.char("ß"),
        proton.symbol("s"),
    ]  # fmt: skip
    data.put_list()
    data.enter()
    for value in values:
        data.put_object(value)
    data.exit()
    kind, body = read_value(b"\x00Sw" + data.encode())
    assert kind is MessageKind.STREAM
    assert body == values
    assert isinstance(body, list)
    types = [getattr(value, "jms_type", type(value).__name__) for value in body]
    assert types[5:9] == ["long", "long", "byte", "short"]
    assert (types[14], types[15], types[16]) == ("float", "float", "char")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00Su\xa0\x01x",
        b"\x00Sw",
        b"\x00Sw\xa1\x05x",
        b"\x00Sw\xa1\x01\xff",
        b"\x00Sw@@",
        b"\x00Sw\xc1\x03\x01\xa1\x00",
        b"\x00Sw\xc0\x04\x01\xc0\x01\x00",
        b"\x00Sw\x54\x05",
        b"\x00Sw\xf0\x01",
        b"\x00Sw\xd0\xff\xff\xff\xff\xff\xff\xff\xff",
    ],
)
def test_what_is_no_jms_body_is_a_fault_of_its_format(data: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        read_value(data)
    assert caught.value.kind is ErrorKind.FORMAT


def test_random_bytes_raise_nothing_but_errors_of_the_SPI() -> None:
    dice = random.Random(20_261_130)
    codes = [bytes([code]) for code in (0x40, 0x45, 0x54, 0x71, 0x73, 0xA0, 0xA1, 0xC0, 0xC1, 0xD1, 0xFF)]
    read = 0
    for _ in range(100_000):
        data = b"\x00Sw" + dice.choice(codes) + dice.randbytes(dice.randint(0, 8))
        try:
            read_value(data)
            read += 1
        except ProviderError as error:
            assert error.kind is ErrorKind.FORMAT
    assert read > 1000
