"""One future answered by another."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from jmsapi.spi import ErrorKind, ProviderError, answered, completed, failed


def test_the_value_is_made_of_the_others_value_and_is_there_only_then() -> None:
    question: Future[int] = Future()
    noted: list[int] = []

    def value(number: int) -> str:
        assert not answer.done()
        noted.append(number)
        return str(number)

    answer = answered(question, value)
    assert not answer.done()
    question.set_result(3)
    assert (answer.result(0), noted) == ("3", [3])


def test_an_error_stays_as_it_is_or_becomes_another() -> None:
    error = ProviderError(ErrorKind.RESOURCE, "full")
    assert answered(failed(error), str).exception(0) is error
    other = ValueError("other")
    assert answered(failed(error), str, lambda found: other if found is error else found).exception(0) is other


def test_what_goes_wrong_in_making_the_value_or_the_error_fails_the_answer_and_leaves_nobody_waiting() -> None:
    with pytest.raises(ZeroDivisionError):
        answered(completed(0), lambda number: 1 / number).result(0)
    with pytest.raises(ZeroDivisionError):
        answered(failed(ProviderError(ErrorKind.RESOURCE, "full")), str, lambda _: ValueError(1 / 0)).result(0)


def test_an_answer_that_somebody_else_has_given_stands() -> None:
    question: Future[int] = Future()
    answer: Future[int] = Future()
    assert answered(question, int, answer=answer) is answer
    answer.set_result(1)
    question.set_result(2)
    assert answer.result(0) == 1
