"""The reconnecting decorator, case by case, on a broker in memory and a clock in the test's hand."""

from __future__ import annotations

import random
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from jmsapi._emulation.checked import Checked
from jmsapi._emulation.reconnecting import Reconnecting
from jmsapi._emulation.reconnecting.back_off import BackOff
from jmsapi.spi import (
    EMULATED,
    NATIVE,
    NONE,
    Address,
    ConsumerSpec,
    DestinationKind,
    ErrorKind,
    Handle,
    MessageKind,
    Outcome,
    PlainEnvelope,
    Provider,
    ProviderError,
    failed,
)
from jmsapi.spi.options import FailoverOptions, ProviderOptions

from .frail import DETECTING, DUPLICATE_ID, FrailLink, HandClock, World
from .test_reconnecting_model import Core, Token

QUEUE = Address(DestinationKind.QUEUE, "q")
OTHER = Address(DestinationKind.QUEUE, "other")


def failover(**given: object) -> FailoverOptions:
    servers = tuple(ProviderOptions(scheme="frail", host=host) for host in "ab")
    return FailoverOptions.model_validate({"servers": servers, "jitter": 0.0, **given})


class Bench:
    """One connection to a broker in memory."""

    def __init__(self, broker: str = "frail", server: ProviderOptions | None = None, **given: object) -> None:
        self.clock = HandClock()
        self.world = World(broker)
        self.core = Core()
        options = failover(**given)
        server = (server or options.servers[0]).model_copy(update={"failover": options})

        def make(one: ProviderOptions) -> Provider:
            return Checked(FrailLink(self.world), one)

        self.provider = Checked(Reconnecting(make, server, options, self.clock, self.core, random.Random(1)), server)
        self.done(self.provider.open(self.core))
        self.session: Handle = self.done(self.provider.open_session(transacted=False))
        self.producer: Handle = self.done(self.provider.open_producer(self.session, None))

    def move(self) -> None:
        while any(link.broker_step() or link.client_step() for link in list(self.world.links)):
            pass

    def done(self, future: Future[Any]) -> Any:
        self.move()
        return future.result(0)

    def consumer(self, address: Address, credit: int = 10) -> Handle:
        handle: Handle = self.done(self.provider.open_consumer(self.session, ConsumerSpec(address)))
        self.core.credit += credit
        self.provider.credit(handle, credit)
        self.move()
        return handle

    def put(self, address: Address, text: str) -> None:
        self.world.put(PlainEnvelope(MessageKind.TEXT, address, body=text))
        self.move()

    def cut(self) -> None:
        for link in list(self.world.links):
            link.cut()

    def pass_time(self, seconds: float) -> None:
        """Let time pass in small steps, and everything move between them."""
        end = self.clock.monotonic() + seconds
        while self.clock.monotonic() < end:
            self.clock.advance(0.05)
            self.move()


def test_a_consumer_that_the_broker_refuses_now_is_ended_and_all_others_go_on() -> None:
    bench = Bench()
    refused, kept = bench.consumer(OTHER), bench.consumer(QUEUE)
    bench.world.refuse["other"] = ProviderError(ErrorKind.DESTINATION, "it was deleted")
    bench.cut()
    bench.pass_time(1)
    assert [(handle, cause.kind) for handle, cause in bench.core.closed] == [(refused, ErrorKind.DESTINATION)]
    assert bench.core.up
    bench.put(QUEUE, "still heard")
    assert bench.core.seen["still heard"] == 1
    assert bench.done(bench.provider.release(kept)) is None


