"""3.8.1.1 Message selector syntax: literals, identifiers, white space, the whole."""

import pytest

from jmsapi import Byte, Long, Queue, Session, Topic
from jmsapi_conformance.kit import expect_nothing, receive_text, receive_texts, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._selecting import Table, check, each_refused, each_table, is_refused, one

WORDS = ("NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE")
LONG_NAME = "n" * 5000

TABLES = {
    "3.8.1.1-3 J11-35": one(
        {"a": 10, "b": 24, "c": 1, "d": 2},
        {
            "10 - 4 - 3 = 3": "T",
            "24 / 4 / 2 = 3": "T",
            "a - 4 - 3 = 3": "T",
            "b / 4 / 2 = 3": "T",
            "b / 4 * 2 = 12": "T",
            "c = 1 OR b = 1 AND d = 1": "T",
        },
    ),
    "3.8.1.1-4": one(
        {"a": 1, "b": 10, "c": 0},
        {
            "10 - (4 - 3) = 9": "T",
            "(2 + 3) * 4 = 20": "T",
            "b - (4 - 3) = 9": "T",
            "(a + 4) * 4 = 20": "T",
            "(a = 1 OR b = 1) AND c = 1": "F",
            "a = 1 OR b = 1 AND c = 1": "T",
        },
    ),
    "3.8.1.1-5": Table(
        [{"a": 1, "b": 2}, {"b": 2, "c": True}, {"a": 1, "b": 3, "c": False}],
        {"a Is noT NuLL aNd b BeTween 1 AND 2 oR c = True": "TTF", "c iS nUlL": "TFF", "a iN ('x') Or NoT c": "UUT"},
    ),
    "J11-34": one({"n": 2, "b": True}, {"n between 1 and 3": "T", "b = true": "T", "N = 1": "U", "N IS NULL": "T"}),
    "3.8.1.1-6": Table(
        [{"s": "literal's"}, {"s": "'"}, {"s": "literals"}],
        {"s = 'literal''s'": "TFF", "s = ''''": "FTF", "s = 'literals'": "FFT"},
    ),
    "3.8.1.1-7": Table(
        [{"s": "äß日本😀"}, {"s": "äß日本"}],
        {"s = 'äß日本😀'": "TF", "s LIKE 'äß日本_'": "TF", "s IN ('äß日本')": "FT"},
    ),
    "3.8.1.1-8": one(
        {"a": 57, "b": -957, "c": Long(2**63 - 1), "d": Long(-(2**63)), "e": 62},
        {
            "a = 57": "T",
            "b = -957": "T",
            "e = +62": "T",
            "c = 9223372036854775807": "T",
            "c = 9223372036854775806": "F",
            "d = -9223372036854775808": "T",
            "d = -9223372036854775807": "F",
        },
    ),
    "3.8.1.1-9": one(
        {"a": 31, "b": 8, "c": 57},
        {"0x1F = 31": "T", "010 = 8": "T", "57L = 57": "T", "a = 0x1F": "T", "a = 0X1f": "T", "b = 010": "T", "c = 57l": "T"},
    ),
    "B.2.8-1": one({"a": 31, "b": 15, "c": 10, "d": 1000}, {"a = 0x1F": "T", "b = 017": "T", "c = 10L": "T", "d = 1e3": "T"}),
    "3.8.1.1-10": one(
        {"a": 7000.0, "b": -5790.0, "c": 7.0, "d": -95.7, "e": 6.2, "f": 0.5, "g": 1.7976931348623157e308},
        {
            "a = 7E3": "T",
            "b = -57.9E2": "T",
            "c = 7.": "T",
            "d = -95.7": "T",
            "e = +6.2": "T",
            "f = .5": "T",
            "g = 1.7976931348623157E308": "T",
            "g = 1.7976931348623155E308": "F",
        },
    ),
    "3.8.1.1-11": one(
        {"a": 1.5, "b": 2, "c": 0.01},
        {
            "1.5f = 1.5": "T",
            "2D = 2": "T",
            "1e-2 = 0.01": "T",
            "0.1f = 0.1": "F",
            "a = 1.5F": "T",
            "b = 2d": "T",
            "c = 1e-2D": "T",
            "c = 1e-2f": "F",
        },
    ),
    "3.8.1.1-12": Table(
        [{"flag": True}, {"flag": False}, {}],
        {"flag = TRUE": "TFU", "flag <> false": "TFU", "flag = FALSE": "FTU", "TRUE": "TTT", "FALSE": "FFF"},
    ),
    "3.8.1.1-13": one(
        {"_a": 1, "$b1": 1, "été": 1, LONG_NAME: 1, "a": 2, "b": 1},
        {"_a = 1": "T", "$b1 = 1": "T", "été = 1": "T", f"{LONG_NAME} = 1": "T", "a-b = 1": "T"},
    ),
    "3.8.1.1-15": one(
        {"n": 5, "s": "5", "y": Byte(5), "l": Long(5), "d": 5.0, "b": True},
        {
            "n = 5": "T",
            "s = '5'": "T",
            "s = 5": "F",
            "n = '5'": "F",
            "y = 5": "T",
            "l = 5": "T",
            "d = 5": "T",
            "n / 2 = 2": "T",
            "d / 2 = 2.5": "T",
            "b = 'true'": "F",
        },
    ),
    "3.8.1.1-16 B.3.1-5": one(
        {"present": 1},
        {"missing = 1": "U", "missing <> 1": "U", "missing IS NULL": "T", "present = 1": "T"},
    ),
    "3.8.1.1-17": one(
        {"NumberOfOrders": "2"},
        {"NumberOfOrders > 1": "F", "NumberOfOrders = 2": "F", "NumberOfOrders = '2'": "T"},
    ),
    "B.3.1-4": one({"n": "2"}, {"n > 1": "F", "n = '2'": "T"}),
    "3.8.1.1-18": one({"Color": "red"}, {"color = 'red'": "U", "Color = 'red'": "T", "COLOR IS NULL": "T"}),
    "3.8.1.1-22": one(
        {"JMSXGroupID": "g", "JMS_Vendor_x": 1, "x": 2},
        {"JMSXGroupID = 'g'": "T", "JMSXGroupID = 'h'": "F", "JMS_Vendor_x = 1": "T", "JMS_Vendor_x = 2": "F", "x = 2": "T"},
    ),
    "3.8.1.1-23": Table(
        [{"a": 1, "b": 2}, {"a": 1, "b": 3}], {"a\t=\f1\r\nAND\nb = 2": "TF", "\n a=1 \f AND\tb=3\r": "FT", "NOT\na = 2": "TT"}
    ),
    "3.8.1.1-24": one({"n": 1}, {"1 = 1": "T", "1 = 2": "F", "missing > 1": "U", "n": "F"}),
}
REFUSED = {
    "3.8.1.1-1": ["SELECT 1", "a = ALL (1)", "UPPER(a) = 'X'", "a == 1", "a != 1", "a || b = 'x'", "EXISTS a"],
    "3.8.1.1-6": ["s = 'literal", "s = ''''' ", "s = 'a' 'b'", 's = "literal"'],
    "3.8.1.1-8": ["a = 9223372036854775808", "a = -9223372036854775809"],
    "3.8.1.1-9": ["09 = 9", "a = 0x", "a = 5LL"],
    "3.8.1.1-10": ["a = 1.8E308", "a = 1E", "a = ."],
    "3.8.1.1-13": ["1a = 1", "a.b = 1", "a#b = 1", "a b = 1"],
    "3.8.1.1-14": [text for word in WORDS for text in (f"{word} = 'x'", f"{word.lower()} = 1", f"{word.capitalize()} IS NULL")],
    "B.3.1-3": ["ESCAPE = 1"],
    "3.8.1.1-22": ["JMSfoo = 1", "JMSfoo IS NULL"],
    "3.8.1.1-23": ["a\u00a0= 1", "a\v= 1", "a = 1\u2003AND b = 1"],
    "3.8.1.1-24": ["1 + 1", "'a'", "a + 1", "a = 1 b"],
}


