"""The core broken in one way at a time: each mutant must make the tests that are named with it fail.

    python tests/mutants/core_mutants.py [NAME...]

A copy of the packages is changed and the named requirement tests run on the in-process provider. A mutant that survives, or whose
text is no longer in the source, is a fault of the tests or of this table.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("jmsapi", "selector", "conformance", "providers")
TIMEOUT_S = 300


@dataclass(frozen=True)
class Mutant:
    """One change of the core, and the tests (``-k``) of which at least one must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: str


# fmt: off
MUTANTS = (
    Mutant("redelivery does not count", "acknowledgement/ledger.py", "entry.extra += raised", "entry.extra += 0", "ch04_4_11"),
    Mutant("recover turns the order round", "acknowledgement/ledger.py", "        inbox.buffer.appendleft(entry)", "        inbox.buffer.append(entry)", "ch04_4_11 or ch04_4_7"),
    Mutant(
        "client mode acknowledges by itself",
        "acknowledgement/ledger.py",
        "if entry.state != DELIVERED or self.mode in (CLIENT, TRANSACTED):\n            return None\n        if self.mode == DUPS_OK:",
        "if entry.state != DELIVERED or self.mode == TRANSACTED:\n            return None\n        if self.mode == DUPS_OK:",
        "ch04_4_11",
    ),
    Mutant(
        "transacted mode acknowledges at once",
        "acknowledgement/ledger.py",
        "if entry.state != DELIVERED or self.mode in (CLIENT, TRANSACTED):\n            return None\n        if self.mode == DUPS_OK:",
        "if entry.state != DELIVERED or self.mode == CLIENT:\n            return None\n        if self.mode == DUPS_OK:",
        "ch04_4_7",
    ),
    Mutant("acknowledge does nothing", "acknowledgement/ledger.py", "if self.mode != CLIENT or not self._delivered:", "if True:", "ch04_4_11"),
    Mutant(
        "a failing listener is retried for ever", "acknowledgement/ledger.py", "if 0 <= self._limit <= entry.extra:", "if False:", "ch04_5_2"
    ),
    Mutant(
        "a failing listener loses the message",
        "acknowledgement/ledger.py",
        "        if 0 <= self._limit <= entry.extra:",
        "        if True:",
        "ch04_5_2",
    ),
    Mutant(
        "a body of the wrong type counts as a redelivery",
        "acknowledgement/ledger.py",
        "plan = SettlementPlan()\n        self._again(entry, plan, raised=False)",
        "plan = SettlementPlan()\n        self._again(entry, plan, raised=True)",
        "ch11_2_5",
    ),
    Mutant("closing a session acknowledges", "acknowledgement/ledger.py", "self._settle(entry, [], plan)\n            else:\n                self._fail(entry, plan)", "self._settle(entry, [], plan)\n            else:\n                self._settle(entry, plan.accepted, plan)", "ch04_4_1"),
    Mutant("dups-ok forgets its batch on close", "acknowledgement/ledger.py", "plan = self.flush() or SettlementPlan()\n        for entry in list(self._delivered):\n            if", "plan = SettlementPlan()\n        for entry in list(self._delivered):\n            if", "ch04_4_11 or ch04_4_1"),
    Mutant("commit does not acknowledge", "acknowledgement/ledger.py", "                tags.append(entry.delivery.tag)", "                pass", "ch04_4_7"),
    Mutant("a branch does not acknowledge", "acknowledgement/ledger.py", "return [entry.delivery.tag for entry in self._delivered if not entry.enlisted]", "return []", "ch08"),
    Mutant("messages never expire on the client", "producer.py", "expiration=valid.later(now, life) if life else 0", "expiration=0", "ch03_4_9 or ch04_8 or ch03_4_11"),
    Mutant("delivery delay is ignored", "producer.py", "delivery_time=valid.later(now, options.delivery_delay)", "delivery_time=now", "ch04_12"),
    Mutant("priority of a send is ignored", "producer.py", "own.priority if rank is None else valid.priority(rank)", "own.priority", "ch04_6 or ch03_4_10"),
    Mutant("a stopped connection delivers", "connection.py", "session.set_flowing(False)", "session.set_flowing(True)", "ch04_3_4"),
    Mutant("stop does not wait for listeners", "connection.py", "paused = yield from session.paused_steps(deadline)", "paused = True", "ch04_3_4"),
    Mutant("a client id can be set twice", "connection.py", "if self.link.options.client_id is not None:", "if False:", "ch04_3_2"),
    Mutant("a used connection takes a client id", "connection.py", "if self._touched:", "if False:", "ch04_3_2"),
    Mutant("subscription names end at 100", "session.py", "_NAME_LIMIT: Final = 128", "_NAME_LIMIT: Final = 100", "ch06_11_5"),
    Mutant("completions come in the sending thread", "pending_sends.py", "if send.error is None:\n            result: object = listener.on_completion", "if False:\n            result: object = listener.on_completion", "ch04_6_2"),
    Mutant("completions do not keep the order", "pending_sends.py", "send = self._order.popleft()", "send = self._order.pop()", "ch04_6_2"),
    Mutant("commit does not wait for sends", "acknowledgement/transaction.py", 'yield from self._await_sends("commit")', "pass", "ch04_6_2"),
    Mutant("a listener may close its own session and waits for itself", "session_parts.py", "if self.dispatcher.is_own_thread and self.dispatcher.running is not None:", "if False:", "ch04_4_1 or ch04_3_5"),
    Mutant("a closed session acknowledges", "acknowledgement/client_mode.py", 'raise IllegalStateException("acknowledge: the session that received the message is closed", "closed")', "return", "ch04_4_1 or ch04_3_5"),
    Mutant("rollback hands nothing out again", "acknowledgement/transaction.py", "return state.ledger.rolled_back(broker_returns=state.link.capabilities.rollback_returns)", "return state.ledger.committed()", "ch04_4_7"),
    Mutant("the last context leaves its connection open", "context.py", "        if last:\n            self.connection.close()", "        if False:\n            self.connection.close()", "ch11_2_6"),
    Mutant("contexts do not start by themselves", "context.py", "        if self._auto_start:\n            self.connection.start()\n        return JMSConsumerImpl", "        return JMSConsumerImpl", "ch11_2_7"),
    Mutant("queue sessions make topics", "session_rules.py", '            "create_topic",\n', "", "ch04_11"),
    Mutant("properties of the producer do not replace those of the message", "producer_defaults.py", "message.set_object_property(name, held.get_object_property(name))", "message.property_exists(name) or message.set_object_property(name, held.get_object_property(name))", "ch11_2_4"),
    Mutant("expired messages are handed out", "expiry.py", "if expiration <= 0:", "if True:", "ch03_4_9 or ch04_8"),
    Mutant("a pool on a shared subscription has one of its own", "connection.py", "lambda session: session.create_shared_consumer(topic, subscription_name, message_selector), session_pool", "lambda session: session.create_consumer(topic, message_selector), session_pool", "ch08_2_7"),
    Mutant("a pool on a shared subscription ignores its selector", "connection.py", "lambda session: session.create_shared_consumer(topic, subscription_name, message_selector), session_pool", "lambda session: session.create_shared_consumer(topic, subscription_name), session_pool", "ch08_2_7"),
    Mutant("a pool on a shared durable subscription keeps nothing", "connection.py", "session.create_shared_durable_consumer(topic, subscription_name, message_selector)", "session.create_shared_consumer(topic, subscription_name, message_selector)", "ch08_2_7"),
    Mutant("a pool on a durable subscription ignores its selector", "connection.py", "session.create_durable_consumer(topic, subscription_name, message_selector)", "session.create_durable_consumer(topic, subscription_name)", "ch08_2_7"),
    Mutant("what is sent on unread loses its answer address", "message/freeze.py", 'read_part(message._envelope, "reply_to") if reply_to is UNREAD else None', "None", "ch03_9"),
    Mutant("close does not wait for receives", "session_parts.py", "ConditionWait(state.changed, self._all_received(), deadline.remaining())", "ConditionWait(state.changed, lambda: True, deadline.remaining())", "ch04_3_5_closing_a"),
    Mutant("commit does not wait for the last completion listener", "pending_sends.py", "return not self._unanswered and not self._order and self._running is None", "return not self._unanswered and not self._order", "ch04_6_2_4"),
    Mutant("a delivery after a failure counts twice", "acknowledgement/ledger.py", "entry.extra += raised", "entry.extra += 2 * raised", "ch03_5_9"),
    Mutant("dups-ok acknowledges what its listener raised on", "acknowledgement/ledger.py", "        if entry.state != DELIVERED or self.mode in (CLIENT, TRANSACTED):\n            return None\n        plan = SettlementPlan()\n        self._fail_here(entry, plan)", "        if entry.state != DELIVERED or self.mode in (CLIENT, TRANSACTED):\n            return None\n        plan = SettlementPlan()\n        self._settle(entry, plan.accepted, plan) if self.mode == DUPS_OK else self._fail_here(entry, plan)", "ch04_5_2"),
    Mutant("a send of no life takes that of its producer", "producer.py", "time_to_live=own.time_to_live if ttl is None else", "time_to_live=own.time_to_live if not ttl else", "j11_messages or ch04_6_producers"),
    Mutant("temporary destinations outlive their connection", "../../providers/inproc/jmsapi_inproc/broker.py", "            if destination.owner is connection:\n                self._drop(destination)", "            pass", "ch04_4_3"),
    Mutant("unsubscribe takes what a transaction holds", "../../providers/inproc/jmsapi_inproc/subscriptions.py", "if subscription.queue.enlisted:", "if False:", "ch08_4_xa"),
    Mutant("a map that was received can be written to", "message/map_message.py", "        self._check_writable()", "        pass", "appendix_b_messages"),
)
# fmt: on


