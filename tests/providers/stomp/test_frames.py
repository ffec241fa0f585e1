"""Cutting and reading frames."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_stomp.frames import Frame, FrameCutter, command_frame, escape, header_lines, text_of, unescape

LIMIT = 1 << 21
# A machine that does other things as well is no fault of the cutter.
steady = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
NAME = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)

# As they came from the brokers: Artemis 2.56.0, Classic 6.3.1, RabbitMQ 4.0.5.
ARTEMIS = (
    b"MESSAGE\nsubscription:c3\ncontent-length:5\nmessage-id:1283\ndestination:q\nexpires:0\nredelivered:false\npriority:4\n"
    b"persistent:true\ntimestamp:1795842329749\nack:c3,1283\nJMS_PY_type:Text\nn:7\n\nhello\0"
)
CLASSIC = (
    b"MESSAGE\nexpires:0\ndestination:/queue/own\nsubscription:2\npriority:4\n"
    b"message-id:ID\\cvm-41169-1795842721361-5\\c2\\c-1\\c1\\c1\nreply-to:/temp-queue/x1\ntimestamp:1795842728158\n\nown\0\n"
)
RABBIT = (
    b"MESSAGE\nsubscription:x\ndestination:/queue/tq1\nmessage-id:T_x@@session-ThJ@@1\nredelivered:false\n"
    b"ack:T_x@@session-ThJ@@1\nJMS_PY_type:Text\nreceipt:1\ncontent-length:5\n\nhello\0\n"
)


def cut(data: bytes, *sizes: int) -> list[Frame]:
    cutter = FrameCutter(LIMIT)
    frames: list[Frame] = []
    position = 0
    for size in (*sizes, len(data)):
        frames += cutter.feed(data[position : position + size])
        position += size
        if position >= len(data):
            break
    return frames


def test_recorded_frames_are_cut_one_after_the_other() -> None:
    frames = cut(ARTEMIS + CLASSIC + RABBIT)
    assert [frame.body for frame in frames] == [b"hello", b"own", b"hello"]
    assert frames[0].find(b"\nack:") == "c3,1283"
    assert frames[1].find(b"\nmessage-id:") == "ID:vm-41169-1795842721361-5:2:-1:1:1"
    assert frames[1].raw(b"\nmessage-id:") == b"ID\\cvm-41169-1795842721361-5\\c2\\c-1\\c1\\c1"
    assert frames[1].headers["message-id"] == "ID:vm-41169-1795842721361-5:2:-1:1:1"
    assert frames[2].headers["destination"] == "/queue/tq1"
    assert frames[2].find(b"\nnone:") is None


@pytest.mark.parametrize("step", [1, 2, 3, 7, 50])
def test_the_size_of_the_reads_makes_no_difference(step: int) -> None:
    data = (ARTEMIS + b"\n\n" + CLASSIC + b"\r\n" + RABBIT) * 3
    cutter = FrameCutter(LIMIT)
    frames: list[Frame] = []
    for start in range(0, len(data), step):
        frames += cutter.feed(data[start : start + step])
    assert [(frame.command, frame.body) for frame in frames] == [(b"MESSAGE", b) for b in (b"hello", b"own", b"hello")] * 3


def test_a_body_with_a_length_may_hold_nuls_and_empty_lines() -> None:
    body = b"\0\n\n\0\r\n\r\n\0"
    (frame,) = cut(b"MESSAGE\ncontent-length:%d\n\n%b\0" % (len(body), body))
    assert frame.body == body


def of_classic(texts: list[bytes], step: int) -> list[Frame]:
    """Cut what Classic sends of a Java client's texts: no length, a line feed behind each frame, heart-beats and a receipt."""
    data = b"".join(b"MESSAGE\nmessage-id:1\n\n%b\0\n" % text for text in texts) + b"\n\nRECEIPT\nreceipt-id:9\n\n\0\n"
    cutter = FrameCutter(LIMIT)
    cutter.ends_in_line_feed = True
    frames: list[Frame] = []
    for start in range(0, len(data), step):
        frames += cutter.feed(data[start : start + step])
    return frames


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_a_text_without_a_length_may_hold_nuls_where_each_frame_ends_in_a_line_feed(step: int) -> None:
    texts = [b"a\0b", b"\0", b"\0\0\0end", b"NUL last\0", b"plain\n", b""]
    frames = of_classic(texts, step)
    assert [frame.body for frame in frames] == [*texts, b""]
    assert frames[-1].command == b"RECEIPT"


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_header_may_hold_a_nul_where_each_frame_ends_in_a_line_feed(step: int) -> None:
    cutter = FrameCutter(LIMIT)
    cutter.ends_in_line_feed = True
    data = b"MESSAGE\ncorrelation-id:\0A\n\nx\0\n" + CLASSIC
    frames = [frame for start in range(0, len(data), step) for frame in cutter.feed(data[start : start + step])]
    assert [(frame.find(b"\ncorrelation-id:"), frame.body) for frame in frames] == [("\0A", b"x"), (None, b"own")]


