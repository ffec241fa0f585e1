"""Objects of allowed classes out of pickled bytes: a reader for the part of pickle that makes new objects, and for nothing else.

Python's own unpickler can set attributes of whatever it can name, so that a message could change a class that may be loaded, for
the whole process. This one
- names classes of the list only: no function, no module, no class whose instances are classes;
- calls such a class, or its ``__new__``, and gives state to what was made so, in the ways of the class's own reduce protocol: by
  ``__setstate__`` or into ``__dict__`` and slots. Beside them only the containers that were made here can be changed;
- keeps what the stream refers back to in a table that grows with the stream, and bounds the work of hashing.

What an allowed class does when it is made, with arguments of the sender's choice, is its own business.
"""

# What was sent is of no known type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
from __future__ import annotations

import enum
import importlib
import pickle
import pickletools
from collections import Counter
from collections.abc import Callable, Mapping
from types import FunctionType, MemberDescriptorType, ModuleType
from typing import Any, Final

from jmsapi._core.equal_hashes import MOST_EQUAL_HASHES
from jmsapi.spi import HashingTime

__all__ = ["check_allowed", "load"]

_MOST_STEPS: Final = 10_000_000
_LARGEST_KEY: Final = 10_000
"""Values inside of one key of a dictionary or member of a set, each counted as often as it occurs."""
_MARK: Final = object()


def check_allowed(name: str, allow: frozenset[str]) -> None:
    """Refuse a class that the application has not named.

    Raises:
        UnpicklingError: It is not in the list.
    """
    if name not in allow:
        raise pickle.UnpicklingError(f"{name} is not in the list of the option object_allow")


def load(data: bytes, allow: frozenset[str]) -> Any:
    """Return the object that bytes describe.

    Args:
        data: What pickle has written, with protocol 2 or a later one.
        allow: Classes (``module.Class``) of which there may be objects.
    Raises:
        UnpicklingError: They ask for anything else, or are damaged.
        Exception: Whatever an allowed class raises.
    """
    reader = _Reader(allow)
    for number, (code, argument, _) in enumerate(pickletools.genops(data)):
        if number > _MOST_STEPS:
            raise pickle.UnpicklingError(f"there are more than {_MOST_STEPS} steps")
        if code.name == "STOP":
            return reader.pop()
        step = _STEPS.get(code.name)
        if step is None:
            raise pickle.UnpicklingError(f"the operation {code.name} is not taken")
        step(reader, argument)
    raise pickle.UnpicklingError("the end is missing")


