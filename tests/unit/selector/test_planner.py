"""Who evaluates a selector, and what the broker is sent. That brokers answer right is tested on their own evaluators."""

from __future__ import annotations

import pytest

from jmsapi_brokers import artemis, classic, rabbitmq
from jmsapi_selector import compile_selector
from jmsapi_selector.dialects import FAULTS, Dialect
from jmsapi_selector.planner import Action, DestinationKind, Plan, covers, plan
from jmsapi_stomp.properties import pushable_name

from .texts import Texts

DIALECTS = {
    dialect.name: dialect
    for dialect in (
        *(artemis.AMQP_SELECTORS, classic.AMQP_SELECTORS, rabbitmq.AMQP_SELECTORS),
        *(artemis.STOMP_SELECTORS, classic.STOMP_SELECTORS, rabbitmq.STOMP_SELECTORS),
    )
}


def planned(text: str, dialect: str = "amqp-artemis", destination: DestinationKind = "queue") -> Plan:
    return plan(compile_selector(text), DIALECTS[dialect], destination)


def words(made: Plan) -> list[str]:
    return [fault.word for fault in made.reasons]


@pytest.mark.parametrize(
    "text",
    [
        "color = 'red'",
        " (color = 'red')  AND weight < 5 ",
        "NOT flag AND NOT (a = 1) AND NOT NOT b",
        "JMSType = 'car' OR JMSCorrelationID IS NULL",
        "a IN ('x', 'y') AND b LIKE 'x!%%' ESCAPE '!'",
        "a BETWEEN 1 AND 5L AND b = 0x1F AND c <= -1.5e3",
    ],
)
def test_what_artemis_answers_right_is_sent_as_it_is(text: str) -> None:
    assert planned(text) == Plan(Action.PUSH, text)


@pytest.mark.parametrize(
    ("text", "sent", "reasons"),
    [
        ("NOT a = 1", "NOT (a = 1)", ["not-binds-tighter"]),
        ("NOT NOT a IS NULL", "NOT (NOT (a IS NULL))", ["not-binds-tighter"]),
        ("5 = a", "a = 5", ["literal-left"]),
        ("5 >= a", "a <= 5", ["literal-left"]),
        ("a <> 'x'", "a LIKE '%' AND a <> 'x'", ["unlike-unequal"]),
        ("a <> 5", "a < 5 OR a > 5", ["unlike-unequal"]),
        ("a <> TRUE", "a = FALSE", ["unlike-unequal"]),
        ("a NOT LIKE 'x'", "a LIKE '%' AND a NOT LIKE 'x'", ["unlike-not-like"]),
        ("NOT (a IN ('x'))", "NOT (a LIKE '%' AND a IN ('x'))", ["negated-type"]),
        ("a > 5", "a > 5 AND a <= 1e999", ["nan"]),
        ("a NOT BETWEEN 1 AND 5", "a < 1 OR a > 5 AND a <= 1e999", ["nan"]),
        ("a = 0", "a = 0 OR a = -0.0", ["negative-zero"]),
        ("a < 0", "a < -0.0", ["negative-zero"]),
        ("a BETWEEN 0 AND 5", "a BETWEEN -0.0 AND 5", ["negative-zero"]),
        ("a = 34f", "a = 34.0", ["notation"]),
        ("a = 0xFFFFFFFF", "a = -1", ["notation"]),
        ("a <= 1 + 7 / 2", "a <= 4", ["constants"]),
        ("7 / 2 = 3 AND a", "a", ["constants"]),
        ("JMSPriority > 4", "AMQPriority > 4", ["header-names"]),
        ("JMSDeliveryMode = 'PERSISTENT'", "AMQDurable = 'DURABLE'", ["header-names"]),
        ("JMSDeliveryMode LIKE 'NON%'", "AMQDurable = 'NON_DURABLE'", ["header-names"]),
        ("JMSDeliveryMode <> 'x' AND a", "a", ["header-names"]),
        ("JMSType > 5 OR a", "a", ["unlike-unequal"]),
        ("NOT JMSPriority = 'x'", "NOT (AMQPriority IS NULL)", ["unlike-unequal", "header-names", "not-binds-tighter"]),
        ("a = JMSMessageID", "a = AMQUserID AND a IS NOT NULL", ["two-nulls", "header-names"]),
        ("a LIKE 'x€€€%' ESCAPE '€'", "a LIKE 'x€\\%' ESCAPE '\\'", ["escape"]),
    ],
)
def test_a_fault_of_artemis_is_worked_around(text: str, sent: str, reasons: list[str]) -> None:
    made = planned(text)
    assert (made.action, made.text) == (Action.REWRITE, sent)
    assert words(made) == reasons
    assert made.caveats == ()
    assert not made.recheck


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a + 1 = 2", "arithmetic"),
        ("-a = 2", "arithmetic"),
        ("a BETWEEN b * 2 AND 5", "arithmetic"),
        ("a = b", "two-properties"),
        ("JMSPriority < a", "two-properties"),
        ("JMSDeliveryMode = a", "delivery-mode"),
        ("a = 16777217f", "float-literal"),
        ("été = 1", "name"),
        ("xpath = 1", "name"),
        ("JMSXGroupSeq = 1", "name"),
        ("JMSXUserID IS NULL", "name"),
        ("JMS_AMQP_x = 1", "name"),
        ("AMQSize > 1", "name"),
        ("mode = 'PERSISTENT'", "persistent-literal"),
        ("a IN ('" + "x" * 60_000 + "')", "too-long"),
    ],
)
def test_what_artemis_cannot_answer_stays_here(text: str, reason: str) -> None:
    made = planned(text)
    assert (made.action, made.text) == (Action.LOCAL, None)
    assert words(made) == [reason]


