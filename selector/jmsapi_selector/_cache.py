"""A bounded cache of compiled selectors, by text."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["TextCache"]

_T = TypeVar("_T")


class TextCache(Generic[_T]):
    """Keep what was made of the texts used last, within a number of entries and of characters.

    A compiled selector takes memory in proportion to its text, so entries alone would be no bound.

    Args:
        entries: Greatest number of texts.
        characters: Greatest sum of their lengths.
    Threads: any number; what two threads make of one text at the same time is made twice and kept once.
    """

    def __init__(self, *, entries: int, characters: int) -> None:
        self._entries = entries
        self._characters = characters
        self._size = 0
        self._kept: OrderedDict[str, _T] = OrderedDict()
        self._lock = Lock()

    def get(self, text: str) -> _T | None:
        """Give what is kept for a text, and count it as used."""
        with self._lock:
            found = self._kept.get(text)
            if found is not None:
                self._kept.move_to_end(text)
            return found

    def put(self, text: str, made: _T) -> _T:
        """Keep something and drop what was unused longest.

        Returns:
            What is kept for the text from now on: the first of two threads wins.
        """
        with self._lock:
            kept = self._kept.setdefault(text, made)
            if kept is made:
                self._size += len(text)
            self._kept.move_to_end(text)
            while len(self._kept) > self._entries or self._size > self._characters:
                dropped, _ = self._kept.popitem(last=False)
                self._size -= len(dropped)
            return kept

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._kept.clear()
            self._size = 0

    def __len__(self) -> int:
        return len(self._kept)
