"""Signals at any moment: what is interrupted stays usable, and closing is quick, also from the handler."""

from __future__ import annotations

import asyncio
import opcode
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType
from typing import Any

import pytest

import jmsapi
import jmsapi.aio
from jmsapi._core.interrupted_close import close_when_possible
from jmsapi.testing import LoopbackServer

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the platform has no timers that signal")
QUICK_S = 5.0


@pytest.fixture
def alarm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any, float], None]]:
    """Have a handler called in the main thread after some seconds."""
    before = signal.getsignal(signal.SIGALRM)
    report = sys.unraisablehook

    def raise_it_elsewhere(unraisable: Any) -> None:
        # Python swallows what is raised in callbacks of weak references and of the collector, and in finalizers.
        if unraisable.exc_type is KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, 0.001)
        else:
            report(unraisable)

    monkeypatch.setattr(sys, "unraisablehook", raise_it_elsewhere)

    def arm(handler: Any, seconds: float) -> None:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    yield arm
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def work(session: jmsapi.Session, producer: jmsapi.MessageProducer, consumer: jmsapi.MessageConsumer) -> None:
    """Send and receive until something is raised, for ten seconds at most."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        producer.send(session.create_text_message("x"))
        message = consumer.receive(20)
        if session.transacted:
            session.commit()
        elif message is not None:
            message.acknowledge()


@pytest.mark.parametrize("mode", [0, 1, 2, 3], ids=["transacted", "auto", "client", "dups-ok"])
@pytest.mark.parametrize("seed", range(4))
def test_a_session_is_usable_after_interruptions_and_closes_quickly(
    seed: int, mode: int, alarm: Callable[[Any, float], None]
) -> None:
    chance = random.Random(f"{seed} {mode}")
    for _ in range(12):
        connection = jmsapi.connection_factory(f"inproc://{uuid.uuid4().hex}").create_connection()
        session = connection.create_session(mode)
        queue = session.create_queue("q")
        producer, consumer = session.create_producer(queue), session.create_consumer(queue)
        connection.start()
        for _ in range(3):
            try:
                alarm(interrupt, chance.uniform(0.0003, 0.006))
                work(session, producer, consumer)
            except KeyboardInterrupt:
                continue
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        begun = time.monotonic()
        if mode == 0:
            session.rollback()
        producer.send(session.create_text_message("after"))
        if mode == 0:
            session.commit()
        assert consumer.receive(5000) is not None
        connection.close()
        assert time.monotonic() - begun < QUICK_S


@pytest.mark.parametrize("what", ["connection", "session", "context"])
def test_a_handler_of_a_signal_closes_what_the_main_thread_is_using(what: str, alarm: Callable[[Any, float], None]) -> None:
    chance = random.Random(what)
    for _ in range(15):
        factory = jmsapi.connection_factory(f"inproc://{uuid.uuid4().hex}")
        connection = factory.create_connection()
        context = factory.create_context()
        session = connection.create_session()
        queue = session.create_queue("q")
        producer, consumer = session.create_producer(queue), session.create_consumer(queue)
        connection.start()
        sender, receiver = context.create_producer(), context.create_consumer(queue)
        closed: dict[str, Any] = {"connection": connection, "session": session, "context": context}
        begun = time.monotonic()
        alarm(lambda *_, one=closed[what]: one.close(), chance.uniform(0.0005, 0.01))
        with pytest.raises(jmsapi.JMSError):
            while time.monotonic() < begun + QUICK_S:
                if what == "context":
                    sender.send(queue, "x")
                    receiver.receive(20)
                else:
                    producer.send(session.create_text_message("x"))
                    consumer.receive(20)
            pytest.fail("it was not closed")
        connection.close()
        context.close()
        assert time.monotonic() - begun < QUICK_S


@pytest.mark.parametrize("module", ["jmsapi._core.consumer", "jmsapi.spi.clock"])
def test_what_interrupts_code_that_a_holder_of_locks_has_called_is_closed_by_another_thread(module: str) -> None:
    closed: list[int] = []
    done = threading.Event()

    def handler() -> None:
        close_when_possible(lambda: (closed.append(threading.get_ident()), done.set()), apart=False)  # type: ignore[func-returns-value, arg-type, return-value]

    # The code that is interrupted, and a function of the core that has called it and may hold a lock.
    called = FunctionType((lambda interrupt: interrupt()).__code__, {"__name__": module})
    holder = FunctionType((lambda call, interrupt: call(interrupt)).__code__, {"__name__": "jmsapi._core.consumer"})
    holder(called, handler)
    assert done.wait(30)
    assert closed != [threading.get_ident()]


def test_a_listener_that_closes_a_session_of_another_connection_waits_for_that() -> None:
    one = jmsapi.connection_factory(f"inproc://{uuid.uuid4().hex}").create_connection()
    other = jmsapi.connection_factory(f"inproc://{uuid.uuid4().hex}").create_connection()
    session = one.create_session()
    queue = session.create_queue("q")
    closed: list[bool] = []
    done = threading.Event()

    def listen(_: jmsapi.Message) -> None:
        other.close()
        try:
            other.start()
        except jmsapi.IllegalStateException:
            closed.append(True)
        done.set()

    session.create_consumer(queue).message_listener = listen
    one.start()
    sender = one.create_session()
    sender.create_producer(queue).send(sender.create_message())
    assert done.wait(10)
    assert closed == [True]
    one.close()


@pytest.mark.program
def test_what_a_finalizer_closes_at_the_end_of_the_interpreter_is_not_waited_for() -> None:
    program = textwrap.dedent("""
        import sys, threading, time, uuid
        import jmsapi
        class Owner:
            def __init__(self):
                self.connection = jmsapi.connection_factory("inproc://" + uuid.uuid4().hex).create_connection()
                self.session = self.connection.create_session()
                queue = self.session.create_queue("q")
                self.session.create_consumer(queue).message_listener = print
                self.connection.start()
            def __del__(self):
                self.session.close()
                self.connection.close()
                sys.stdout.write("closed")
        owner = Owner()
        owner.itself = owner
        print(time.monotonic(), flush=True)
    """)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    at, _, closed = ended.stdout.partition("\n")
    assert (ended.returncode, closed, ended.stderr) == (0, "closed", "")
    assert time.monotonic() - float(at) < 2 * QUICK_S


@pytest.mark.program
def test_what_a_finalizer_waits_for_at_the_end_of_the_interpreter_is_refused() -> None:
    program = textwrap.dedent("""
        import sys, time, uuid
        import jmsapi
        class Owner:
            def __init__(self):
                self.context = jmsapi.connection_factory("inproc://" + uuid.uuid4().hex).create_context()
                self.consumer = self.context.create_consumer(self.context.create_queue("q"))
            def __del__(self):
                for receive in (self.consumer.receive, lambda: self.consumer.receive(60_000), lambda: next(iter(self.consumer))):
                    try:
                        receive()
                    except jmsapi.JMSRuntimeException as error:
                        sys.stdout.write(f"{error.error_code} ")
                self.context.close()
        owner = Owner()
        owner.itself = owner
        print(time.monotonic(), flush=True)
    """)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    at, _, refused = ended.stdout.partition("\n")
    assert (ended.returncode, refused, ended.stderr) == (0, "connection " * 3, "")
    assert time.monotonic() - float(at) < 2 * QUICK_S


@pytest.mark.program
def test_the_end_of_the_program_waits_for_what_a_handler_has_begun_to_close() -> None:
    program = textwrap.dedent("""
        import signal, sys, uuid
        import jmsapi
        connection = jmsapi.connection_factory("inproc://" + uuid.uuid4().hex).create_connection()
        session = connection.create_session()
        consumer = session.create_consumer(session.create_queue("q"))
        connection.start()
        def handler(*_):
            connection.close()
            sys.exit(3)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        consumer.receive()
    """)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "", "")


class InterruptedAt:
    """A trace function that interrupts where a signal could: at the n-th beginning of a call, or return from one."""

    _CALLS = frozenset(opcode.opmap[name] for name in ("CALL", "CALL_FUNCTION_EX", "CALL_KW") if name in opcode.opmap)

    def __init__(self, n: int) -> None:
        self.left = n
        self._last: dict[FrameType, int] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        if not str(frame.f_globals.get("__name__")).startswith("jmsapi"):
            # Of what others do only the moment counts at which they return to the library.
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        due = event == "call"
        if event == "opcode":
            due = self._last.get(frame) in self._CALLS
            self._last[frame] = frame.f_code.co_code[frame.f_lasti]
        elif event == "return":
            self._last.pop(frame, None)
        self.left -= due
        if due and self.left == 0:
            sys.settrace(None)
            raise KeyboardInterrupt
        return self

    def interrupts(self, call: Callable[[], object]) -> bool:
        """Tell whether a call was interrupted; not when it had returned before."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            call()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False