@pytest.mark.parametrize("dialect", ["amqp-artemis", "amqp-classic", "stomp-artemis", "stomp-classic"])
@pytest.mark.parametrize(
    "text", ["JMSXAppID IS NULL", "JMSXAppID = 'x'", "JMSXDeliveryCount IS NULL", "JMSXState IS NULL", "JMS_Vendor_x = 'y'"]
)
def test_a_name_that_no_broker_gives_a_meaning_is_a_plain_property(dialect: str, text: str) -> None:
    made = planned(text, dialect)
    assert made.text is not None
    assert text in made.text


@pytest.mark.parametrize("name", ["priority", "type", "__AMQ_x", "_AMQ_x", "JMS_PY_id", "JMS_AMQP_x", "NATIVE_x", "JMS_x", "n"])
def test_what_travels_under_another_name_over_stomp_is_not_asked_of_a_broker(name: str) -> None:
    for dialect in ("stomp-artemis", "stomp-classic"):
        assert (planned(f"{name} = 'x'", dialect).action is Action.LOCAL) is not pushable_name(name)


def test_classic_knows_the_transaction_of_the_sender() -> None:
    assert planned("JMSXProducerTXID IS NULL", "amqp-classic").action is Action.LOCAL
    assert planned("JMSXProducerTXID IS NULL").action is Action.PUSH


def test_on_a_topic_the_rest_is_pushed_and_checked_again() -> None:
    made = planned("color = 'red' AND a + 1 = 2", destination="topic")
    assert made == Plan(Action.REWRITE, "color = 'red'", (FAULTS["arithmetic"],), (), recheck=True)
    made = planned("NOT (color = 'red' OR a = b)", destination="topic")
    assert (made.text, made.recheck) == ("NOT (color = 'red')", True)


@pytest.mark.parametrize("text", ["a = b", "color = 'red' OR a = b", "NOT (color = 'red' AND a = b)"])
def test_on_a_topic_too_what_leaves_nothing_to_push_stays_here(text: str) -> None:
    made = planned(text, destination="topic")
    assert (made.action, made.text, words(made)) == (Action.LOCAL, None, ["two-properties"])


def test_classic_gets_brackets_that_keep_its_cache_from_mixing_selectors() -> None:
    made = planned("color = 'red' AND JMSPriority > 4", "amqp-classic")
    assert (made.action, made.text) == (Action.REWRITE, "((color = 'red' AND JMSPriority > 4))")
    assert words(made) == ["selector-cache"]
    assert planned("flag AND a IN ('x')", "amqp-classic").action is Action.PUSH


