"""Providers that are broken in one way each, and the tests of the conformance suite that must name the fault.

A program of its own, since its runs are pytest runs: ``python provider_mutants.py`` prints, for each mutant, the verdict of each
test that was run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

import jmsapi
import jmsapi_inproc
from jmsapi._emulation.forwarding import Forwarding
from jmsapi.spi import (
    DONE,
    Clock,
    ConsumerSpec,
    Delivery,
    Envelope,
    ErrorKind,
    Handle,
    Outcome,
    Provider,
    ProviderError,
    SendResult,
    Tag,
    completed,
    failed,
)
from jmsapi.spi.options import ProviderOptions
from jmsapi_conformance.runner import run


class Altered:
    """An envelope of which some parts are not what they were."""

    def __init__(self, inner: Envelope, **parts: object) -> None:
        self._inner = inner
        self.__dict__.update(parts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def sending(**parts: object) -> type[Forwarding]:
    """Return a provider that changes parts of what is sent."""

    class Sending(Forwarding):
        def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
            self.below.send(producer, Altered(envelope, **parts), tx, token)  # type: ignore[arg-type]

    return Sending


def consuming(**parts: Any) -> type[Forwarding]:
    """Return a provider that opens another consumer than it was asked for."""

    class Consuming(Forwarding):
        def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
            return self.below.open_consumer(session, replace(spec, **parts))

    return Consuming


class LosesOrder(Forwarding):
    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        self.above.on_deliveries(consumer, deliveries[::-1])


class AcknowledgesTooEarly(Forwarding):
    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        self.above.on_deliveries(consumer, deliveries)
        self.below.settle([delivery.tag for delivery in deliveries], Outcome.ACCEPTED)

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        return DONE


class NeverAcknowledges(Forwarding):
    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        return DONE if outcome is Outcome.ACCEPTED else self.below.settle(tags, outcome, tx, failures)


class ForgetsTheCount(Forwarding):
    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        self.above.on_deliveries(consumer, [delivery._replace(delivery_count=1) for delivery in deliveries])


class CountsRedeliveriesTwice(Forwarding):
    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        self.above.on_deliveries(
            consumer, [one._replace(delivery_count=one.delivery_count + (one.delivery_count > 1)) for one in deliveries]
        )


class CommitsWhatIsRolledBack(Forwarding):
    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        return self.below.end(tx, commit=True)


class SendsBesideTheTransaction(Forwarding):
    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        self.below.send(producer, envelope, None, token)


class SendsTwice(Forwarding):
    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        self.below.send(producer, envelope, tx, token)
        self.below.send(producer, envelope, tx, self)

    def on_sent(self, results: Sequence[SendResult]) -> None:
        if told := [result for result in results if result[0] is not self]:
            self.above.on_sent(told)


class SaysSentAndDoesNot(Forwarding):
    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        self.above.on_sent([(token, None)])


class CannotBrowse(Forwarding):
    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        if spec.browse:
            return failed(ProviderError(ErrorKind.UNSUPPORTED, "no browser, whatever the capabilities say"))
        return self.below.open_consumer(session, spec)


class KeepsSubscriptions(Forwarding):
    def remove(self, session: Handle, what: Any) -> Future[None]:
        return completed(None) if isinstance(what, str) else self.below.remove(session, what)


class KeepsTemporaryDestinations(Forwarding):
    def remove(self, session: Handle, what: Any) -> Future[None]:
        return self.below.remove(session, what) if isinstance(what, str) else completed(None)


@dataclass(frozen=True)
class Mutant:
    """A fault, the tests that must fail, and one that must not."""

    name: str
    make: type[Forwarding]
    module: str
    noticed_by: tuple[str, ...]
    unharmed: str = ""
    case: str = ""
    """Which of the cases of the test, as pytest's -k; one is enough, and each takes its time to fail."""