@pytest.mark.parametrize("what", ["connection", "session", "consumer", "context"])
def test_a_close_that_is_interrupted_anywhere_is_done_and_gives_back_what_waited(what: str) -> None:
    for n in range(1, 10_000, 5):
        # What is not done at once is waited for until the close gives up, which is far beyond what is slow.
        with (
            LoopbackServer() as server,
            jmsapi.connection_factory(name := f"{server.url}?close_timeout_ms=120000").create_context() as other,
        ):
            queue = other.create_queue("q")
            for text in "abc":
                other.create_producer().send(queue, text)
            context = jmsapi.connection_factory(name).create_context()
            connection = jmsapi.connection_factory(name).create_connection()
            session = connection.create_session()
            closed: Any = {"connection": connection, "session": session, "context": context}.get(what)
            if what == "context":
                context.create_consumer(queue)
            else:
                consumer = session.create_consumer(queue)
                connection.start()
                closed = closed or consumer
            interrupted = InterruptedAt(n).interrupts(closed.close)
            begun = time.monotonic()
            closed.close()
            receiver = other.create_consumer(queue)
            assert [receiver.receive_body(str, 30_000) for _ in range(3)] == ["a", "b", "c"], f"interrupted at {n}"
            context.close()
            connection.close()
            assert time.monotonic() - begun < 60.0, f"interrupted at {n}"
        if not interrupted:
            return
    pytest.fail("it never came to its end")