@pytest.mark.parametrize("event", ["on_lost", "on_sent", "on_closed", "on_attempt", "on_resumed"])
def test_a_fault_in_who_is_told_of_a_break_is_logged_and_the_next_link_comes(
    event: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench()
    bench.consumer(QUEUE)
    bench.done(bench.provider.open_consumer(bench.session, ConsumerSpec(OTHER, browse=True)))
    bench.provider.send(bench.producer, PlainEnvelope(MessageKind.TEXT, OTHER, body="under way"), None, Token(1, None))
    told, faults = getattr(bench.core, event), [RuntimeError("dictionary changed size during iteration")]

    def faulty(*arguments: Any) -> None:
        told(*arguments)
        if faults:
            raise faults.pop()

    monkeypatch.setattr(bench.core, event, faulty)
    bench.cut()
    bench.pass_time(2)
    assert faults == []
    assert (len(bench.core.lost), bench.core.resumed, bench.core.up) == (1, 1, True)
    assert "dictionary changed size" in caplog.text
    bench.put(QUEUE, "still heard")
    assert bench.core.seen["still heard"] == 1


@pytest.mark.parametrize(
    ("fault", "ends"),
    [
        (ProviderError(ErrorKind.CONNECTION, "gone again", fatal=True), False),
        (ProviderError(ErrorKind.RESOURCE, "no credit for you"), True),
        (ValueError("a fault of the provider"), True),
    ],
)
def test_a_provider_that_refuses_the_credit_of_a_new_link_costs_that_link_or_that_consumer(fault: Exception, ends: bool) -> None:
    bench = Bench()
    one, two = bench.consumer(QUEUE), bench.consumer(OTHER)
    bench.world.credit_raises.append(fault)
    bench.cut()
    bench.pass_time(1)
    assert bench.core.up
    bench.pass_time(5)
    assert bench.core.up
    assert [handle for handle, _ in bench.core.closed] == ([one] if ends else [])
    assert len(bench.core.lost) == (1 if ends else 2)
    bench.put(OTHER, "still heard")
    bench.put(QUEUE, "by the other one")
    assert bench.core.seen["still heard"] == 1
    assert bench.core.seen["by the other one"] == (0 if ends else 1)
    assert bench.done(bench.provider.release(two)) is None


def test_an_acknowledgement_that_comes_too_late_for_its_consumer_costs_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.consumer(QUEUE)
    bench.put(QUEUE, "too late")
    late = ProviderError(ErrorKind.CONNECTION, "its consumer has ended, so it comes again")
    monkeypatch.setattr(FrailLink, "settle", lambda *_: failed(late))
    answer = bench.provider.settle([delivery.tag for delivery in bench.core.held], Outcome.ACCEPTED)
    assert answer.exception(0) is late
    bench.pass_time(5)
    assert (bench.core.lost, bench.world.opened) == ([], 1)


def test_a_refused_credit_of_a_subscription_that_was_held_ends_it_with_a_word() -> None:
    bench = Bench(client_id_grace_ms=5000)
    held = bench.consumer(OTHER)
    bench.world.refuse["other"] = ProviderError(ErrorKind.IN_USE, "somebody has it")
    bench.cut()
    bench.pass_time(2)
    bench.world.refuse.clear()
    bench.world.credit_raises.append(ValueError("a fault of the provider"))
    bench.pass_time(2)
    assert [handle for handle, _ in bench.core.closed] == [held]
    assert bench.core.up


@pytest.mark.parametrize("back_in_time", [True, False])
def test_a_subscription_that_our_dead_link_still_holds_is_asked_for_beside_the_running_connection(back_in_time: bool) -> None:
    bench = Bench(client_id_grace_ms=5000)
    held = bench.consumer(OTHER)
    bench.world.refuse["other"] = ProviderError(ErrorKind.IN_USE, "somebody has it")
    bench.cut()
    bench.pass_time(2)
    assert bench.core.up
    assert bench.core.closed == []
    if back_in_time:
        bench.world.refuse.clear()
        bench.pass_time(1)
        bench.put(OTHER, "with the credit it had")
        assert bench.core.seen["with the credit it had"] == 1
    bench.pass_time(6)
    assert [handle for handle, _ in bench.core.closed] == ([] if back_in_time else [held])


def test_a_call_that_waited_too_long_for_a_link_fails_and_is_not_made() -> None:
    bench = Bench(max_reconnect_delay_ms=1000)
    for _ in range(1000):
        bench.world.refusals.append(ProviderError(ErrorKind.CONNECTION, "refused", fatal=True))
    bench.cut()
    asked = bench.provider.open_session(transacted=False)
    token = Token(0, None)
    bench.provider.send(bench.producer, PlainEnvelope(MessageKind.TEXT, QUEUE, body="late"), None, token)
    bench.pass_time(40)
    assert [error.kind for error in token.answers if isinstance(error, ProviderError)] == [ErrorKind.TIMEOUT]
    bench.world.refusals.clear()
    bench.pass_time(2)
    assert bench.core.up
    error = asked.exception(0)
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.TIMEOUT
    assert bench.world.stored == []


class Beating(ProviderOptions):
    """A wire that watches for silence."""

    @property
    def silence_ms(self) -> int:
        return 3000


@pytest.mark.parametrize(("given", "lasts_s"), [({}, 6), ({"client_id_grace_ms": 9000}, 9), ({"client_id_grace_ms": 0}, 0)])
def test_a_client_id_is_asked_for_again_for_twice_the_heartbeat_or_as_long_as_the_option_says(
    given: dict[str, object], lasts_s: float
) -> None:
    bench = Bench(server=Beating(scheme="frail", host="a"), reconnect_delay_ms=100, use_reconnect_back_off=False, **given)
    for _ in range(1000):
        bench.world.refusals.append(ProviderError(ErrorKind.CLIENT_ID, "in use", fatal=True))
    bench.cut()
    if lasts_s:
        bench.pass_time(lasts_s - 0.5)
        assert len(bench.core.lost) == 1
    bench.pass_time(1)
    assert [cause.kind for cause in bench.core.lost] == [ErrorKind.CONNECTION, ErrorKind.CLIENT_ID]
    assert bench.core.lost[-1].fatal


def test_a_temporary_destination_is_said_to_be_gone_whatever_the_next_link_makes_of_its_name() -> None:
    bench = Bench()
    address = bench.done(bench.provider.create_temporary(bench.session, topic=False))
    bench.cut()
    bench.pass_time(1)
    with pytest.raises(ProviderError, match="ended with a link") as caught:
        bench.done(bench.provider.open_consumer(bench.session, ConsumerSpec(address)))
    assert caught.value.kind is ErrorKind.DESTINATION


def unanswered(bench: Bench, *, moves: bool = False) -> PlainEnvelope:
    """Send, lose the answer, and return what is stored last when there is a link again, to another server perhaps."""
    bench.provider.send(bench.producer, PlainEnvelope(MessageKind.TEXT, QUEUE, body="once?"), None, Token(0, None))
    bench.world.living[0].broker_step()
    assert len(bench.world.stored) == 1
    if moves:
        bench.world.refusals.append(ProviderError(ErrorKind.CONNECTION, "the first one is gone", fatal=True))
        bench.world.duplicates.clear()
    bench.cut()
    bench.pass_time(3)
    *_, last = bench.world.stored
    assert isinstance(last, PlainEnvelope)
    return last


@pytest.mark.parametrize("moves", [False, True])
def test_a_copy_bears_the_mark_where_the_server_does_not_know_the_message(moves: bool) -> None:
    """Another server of the list may have a memory of its own, even if it detects duplicates."""
    bench = Bench(resend_unconfirmed=True, broker=DETECTING)
    last = unanswered(bench, moves=moves)
    assert len(bench.world.stored) == (2 if moves else 1)
    assert last.properties.get("jmsapi_resent", False) is moves
    assert DUPLICATE_ID in last.properties
    assert unanswered(Bench(resend_unconfirmed=True)).properties == {"jmsapi_resent": True}


def test_a_server_whose_broker_lacks_what_the_connection_began_with_is_passed_over() -> None:
    bench = Bench()
    bench.world.capabilities = replace(bench.world.capabilities, transactions=NONE, rollback_returns=True, user_id=NATIVE)
    bench.cut()
    bench.pass_time(3)
    assert not bench.core.up
    error = bench.core.failures[-1]
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.UNSUPPORTED
    assert "transactions, rollback_returns is not the same there; list servers of one kind" in error.message
    bench.world.capabilities = replace(bench.world.capabilities, transactions=EMULATED, rollback_returns=False)
    bench.pass_time(30)
    assert bench.core.up


def test_why_a_link_ended_is_no_answer_to_what_else_was_asked_on_it() -> None:
    bench = Bench()
    link = bench.world.living[0]
    asked = bench.provider.open_session(transacted=False)
    token = Token(0, None)
    bench.provider.send(bench.producer, PlainEnvelope(MessageKind.TEXT, QUEUE, body="beside"), None, token)
    link.cut(ProviderError(ErrorKind.SELECTOR, "somebody else's selector", fatal=True))
    bench.pass_time(3)
    assert bench.done(asked) is not None
    assert [error.kind for error in token.answers if isinstance(error, ProviderError)] == [ErrorKind.IN_DOUBT]


def test_a_link_that_is_silent_about_its_loss_is_taken_for_lost_a_moment_after_a_call_said_so() -> None:
    bench = Bench()
    link = bench.world.living[0]
    link.ended = True  # it answers that it is gone, and its event never comes
    asked = bench.provider.open_session(transacted=False)
    assert not asked.done()
    bench.pass_time(3)
    assert asked.done()
    assert asked.exception() is None
    assert len(bench.core.lost) == bench.core.resumed == 1


# ---------------------------------------------------------------- when, and where


def waits(options: FailoverOptions, attempts: int) -> list[float]:
    back_off = BackOff(options, random.Random(1))
    back_off.begin(0.0)
    found: list[float] = []
    for _ in range(attempts):
        found.append(round(back_off.wait_s(startup=False) * 1000))
        back_off.next_attempt()
    return found


def test_the_wait_grows_from_attempt_to_attempt_up_to_its_ceiling() -> None:
    assert waits(failover(initial_reconnect_delay_ms=5, max_reconnect_delay_ms=50), 6) == [5, 10, 20, 40, 50, 50]
    assert waits(failover(use_reconnect_back_off=False), 4) == [0, 10, 10, 10]
    assert waits(failover(reconnect_back_off_multiplier=3, reconnect_delay_ms=1), 4) == [0, 1, 3, 9]
    assert waits(failover(reconnect_back_off_multiplier=1000), 400)[-1] == 30_000


def test_jitter_is_a_part_of_the_wait() -> None:
    found = waits(failover(jitter=0.5, reconnect_delay_ms=1000, use_reconnect_back_off=False), 50)[1:]
    assert all(500 <= wait <= 1500 for wait in found)
    assert len(set(found)) > 10


@pytest.mark.parametrize(("held_s", "first_wait"), [(0.5, 40), (1.5, 0)])
def test_only_a_link_that_holds_ends_a_run_of_attempts(held_s: float, first_wait: int) -> None:
    back_off = BackOff(failover(), random.Random(1))
    back_off.begin(0.0)
    for _ in range(3):
        back_off.next_attempt()
    back_off.succeeded(1, 10.0, startup=False)
    back_off.begin(10.0 + held_s)
    assert round(back_off.wait_s(startup=False) * 1000) == first_wait
    assert back_off.next_attempt() == [1, 0], "the server that served last comes first"


@pytest.mark.parametrize(
    ("given", "startup", "allowed"),
    [
        ({"max_reconnect_attempts": 0}, False, 0),
        ({"max_reconnect_attempts": 0}, True, 1),
        ({"max_reconnect_attempts": 2}, True, 2),
        ({"max_reconnect_attempts": 2, "startup_max_reconnect_attempts": 5}, True, 5),
        ({"max_reconnect_attempts": 2, "startup_max_reconnect_attempts": 5}, False, 2),
        ({}, False, 100),
    ],
)
def test_attempts_are_as_many_as_the_options_say(given: dict[str, object], startup: bool, allowed: int) -> None:
    back_off = BackOff(failover(**given), random.Random(1))
    back_off.begin(0.0)
    done = 0
    while done < 100 and not back_off.exhausted(startup=startup):
        back_off.next_attempt()
        done += 1
    assert done == allowed


def test_a_delivery_that_was_under_way_when_its_link_was_lost_reaches_nobody() -> None:
    bench = Bench()
    bench.consumer(QUEUE)
    link = bench.world.living[0]
    bench.world.put(PlainEnvelope(MessageKind.TEXT, QUEUE, body="once"))
    link.cut()
    assert len(link.late) == 1
    link.late[0]()
    assert bench.core.seen["once"] == 0
    bench.pass_time(1)
    link.late[0]()
    assert bench.core.seen["once"] == 1, "by the new link, and not by the old one again"
