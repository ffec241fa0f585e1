"""Distributed transactions on an embedded broker: what a branch sends counts from its commit on, and its calls can go wrong."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import jmsapi
from jmsapi import XAConnectionFactory, XAJMSContext, Xid
from jmsapi.testing import EmbeddedBroker, Operation
from jmsapi.xa import TMENDRSCAN, TMNOFLAGS, TMSTARTRSCAN, TMSUCCESS, XA_OK, XA_RDONLY, XAER_RMFAIL, XAException

DEADLINE_MS = 20_000
_numbers = itertools.count(1)


def new_xid() -> Xid:
    return Xid(1, f"transaction {next(_numbers)}".encode(), b"jms")


@pytest.fixture
def context(jms_broker: EmbeddedBroker) -> Iterator[XAJMSContext]:
    factory = jms_broker.connection_factory()
    assert isinstance(factory, XAConnectionFactory)
    with factory.create_xa_context() as made:
        yield made


def ship(context: XAJMSContext, xid: Xid) -> None:
    """Take an order and send a parcel, as the work of a branch."""
    resource = context.xa_resource
    resource.start(xid, TMNOFLAGS)
    consumer = context.create_consumer(context.create_queue("orders"))
    assert consumer.receive_body(str, DEADLINE_MS) == "a kettle"
    context.create_producer().send(context.create_queue("parcels"), "a parcel")
    resource.end(xid, TMSUCCESS)
    consumer.close()


def test_what_a_branch_sends_is_received_from_its_commit_on(jms_broker: EmbeddedBroker, context: XAJMSContext) -> None:
    jms_broker.queue("orders").send("a kettle")
    xid = new_xid()
    ship(context, xid)
    assert context.xa_resource.prepare(xid) == XA_OK
    jms_broker.queue("parcels").assert_not_received()
    with pytest.raises(AssertionError, match="consumers hold, unsettled: 1"):
        jms_broker.queue("orders").assert_empty(within=0)
    context.xa_resource.commit(xid, False)
    jms_broker.queue("parcels").assert_received_bodies("a parcel")
    jms_broker.queue("orders").assert_empty()


def test_what_a_branch_did_that_is_rolled_back_was_not(jms_broker: EmbeddedBroker, context: XAJMSContext) -> None:
    jms_broker.queue("orders").send("a kettle")
    xid = new_xid()
    ship(context, xid)
    context.xa_resource.rollback(xid)
    jms_broker.queue("parcels").assert_not_received()
    jms_broker.wait_idle()
    assert jms_broker.queue("orders").take().jms_redelivered


def test_a_branch_that_did_nothing_is_over_with_its_prepare(jms_broker: EmbeddedBroker, context: XAJMSContext) -> None:
    xid = new_xid()
    context.xa_resource.start(xid, TMNOFLAGS)
    context.xa_resource.end(xid, TMSUCCESS)
    assert context.xa_resource.prepare(xid) == XA_RDONLY
    jms_broker.wait_idle()


@pytest.mark.parametrize("operation", ["begin", "prepare", "commit", "rollback"])
def test_each_call_about_a_branch_can_fail(jms_broker: EmbeddedBroker, context: XAJMSContext, operation: Operation) -> None:
    jms_broker.queue("orders").send("a kettle")
    jms_broker.faults.fail(operation, message="on purpose")
    xid = new_xid()
    with pytest.raises(XAException, match="on purpose") as raised:
        ship(context, xid)
        context.xa_resource.prepare(xid)
        if operation == "rollback":
            context.xa_resource.rollback(xid)
        context.xa_resource.commit(xid, False)
    assert raised.value.xa_code == XAER_RMFAIL


@pytest.mark.parametrize(("after", "parcels"), [(False, []), (True, ["a parcel"])])
def test_a_commit_whose_link_is_cut_leaves_a_branch_to_recover_or_is_done(
    jms_broker: EmbeddedBroker, context: XAJMSContext, after: bool, parcels: list[str]
) -> None:
    jms_broker.queue("orders").send("a kettle")
    jms_broker.faults.cut("commit", after=after)
    xid = new_xid()
    ship(context, xid)
    assert context.xa_resource.prepare(xid) == XA_OK
    with pytest.raises(XAException) as raised:
        context.xa_resource.commit(xid, False)
    assert raised.value.xa_code == XAER_RMFAIL
    jms_broker.queue("parcels").assert_received_bodies(*parcels)
    # A new connection finishes what the crash left.
    factory = jms_broker.connection_factory()
    assert isinstance(factory, XAConnectionFactory)
    with factory.create_xa_context() as recovering:
        left = recovering.xa_resource.recover(TMSTARTRSCAN | TMENDRSCAN)
        assert list(left) == ([] if after else [xid])
        for one in left:
            recovering.xa_resource.commit(one, False)
    jms_broker.queue("parcels").assert_received_bodies("a parcel")
    jms_broker.queue("orders").assert_empty()
    with pytest.raises(jmsapi.JMSRuntimeException, match="the link was cut"):
        context.create_producer()
