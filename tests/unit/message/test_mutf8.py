"""Java's modified UTF-8."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsapi._core.message import mutf8

CASES = [
    ("", b""),
    ("abc", b"abc"),
    ("\0", b"\xc0\x80"),
    ("a\0é", b"a\xc0\x80\xc3\xa9"),
    ("€", b"\xe2\x82\xac"),
    ("😀", b"\xed\xa0\xbd\xed\xb8\x80"),
    ("\U0010ffff", b"\xed\xaf\xbf\xed\xbf\xbf"),
    ("\uffff", b"\xef\xbf\xbf"),
    ("\ud83d", b"\xed\xa0\xbd"),
]


@pytest.mark.parametrize(("text", "data"), CASES, ids=lambda it: ascii(it))
def test_the_bytes_are_those_of_java(text: str, data: bytes) -> None:
    assert mutf8.encode(text) == data
    assert mutf8.decode(data) == text


@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    assert mutf8.decode(mutf8.encode(text)) == text


@given(st.binary())
def test_any_bytes_are_text_or_a_value_error(data: bytes) -> None:
    try:
        text = mutf8.decode(data)
    except ValueError:
        return
    assert mutf8.decode(mutf8.encode(text)) == text


@pytest.mark.parametrize(
    "data", [b"\x80", b"\xc3", b"\xc3A", b"\xe2\x82", b"\xf0\x9f\x98\x80", b"\xff", b"\xc1\x81", b"\xe0\x80\x80"]
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        mutf8.decode(data)
