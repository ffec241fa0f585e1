"""11.2.8 Which threads may use a JMSContext."""

import threading

from jmsapi import JMSContext, Message, Queue, Session
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    PATIENCE_MS,
    Recorder,
    eventually,
    finish,
    in_thread,
    must_wait,
    outcome_of,
    receive_text,
    receive_texts,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement

ANY = JMSContext.AUTO_ACKNOWLEDGE


@requirement("11.2.8-1")
def test_threads_that_take_turns_can_use_one_context(context: JMSContext, queue: Queue, other_session: Session) -> None:
    turn = threading.Lock()
    producer = context.create_producer()

    def send(word: str) -> None:
        for number in range(100):
            with turn:
                producer.send(queue, f"{word} {number}")

    pending = [in_thread(lambda: send("a")), in_thread(lambda: send("b"))]
    for future in pending:
        finish(future)
    received = receive_texts(other_session.create_consumer(queue), 200)
    for word in ("a", "b"):
        assert [text for text in received if text and text.startswith(word)] == [f"{word} {number}" for number in range(100)]


@requirement("11.2.8-2")
def test_a_further_context_is_created_while_another_thread_uses_the_session(
    context: JMSContext, queue: Queue, other_session: Session
) -> None:
    waiting = must_wait(context.create_consumer(queue).receive)
    with finish(in_thread(lambda: context.create_context(ANY))) as second:
        assert not waiting.done()
        second.create_producer().send(queue, "text")
        assert text_of(finish(waiting)) == "text"


@requirement("11.2.8-2")
def test_a_further_context_is_created_by_several_threads_and_in_a_listener(
    context: JMSContext, queue: Queue, other_session: Session, names: Names
) -> None:
    target = context.create_queue(names.queue())

    def forward(message: Message) -> None:
        with context.create_context(ANY) as second:
            second.create_producer().send(target, text_of(message) or "")

    context.create_consumer(queue).message_listener = forward
    send_texts(other_session, queue, "1")
    assert receive_text(other_session.create_consumer(target)) == "1"
    pending = [in_thread(lambda: context.create_context(ANY)) for _ in range(8)]
    contexts = [finish(future) for future in pending]
    assert len(set(map(id, contexts))) == 8
    for one in contexts:
        one.close()


@requirement("11.2.8-3")
def test_close_may_come_from_another_thread(context: JMSContext, queue: Queue) -> None:
    waiting = must_wait(context.create_consumer(queue).receive)
    finish(in_thread(context.close))
    assert finish(waiting) is None


@requirement("11.2.8-3")
def test_close_from_another_thread_ends_receive_body_and_one_context_only(context: JMSContext, queue: Queue) -> None:
    second = context.create_context(ANY)
    consumer = second.create_consumer(queue)
    waiting = must_wait(lambda: consumer.receive_body(str))
    finish(in_thread(second.close))
    assert finish(waiting) is None
    context.create_producer().send(queue, "text")
    assert context.create_consumer(queue).receive_body(str, PATIENCE_MS) == "text"


@requirement("11.2.8-4")
def test_a_listener_uses_the_context_it_belongs_to(
    context: JMSContext, queue: Queue, other_session: Session, names: Names
) -> None:
    target = context.create_queue(names.queue())
    outcomes: list[BaseException | None] = []

    def forward(message: Message) -> None:
        outcomes.append(outcome_of(lambda: context.create_producer().send(target, f"re: {text_of(message)}")))

    context.create_consumer(queue).message_listener = Recorder(forward)
    send_texts(other_session, queue, "1", "2")
    assert receive_texts(other_session.create_consumer(target), 2) == ["re: 1", "re: 2"]
    eventually(lambda: len(outcomes) == 2, "both sends have returned")
    assert outcomes == [None, None]


@requirement("11.2.8-4")
@needs("transactions")
def test_a_listener_commits_the_transaction_of_the_context_it_belongs_to(
    connect: Connect, queue: Queue, other_session: Session, names: Names
) -> None:
    context = connect.context(session_mode=JMSContext.SESSION_TRANSACTED)
    target = context.create_queue(names.queue())

    def forward(message: Message) -> None:
        context.create_producer().send(target, f"re: {text_of(message)}")
        context.commit()

    context.create_consumer(queue).message_listener = forward
    send_texts(other_session, queue, "1", "2")
    assert receive_texts(other_session.create_consumer(target), 2) == ["re: 1", "re: 2"]


@requirement("11.2.8-5")
def test_a_second_listener_is_set_while_the_first_is_at_work(
    context: JMSContext, queue: Queue, other_session: Session, names: Names
) -> None:
    running = threading.Lock()
    alone: list[bool] = []

    def note(_: Message) -> None:
        free = running.acquire(blocking=False)
        at_work.set()
        # Let other threads run, so that they get the chance to come in.
        threading.Event().wait(0.001)
        alone.append(free)
        if free:
            running.release()

    at_work = threading.Event()
    first, second = Recorder(note), Recorder(note)
    other_queue = context.create_queue(names.queue())
    context.create_consumer(queue).message_listener = first
    sent = [str(number) for number in range(100)]
    sending = in_thread(lambda: send_texts(other_session, queue, *sent))
    assert at_work.wait(PATIENCE_MS / 1000)
    context.create_consumer(other_queue).message_listener = second
    finish(sending)
    send_texts(other_session, other_queue, *sent)
    assert first.wait_for_texts(100) == sent
    assert second.wait_for_texts(100) == sent
    eventually(lambda: len(alone) == 200, "each call has ended")
    assert alone == [True] * 200