@needs("topic_selector")
@each_table(TABLES)
def test_a_selector_takes_the_right_messages(session: Session, other_session: Session, topic: Topic, table: Table) -> None:
    check(session, other_session, topic, table)


@each_refused(REFUSED)
def test_what_is_no_selector_is_refused(session: Session, queue: Queue, topic: Topic, selectors: list[str]) -> None:
    for selector in selectors:
        is_refused(session, topic, selector)
        is_refused(session, queue, selector)


@requirement("3.8.1.1-2", "B.3.1-2")
@pytest.mark.parametrize("selector", ["", None, " ", "\t\n"])
def test_an_empty_selector_is_none(
    session: Session, other_session: Session, queue: Queue, topic: Topic, selector: str | None
) -> None:
    for where in (queue, topic):
        consumer = session.create_consumer(where, selector)
        assert consumer.message_selector is None
        send_texts(other_session, where, "1")
        send_texts(other_session, where, "2", a=1)
        assert receive_texts(consumer, 2) == ["1", "2"]


@requirement("3.8.1.1-18")
@needs("topic_selector")
def test_a_header_field_goes_by_its_exact_name(session: Session, other_session: Session, topic: Topic) -> None:
    exact, other = session.create_consumer(topic, "JMSType = 'x'"), session.create_consumer(topic, "jmstype = 'x' OR is_last")
    message = other_session.create_text_message("text")
    message.jms_type = "x"
    other_session.create_producer(topic).send(message)
    assert receive_text(exact) == "text"
    expect_nothing(other, other_session, topic, is_last=True)
