"""``jmsapi move``, ``copy``, ``replay-dlq``, ``export`` and ``import``: messages from one place to another, none lost on the way.

Within one broker that has transactions each hundred messages are received and sent in one, so a kill at any moment leaves each
in one place. Between two brokers, and where there are no transactions, messages are sent and confirmed first and acknowledged
then: a kill in between doubles up to a hundred, and loses none.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import IO, Annotated, Any, Final

import typer

import jmsapi
from jmsapi import Destination, InvalidDestinationRuntimeException, JMSContext, JMSException, JMSProducer, Message
from jmsapi._core.message import drop_properties
from jmsapi._showing import Unreadable, part, properties_of
from jmsapi.cli._directory import CreateOption, JsonOption, looking, note_if_unsure, require_queue
from jmsapi.cli._message_json import SET_BY_BROKER, Sending, json_line, sending_of_line, time_left_ms
from jmsapi.cli._probe import addresses_of
from jmsapi.cli._target import UrlOption, factory_for, opened, settings_of
from jmsapi.cli._terminal import Progress, for_terminal, say, say_json, show_table, tell
from jmsapi_brokers.dead_letters import cause_of, is_mark, origin_of

__all__ = ["copy", "export", "import_", "move", "replay_dlq"]

BATCH: Final = 100
"""Messages of one transaction, or between two acknowledgements."""
_IDS: Final = 50
"""Message ids in one selector."""

SourceArgument = Annotated[str, typer.Argument(metavar="SRC", help="Name of the queue that messages are taken from.")]
TargetArgument = Annotated[str, typer.Argument(metavar="DST", help="Name of the queue that they are sent to.")]
SelectorOption = Annotated[str | None, typer.Option("--selector", "-s", help="Only messages that this selector selects.")]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=0, help="So many at most; 0 for all.")]
WaitOption = Annotated[int, typer.Option(min=1, help="Done when none comes for so long, in milliseconds.")]
ToUrlOption = Annotated[str | None, typer.Option("--to-url", help="Broker of DST, when it is another one.")]


@dataclass(slots=True)
class _TransferResult:
    """How many messages a transfer has moved, left and dropped."""

    what: str
    progress: Progress
    expired: int = 0
    left: Counter[str] = field(default_factory=Counter[str])

    def tell_exported(self) -> None:
        """Say how many are in the file by now, beside what standard output may have."""
        self.progress.end()
        tell(f"{self.progress.count} messages exported in {self.progress.seconds:.1f} s")

    def report(self, *, as_json: bool) -> None:
        """Say what is done; also when the work was interrupted."""
        self.progress.end()
        count, seconds = self.progress.count, self.progress.seconds
        if as_json:
            counts: dict[str, Any] = {"messages": count, "seconds": round(seconds, 3), "expired": self.expired}
            say_json(counts | ({"left": dict(self.left)} if self.left else {}))
            return
        say(f"{count} messages {self.what} in {seconds:.1f} s" + (f"; {self.expired} had expired" if self.expired else ""))
        for why, number in sorted(self.left.items()):
            tell(f"{number} stay where they were: {why}")


def move(
    source: SourceArgument,
    target: TargetArgument,
    url: UrlOption,
    to_url: ToUrlOption = None,
    selector: SelectorOption = None,
    limit: LimitOption = 0,
    wait: WaitOption = 1000,
    as_json: JsonOption = False,
    create: CreateOption = False,
) -> None:
    """Move messages from one queue to another, with all that is in them. A kill loses none.

    In one broker with transactions it doubles none, either; else up to a hundred may be in both queues after a kill.
    """
    _check_other_queue(source, target, url, to_url)
    _transfer(url, to_url, source, lambda _: target, selector, limit, wait, as_json=as_json, create=create, what="moved")


def copy(
    source: SourceArgument,
    target: TargetArgument,
    url: UrlOption,
    to_url: ToUrlOption = None,
    selector: SelectorOption = None,
    limit: LimitOption = 0,
    wait: WaitOption = 1000,
    consume: Annotated[bool, typer.Option("--consume", help="Take the messages out of SRC, as move does.")] = False,
    as_json: JsonOption = False,
    create: CreateOption = False,
) -> None:
    """Copy the messages of a queue to another, of this broker or, by --to-url, of another one.

    They are browsed and stay; where the broker cannot browse, --consume takes them.
    """
    _check_other_queue(source, target, url, to_url)
    if consume:
        _transfer(url, to_url, source, lambda _: target, selector, limit, wait, as_json=as_json, create=create, what="moved")
        return
    done = _TransferResult("copied", Progress("messages copied", limit or None))
    with looking(url, create=create) as context, closing(_Sender(to_url or url)) as other:
        require_queue(context, url, source, create=create)
        try:
            with context.create_browser(context.create_queue(source), selector) as browser:
                for message in browser.enumeration:
                    other.send(target, message, done)
                    done.progress.add()
                    if done.progress.count == limit:
                        break
        finally:
            done.report(as_json=as_json)
        if not (done.progress.count or selector or create):
            note_if_unsure(context, source)


def _check_other_queue(source: str, target: str, url: str, to_url: str | None) -> None:
    """Refuse to send a queue's messages to that queue, which would never end; one broker may have several URLs."""
    if source != target:
        return
    if to_url in {None, url} or settings_of(url) == settings_of(str(to_url)):
        raise typer.BadParameter("SRC and DST are the same queue")
    here, there = (
        {(one.wire, one.host, one.port, one.options.vhost) for one in addresses_of(place)} for place in (url, str(to_url))
    )
    if here & there:
        raise typer.BadParameter("SRC and DST are the same queue: both URLs lead to one broker")