MUTANTS = (
    Mutant(
        "drops the priority",
        sending(priority=4),
        "ch03_4_9_times_and_priority",
        ("test_the_priority_is_that_of_the_send",),
        "test_a_time_to_live_of_0_means_for_ever",
    ),
    Mutant(
        "drops the expiration",
        sending(expiration=0),
        "ch04_8_time_to_live",
        ("test_a_message_is_not_delivered_when_its_time_is_over",),
        "test_a_message_is_delivered_while_it_lives",
        case="queue-send",
    ),
    Mutant(
        "delivers at once what was to wait",
        sending(delivery_time=0),
        "ch04_12_delivery_delay",
        ("test_a_message_is_delivered_after_its_delivery_time_and_not_before",),
        "test_a_delivery_delay_is_set_on_a_producer",
        case="queue-receive",
    ),
    Mutant(
        "drops the delivery mode",
        sending(delivery_mode=2),
        "ch04_7_delivery_mode",
        ("test_the_receiver_sees_the_delivery_mode[1]",),
        "test_the_receiver_sees_the_delivery_mode[2]",
    ),
    Mutant(
        "loses properties",
        sending(properties={}),
        "ch03_5_9_jmsx_properties",
        ("test_the_group_properties_reach_the_receiver",),
        "test_the_connection_lists_what_it_supports",
    ),
    Mutant(
        "loses order",
        LosesOrder,
        "ch05_7_receiving_from_queues",
        ("test_without_a_selector_messages_come_in_the_order_of_sending",),
    ),
    Mutant(
        "acknowledges too early",
        AcknowledgesTooEarly,
        "ch05_7_receiving_from_queues",
        ("test_what_a_session_leaves_unacknowledged_stays_for_the_next_consumer",),
        "test_without_a_selector_messages_come_in_the_order_of_sending",
        case="common-session-client",
    ),
    Mutant(
        "never acknowledges",
        NeverAcknowledges,
        "ch04_4_12_duplicates",
        ("test_an_acknowledged_message_is_not_delivered_again_from_a_queue",),
        "test_a_message_is_produced_once",
        case="1",
    ),
    Mutant(
        "forgets how often it delivered",
        ForgetsTheCount,
        "ch05_7_receiving_from_queues",
        ("test_what_a_session_leaves_unacknowledged_is_marked_redelivered",),
        "test_without_a_selector_messages_come_in_the_order_of_sending",
        case="common-session-client",
    ),
    Mutant(
        "counts redeliveries twice",
        CountsRedeliveriesTwice,
        "ch03_5_9_jmsx_properties",
        ("test_each_delivery_counts_one_more_also_by_another_session_or_connection",),
        "test_every_received_message_has_a_delivery_count",
    ),
    Mutant(
        "commits what is rolled back",
        CommitsWhatIsRolledBack,
        "ch04_4_7_transactions",
        ("test_rollback_destroys_what_was_produced_and_recovers_what_was_consumed_in_order",),
        "test_messages_of_a_transaction_are_invisible_until_commit",
    ),
    Mutant(
        "sends beside the transaction",
        SendsBesideTheTransaction,
        "ch04_4_7_transactions",
        ("test_messages_of_a_transaction_are_invisible_until_commit",),
        "test_a_session_can_be_created_as_transacted",
    ),
    Mutant(
        "sends twice",
        SendsTwice,
        "ch05_7_receiving_from_queues",
        ("test_two_receivers_get_each_message_once_between_them",),
        case="common",
    ),
    Mutant(
        "says that it has sent, and has not",
        SaysSentAndDoesNot,
        "ch05_7_receiving_from_queues",
        ("test_a_queue_holds_messages_while_it_has_no_consumer",),
        case="NON_PERSISTENT",
    ),
    Mutant(
        "ignores selectors",
        consuming(selector=None),
        "ch05_7_receiving_from_queues",
        ("test_what_a_receiver_does_not_select_stays_for_others",),
        "test_without_a_selector_messages_come_in_the_order_of_sending",
        case="common",
    ),
    Mutant(
        "keeps nothing for durable subscribers",
        consuming(subscription=None, durable=False),
        "ch06_3_durable_subscription",
        ("test_a_later_consumer_resumes_where_the_earlier_one_left_off",),
        "test_a_persistent_message_is_not_kept_for_subscribers_that_are_not_there",
        case="not shared",
    ),
    Mutant(
        "ends no subscription",
        KeepsSubscriptions,
        "ch06_3_durable_subscription",
        ("test_applications_create_and_delete_durable_subscriptions",),
        "test_a_later_consumer_resumes_where_the_earlier_one_left_off",
    ),
    Mutant(
        "keeps temporary destinations",
        KeepsTemporaryDestinations,
        "ch04_4_3_temporary_destinations",
        ("test_a_deleted_temporary_queue_is_gone_with_what_it_held",),
        "test_another_connection_answers_to_a_temporary_destination",
    ),
    Mutant(
        "claims a browser and has none",
        CannotBrowse,
        "ch05_9_queue_browser",
        ("test_the_enumeration_of_an_empty_queue_is_empty",),
    ),
)


class Entry:
    """A provider of one mutant."""

    spi_version = jmsapi_inproc.entry.spi_version
    name, extra = "mutant", None

    def __init__(self, scheme: str, make: Callable[[Provider], Forwarding]) -> None:
        self.schemes = (scheme,)
        self._make = make

    def options(self) -> type[ProviderOptions]:
        return jmsapi_inproc.entry.options()

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        return self._make(jmsapi_inproc.entry.create(options, clock))


def main() -> None:
    found: dict[str, dict[str, str]] = {}
    for number, mutant in enumerate(MUTANTS):
        scheme = f"mutant{number}"
        jmsapi.register_provider(Entry(scheme, mutant.make))
        names = " or ".join(name.partition("[")[0] for name in mutant.noticed_by)
        names = f"({names}) and {mutant.case}" if mutant.case else names
        names += f" or {mutant.unharmed.partition('[')[0]}" if mutant.unharmed else ""
        ran = run(f"{scheme}://x", only=[mutant.module], keyword=names)
        found[mutant.name] = {test.name.partition("::")[2]: test.verdict.value for test in ran.tests}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
