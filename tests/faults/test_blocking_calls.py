"""Every public call that may wait for a broker, under every fault of the proxy: it returns or raises within its deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NoReturn

import pytest

import jmsapi
from jmsapi.testing import FaultProxy
from jmsapi_conformance.brokers import Broker, BrokerKind, Wire

from ..unit.api.table import members
from .calls import OPEN_MS, REQUEST_MS, ROWS, Rig, Row, why_local

FAULTS: dict[str, Callable[[FaultProxy], None]] = {
    "reset": lambda proxy: proxy.cut("rst"),
    "end of stream": lambda proxy: proxy.cut("fin"),
    "stalled": lambda proxy: proxy.stall(),
    "stalled to the client": lambda proxy: proxy.stall("to_client"),
    "half-open": lambda proxy: proxy.half_open("broker"),
    "cut within what is sent": lambda proxy: proxy.cut_after(40, "to_broker", "rst"),
    "cut within the answer": lambda proxy: proxy.cut_after(5, "to_client"),
    "slow": lambda proxy: proxy.slow(300),
}
FOR_NEW_ONES: dict[str, Callable[[FaultProxy], None]] = {
    "new ones refused": lambda proxy: proxy.refuse_new(),
    "new ones never answered": lambda proxy: proxy.silence_new(),
}
WITH_FAILOVER: dict[str, Callable[[FaultProxy], None]] = {
    **{name: FAULTS[name] for name in ("reset", "stalled", "half-open", "cut within the answer")},
    "reset, and nobody there any more": lambda proxy: (proxy.refuse_new(), proxy.cut())[1],
    "reset, and no answer any more": lambda proxy: (proxy.silence_new(), proxy.cut())[1],
}
OPENS = {"ConnectionFactory", "QueueConnectionFactory", "TopicConnectionFactory", "client_id"}
WIRES: dict[str, tuple[Wire, BrokerKind, dict[str, Any]]] = {
    "amqp": ("amqp", "artemis", {"idle_timeout_ms": 2000}),
    "stomp": ("stomp", "classic", {"heartbeat_ms": 1000, "classic_virtual_topics": True}),
}
SLACK_S = 5.0
"""What a busy machine may add to a deadline, and the second that close always has. Who hangs does so for a minute or for ever."""
TRIES = 5


def faults_of(row: Row, *, failover: bool) -> dict[str, Callable[[FaultProxy], None]]:
    """Give the faults that a row is tried under: those of new connections where it opens one."""
    if failover:
        return WITH_FAILOVER | FOR_NEW_ONES
    opens = any(OPENS & set(member.split(".")) for member in row.members)
    return FAULTS | FOR_NEW_ONES if opens else FAULTS


def made(row: Row, hurt: Callable[[FaultProxy], None], url: str, options: dict[str, Any], *, failover: bool) -> str | None:
    """Make one call under one fault; return what was wrong, or None."""
    with FaultProxy(url) as proxy:
        through = f"failover:({proxy.url})?startupTimeout={OPEN_MS}" if failover else proxy.url
        rig, call = prepared(row, through, options)
        told = "returned"
        try:
            hurt(proxy)
            began = time.monotonic()
            try:
                call()
            except jmsapi.JMSError as error:
                told = f"raised {error!r}"
            lasted = time.monotonic() - began
        finally:
            began = time.monotonic()
            rig.close()
            closing = time.monotonic() - began
    if lasted > row.waits_ms / 1000 + SLACK_S:
        return f"it {told} after {lasted:.1f} s; its deadlines are {row.waits_ms / 1000:.1f} s together"
    if closing > REQUEST_MS / 1000 + SLACK_S:
        return f"closing afterwards took {closing:.1f} s"
    return None


def prepared(row: Row, url: str, options: dict[str, Any]) -> tuple[Rig, Callable[[], Any]]:
    """Get to where the call is made. The deadlines are short, so a busy machine may need more than one try."""
    for tries_left in reversed(range(TRIES)):
        rig = Rig(url, options)
        try:
            return rig, row.prepare(rig)
        except jmsapi.UnsupportedFeatureException as refusal:
            return rig, partial(_again, refusal)
        except jmsapi.JMSError:
            rig.close()
            if not tries_left:
                raise
        except BaseException:
            rig.close()
            raise
    raise AssertionError("the last try returns or raises")


def _again(refusal: Exception) -> None:
    raise refusal


@pytest.mark.broker
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("failover", [False, True], ids=["plain", "failover"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_call_returns_or_raises_within_its_deadline_whatever_is_wrong_with_the_link(
    wire: str, failover: bool, row: Row, request: pytest.FixtureRequest, leave_out: Callable[[str], NoReturn]
) -> None:
    protocol, kind, options = WIRES[wire]
    broker: Broker = request.getfixturevalue(kind)
    if protocol not in broker.wires:
        leave_out(f"{kind} was given without {protocol}")
    faults = faults_of(row, failover=failover)
    with ThreadPoolExecutor(len(faults), thread_name_prefix="fault") as pool:
        tried = {
            fault: pool.submit(made, row, hurt, broker.url(protocol), options, failover=failover)
            for fault, hurt in faults.items()
        }
        wrong = [f"{fault}: {told}" for fault, one in tried.items() if (told := one.result())]
    assert not wrong, "\n".join(wrong)


def test_every_member_of_the_api_is_tried_or_never_waits_for_a_broker() -> None:
    tried = {member for row in ROWS for member in row.members}
    known = {str(member) for member in members()}
    assert tried - known == set(), "rows of members that the API does not have"
    assert [member for member in known - tried if why_local(member) is None and not member.endswith("__str__")] == []
    assert [member for member in tried if why_local(member) is not None] == [], "tried, and said never to wait"