def verdict(mutant: Mutant) -> str:
    """Say what became of a mutant: killed, SURVIVED, or what is wrong with the table."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for package in PACKAGES:
            shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
        file = copy / "jmsapi" / "_core" / mutant.file
        source = file.read_text(encoding="utf-8")
        if source.count(mutant.old) != 1:
            return f"NOT APPLICABLE: its text stands {source.count(mutant.old)} times in {mutant.file}"
        file.write_text(source.replace(mutant.old, mutant.new), encoding="utf-8")
        paths = [
            copy,
            copy / "selector",
            copy / "conformance",
            *(copy / "providers" / wire for wire in ("inproc", "stomp", "amqp")),
        ]
        try:
            run = subprocess.run(
                [sys.executable, "-m", "jmsapi_conformance", "inproc://mutant", "-k", mutant.tests],
                cwd=copy,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(map(str, paths)),
                    "PYTHONDONTWRITEBYTECODE": "1",
                    "JMSAPI_CONFORMANCE_TEST_DEADLINE": "15",
                },
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"TOO SLOW: no result in {TIMEOUT_S} s"
    if run.returncode == 0:
        return "SURVIVED"
    if run.returncode != 1:
        return f"NOT RUN: exit code {run.returncode}: {run.stdout[-300:]}{run.stderr[-300:]}"
    return "killed"


def main(names: list[str]) -> int:
    """Try the mutants and print what became of each."""
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        results: list[str] = []
        for mutant, result in zip(chosen, pool.map(verdict, chosen), strict=True):
            print(f"{result:<10} {mutant.file:<16} {mutant.name}  [{mutant.tests}]", flush=True)
            results.append(result)
    bad = sum(result != "killed" for result in results)
    print(f"{len(results) - bad} of {len(results)} mutants killed")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
