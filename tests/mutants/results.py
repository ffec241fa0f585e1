"""What became of each mutant, as a page; and those that change nothing a program could notice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
RESULTS: Final = Path(__file__).with_name("RESULTS.md")

_STOMP: Final = "providers/stomp/jmsapi_stomp"
EQUIVALENT: Final[dict[tuple[str, str, str], str]] = {
    ("jmsapi/_core/acknowledgement/ledger.py", "self.repeats = 0", "self.repeats = 1"): "up to 1 there is no pause, and it is counted anew before it is read",
    ("selector/jmsapi_selector/java_numbers.py", "return quotient if (a < 0) == (b < 0) else -quotient", "return quotient if (a <= 0) == (b < 0) else -quotient"): "a whole 0 is its own opposite",
    ("providers/inproc/jmsapi_inproc/backlog.py", "for level in range(LEVELS - 1, -1, -1):", "for level in range(LEVELS + 1, -1, -1):"): "levels above the highest are never marked, and passed over",
    ("selector/jmsapi_selector/java_numbers.py", "return (value + half) % (2 * half) - half", "return (value - half) % (2 * half) - half"): "both differ by the divisor",
    ("providers/inproc/jmsapi_inproc/broker.py", "durable=True,", "durable=False,"): "a subscription goes by its key, which says that it is durable",
    ("jmsapi/_core/timeouts.py", "if timeout_ms is None or (type(timeout_ms) is int and timeout_ms >= 0):", "if timeout_ms is None or (type(timeout_ms) is int and timeout_ms > 0):"): "what is below, for numbers of any kind, returns the same 0",
    ("jmsapi/_core/pending_sends.py", "self._awaited += 1", "self._awaited += 2"): "others are woken once too often, and wait on",
    ("jmsapi/_core/equal_hashes.py", "if len(found) > MOST_EQUAL_HASHES and max(Counter(map(hash, found)).values()) > MOST_EQUAL_HASHES:", "if len(found) >= MOST_EQUAL_HASHES and max(Counter(map(hash, found)).values()) > MOST_EQUAL_HASHES:"): "of so many no more can be equal",
    ("providers/inproc/jmsapi_inproc/connection.py", "self._closed = True", "self._closed = False"): "a severed connection has no broker and no open session left, which all that asks looks at as well",
    ("jmsapi/_core/dispatch.py", "if consumer is None or self._stopping:", "if consumer is None and self._stopping:"): "once it is stopping no consumer is ready, for nothing flows from the same moment on",
    ("providers/inproc/jmsapi_inproc/scheduler.py", "self._stale = 0", "self._stale = -1"): "a discarded broker gets no entry any more, and all that the number does is have entries of messages that are gone cleared away",
    (f"{_STOMP}/frames.py", 'if not nul_allowed and data.find(b"\\0", position, size if end < 0 else end) >= 0:', 'if not nul_allowed and data.find(b"\\0", position, size if end <= 0 else end) >= 0:'): "no frame begins with a line feed, so that none can end its head at 0",
    (f"{_STOMP}/frames.py", "return (head[start:] if end < 0 else head[start:end]).removesuffix(b\"\\r\")", "return (head[start:] if end <= 0 else head[start:end]).removesuffix(b\"\\r\")"): "it is looked for behind the name of the header, which is not empty",
    (f"{_STOMP}/frames.py", "if dressed >= 0:", "if dressed > 0:"): "no frame begins with a line feed, so that none can end its head at 0",
    ("jmsapi/listener/container.py", "self.redelivery = Redelivery.of(spec, max_redeliveries=-1, keeps_rejected=False)", "self.redelivery = Redelivery.of(spec, max_redeliveries=- 0, keeps_rejected=False)"): "only workers ask for it, and it is replaced before the first of them is made",
    ("providers/inproc/jmsapi_inproc/backlog.py", "if bucket[-1].order <= scanned[level]:", "if bucket[-1].order < scanned[level]:"): "nothing is behind the last one that was looked at, so nothing is taken",
    ("selector/jmsapi_selector/compiler.py", "return False", "return True"): "the check of a selector refuses what would need it: strings and booleans in an order",
}  # fmt: skip
"""By file, line before and line after: why no program can tell the two apart."""
MENDED: Final[dict[tuple[str, str, str], str]] = {
    ("jmsapi/_core/acknowledgement/lending.py", "if idle:", "if not idle:"): "unit/core/test_lending.py::test_a_closed_consumer_ends_when_the_last_that_it_has_lent_is_settled_and_not_before",
    ("jmsapi/_core/pickled.py", "seen += 1", "seen += 2"): "unit/message/test_pickled.py::test_a_key_has_ten_thousand_values_in_it_at_most",
    (f"{_STOMP}/codec.py", "if 4 * len(line) > limit and len(line.encode()) + 1 > limit:", "if 4 * len(line) > limit and len(line.encode()) + 1 >= limit:"): "providers/stomp/test_codec.py::test_a_header_line_may_be_as_long_as_the_broker_takes_and_no_longer",
    (f"{_STOMP}/transport.py", "self._count = 1", "self._count = 2"): "providers/stomp/test_writing.py",
    (f"{_STOMP}/settlement.py", "if consumer is None or consumer.closing or not consumer.settled(tag, self._context.behaviour.window_cost(tag.size)):", "if consumer is None or consumer.closing and not consumer.settled(tag, self._context.behaviour.window_cost(tag.size)):"): "providers/stomp/test_settlement.py",
    (f"{_STOMP}/lifecycle.py", "if connection is None or parts is None:", "if connection is None and parts is None:"): "providers/stomp/test_closing.py::test_a_connection_that_is_closed_while_it_opens_ends_at_once",
    (f"{_STOMP}/auxiliary_connections.py", "after_all([one.disconnect for one in self._open if one.dead is None], done)", "after_all([one.disconnect for one in self._open if one.dead is not None], done)"): "providers/stomp/test_closing.py::test_further_connections_are_left_in_order_where_they_are_open",
    (f"{_STOMP}/consumer_release.py", "_fail_drains(consumer, cause)", "pass"): "providers/stomp/test_connections.py::test_who_waits_for_the_rest_hears_at_once_that_the_consumer_has_ended",
    ("jmsapi/_core/session_parts.py", "for consumer in state.consumers.values():", "for consumer in []:"): "faults/test_forks_in_process.py",
    ("jmsapi/_core/acknowledgement/ledger.py", "if 0 <= self._limit < entry.delivery.delivery_count:", "if 0 <= self._limit <= entry.delivery.delivery_count:"): "unit/core/test_ledger_at_broker.py::test_what_a_listener_failed_on_goes_back_until_the_broker_has_counted_to_the_limit",
    ("selector/jmsapi_selector/planner.py", "text = text[: token.start] + dialect.names[token.text] + text[token.end :]", "text = text[: token.start] - dialect.names[token.text] + text[token.end :]"): "unit/selector/test_planner.py::test_a_broker_that_keeps_to_the_standard_reads_its_own_names_and_all_else_as_it_stands",
    ("jmsapi/listener/causes.py", "shown = error.__cause__ if isinstance(error, EJBException) and error.__cause__ is not None else error", "shown = error.__cause__ if isinstance(error, EJBException) or error.__cause__ is not None else error"): "unit/listener/test_causes.py::test_what_the_callback_raised_is_said_and_not_what_wraps_it",
    ("jmsapi/listener/task_worker.py", "continue", "break"): "unit/listener/test_steadiness.py::test_a_worker_that_is_idle_stays_when_there_are_no_more_than_the_fewest",
    ("jmsapi/listener/workers.py", "continue", "break"): "unit/listener/test_steadiness.py::test_a_worker_that_is_idle_stays_when_there_are_no_more_than_the_fewest",
    ("jmsapi/listener/task_worker.py", "if self._spoiled or self._pauses:", "if self._spoiled and self._pauses:"): "unit/listener/test_steadiness.py::test_the_waits_grow_while_the_broker_takes_no_commit",
    ("providers/inproc/jmsapi_inproc/subscriptions.py", 'return f"{key.name!r}" + ("" if key.client_id is None else f" of client id {key.client_id!r}")', 'return f"{key.name!r}" + ("" if not key.client_id is None else f" of client id {key.client_id!r}")'): "providers/inproc/test_topics.py::test_the_error_names_the_subscription_and_whose_it_is",
    ("jmsapi/_core/pending_sends.py", "self._awaited -= 1", "self._awaited -= 2"): "unit/core/test_awaited_sends.py::test_each_of_many_sends_in_turn_is_woken_by_its_answer",
    ("jmsapi/_core/managed.py", "for session in self.sessions():", "for session in []:"): "unit/listener/test_container_mode.py::test_a_connection_that_is_closed_in_a_transaction_has_its_session_closed_at_once_and_its_work_committed",
    ("jmsapi/_core/connection.py", "self.check_open()", "pass"): "unit/core/test_reconnecting_core.py::test_a_closed_connection_has_no_connection_listener_and_takes_none",
    ("jmsapi/_core/dispatch.py", "self._changed.notify_all()", "pass"): "unit/core/test_dispatcher.py::test_who_waits_for_a_listener_that_another_thread_runs_is_called_when_it_has_returned",
    ("jmsapi/_core/provider_connection.py", "for one in deliveries:", "for one in []:"): "unit/core/test_provider_connection.py::test_each_message_that_comes_for_a_consumer_that_is_gone_is_logged",
    ("jmsapi/_core/message/stream_message.py", "self._own = True", "self._own = False"): "unit/message/test_stream_message.py::test_a_body_that_was_sent_is_copied_once_and_not_by_each_write",
    ("jmsapi/_core/expiry.py", "if late_ms < 0:", "if late_ms <= 0:"): "unit/core/test_expiry.py::test_what_expires_a_moment_after_it_came_has_expired_here_and_what_came_at_that_moment_has_not",
    ("jmsapi/listener/workers.py", 'more = f" and {len(taken) - 1} more" if len(taken) > 1 else ""', 'more = f" and {len(taken) - 1} more" if len(taken) >= 1 else ""'): "unit/listener/test_log.py::test_a_batch_that_fails_is_named_by_its_first_message_and_how_many_others_there_are",
    ("providers/inproc/jmsapi_inproc/registry.py", "store.writer.rest(CLOSE_S)", "pass"): "unit/inproc_store/test_prepared_branches.py::test_a_store_that_only_keeps_a_branch_has_no_thread",
    ("providers/inproc/jmsapi_inproc/connection.py", "session.closed = True", "session.closed = False"): "providers/inproc/test_connections.py::test_a_call_that_waits_for_its_turn_while_the_broker_is_discarded_is_told_so",
    ("providers/inproc/jmsapi_inproc/connection.py", "child.closed = True", "child.closed = False"): "providers/inproc/test_connections.py::test_a_call_that_waits_for_its_turn_while_the_broker_is_discarded_is_told_so",
    ("providers/inproc/jmsapi_inproc/connection.py", "if self._events is None:", "if self._events is not None:"): "providers/inproc/test_connections.py::test_an_error_says_whether_the_connection_was_never_opened_or_is_closed",
    (f"{_STOMP}/control_frames.py", "elif self._pending is None or not self.one_at_a_time:", "elif self._pending is None or  self.one_at_a_time:"): "providers/stomp/test_control_frames.py::test_one_at_a_time_a_frame_is_written_when_the_one_before_is_answered",
    ("selector/jmsapi_selector/lexer.py", 'return char <= "\\x08" or "\\x0e" <= char <= "\\x1b" or "\\x7f" <= char <= "\\x9f"', 'return char <= "\\x08" or "\\x0e" <= char <= "\\x1b" and "\\x7f" <= char <= "\\x9f"'): "unit/selector/test_errors.py::test_of_the_control_characters_a_name_may_hold_those_that_java_ignores_in_one",
}  # fmt: skip
"""What survived when it was first tried: the test that was written for it, and fails with it."""

_FORKED: Final = "faults/test_forks_in_process.py, tried by hand: its children run processes of their own"
BY_HAND: Final[dict[tuple[str, str, str], str]] = {
    ("jmsapi/_core/pending_sends.py", "self._unanswered = self._awaited = 0", "self._unanswered = self._awaited = 1"): _FORKED,
    ("providers/inproc/jmsapi_inproc/registry.py", "_brokers.clear()", "pass"): _FORKED,
}
"""What only a test in another process runs, which has no mutant in it: caught by a copy of the source with the mutant."""


@dataclass(frozen=True)
class Result:
    """A mutant and its verdict: caught by a test, or survived."""

    group: str
    file: str
    line: int
    before: str
    after: str
    verdict: str
    by: str

    @property
    def equivalent(self) -> str:
        """Why it does the same as the program; empty for a true mutant."""
        return EQUIVALENT.get((self.file, self.before, self.after), "")

    @property
    def mended(self) -> str:
        """The test that was written because it survived; empty for any other."""
        return MENDED.get((self.file, self.before, self.after), "")

    @property
    def by_hand(self) -> str:
        """The test that caught it in a copy of the source; empty for any other."""
        return BY_HAND.get((self.file, self.before, self.after), "")


_ROW: Final = re.compile(r"\| (.+?):(\d+) \| `(.*?)` \| `(.*?)` \| (\w+) \| (.*) \|")


def read(text: str, groups: dict[str, str]) -> list[Result]:
    """Return what a page tells of mutants whose line still stands in its file as it did.

    Args:
        text: The page.
        groups: The group of each file.
    """
    found: list[Result] = []
    for file, line, before, after, verdict, told in _ROW.findall(text):
        old, new = before.replace("\\|", "|"), after.replace("\\|", "|")
        at = _line(file, old, int(line)) if file in groups else 0
        if at and verdict == "caught":
            found.append(Result(groups[file], file, at, old, new, verdict, told))
        elif at:
            found.append(Result(groups[file], file, at, old, new, "survived", ""))
    return found


def _line(file: str, text: str, line: int) -> int:
    """Return the line of a file that has a text, the nearest to where it was; 0 when there is none."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    places = [at for at, one in enumerate(lines, start=1) if one.strip() == text]
    return min(places, key=lambda at: abs(at - line), default=0)