def test_stomp_properties_are_compared_by_decimal_literals() -> None:
    made = planned("n > 5 AND s = 'x'", "stomp-classic")
    assert (made.action, made.text) == (Action.REWRITE, "n > 5.0 AND n <= 1e999 AND s = 'x'")
    assert words(made) == ["whole-literal", "nan"]
    assert [fault.word for fault in made.caveats] == ["look-alike"]
    made = planned("n > 5 AND s = 'x'", "stomp-artemis")
    assert made.text == "convert_string_expressions:n > 5.0 AND n <= 1e999 AND s = 'x'"


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("b", "b = TRUE"),
        ("NOT b", "NOT (b = TRUE)"),
        ("b <> TRUE", "b = FALSE"),
        ("s IN ('x', 'y')", "s IN ('x', 'y')"),
        ("JMSPriority >= 5", "JMSPriority >= 5"),
        ("JMSMessageID = 'ID:1'", "JMS_PY_id = 'ID:1'"),
        ("n = 1700000000000", "n = 1700000000000.0"),
    ],
)
def test_stomp_selectors_are_put_into_words_that_convert(text: str, sent: str) -> None:
    assert planned(text, "stomp-classic").text == sent


def test_over_stomp_the_caveats_are_named_on_a_queue_and_checked_on_a_topic() -> None:
    on_queue, on_topic = (planned("n = 5", "stomp-classic", kind) for kind in ("queue", "topic"))
    assert [fault.word for fault in on_queue.caveats] == ["look-alike"]
    assert not on_queue.recheck
    assert on_topic.caveats == ()
    assert on_topic.recheck
    assert on_queue.text == on_topic.text == "n = 5.0"


def test_a_stomp_selector_that_would_hide_messages_is_not_pushed_on_a_topic() -> None:
    # To the broker the string "7" is greater than 5, so NOT would hide what the standard selects.
    assert planned("NOT (n > 5)", "stomp-classic", "topic").action is Action.LOCAL


def test_a_string_that_looks_like_no_number_needs_no_second_look() -> None:
    for text in ("s = 'blue'", "s IN ('a', 'b')", "s LIKE 'x%'", "NOT (s = 'blue')", "s IS NULL"):
        made = planned(text, "stomp-classic", "topic")
        assert not made.recheck, text
        assert made.caveats == ()
    for text in ("s = '5'", "s IN ('a', 'true')", "s LIKE '1%'", "s <> 'blue'", "s NOT LIKE 'x%'"):
        assert planned(text, "stomp-classic", "topic").recheck, text


@pytest.mark.parametrize("text", ["n + 1 = 2", "a = b", "priority = 4", "AMQ_x = 1", "n = 9007199254740993"])
def test_what_stomp_cannot_carry_stays_here(text: str) -> None:
    assert planned(text, "stomp-classic").action is Action.LOCAL


@pytest.mark.parametrize("dialect", ["amqp-rabbitmq", "stomp-rabbitmq"])
def test_rabbitmq_is_sent_no_selector(dialect: str) -> None:
    for kind in ("queue", "topic"):
        assert planned("a = 1", dialect, kind) == Plan(Action.LOCAL, None, (FAULTS["no-selectors"],))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_selector_needs_no_plan(dialect: str) -> None:
    assert planned("  ", dialect) == Plan(Action.PUSH, None)


def test_a_broker_that_this_project_does_not_know_brings_its_own_dialect() -> None:
    theirs = Dialect("amqp-another", names={"JMSPriority": "prio"}, longest=20)
    made = plan(compile_selector("JMSPriority > 4"), theirs, "queue")
    assert (made.action, made.text) == (Action.REWRITE, "prio > 4")
    assert plan(compile_selector("JMSPriority > 4 AND color = 'red'"), theirs, "queue").action is Action.LOCAL


def test_a_broker_that_keeps_to_the_standard_reads_its_own_names_and_all_else_as_it_stands() -> None:
    theirs = Dialect("amqp-another", standard=True, names={"JMSPriority": "prio", "JMSType": "the_type"}, longest=90)
    text = "JMSPriority > 4 AND (note = 'JMSPriority' OR JMSType = 'x')  AND PriorityOf <> JMSPriority"
    made = plan(compile_selector(text), theirs, "queue")
    assert made.action is Action.REWRITE
    assert made.text == "prio > 4 AND (note = 'JMSPriority' OR the_type = 'x')  AND PriorityOf <> prio"
    assert [fault.word for fault in made.reasons] == ["header-names"]
    assert plan(compile_selector("a = 5 AND NOT b"), theirs, "queue") == Plan(Action.PUSH, "a = 5 AND NOT b")


