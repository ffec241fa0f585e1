"""Different numbers, each of another hash, that stand in each other's way in a dict."""

from __future__ import annotations

from functools import cache
from itertools import count


@cache
def colliding_numbers(bits: int = 16) -> list[int]:
    """Return numbers that fill a dict of ``2 ** bits`` places, the later ones each behind most of the earlier.

    A dict looks for a free place at ``5 * place + 1 + rest``, until nothing is left of the hash: then all walk one circle.
    """
    size = 1 << bits
    room = 2 * size // 3
    circle = [0]
    while len(circle) < room * 6 // 10:
        circle.append((5 * circle[-1] + 1) % size)
    begin = set(circle[: len(circle) // 2])
    filled = set(circle)
    numbers = list(circle)
    for number in count(size):
        place, rest = number % size, number
        while rest and place in filled:
            rest >>= 5
            place = (5 * place + rest + 1) % size
        if place in begin and not rest:
            numbers.append(number)
            if len(numbers) == room:
                return numbers
    raise AssertionError