def page(results: Sequence[Result], chosen: int, seed: int) -> str:
    """Return the page of what is known of the mutants of a seed."""
    counts: dict[str, Counter[str]] = {}
    rows: list[str] = []
    for one in results:
        told, verdict = one.by.removeprefix("tests/"), one.verdict
        if verdict == "survived" and one.equivalent:
            told, verdict = one.equivalent, "equivalent"
        elif verdict == "survived" and one.mended:
            told, verdict = one.mended, "mended"
        elif verdict == "survived" and one.by_hand:
            told, verdict = one.by_hand, "caught"
        counts.setdefault(one.group, Counter())[verdict] += 1
        rows.append(f"| {one.file}:{one.line} | {_code(one.before)} | {_code(one.after)} | {verdict} | {told} |")
    total = sum(counts.values(), Counter[str]())
    lines = [
        "# Mutants",
        "",
        f"Made by `make mutants` (seed {seed}): {len(results)} of the {chosen} that it chose have been tried, and the next run goes on with",
        "the others. Each line below was changed as shown, and the tests that run it",
        "were run until one failed. *Caught*: by the test that is named, which passes without the change. *Equivalent*: no program can",
        "notice, for the reason given. *Mended*: it survived, and the test that is named was written and fails with it. *Survived*: none of",
        "the tests that were tried notices.",
        "",
        "| group | mutants | caught | mended | equivalent | survived |",
        "|---|---|---|---|---|---|",
    ]
    for group, found in [*counts.items(), ("all", total)]:
        lines.append(
            f"| {group} | {found.total()} | {found['caught']} | {found['mended']} | {found['equivalent']} | {found['survived']} |"
        )
    real, caught = total.total() - total["equivalent"], total["caught"] + total["mended"]
    lines += ["", f"Of {real} mutants that are not equivalent, {caught} are caught now: {caught / max(1, real):.1%}.", ""]
    lines += ["| line | before | after | verdict | by, or why |", "|---|---|---|---|---|", *rows, ""]
    return "\n".join(lines)


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"