def test_a_nul_and_a_line_feed_in_a_text_end_no_frame_when_no_frame_follows() -> None:
    texts = [b"a\0\nb", b"\0\n\r", b"\0\nMESS"]
    assert [frame.body for frame in of_classic(texts, 1000)] == [*texts, b""]


def test_lines_may_end_in_carriage_return_and_line_feed() -> None:
    (frame,) = cut(b"MESSAGE\r\na:1\r\nb:2\r\ncontent-length:3\r\n\r\n\n\n\0\0")
    assert frame.command == b"MESSAGE"
    assert (frame.headers["a"], frame.headers["b"], frame.body) == ("1", "2", b"\n\n\0")
    assert frame.find(b"\na:") == "1"


def test_of_a_repeated_header_the_first_counts() -> None:
    (frame,) = cut(b"MESSAGE\na:1\na:2\n\n\0")
    assert frame.headers["a"] == "1"
    assert frame.find(b"\na:") == "1"


def test_a_line_that_is_repeated_as_it_is_adds_nothing_and_its_frame_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Artemis 2.56.0 writes the routing type of a message into it twice.
    head = b"\ndestination-type:ANYCAST\nb:two\\c\ndestination-type:ANYCAST\nack:1"
    expected = ({"destination-type": "ANYCAST", "b": "two:", "ack": "1"}, ())
    slow = Frame(b"MESSAGE", head + b"\r", b"").split()
    assert (slow[0], tuple(slow[1])) == expected

    def line_by_line(*_: object) -> None:
        raise AssertionError("it was read line by line")

    monkeypatch.setattr(Frame, "_read_lines", line_by_line)
    assert Frame(b"MESSAGE", head, b"").split() == expected


def test_a_large_body_is_joined_once() -> None:
    body = bytes(500_000)
    data = b"MESSAGE\ncontent-length:%d\n\n%b\0" % (len(body), body) + CLASSIC
    assert [frame.body for frame in cut(data, *[4096] * 200)] == [body, b"own"]


@pytest.mark.parametrize(
    "data",
    [
        b"MESSAGE\na:1\0",
        b"\0",
        b"MESSAGE\ncontent-length:x\n\nbody\0",
        b"MESSAGE\ncontent-length:-1\n\nbody\0",
        b"MESSAGE\ncontent-length:99999999999999\n\nbody\0",
        b"MESSAGE\ncontent-length:9999999\n\nbody\0",
        b"MESSAGE\ncontent-length:2\n\nbody\0",
        b"x" * (LIMIT + 1),
    ],
)
def test_what_is_no_frame_is_a_fault_of_the_peer(data: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        cut(data)
    assert caught.value.kind is ErrorKind.PROTOCOL
    assert caught.value.fatal


def test_an_endless_frame_is_given_up_also_in_small_reads() -> None:
    cutter = FrameCutter(10_000)
    with pytest.raises(ProviderError):
        for _ in range(20):
            cutter.feed(b"x" * 1000)


def test_modified_utf_8_of_old_classic_brokers_is_read() -> None:
    assert text_of(b"a\xc0\x80b") == "a\0b"
    assert text_of("\U0001f600".encode("utf-16-be").hex().encode()) == "d83dde00"
    assert text_of(b"\xed\xa0\xbd\xed\xb8\x80") == "\U0001f600"


@pytest.mark.parametrize("data", [b"\xff", b"\xed\xa0\xbd", b"\xc3"])
def test_what_is_no_text_is_a_fault_of_its_format(data: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        text_of(data)
    assert caught.value.kind is ErrorKind.FORMAT


def test_an_undefined_escape_stays_as_it_is() -> None:
    assert unescape("a\\tb\\") == "a\\tb\\"


@pytest.mark.parametrize("text", ["a\\cb\\nc\\rd", "\\\\c\\c", "\\x\\c", "\\", "\\\\\\n"])
def test_each_escape_is_read_once_from_left_to_right(text: str) -> None:
    read, position = "", 0
    while position < len(text):
        meaning = {"\\\\": "\\", "\\n": "\n", "\\r": "\r", "\\c": ":"}.get(text[position : position + 2])
        read += text[position] if meaning is None else meaning
        position += 1 if meaning is None else 2
    assert unescape(text) == read


def test_headers_that_were_read_are_not_read_again_and_lose_no_repeated_one() -> None:
    frame = Frame(b"MESSAGE", b"\na:1\nb:2\na:3", b"")
    assert not frame.is_read
    assert frame.at_hand.get("b") == "2"
    first = frame.split()
    assert first == ({"a": "1", "b": "2"}, [("a", "3")])
    assert not frame.is_read, "looking does not keep them"
    assert frame.headers is frame.headers is frame.at_hand
    assert frame.split() == first
    assert frame.split()[0] is frame.headers


@steady
@given(TEXT)
def test_escaping_can_be_undone(text: str) -> None:
    assert unescape(escape(text)) == text
    assert not set(escape(text)) & set("\n\r:")


@steady
@given(st.dictionaries(NAME, TEXT), st.binary())
def test_headers_and_body_survive_the_wire(headers: dict[str, str], body: bytes) -> None:
    headers.pop("content-length", None)
    lines = header_lines([*headers.items(), ("content-length", str(len(body)))])
    (frame,) = cut(b"SEND\n" + lines.encode() + b"\n" + body + b"\0")
    got = dict(frame.headers)
    assert got.pop("content-length") == str(len(body))
    assert (got, frame.body) == (headers, body)


@steady
@given(st.lists(st.dictionaries(NAME, TEXT), min_size=1), st.integers(1, 64))
def test_frames_without_a_body_survive_any_cut(frames: list[dict[str, str]], step: int) -> None:
    for headers in frames:
        headers.pop("content-length", None)
    data = b"".join(command_frame("ACK", headers.items()) for headers in frames)
    cutter = FrameCutter(LIMIT)
    got: list[Frame] = []
    for start in range(0, len(data), step):
        got += cutter.feed(data[start : start + step])
    assert [frame.headers for frame in got] == frames


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"MESSAGE\nmessage-id:1\n\n", b"abc\0" * 250),
        (b"MESSAGE\nmessage-id:1\n\n", b"abc" * 333 + b"\0"),
        (b"MESSAGE\nmessage-id:1\n\n", b"abc\0\nX" * 170),
        (b"MESSAGE\nmessage-id:1\n", b"abc\0" * 250),
        (b"MESSAGE\ncontent-length:5\n\n12345678", b"abc\0" * 250),
        (b"RECEIPT\nreceipt-id:1\n", b"a:b\n" * 250),
        (b"ERROR\n\n", b"a:b\n" * 250),
    ],
)
def test_a_frame_that_comes_in_many_pieces_takes_linear_time(begin: bytes, piece: bytes) -> None:
    cutter = FrameCutter(1 << 28)
    cutter.ends_in_line_feed = cutter.nul_in_headers = True
    begun = time.process_time()
    assert cutter.feed(begin) == []
    for _ in range(8000):
        assert cutter.feed(piece) == []
    assert time.process_time() - begun < 0.5  # 6 to 43 s when each piece is joined to what was there
    assert cutter.unfinished == len(begin) + 8000 * len(piece)


