"""The order in which waiting messages are kept, with nothing around it."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from jmsapi_inproc.backlog import LEVELS, Backlog
from jmsapi_inproc.messages import QueuedMessage

PLACES = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 200)), unique_by=lambda place: place[1], max_size=40)


def message(priority, order):
    made = QueuedMessage(SimpleNamespace(priority=priority), None)
    made.order = order
    return made


def places(waiting):
    return [(one.envelope.priority, one.order) for one in waiting]


def in_order(found):
    return sorted(found, key=lambda place: (-place[0], place[1]))


def filled(found):
    waiting = Backlog()
    for place in found:
        waiting.insert(message(*place))
    return waiting


@settings(deadline=None)
@given(PLACES)
def test_inserted_in_any_order_messages_come_out_in_theirs(found):
    waiting = filled(found)
    assert places(waiting) == in_order(found)
    assert len(waiting) == len(found)
    out = []
    while waiting:
        out.append(waiting.pop())
    assert places(out) == in_order(found)
    assert len(waiting) == 0


@settings(deadline=None)
@given(PLACES, st.data())
def test_removing_one_leaves_the_others(found, data):
    waiting = filled(found)
    for one in data.draw(st.lists(st.sampled_from([*waiting]), unique=True) if found else st.just([])):
        waiting.remove(one)
        found = [place for place in found if place[1] != one.order]
        assert places(waiting) == in_order(found)
    assert bool(waiting) == bool(found)


@settings(deadline=None)
@given(PLACES, st.lists(st.integers(1, 10), max_size=10), st.integers(2, 5))
def test_sifting_goes_on_where_it_stopped_and_looks_at_each_message_once(found, limits, every):
    waiting = filled(found)
    seen = [0] * LEVELS
    looked = []

    def accept(one):
        looked.append(one.order)
        return one.order % every == 0

    taken = []
    for limit in limits:
        some = waiting.select(limit, accept, seen)
        assert len(some) <= limit
        taken += some
        if len(some) < limit:
            assert all(order % every for _, order in places(waiting))
    assert len(looked) == len(set(looked))
    wanted = [place for place in in_order(found) if place[1] % every == 0]
    assert places(taken) == wanted[: len(taken)]
    assert places(waiting) == in_order(set(found) - set(places(taken)))


def test_a_sift_that_fails_leaves_everything_where_it_was():
    waiting = filled([(4, order) for order in range(1, 8)])
    seen = [0] * LEVELS
    waiting.select(2, lambda one: one.order in (2, 4), seen)

    def accept(one):
        raise ValueError(one.order)

    try:
        waiting.select(1, accept, seen)
    except ValueError as error:
        assert error.args == (5,)
    assert [order for _, order in places(waiting)] == [1, 3, 5, 6, 7]
    assert [one.order for one in waiting.select(1, lambda _: True, seen)] == [5]
