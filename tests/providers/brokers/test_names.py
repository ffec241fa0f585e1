"""Names at the brokers: no two subscriptions, locks or delays of different owners meet, nor can they be read by name."""

import itertools
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsapi.spi import Address, DestinationKind, ErrorKind, ProviderError
from jmsapi_amqp.brokers.artemis import Artemis
from jmsapi_amqp.brokers.base import AmqpBroker
from jmsapi_amqp.brokers.classic import Classic
from jmsapi_amqp.brokers.rabbit import Rabbit
from jmsapi_brokers import artemis, classic, rabbitmq
from jmsapi_brokers.names import check_text, escaped, word

QUEUE, TOPIC = DestinationKind.QUEUE, DestinationKind.TOPIC
PARTS = st.text(alphabet=".~-:|_ab0", min_size=1, max_size=5)
OWNERS = st.tuples(st.none() | PARTS, PARTS)
TRICKY = [
    "a",
    "b",
    "c",
    "a.b",
    "b.c",
    "a!1b",
    "b!1c",
    "a~1b",
    "!!c",
    "~~c",
    ":global",
    "b:global",
    "~volatile-c",
    "a.~volatile-b",
    "sub.a",
]


@given(PARTS, PARTS)
def test_escaping_keeps_texts_apart(one: str, other: str) -> None:
    assert "." not in escaped(one)
    assert (escaped(one) == escaped(other)) is (one == other)
    assert (word(one) == word(other)) is (one == other)


@given(OWNERS, OWNERS)
def test_two_owners_have_two_queues_and_locks_on_rabbitmq(one: tuple[str | None, str], other: tuple[str | None, str]) -> None:
    for durable, shared in ((True, False), (True, True), (False, True)):
        made = [rabbitmq.subscription_queue(*owner, durable=durable, shared=shared) for owner in (one, other)]
        assert (made[0] == made[1]) is (one == other)
    assert (rabbitmq.subscription_lock(*one) == rabbitmq.subscription_lock(*other)) is (one == other)


def test_no_queue_of_rabbitmq_has_two_uses() -> None:
    made: list[str] = [rabbitmq.client_id_lock(client) for client in TRICKY]
    for client, name in itertools.product([None, *TRICKY], TRICKY):
        made.append(rabbitmq.subscription_lock(client, name))
        made += [
            rabbitmq.subscription_queue(client, name, durable=durable, shared=shared)
            for durable, shared in ((True, False), (True, True), (False, True))
        ]
    for name, kind, delay in itertools.product([*TRICKY, "topic.a", "q.a", "t.a"], (QUEUE, TOPIC), (10, 1000)):
        for exchange, idle in itertools.product(("amq.topic", "other", "x.y"), (60_000, 5_000)):
            if kind is TOPIC or exchange == "amq.topic":
                made.append(rabbitmq.delay_queue(Address(kind, name), delay, exchange=exchange, idle_ms=idle).name)
    assert len(made) == len(set(made))


def _on_artemis(client: str | None, name: str) -> str:
    told = artemis.subscription_name(client, name)
    return told if client is None else f"{client}.{told}"