class _Reader:
    """A stack, what the stream refers back to, and what may be changed: the containers and instances that were made here."""

    def __init__(self, allow: frozenset[str]) -> None:
        self._allow = allow
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self._made: dict[int, Any] = {}
        self._hashes: Counter[tuple[int, int]] = Counter()
        self._in_keys = 0
        self._time = HashingTime()

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise pickle.UnpicklingError("a value is missing")
        return self.stack.pop()

    def top(self) -> Any:
        value = self.pop()
        self.stack.append(value)
        return value

    def popped(self, n: int) -> list[Any]:
        return [self.pop() for _ in range(n)][::-1]

    def above_mark(self) -> list[Any]:
        items: list[Any] = []
        while self.stack:
            item = self.stack.pop()
            if item is _MARK:
                return items[::-1]
            items.append(item)
        raise pickle.UnpicklingError("a mark is missing")

    def back(self, place: int) -> None:
        if place not in self.memo:
            raise pickle.UnpicklingError(f"there is nothing at {place} to refer to")
        self.push(self.memo[place])

    def keep(self, place: int) -> None:
        # Pickle counts them. Of places that a sender chooses each would be behind all others in the table.
        if place > len(self.memo):
            raise pickle.UnpicklingError(f"the place {place} is kept before those below it")
        self.memo[place] = self.top()

    # ---- classes and their instances
    def name(self, module: object, name: object) -> None:
        check_allowed(f"{module}.{name}", self._allow)
        found: Any = importlib.import_module(str(module))
        for part in str(name).split("."):
            found = getattr(found, part)
        if not isinstance(found, type) or issubclass(found, type):
            raise pickle.UnpicklingError(f"{module}.{name} is no class of which there are plain objects")
        self.push(found)

    def make(self, how: Callable[..., Any], kind: Any, *arguments: Any, **named: Any) -> None:
        # A class can be nothing but one that was named here.
        if not isinstance(kind, type):
            raise pickle.UnpicklingError(f"{kind!r} is no class, and is not called")
        made = how(*arguments, **named)
        if not isinstance(made, kind):
            raise pickle.UnpicklingError(f"{kind.__qualname__} has made something else: a {type(made).__name__}")
        # What the class shares with others, such as a member of an enumeration, is not changed.
        if not isinstance(made, type | ModuleType | enum.Enum):
            self._made[id(made)] = made
        self.push(made)

    def target(self) -> Any:
        value = self.top()
        if type(value) not in (list, dict, set) and id(value) not in self._made:
            raise pickle.UnpicklingError(f"a {type(value).__name__} that was not made here is not changed")
        return value

    def build(self) -> None:
        state = self.pop()
        made = self.target()
        if id(made) not in self._made:
            raise pickle.UnpicklingError(f"a {type(made).__name__} has no state")
        # The class itself is asked: what the sender has put into the instance before does not count.
        own = getattr(type(made), "__setstate__", None)
        if own is not None:
            own(made, state)
            return
        attributes, slots = state, None
        if type(state) is tuple and len(state) == 2:
            attributes, slots = state
        for name, value in _named(attributes):
            vars(made)[name] = value
        for name, value in _named(slots):
            if not isinstance(getattr(type(made), name, None), MemberDescriptorType):
                raise pickle.UnpicklingError(f"{type(made).__name__} has no slot {name!r}")
            setattr(made, name, value)

    # ---- containers
    def add(self, items: list[Any]) -> None:
        target = self.target()
        if isinstance(target, set):
            for item in items:
                self.check_key(item, target)
            for part in self._time.parts(items):
                target.update(part)  # pyright: ignore[reportUnknownMemberType]
        else:
            for item in items:
                target.append(item)

    def put(self, pairs: list[Any]) -> None:
        target = self.target()
        if len(pairs) % 2 or isinstance(target, list | set):
            raise pickle.UnpicklingError("a value is missing")
        keys = pairs[::2]
        for key in keys:
            self.check_key(key, target)
        # What a class's own method does with an item is the class's business, and its time.
        own = isinstance(getattr(type(target), "__setitem__", None), FunctionType)
        items = list(zip(keys, pairs[1::2], strict=True))
        for part in [items] if own else self._time.parts(items):
            for key, value in part:
                target[key] = value

    def check_key(self, key: Any, container: Any) -> None:
        waiting, seen = [key], 0
        while waiting:
            seen += 1
            self._in_keys += 1
            if seen > _LARGEST_KEY or self._in_keys > _MOST_STEPS:
                raise pickle.UnpicklingError(f"a key has more than {_LARGEST_KEY} values in it, or all keys {_MOST_STEPS}")
            value = waiting.pop()
            if isinstance(value, tuple | frozenset):
                waiting.extend(value)  # pyright: ignore[reportUnknownArgumentType]
            elif id(value) in self._made:
                waiting.extend(getattr(value, "__dict__", {}).values())
        place = (id(container), hash(key))
        self._hashes[place] += 1
        if self._hashes[place] > MOST_EQUAL_HASHES:
            raise pickle.UnpicklingError(f"more than {MOST_EQUAL_HASHES} keys of one container have the same hash")

    def frozen(self) -> None:
        items = self.above_mark()
        for item in items:
            self.check_key(item, items)
        made: set[Any] = set()
        for part in self._time.parts(items):
            made.update(part)
        self.push(frozenset(made))


def _named(state: object) -> list[tuple[str, Any]]:
    if state is None:
        return []
    if not isinstance(state, Mapping):
        raise pickle.UnpicklingError(f"a state is a dictionary of attributes, not a {type(state).__name__}")
    pairs: list[tuple[Any, Any]] = list(state.items())  # pyright: ignore[reportUnknownArgumentType]
    if any(not isinstance(name, str) or (name.startswith("__") and name.endswith("__")) for name, _ in pairs):
        raise pickle.UnpicklingError("a state has the name of a special attribute")
    return pairs