def replay_dlq(
    source: Annotated[str, typer.Argument(metavar="DLQ", help="Name of the dead letter queue.")],
    url: UrlOption,
    to: Annotated[str | None, typer.Option(help="Queue for letters that do not say where they came from.")] = None,
    selector: SelectorOption = None,
    cause: Annotated[str | None, typer.Option(help="Only letters whose cause has this text in it.")] = None,
    older_than: Annotated[int, typer.Option(min=0, help="Only letters sent so many seconds ago or more.")] = 0,
    newer_than: Annotated[int, typer.Option(min=0, help="Only letters sent so many seconds ago or less; 0: any.")] = 0,
    limit: LimitOption = 0,
    wait: WaitOption = 1000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Browse, and show what would go where.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Send dead letters back to the queue that each names. A kill loses none.

    Letters that --cause or the age rules out, or that name no queue, stay.
    """
    now = time.time() * 1000

    def where(message: Message) -> str:
        found = part(lambda: properties_of(message))
        properties: dict[str, object] = {} if isinstance(found, Unreadable) else found
        if cause is not None and cause not in cause_of(properties):
            return _WhyLeft(f"their cause has no {cause!r} in it")
        age = (now - message.jms_timestamp) / 1000
        if age < older_than or (newer_than and age > newer_than):
            return _WhyLeft("their age")
        found_queue = origin_of(properties) or to
        if found_queue == source:
            return _WhyLeft("they would go to the queue that they are in")
        return found_queue or _WhyLeft("they name no queue; --to gives one")

    done = _TransferResult("replayed", Progress("messages replayed", limit or None))
    with looking(url, create=False) as context:
        require_queue(context, url, source, create=False)
        has = jmsapi.capabilities(context)
        picks = dry_run or cause is not None or older_than or newer_than or (selector and not has.queue_selector)
        if not (has.browser or picks):
            _all_or_none(context, url, source, where, selector, limit, wait, done, as_json=as_json)
            return
        if has.browser:
            with context.create_browser(context.create_queue(source), selector) as browser:
                picked = _picked(browser.enumeration, where, limit, done)
            if not (picked or done.left or selector):
                note_if_unsure(context, source)
            _replay_picked(context, url, source, picked, wait, done, dry_run=dry_run, as_json=as_json)
            return
    tell("this broker cannot browse: letters are taken to be looked at and given back, which marks them as redelivered")
    emulated = {} if has.queue_selector else {"emulate": "queue-selector"}
    with _holding(url, emulated) as context, context.create_consumer(context.create_queue(source), selector) as consumer:
        picked = _picked(iter(partial(consumer.receive, wait), None), where, limit, done)
    with _holding(url, emulated) as context:
        _replay_picked(context, url, source, picked, wait, done, dry_run=dry_run, as_json=as_json)


def _holding(url: str, options: Mapping[str, object]) -> AbstractContextManager[JMSContext]:
    """Open a context that gives back what it was handed."""
    return looking(url, create=False, session_mode=JMSContext.CLIENT_ACKNOWLEDGE, **options)


def _replay_picked(
    context: JMSContext,
    url: str,
    source: str,
    picked: dict[str, str],
    wait: int,
    done: _TransferResult,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    if dry_run:
        _show_replay(picked, done, as_json=as_json)
        return
    done.progress = Progress("messages replayed", len(picked))
    try:
        with _pair(context, url, None) as (inner, outer, settle):
            ids = list(picked)
            for at in range(0, len(ids), _IDS):
                _replay(inner, outer, settle, source, {one: picked[one] for one in ids[at : at + _IDS]}, wait, done)
    finally:
        done.report(as_json=as_json)


class _WhyLeft(str):
    """Why a message stays where it is."""

    __slots__ = ()


_Where = Callable[[Message], str]


def _picked(letters: Iterable[Message], where: _Where, limit: int, done: _TransferResult) -> dict[str, str]:
    """Return the message ids of the letters to be replayed, each with its queue."""
    picked: dict[str, str] = {}
    for message in letters:
        found = where(message)
        name = message.jms_message_id
        if isinstance(found, _WhyLeft):
            done.left[found] += 1
        elif name is None:
            done.left["they have no message id"] += 1
        else:
            picked[name] = found
        if len(picked) == limit > 0:
            break
    return picked


def _replay(
    inner: JMSContext,
    outer: _Sender,
    settle: Callable[[], None],
    source: str,
    picked: dict[str, str],
    wait: int,
    done: _TransferResult,
) -> None:
    """Take the letters with these ids, and send each to its queue."""
    listed = ", ".join("'" + name.replace("'", "''") + "'" for name in picked)
    taken = 0
    with inner.create_consumer(inner.create_queue(source), f"JMSMessageID IN ({listed})") as consumer:
        while taken < len(picked) and (message := consumer.receive(wait)) is not None:
            taken += 1
            _revive(message)
            outer.send(picked[str(message.jms_message_id)], message, done)
        settle()
        done.progress.add(taken)
    if taken < len(picked):
        done.left["they were not found again; somebody else may have them"] += len(picked) - taken


def _revive(message: Message) -> None:
    """Take from a message what marks it as a dead letter: if it dies again, that is another time and maybe another reason."""
    if any(map(is_mark, message.property_names)):
        drop_properties(message, lambda name: is_mark(name) or name in SET_BY_BROKER)


def _all_or_none(
    context: JMSContext,
    url: str,
    source: str,
    where: _Where,
    selector: str | None,
    limit: int,
    wait: int,
    done: _TransferResult,
    *,
    as_json: bool,
) -> None:
    """Replay where nothing can be browsed: a letter that names no queue ends the work, and its batch goes back."""

    def certain(message: Message) -> str:
        found = where(message)
        if isinstance(found, _WhyLeft):
            raise JMSException(f"message {message.jms_message_id} cannot be replayed: {found}")
        _revive(message)
        return found

    try:
        _take(context, url, None, source, certain, selector, limit, wait, done)
    finally:
        done.report(as_json=as_json)


def _show_replay(picked: dict[str, str], done: _TransferResult, *, as_json: bool) -> None:
    counts = Counter(picked.values())
    if as_json:
        say_json({"would_replay": dict(counts), "left": dict(done.left)})
        return
    show_table(["to", "messages"], [[name, str(count)] for name, count in sorted(counts.items())], wide=True)
    for why, number in sorted(done.left.items()):
        tell(f"{number} would stay where they are: {why}")


def _forward(producer: JMSProducer, target: Destination, message: Message, done: _TransferResult) -> None:
    """Send a received message on, as it was sent first."""
    left = time_left_ms(message.jms_expiration)
    if left < 0:
        done.expired += 1
        return
    producer.set_delivery_mode(message.jms_delivery_mode).set_priority(message.jms_priority).set_time_to_live(left)
    producer.send(target, message)


class _Sender:
    """Sends messages on, each to a queue by its name.

    RabbitMQ refuses to declare a queue that has arguments of its own, over STOMP by ending the connection. So the queue is there,
    and is used as it is.

    Args:
        url: Of the broker.
        context: To send by; None makes one.
    """

    def __init__(self, url: str, context: JMSContext | None = None) -> None:
        self._url, self._given = url, None if context is None else (context, context.create_producer())
        self._as_they_are: set[str] = set()
        self._opened: dict[bool, tuple[JMSContext, JMSProducer]] = {}

    def close(self) -> None:
        """Close what was opened here."""
        for context, _ in self._opened.values():
            context.close()

    def send(self, name: str, message: Message, done: _TransferResult) -> None:
        """Send a message to the queue of a name."""
        context, producer = self._given or self._by(declare=name not in self._as_they_are)
        try:
            _forward(producer, context.create_queue(name), message, done)
        except InvalidDestinationRuntimeException as error:
            if self._given or name in self._as_they_are or "declared otherwise" not in str(error):
                raise
            self._opened.pop(True)[0].close()
            self._as_they_are.add(name)
            self.send(name, message, done)

    def _by(self, *, declare: bool) -> tuple[JMSContext, JMSProducer]:
        if declare not in self._opened:
            context = factory_for(self._url, **({} if declare else {"rabbit.declare": False})).create_context()
            self._opened[declare] = context, context.create_producer()
        return self._opened[declare]


def _transfer(
    url: str,
    to_url: str | None,
    source: str,
    where: _Where,
    selector: str | None,
    limit: int,
    wait: int,
    *,
    as_json: bool,
    create: bool,
    what: str,
) -> None:
    """Take messages out of a queue and send each where it is to go."""
    done = _TransferResult(what, Progress(f"messages {what}", limit or None))
    with looking(url, create=create) as context:
        require_queue(context, url, source, create=create)
        try:
            _take(context, url, to_url, source, where, selector, limit, wait, done)
        finally:
            done.report(as_json=as_json)
        if not (done.progress.count or selector or create):
            note_if_unsure(context, source)


def _take(
    context: JMSContext,
    url: str,
    to_url: str | None,
    source: str,
    where: _Where,
    selector: str | None,
    limit: int,
    wait: int,
    done: _TransferResult,
) -> None:
    with _pair(context, url, to_url) as (inner, outer, settle):
        consumer = inner.create_consumer(inner.create_queue(source), selector)
        for batch in _batches(consumer.receive, limit, wait):
            for message in batch:
                outer.send(where(message), message, done)
            settle()
            done.progress.add(len(batch))


def _batches(receive: Callable[[float], Message | None], limit: int, wait: int) -> Iterator[list[Message]]:
    taken = 0
    while True:
        batch: list[Message] = []
        due = min(BATCH, limit - taken) if limit else BATCH
        while len(batch) < due and (message := receive(wait)) is not None:
            batch.append(message)
        taken += len(batch)
        if batch:
            yield batch
        if len(batch) < due or taken == limit:
            return


@contextmanager
def _pair(context: JMSContext, url: str, to_url: str | None) -> Generator[tuple[JMSContext, _Sender, Callable[[], None]]]:
    """Give a context to receive from, what to send by, and what settles both."""
    with ExitStack() as stack:
        if to_url in {None, url} and jmsapi.capabilities(context).transactions:
            both = stack.enter_context(context.create_context(JMSContext.SESSION_TRANSACTED))
            yield both, _Sender(url, both), both.commit
            return
        inner = stack.enter_context(context.create_context(JMSContext.CLIENT_ACKNOWLEDGE))
        outer = stack.enter_context(closing(_Sender(to_url or url)))
        # Every send has been confirmed by then: a producer waits for that.
        yield inner, outer, inner.acknowledge


# ---- files ----


def export(
    name: Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")],
    url: UrlOption,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Where to write; left out: standard output.")] = None,
    selector: SelectorOption = None,
    limit: LimitOption = 0,
    wait: WaitOption = 1000,
    consume: Annotated[bool, typer.Option("--consume", help="Take the messages, each batch once it is in the file.")] = False,
    create: CreateOption = False,
) -> None:
    """Write the messages of a queue as lines of JSON that `import` and `send --json` read. They are browsed, and stay."""
    # Lines on a terminal tell by themselves how far it is.
    done = _TransferResult("exported", Progress("messages exported", limit or None, quiet=file is None and sys.stdout.isatty()))
    with ExitStack() as stack:
        context = stack.enter_context(looking(url, create=create, session_mode=JMSContext.CLIENT_ACKNOWLEDGE))
        require_queue(context, url, name, create=create)
        queue = context.create_queue(name)
        # Only now: a file that is there already is kept when the queue is not there.
        out: IO[str] = sys.stdout if file is None else stack.enter_context(_fresh(file) if consume else opened(file, "w"))
        try:
            if consume:
                for batch in _batches(context.create_consumer(queue, selector).receive, limit, wait):
                    _write(out, batch)
                    context.acknowledge()
                    done.progress.add(len(batch))
            else:
                with context.create_browser(queue, selector) as browser:
                    for message in browser.enumeration:
                        _write(out, [message])
                        done.progress.add()
                        if done.progress.count == limit:
                            break
        except KeyboardInterrupt:
            done.tell_exported()
            raise
        if not (done.progress.count or selector or create):
            note_if_unsure(context, name)
    done.tell_exported()


def _fresh(file: Path) -> IO[str]:
    """Open a file for what is taken from a queue; one that has something in it may hold the only copy, so it is renamed."""
    if file.is_file() and file.stat().st_size:
        kept = next(path for number in count(1) if not (path := file.with_name(f"{file.name}.{number}")).exists())
        try:
            file.rename(kept)
        except OSError as error:
            raise typer.BadParameter(f"{file} has lines in it and cannot be renamed: {error.strerror}") from None
        tell(f"{file} had lines in it; they are in {kept} now")
    return opened(file, "w")


def _write(out: IO[str], messages: list[Message]) -> None:
    for message in messages:
        line = json_line(message, ascii_only=True)
        if (why := json.loads(line).get("unreadable")) is not None:
            raise JMSException(
                f"message {message.jms_message_id} cannot be exported: {why}; it stays where it is", "message-format"
            )
        out.write(f"{for_terminal(line) if out is sys.stdout else line}\n")
    out.flush()


def import_(
    name: Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")],
    url: UrlOption,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="What to read; left out: standard input.")] = None,
    skip: Annotated[int, typer.Option(min=0, help="Begin behind so many lines, after an import that was interrupted.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Send the messages of lines of JSON, a hundred in a transaction where the broker has them.

    If it ends early, it says which --skip goes on there. A kill loses nothing, since the file stays: without transactions a line
    may have been sent and not counted.
    """
    done = _TransferResult("imported", Progress("messages imported"))
    with ExitStack() as stack:
        lines = sys.stdin.buffer if file is None else stack.enter_context(opened(file, "rb"))
        context = stack.enter_context(factory_for(url).create_context())
        transacted = bool(jmsapi.capabilities(context).transactions)
        worker = context
        if transacted:
            worker = stack.enter_context(context.create_context(JMSContext.SESSION_TRANSACTED))
        producer, queue = worker.create_producer(), worker.create_queue(name)
        pending = number = 0
        reached = skip
        try:
            for number, line in enumerate(lines, 1):
                if number <= skip or not line.strip():
                    continue
                sending = sending_of_line(worker, line, number)
                _send_parsed(producer, queue, sending, done)
                pending += 1
                if not transacted or pending == BATCH:
                    if transacted:
                        worker.commit()
                    done.progress.add(pending)
                    pending, reached = 0, number
            if pending:
                worker.commit()
                done.progress.add(pending)
            reached = max(number, skip)
        finally:
            done.report(as_json=as_json)
            if 0 < reached < number:
                tell(f"go on with --skip {reached}")


def _send_parsed(producer: JMSProducer, queue: Destination, sending: Sending, done: _TransferResult) -> None:
    for what in sending.left_out:
        done.left[f"{what} could not be kept"] += 1
    if sending.time_to_live_ms < 0:
        done.expired += 1
        return
    producer.set_delivery_mode(sending.delivery_mode).set_priority(sending.priority).set_time_to_live(sending.time_to_live_ms)
    producer.send(queue, sending.message)