@given(st.tuples(PARTS, PARTS), st.tuples(PARTS, PARTS))
def test_two_owners_have_two_queues_on_artemis(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (_on_artemis(*one) == _on_artemis(*other)) is (one == other)


def test_no_queue_of_artemis_belongs_to_two_kinds_of_subscriptions() -> None:
    made: list[str] = []
    for client, name in itertools.product(TRICKY, TRICKY):
        queue = _on_artemis(client, name)
        made += [queue, queue + ":shared-volatile", f"{client}.{artemis.volatile_name(name)}"]
    for name in TRICKY:
        queue = _on_artemis(None, name)
        made += [queue + ":global", queue + ":shared-volatile:global"]
    assert len(made) == len(set(made))


def test_ordinary_names_stay_what_other_clients_call_them_on_artemis() -> None:
    assert artemis.subscription_name("com.example.app", "orders-new") == "orders-new"
    assert artemis.subscription_name(None, "orders.new") == "orders.new"


def test_two_owners_have_two_virtual_topic_queues_on_classic() -> None:
    made = [
        classic.shared_queue(client, name, "t", durable=durable)
        for client, name, durable in itertools.product([None, "v", *TRICKY], TRICKY, (True, False))
    ]
    assert len(made) == len(set(made))


@pytest.mark.parametrize(
    ("check", "name"),
    [
        (rabbitmq.check_address, "jms.s..news"),
        (rabbitmq.check_address, "jms.d.me.news"),
        (rabbitmq.check_address, "jmsapi.lock.me"),
        (rabbitmq.check_address, "jmsapi.delay.10.q.news"),
        (rabbitmq.check_address, "x" * 256),
        (artemis.check_address, "news::me.sub"),
        (artemis.check_address, "news::sub:global"),
        (classic.check_address, "jmsapi.members.Consumer.-news.VirtualTopic.t"),
        (artemis.check_address, "a.*"),
        (artemis.check_address, "a#b"),
        (classic.check_address, "a,b"),
        (classic.check_address, "a.>"),
        (classic.check_address, "a.*"),
        (classic.check_address, "a?consumer.exclusive=true"),
        *itertools.product(
            (rabbitmq.check_address, artemis.check_address, classic.check_address),
            ("", "a\0rest", "a\nb", "\ud800", "a\x85b", "a\u2028b", "x" * 4097, "ü" * 2049),
        ),
    ],
)
def test_a_name_that_is_another_s_or_none_is_refused(check: object, name: str) -> None:
    assert callable(check)
    with pytest.raises(ProviderError) as refused:
        check(Address(QUEUE, name))
    assert refused.value.kind is ErrorKind.DESTINATION


@pytest.mark.parametrize(
    "name", ["orders", "a.b/c d%", "Grüße", "amq.gen-x", "Consumer.app.VirtualTopic.t", "jmsapi.temp.1", "a:b"]
)
def test_other_names_are_taken(name: str) -> None:
    for check in (rabbitmq.check_address, artemis.check_address, classic.check_address):
        check(Address(QUEUE, name))
        check(Address(TOPIC, name))


def test_a_topic_may_have_the_name_of_a_queue_of_ours_on_rabbitmq() -> None:
    rabbitmq.check_address(Address(TOPIC, "jms.s..news"))


def test_what_is_too_long_for_rabbitmq_is_refused_before_it_is_asked_for() -> None:
    with pytest.raises(ProviderError) as refused:
        rabbitmq.delay_queue(Address(QUEUE, "n" * 240), 1000)
    assert refused.value.kind is ErrorKind.DESTINATION
    with pytest.raises(ProviderError) as refused:
        rabbitmq.client_id_lock("c" * 250)
    assert refused.value.kind is ErrorKind.CLIENT_ID


@pytest.mark.parametrize("letter", ["n", "\u65e5", "\U0001f600", "!", "~"])
def test_long_subscriptions_have_queues_of_rabbitmq_that_differ_and_fit(letter: str) -> None:
    common = letter * 127
    owners = [
        *itertools.product([None, "c" * 200, "c" * 199 + "d", "\u65e5" * 60], [f"{common}a", f"{common}b", "n", letter * 500])
    ]
    made: list[str] = []
    for client, name in owners:
        made.append(rabbitmq.subscription_lock(client, name))
        made += [
            rabbitmq.subscription_queue(client, name, durable=durable, shared=shared)
            for durable, shared in ((True, False), (True, True), (False, True))
        ]
    assert len(set(made)) == len(made)
    assert max(len(queue.encode()) for queue in made) <= 255
    assert made == [queue.replace("~", "") for queue in made]
    for queue in made:
        with pytest.raises(ProviderError):
            rabbitmq.check_address(Address(QUEUE, queue))


def test_no_short_name_is_that_of_a_long_subscription_on_rabbitmq() -> None:
    long = rabbitmq.subscription_queue("me", "n" * 300, durable=True, shared=False)
    _, _, owner, name = long.split(".", 3)
    assert rabbitmq.subscription_queue(owner, name, durable=True, shared=False) != long


@pytest.mark.parametrize("text", ["pass\0word", "half \ud800 pair"])
def test_a_text_that_no_wire_carries_whole_is_refused_unquoted(text: str) -> None:
    with pytest.raises(ProviderError) as refused:
        check_text(text, "the password", ErrorKind.SECURITY, fatal=True)
    assert refused.value.fatal
    assert text not in refused.value.message


def test_a_delay_is_rounded_up_to_three_digits_and_its_queue_leads_home() -> None:
    queue = rabbitmq.delay_queue(Address(TOPIC, "news"), 12_345)
    assert queue.name == "jmsapi.delay.12400.t.news"
    assert queue.arguments == {
        "x-message-ttl": 12_400,
        "x-expires": 72_400,
        "x-dead-letter-exchange": "amq.topic",
        "x-dead-letter-routing-key": "news",
    }


def test_queue_arguments_have_their_types() -> None:
    text = "x-queue-type:quorum; x-max-length:10;x-single-active-consumer:true ;"
    assert rabbitmq.argument_pairs(text) == [
        ("x-queue-type", "quorum"),
        ("x-max-length", "10"),
        ("x-single-active-consumer", "true"),
    ]
    assert rabbitmq.queue_arguments(text) == {"x-queue-type": "quorum", "x-max-length": 10, "x-single-active-consumer": True}


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\tb", "a\0b"])
def test_line_ends_that_rabbitmq_would_take_out_of_a_name_are_refused_on_both_wires(text: str) -> None:
    for make, kind in (
        (lambda: rabbitmq.subscription_queue("me", text, durable=True, shared=False), ErrorKind.DESTINATION),
        (lambda: rabbitmq.subscription_queue(None, text, durable=False, shared=True), ErrorKind.DESTINATION),
        (lambda: rabbitmq.subscription_lock("me", text), ErrorKind.DESTINATION),
        (lambda: rabbitmq.client_id_lock(text), ErrorKind.CLIENT_ID),
    ):
        with pytest.raises(ProviderError) as refused:
            make()
        assert refused.value.kind is kind


AMQP_ONLY = [(Artemis, "a?x=1"), (Classic, "a "), (Classic, " a"), (Rabbit, "."), (Rabbit, "..")]


@pytest.mark.parametrize(("broker", "name"), AMQP_ONLY, ids=str)
def test_what_a_broker_cuts_or_interprets_over_amqp_alone_is_refused_there(broker: type[AmqpBroker], name: str) -> None:
    """Seen: a message for 'a?x=1' came to nobody on Artemis, one for 'a ' landed in 'a' on Classic."""
    with pytest.raises(ProviderError) as refused:
        broker.check_address(cast("AmqpBroker", None), Address(QUEUE, name))
    assert refused.value.kind is ErrorKind.DESTINATION
