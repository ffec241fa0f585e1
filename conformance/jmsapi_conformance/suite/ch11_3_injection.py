"""11.3 Injection of JMSContext objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest

import jmsapi
from jmsapi import (
    ConnectionFactory,
    JMSConnectionFactory,
    JMSContext,
    JMSPasswordCredential,
    JMSRuntimeException,
    JMSSessionMode,
    Queue,
    Session,
)
from jmsapi.injection import Inject, Injector
from jmsapi.transactions import LocalTransactions
from jmsapi_conformance.kit import QUIET_MS, receive_text, receive_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._injected import counted

FACTORY = "conformance.injected.factory"
MODES = [JMSContext.AUTO_ACKNOWLEDGE, JMSContext.CLIENT_ACKNOWLEDGE, JMSContext.DUPS_OK_ACKNOWLEDGE]


@pytest.fixture
def counting(factory: ConnectionFactory) -> Iterator[Any]:
    """Give a factory that keeps what it makes."""
    yield from counted(factory)


# ---- 11.3.1 to 11.3.3 what is injected


@requirement("11.3.1-1", "11.3.3-1", "11.3.3-3")
def test_an_attribute_and_an_argument_are_filled_with_a_context_of_the_default_factory(
    counting: Any, queue: Queue, other_session: Session
) -> None:
    class Base:
        jms: Annotated[JMSContext, Inject()]

    class Shop(Base):
        jms2: Annotated[JMSContext, JMSSessionMode()]

        def __init__(self, name: str) -> None:
            self.name = name

    injector = Injector(counting)
    shop = injector.make(Shop, "kettles")
    assert isinstance(shop.jms, JMSContext)

    @injector.inject
    def send(text: str, jms: Annotated[JMSContext, Inject()]) -> str:
        jms.create_producer().send(queue, text)
        return text

    with injector.request():
        shop.jms.create_producer().send(queue, shop.name)
        shop.jms2.create_producer().send(queue, "2")
        assert send("3") == "3"
    assert receive_texts(other_session.create_consumer(queue), 3) == ["kettles", "2", "3"]
    assert len(counting.asked) == 1


@requirement("11.3.3-2")
def test_a_factory_is_named_by_its_lookup_name(counting: Any) -> None:
    jmsapi.register_object(FACTORY, counting)
    try:
        injector = Injector("nobody has this name")

        @injector.inject
        def by_argument(jms: Annotated[JMSContext, JMSConnectionFactory(FACTORY)]) -> None:
            jms.create_message()

        @injector.inject
        @JMSConnectionFactory(FACTORY)
        def by_function(jms: Annotated[JMSContext, Inject()]) -> None:
            jms.create_message()

        by_argument()
        by_function()
        assert len(counting.asked) == 2
        with injector.request(), pytest.raises(JMSRuntimeException, match="nobody has this name"):
            injector.context().create_message()
    finally:
        jmsapi.register_object(FACTORY, None)


@requirement("11.3.3-4", "11.3.3-5")
def test_a_credential_gives_name_and_password_and_an_alias_stands_for_one(counting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMSAPI_ALIAS_shop", "from the environment")
    for injector, password in (
        (Injector(counting, aliases={"shop": "from the store"}.__getitem__), "from the store"),
        (Injector(counting), "from the environment"),
    ):
        with injector.request():
            plain = injector.context(JMSPasswordCredential(user_name="ann", password="s3cret"))
            kept = injector.context(JMSPasswordCredential(user_name="bob", password="${ALIAS=shop}"))
            plain.create_message()
            kept.create_message()
            assert "s3cret" not in repr(plain)
        assert [asked[:2] for asked in counting.asked[-2:]] == [("ann", "s3cret"), ("bob", password)]
    injector = Injector(counting)
    with injector.request(), pytest.raises(JMSRuntimeException, match="nowhere"):
        injector.context(JMSPasswordCredential(user_name="bob", password="${ALIAS=nowhere}")).create_message()


@requirement("11.3.3-6", "11.3.3-7")
@pytest.mark.parametrize("mode", [*MODES, pytest.param(JMSContext.SESSION_TRANSACTED, marks=needs("transactions"))])
def test_an_application_gives_any_session_mode_and_automatic_is_the_default(counting: Any, mode: int) -> None:
    injector = Injector(counting)
    with injector.request():
        assert injector.context(JMSSessionMode(mode)).session_mode == mode
        assert injector.context(JMSSessionMode()).session_mode == JMSContext.AUTO_ACKNOWLEDGE
        assert injector.context().session_mode == JMSContext.AUTO_ACKNOWLEDGE


@requirement("11.3.3-9")
def test_a_container_takes_automatic_and_dups_ok_only(counting: Any) -> None:
    injector = Injector(counting, transactions=LocalTransactions())
    with injector.request():
        for mode in (JMSContext.AUTO_ACKNOWLEDGE, JMSContext.DUPS_OK_ACKNOWLEDGE):
            assert injector.context(JMSSessionMode(mode)).session_mode == mode
        assert injector.context().session_mode == JMSContext.AUTO_ACKNOWLEDGE
        for mode in (JMSContext.CLIENT_ACKNOWLEDGE, JMSContext.SESSION_TRANSACTED):
            with pytest.raises(JMSRuntimeException):
                injector.context(JMSSessionMode(mode)).create_message()


@requirement("11.3.3-8", "10.3-1", "10.3-2", "10.3-3")
@needs("transactions")
@pytest.mark.parametrize("ends", ["commit", "rollback only", "raises"])
def test_in_a_transaction_the_mode_is_ignored_and_the_transaction_decides(
    counting: Any, queue: Queue, other_session: Session, ends: str
) -> None:
    transactions = LocalTransactions()
    injector = Injector(counting, transactions=transactions)
    context = injector.context(JMSSessionMode(JMSContext.CLIENT_ACKNOWLEDGE))
    try:
        with transactions.begin() as transaction:
            context.create_producer().send(queue, "text")
            assert context.transacted
            if ends == "rollback only":
                transaction.set_rollback_only()
            if ends == "raises":
                raise ZeroDivisionError
    except ZeroDivisionError:
        assert ends == "raises"
    consumer = other_session.create_consumer(queue)
    if ends == "commit":
        assert receive_text(consumer) == "text"
    else:
        assert consumer.receive(QUIET_MS) is None
