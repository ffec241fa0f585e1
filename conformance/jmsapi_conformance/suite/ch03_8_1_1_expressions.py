"""3.8.1.1 Message selector syntax: expressions and operators."""

from jmsapi import Byte, Float, Long, Queue, Session, Topic
from jmsapi_conformance.kit import expect_nothing, receive_text
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._selecting import Table, check, each_refused, each_table, is_refused, one

AGES = [{"age": age} for age in (14, 15, 17, 19, 20)]
PHONES = [{"phone": phone} for phone in ("123", "12993", "1234")]
COUNTRIES = [{"c": "UK"}, {"c": "US"}, {"c": "Peru"}, {}]

TABLES = {
    "3.8.1.1-25": one({"a": 3, "b": 1, "c": 10}, {"a * 2 + b > (c - 1) / 2": "T", "a * 2 + b > c": "F", "-(a + b) = -4": "T"}),
    "3.8.1.1-26": Table(
        [{"flag": True, "n": 1}, {"flag": False, "n": 1}, {"n": 1}],
        {"flag": "TFU", "NOT flag": "FTU", "flag AND n = 1": "TFU", "TRUE OR flag": "TTT", "flag OR n = 1": "TTT"},
    ),
    "3.8.1.1-27": Table(
        [{"a": 1, "b": 0, "c": 0}, {"a": 2, "b": 1}, {"a": 1, "b": 1}],
        {"a = 1 OR b = 1 AND c = 1": "TUT", "NOT a = 1 AND b = 2": "FFF", "NOT a = 1 OR b = 1": "FTT"},
    ),
    "3.8.1.1-28": Table(
        [{"n": 4}, {"n": 5}, {"n": 6}],
        {"n = 5": "FTF", "n <> 5": "TFT", "n < 5": "TFF", "n <= 5": "TTF", "n > 5": "FFT", "n >= 5": "FTT"},
    ),
    "3.8.1.1-29 B.2.2-1": one(
        {"n": 2, "i": 5, "f": Float(2.5), "l": Long(3), "big": Long(2**53 + 1)},
        {
            "n = 2.0": "T",
            "n > 1.5": "T",
            "i = 5.0": "T",
            "f > 2": "T",
            "l < 3.5": "T",
            "big = 9007199254740992.0": "T",
            "big = 9007199254740992": "F",
        },
    ),
    "3.8.1.1-30": one(
        {"s": "a", "f": True},
        {"s = 1": "F", "s <> 1": "F", "f = 1": "F", "f <> 'x'": "F", "s = TRUE": "F", "f = 'true'": "F"},
    ),
    "3.8.1.1-31": one({"n": 1}, {"missing = missing": "U", "missing <> 1": "U", "missing = 1": "U", "n = missing": "U"}),
    "3.8.1.1-32": one({"s": "b", "t": "a", "f": True, "g": False}, {"s > t": "F", "f >= g": "F", "s <> t": "T", "f = g": "F"}),
    "B.2.9-1": one({"b": True}, {"b = TRUE": "T", "b <> FALSE": "T", "b = FALSE": "F"}),
    "3.8.1.1-33": Table(
        [{"s": "ab"}, {"s": "e\u0301"}],
        {"s = 'ab '": "FF", "s = ' ab'": "FF", "s = 'AB'": "FF", "s = 'ab'": "TF", "s = 'é'": "FF", "s = 'e\u0301'": "FT"},
    ),
    "3.8.1.1-34": one(
        {"a": 5, "b": 2},
        {
            "2 + 3 * 4 = 14": "T",
            "-2 * 3 = -6": "T",
            "- a = -5": "T",
            "10 - -3 = 13": "T",
            "a + b * 4 = 13": "T",
            "-a * b = -10": "T",
        },
    ),
    "3.8.1.1-35": one(
        {"b": Byte(100), "i": 2**31 - 1, "a": 7, "z": 0},
        {
            "7 / 2 = 3": "T",
            "-7 / 2 = -3": "T",
            "7 / 2.0 = 3.5": "T",
            "b + 100 = 200": "T",
            "a / 2 = 3": "T",
            "-a / 2 = -3": "T",
            "a / 2.0 = 3.5": "T",
            "i + 1 < 0": "T",
            "i + 1L > 0": "T",
            "1 / z = 1": "U",
        },
    ),
    "3.8.1.1-36": Table(
        AGES, {"age BETWEEN 15 AND 19": "FTTTF", "age BETWEEN 5 * 3 AND 20 - 1": "FTTTF", "age BETWEEN 19 AND 15": "FFFFF"}
    ),
    "3.8.1.1-37": Table(AGES, {"age NOT BETWEEN 15 AND 19": "TFFFT", "age NOT BETWEEN 19 AND 15": "TTTTT"}),
    "3.8.1.1-38": one(
        {"d": 2},
        {
            "missing BETWEEN 1 AND 2": "U",
            "5 BETWEEN 6 AND missing": "F",
            "d * 2 BETWEEN d + 1 AND 2 * d": "T",
            "d BETWEEN 1 AND missing": "U",
        },
    ),
    "3.8.1.1-39": Table(COUNTRIES, {"c IN ('UK', 'US', 'France')": "TTFU", "c IN ('UK')": "TFFU", "c IN ('UK', 'UK')": "TFFU"}),
    "3.8.1.1-40": Table(COUNTRIES, {"c NOT IN ('UK', 'US')": "FFTU", "c NOT IN ('Peru')": "TTFU"}),
    "3.8.1.1-41": one({}, {"c IN ('a')": "U", "c NOT IN ('a')": "U"}),
    "3.8.1.1-43": Table(
        [{"word": "lose"}, {"word": "loose"}, {"word": "lse"}, {"word": "l\nse"}, {"word": "l😀se"}],
        {"word LIKE 'l_se'": "TFFTT"},
    ),
    "3.8.1.1-44": Table(PHONES, {"phone LIKE '12%3'": "TTF", "phone LIKE '%'": "TTT", "phone LIKE '123%'": "TFT"}),
    "3.8.1.1-45": Table(
        [{"s": "a.c*"}, {"s": "abcc"}, {"s": "abc"}],
        {"s LIKE 'a.c*'": "TFF", "s LIKE 'ABC'": "FFF", "s LIKE 'b'": "FFF", "s LIKE '%b%'": "FTT", "s LIKE 'a.c%'": "TFF"},
    ),
    "3.8.1.1-46": Table(
        [{"s": "_foo"}, {"s": "bar"}, {"s": "100%"}, {"s": "100"}],
        {r"s LIKE '\_%' ESCAPE '\'": "TFFF", "s LIKE '%!%' ESCAPE '!'": "FFTF", "s LIKE '1__x%' ESCAPE 'x'": "FFTF"},
    ),
    "3.8.1.1-47": Table([*PHONES, {}], {"phone NOT LIKE '12%3'": "FFTU"}),
    "3.8.1.1-48": one({}, {"missing LIKE '%'": "U", "missing NOT LIKE 'x'": "U"}),
    "3.8.1.1-49": one({"n": 123}, {"n LIKE '1%'": "F", "n LIKE '123'": "F"}),
    "3.8.1.1-50": Table([{}, {"p": None}, {"p": ""}, {"p": 0}], {"p IS NULL": "TTFF", "JMSCorrelationID IS NULL": "TTTT"}),
    "3.8.1.1-51": Table([{}, {"p": None}, {"p": ""}, {"p": 0}], {"p IS NOT NULL": "FFTT"}),
}
REFUSED = {
    "3.8.1.1-42": ["c IN ()", "c IN (1,2)", "c IN (d)", "'a' IN ('a')", "c IN 'a'", "c IN ('a',)"],
    "3.8.1.1-46": ["s LIKE 'x' ESCAPE ''", "s LIKE 'x' ESCAPE 'ab'", "s LIKE 'x' ESCAPE 5"],
    "3.8.1.1-49": ["s LIKE 5", "s LIKE t", "'abc' LIKE 'a%'", "5 LIKE '5'"],
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


@requirement("3.8.1.1-50", "3.8.1.1-51")
@needs("topic_selector")
def test_a_header_field_is_null_or_not(session: Session, other_session: Session, topic: Topic) -> None:
    null = session.create_consumer(topic, "JMSCorrelationID IS NULL")
    filled = session.create_consumer(topic, "JMSCorrelationID IS NOT NULL")
    producer = other_session.create_producer(topic)
    message = other_session.create_text_message("with")
    message.jms_correlation_id = "c"
    producer.send(message)
    producer.send(other_session.create_text_message("without"))
    assert receive_text(null) == "without"
    assert receive_text(filled) == "with"
    expect_nothing(null, other_session, topic)