MODES = {"transacted": 0, "auto": 1, "client": 2, "dups-ok": 3}


def received(context: jmsapi.JMSContext, call: str, n: int) -> tuple[list[str], bool]:
    """Receive by a call that is interrupted at its ``n``th point, then all the rest; return all, and whether it was."""
    consumer: Any = context.create_consumer(context.create_queue("q"))
    receiver = consumer._consumer if call == "classic receive" else consumer
    calls: dict[str, Callable[[], Any]] = {
        "receive_no_wait": receiver.receive_no_wait,
        "receive_body": lambda: consumer.receive_body(str, 1000),
        "next": iter(consumer).__next__,
    }
    found: list[Any] = []
    receive = calls.get(call, lambda: receiver.receive(1000))
    interrupted = InterruptedAt(n).interrupts(lambda: found.append(receive()))
    found += iter(lambda: consumer.receive(50), None)
    return [one if isinstance(one, str) else one.get_body(str) for one in found], interrupted


@pytest.mark.parametrize("call", ["receive", "receive_no_wait", "receive_body", "classic receive", "next"])
@pytest.mark.parametrize("mode", MODES)
def test_what_an_interrupted_receive_had_taken_is_received_next(mode: str, call: str) -> None:
    name = f"inproc://{uuid.uuid4().hex}"
    # Every third point, so that all together see all.
    interrupted, n = True, (len(mode) + len(call)) % 3 - 2
    with jmsapi.connection_factory(name).create_context() as other:
        queue = other.create_queue("q")
        while interrupted:
            n += 3
            for text in "abc":
                other.create_producer().send(queue, text)
            with jmsapi.connection_factory(name).create_context(session_mode=MODES[mode]) as context:
                texts, interrupted = received(context, call, n)
                if mode == "transacted":
                    context.commit()
                elif mode == "client":
                    context.acknowledge()
            assert texts == ["a", "b", "c"], f"interrupted at its point {n}"
            with other.create_consumer(queue) as left:
                assert left.receive_no_wait() is None, f"interrupted at its point {n}"
    assert n > 10


@pytest.mark.parametrize("closed", ["consumer", "context"])
def test_what_was_acknowledged_and_nobody_received_is_named_in_the_log(closed: str, caplog: pytest.LogCaptureFixture) -> None:
    name = f"inproc://{uuid.uuid4().hex}"
    with jmsapi.connection_factory(name).create_context() as other:
        told: list[bool] = []
        interrupted, n = True, 0
        while interrupted:
            n += 1
            queue = other.create_queue(f"q{n}")
            other.create_producer().send(queue, "a")
            with jmsapi.connection_factory(name).create_context() as context:
                consumer: Any = context.create_consumer(queue)
                interrupted = InterruptedAt(n).interrupts(lambda consumer=consumer: consumer.receive(1000))
                (consumer if closed == "consumer" else context).close()
            told.append(any("nobody has received it since" in record.getMessage() for record in caplog.records))
            caplog.clear()
            with other.create_consumer(queue) as left:
                assert left.receive_no_wait() is None or (interrupted and not told[-1]), f"interrupted at its point {n}"
        assert any(told)
        assert not told[-1]


@pytest.mark.parametrize("aio", [False, True])
def test_what_was_received_is_not_held(aio: bool) -> None:
    import gc

    from jmsapi._core.acknowledgement.ledger import Entry

    name = f"inproc://{uuid.uuid4().hex}"

    async def receive() -> None:
        async with jmsapi.aio.connection_factory(name).create_context() as context:
            consumer = await context.create_consumer(context.create_queue("q"))
            assert await consumer.receive(30_000) is not None
            assert not held()

    def held() -> list[object]:
        return [one for one in gc.get_objects() if isinstance(one, Entry) and one.delivery.envelope.body == name]

    with jmsapi.connection_factory(name).create_context() as context:
        queue = context.create_queue("q")
        context.create_producer().send(queue, name)
        if aio:
            asyncio.run(receive())
        else:
            consumer = context.create_consumer(queue)
            assert consumer.receive(30_000) is not None
            assert not held()