def _reduce(reader: _Reader) -> None:
    kind, arguments = reader.popped(2)
    reader.make(kind, kind, *_tuple(arguments))


def _new_object(reader: _Reader) -> None:
    kind, arguments = reader.popped(2)
    reader.make(getattr(kind, "__new__", kind), kind, kind, *_tuple(arguments))


def _new_object_by_name(reader: _Reader) -> None:
    kind, arguments, named = reader.popped(3)
    reader.make(getattr(kind, "__new__", kind), kind, kind, *_tuple(arguments), **dict(_named(named)))


def _tuple(arguments: Any) -> tuple[Any, ...]:
    if type(arguments) is not tuple:
        raise pickle.UnpicklingError("arguments are a tuple")
    return arguments


def _dictionary(reader: _Reader, _: object) -> None:
    pairs = reader.above_mark()
    reader.push({})
    reader.put(pairs)


_VALUES: Final = (
    *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"),
    *("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"),
)
_Step = Callable[[_Reader, Any], object]
_STEPS: Final[dict[str, _Step]] = {
    "PROTO": lambda reader, argument: None,
    "FRAME": lambda reader, argument: None,
    **dict.fromkeys(_VALUES, lambda reader, argument: reader.push(argument)),
    "NONE": lambda reader, argument: reader.push(None),
    "NEWTRUE": lambda reader, argument: reader.push(True),
    "NEWFALSE": lambda reader, argument: reader.push(False),
    "MARK": lambda reader, argument: reader.push(_MARK),
    "POP": lambda reader, argument: reader.pop(),
    "POP_MARK": lambda reader, argument: reader.above_mark(),
    "DUP": lambda reader, argument: reader.push(reader.top()),
    "EMPTY_LIST": lambda reader, argument: reader.push([]),
    "EMPTY_TUPLE": lambda reader, argument: reader.push(()),
    "EMPTY_DICT": lambda reader, argument: reader.push({}),
    "EMPTY_SET": lambda reader, argument: reader.push(set()),
    "LIST": lambda reader, argument: reader.push(reader.above_mark()),
    "TUPLE": lambda reader, argument: reader.push(tuple(reader.above_mark())),
    "TUPLE1": lambda reader, argument: reader.push(tuple(reader.popped(1))),
    "TUPLE2": lambda reader, argument: reader.push(tuple(reader.popped(2))),
    "TUPLE3": lambda reader, argument: reader.push(tuple(reader.popped(3))),
    "DICT": _dictionary,
    "FROZENSET": lambda reader, argument: reader.frozen(),
    "APPEND": lambda reader, argument: reader.add([reader.pop()]),
    "APPENDS": lambda reader, argument: reader.add(reader.above_mark()),
    "ADDITEMS": lambda reader, argument: reader.add(reader.above_mark()),
    "SETITEM": lambda reader, argument: reader.put(reader.popped(2)),
    "SETITEMS": lambda reader, argument: reader.put(reader.above_mark()),
    "MEMOIZE": lambda reader, argument: reader.keep(len(reader.memo)),
    "BINPUT": lambda reader, argument: reader.keep(argument),
    "LONG_BINPUT": lambda reader, argument: reader.keep(argument),
    "BINGET": lambda reader, argument: reader.back(argument),
    "LONG_BINGET": lambda reader, argument: reader.back(argument),
    "GLOBAL": lambda reader, argument: reader.name(*str(argument).split(" ", 1)),
    "STACK_GLOBAL": lambda reader, argument: reader.name(*reader.popped(2)),
    "REDUCE": lambda reader, argument: _reduce(reader),
    "NEWOBJ": lambda reader, argument: _new_object(reader),
    "NEWOBJ_EX": lambda reader, argument: _new_object_by_name(reader),
    "BUILD": lambda reader, argument: reader.build(),
}