def test_a_plan_tells_its_reasons() -> None:
    assert str(planned("NOT a = 5", "stomp-classic")) == (
        "REWRITE NOT (a = 5.0)\n"
        f"  because whole-literal: {FAULTS['whole-literal'].reason}\n"
        f"  because not-binds-tighter: {FAULTS['not-binds-tighter'].reason}\n"
        f"  except look-alike: {FAULTS['look-alike'].reason}"
    )


def test_every_fault_in_the_table_is_met_by_some_selector() -> None:
    met: set[str] = set()
    texts = Texts(7)
    samples = [texts.valid() for _ in range(3000)]
    samples += [
        "JMSTimestamp > 5", "a LIKE '€_' ESCAPE '€'", "a = 16777216f", "n = 9007199254740993", "n = 1700000000000",
        "m = 'PERSISTENT'", "a > 5", "priority = 1", "JMSDeliveryMode LIKE 'P%'", "a = JMSType", "a = b", "b", "a = 100d",
        f"a IN ('{'x' * 60_000}')", "a LIKE '\\!#~^|@$&*+=?:;<>/{}[]()€€' ESCAPE '€'",
    ]  # fmt: skip
    for text in samples:
        for dialect in DIALECTS:
            made = planned(text, dialect)
            met |= {fault.word for fault in (*made.reasons, *made.caveats)}
    assert met == set(FAULTS)


def test_what_is_pushed_or_rewritten_is_a_selector_itself() -> None:
    texts = Texts(8)
    for _ in range(3000):
        text = texts.valid()
        for dialect in ("amqp-artemis", "amqp-classic", "stomp-artemis", "stomp-classic"):
            made = planned(text, dialect)
            if made.text is not None:
                bare = made.text.removeprefix("convert_string_expressions:").replace("AMQ", "JMS").replace("1e999", "1e308")
                bare = bare.replace("JMSDurable", "JMSDeliveryMode")
                assert compile_selector(bare), text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "color = 'red'",
        "n > 5",
        "n > 0 AND m <= 0 AND k <> 0",
        "n <> 5 OR t NOT LIKE 'x%'",
        "n NOT BETWEEN 1 AND 5",
        "JMSType = p",
        "NOT (color IS NULL)",
        "NOT (NOT (n > 5))",
        "a IN ('x', 'y') AND n < 2.5",
    ],
)
def test_a_text_of_which_a_broker_makes_too_much_covers_the_standard(text: str) -> None:
    assert covers(compile_selector(text), DIALECTS["amqp-artemis"])


@pytest.mark.parametrize(
    "text",
    [
        "n = 0",
        "n >= 0",
        "n <= -0.0",
        "n BETWEEN 0 AND 5",
        "NOT (n > 5)",
        "NOT (n <> 5)",
        "NOT (a IN ('x'))",
        "NOT a = 1",
        "5 = n",
        "n + 1 = 2",
        "n <= 7 / 2",
        "n = m",
        "n = 34f",
        "JMSPriority > 4",
        "JMSDeliveryMode = 'PERSISTENT'",
        "color = 'PERSISTENT'",
        "a LIKE 'x€%' ESCAPE '€'",
    ],
)
def test_a_text_of_which_a_broker_makes_too_little_does_not_cover_the_standard(text: str) -> None:
    assert not covers(compile_selector(text), DIALECTS["amqp-artemis"])


def test_a_text_that_a_converting_client_may_have_used_before_covers_it_where_true_matters_only() -> None:
    assert covers(compile_selector("n = 5"), DIALECTS["amqp-classic"])
    assert not covers(compile_selector("NOT (n = 5)"), DIALECTS["amqp-classic"])
    assert covers(compile_selector("NOT (n = 5)"), DIALECTS["amqp-artemis"])


@pytest.mark.parametrize("dialect", ["amqp-rabbitmq", "stomp-artemis", "stomp-classic", "stomp-rabbitmq"])
def test_without_selectors_or_types_nothing_is_covered(dialect: str) -> None:
    assert not covers(compile_selector("color = 'red'"), DIALECTS[dialect])
    assert not covers(compile_selector(" "), DIALECTS[dialect])
