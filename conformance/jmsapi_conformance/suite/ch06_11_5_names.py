"""6.11.5 Subscription names and client identifier."""

import pytest

from jmsapi import JMSException, Session, Topic, UnsupportedFeatureException
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import receive_text, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._subscriptions import AnyConsumer, each_named_kind, end_of, own_name, subscribe


@requirement("6.11.5-1", "B.5.15-1")
@each_named_kind
@pytest.mark.parametrize("name", [".a.B-9_é日$", "-ÄÖ._Ж٣$$", "__--.."])
def test_letters_digits_and_a_few_signs_make_a_name(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str, name: str
) -> None:
    session = connect(client_id=names.client_id()).create_session()
    name = own_name(names, name)
    consumer = subscribe(session, kind, topic, name)
    send_texts(other_session, topic, "active")
    assert receive_text(consumer) == "active"
    consumer.close()
    send_texts(other_session, topic, "inactive")
    consumer = subscribe(session, kind, topic, name)
    assert end_of(consumer, other_session, topic) == ([] if kind == "shared" else ["inactive"])
    consumer.close()


@requirement("6.11.5-1")
@needs("unsubscribe", "durable_subscription")
def test_a_subscription_of_such_a_name_is_ended(connect: Connect, topic: Topic, other_session: Session, names: Names) -> None:
    session = connect(client_id=names.client_id()).create_session()
    name = own_name(names, ".a.B-9_é日$")
    session.create_durable_consumer(topic, name).close()
    send_texts(other_session, topic, "old")
    session.unsubscribe(name)
    assert end_of(session.create_durable_consumer(topic, name), other_session, topic) == []


@requirement("6.11.5-2")
@each_named_kind
def test_a_name_with_other_characters_is_refused_or_not_confused(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    session = connect(client_id=names.client_id()).create_session()
    common = names.subscription()
    consumers: dict[str, AnyConsumer] = {}
    for sign in (" ", "/", ":", "|", "%20", "%", "_", "__", "", "*", "#", "\\", "\n", "~", "é", "e\u0301"):
        name = f"{common}{sign}x"
        names.subscriptions.append(name)
        try:
            consumers[sign] = subscribe(session, kind, topic, name)
        except UnsupportedFeatureException:
            raise
        except JMSException:
            assert sign not in ("_", "__", "", "é")
    send_texts(other_session, topic, "text")
    still_open = list(consumers.values())
    assert [receive_text(consumer) for consumer in still_open] == ["text"] * len(still_open)
    for sign, consumer in consumers.items():
        consumer.close()
        send_texts(other_session, topic, f"without {sign!r}")
        still_open.remove(consumer)
        assert [receive_text(other) for other in still_open] == [f"without {sign!r}"] * len(still_open)


@requirement("6.11.5-3", "B.5.15-2")
@each_named_kind
def test_names_of_128_characters_differ_in_their_last(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    session = connect(client_id=names.client_id()).create_session()
    two_long_names_are_two_subscriptions(session, kind, topic, other_session, names, 128, "x")


@requirement("6.11.5-3")
@each_named_kind
def test_names_of_128_letters_that_are_not_ascii_differ_in_their_last(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    session = connect(client_id=names.client_id()).create_session()
    two_long_names_are_two_subscriptions(session, kind, topic, other_session, names, 128, "日")


@requirement("6.11.5-4")
@each_named_kind
def test_longer_names_are_refused_or_kept_whole(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    session = connect(client_id=names.client_id()).create_session()
    subscribe(session, kind, topic, names.subscription()).close()
    try:
        subscribe(session, kind, topic, own_name(names, "x" * 129)).close()
    except JMSException:
        return
    two_long_names_are_two_subscriptions(session, kind, topic, other_session, names, 129, "x")


def two_long_names_are_two_subscriptions(
    session: Session, kind: str, topic: Topic, sender: Session, names: Names, length: int, letter: str
) -> None:
    """See that two names of a length that differ in their last character only are not taken for one."""
    common = names.subscription()
    common += letter * (length - 1 - len(common))
    pair = [f"{common}{last}" for last in "ab"]
    assert [len(name) for name in pair] == [length, length]
    names.subscriptions += pair
    first, second = (subscribe(session, kind, topic, name) for name in pair)
    send_texts(sender, topic, "to both")
    assert [receive_text(first), receive_text(second)] == ["to both", "to both"]
    first.close()
    send_texts(sender, topic, "after the first")
    assert receive_text(second) == "after the first"
    assert end_of(subscribe(session, kind, topic, pair[0]), sender, topic) == ([] if kind == "shared" else ["after the first"])
    assert receive_text(second) == "the end"