def test_a_head_that_never_ends_is_not_kept() -> None:
    cutter = FrameCutter(1 << 28)
    with pytest.raises(ProviderError, match="more than") as refused:
        for _ in range(20):
            cutter.feed(b"MESSAGE\n" + b"a:b\n" * 250_000)
    assert refused.value.kind is ErrorKind.PROTOCOL
    assert cutter.unfinished <= (1 << 24) + 1_000_100


@pytest.mark.parametrize("line", [b"a:\n", b":\n", b"a\n"])
def test_what_becomes_of_a_block_of_header_lines_is_bounded(line: bytes) -> None:
    (frame,) = cut(b"MESSAGE\nack:7\n" + line * 300_000 + b"\n\0")
    assert frame.find(b"\nack:") == "7"
    with pytest.raises(ProviderError, match="more than 65536 header lines") as refused:
        frame.split()
    assert refused.value.kind is ErrorKind.FORMAT
    (frame,) = cut(b"MESSAGE\n" + b"".join(b"h%d:v\n" % n for n in range(60_000)) + b"\n\0")
    assert len(frame.headers) == 60_000


@pytest.mark.parametrize("step", range(1, 9))
def test_nuls_and_ends_are_found_wherever_a_read_ends(step: int) -> None:
    for texts in ([b"", b"\0", b"\0\0a", b"a\0X\0"], [b"\0" * 9, b"MESSAGE\0R\n"]):
        assert [frame.body for frame in of_classic(texts, step) if frame.command == b"MESSAGE"] == texts


def test_random_bytes_raise_nothing_but_errors_of_the_SPI() -> None:
    dice = random.Random(20_261_128)
    alphabet = [b"\0", b"\n", b"\r\n", b":", b"\\", b"content-length:", b"MESSAGE\n", b"ack:1", b"\n\n", b"7", b"\xff", b"a"]
    outcomes = {"frames": 0, "errors": 0}
    for _ in range(100_000):
        data = b"".join(dice.choices(alphabet, k=dice.randint(1, 12)))
        cutter = FrameCutter(64)
        try:
            for frame in cutter.feed(data[: len(data) // 2]) + cutter.feed(data[len(data) // 2 :]):
                outcomes["frames"] += 1
                assert isinstance(frame.headers, dict)
                frame.find(b"\nack:")
        except ProviderError as error:
            assert error.kind in (ErrorKind.FORMAT, ErrorKind.PROTOCOL)
            outcomes["errors"] += 1
    assert min(outcomes.values()) > 1000
