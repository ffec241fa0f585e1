"""A checked tree to Python code.

Three-valued logic without a third value: each condition becomes two tests, one that tells whether it *holds* (is TRUE) and
one that tells whether it *fails* (is FALSE); it is UNKNOWN when neither says yes. AND holds when all its operands hold and
fails when one fails, OR the other way round, and NOT only swaps the two. A match needs no more than ``holds``, so nothing but
plain ``and`` and ``or`` runs for a message.

The code is made in two steps. ``_Lowering`` turns a tree into a *shape*, which is a text of short words that this package
chooses, and the list of its *constants*: names, literals, tables, as objects. ``_Builder`` makes a syntax tree of a shape, with
nodes of the module ``ast``, and Python compiles that. No character of a selector is ever part of source text, and selectors that
differ only in their constants share one code object, by a cache of shapes.

The usual class of a value is told by ``type(value) is``; every other class goes to a function that asks ``evaluation``.
Constants are global names of the function and not constants of its code, since some Pythons keep those for good.

Spec: 3.8.1-2, 3.8.1.1-25 to 3.8.1.1-51, 3.8.1.2.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple, cast

from jmsapi_selector._cache import TextCache
from jmsapi_selector.evaluation import OPERATIONS, Result, chained, compared, evaluation, is_string, signed
from jmsapi_selector.java_numbers import NumberKind, convert
from jmsapi_selector.like import like, literal_segments
from jmsapi_selector.nodes import (
    MIRRORED,
    And,
    Arithmetic,
    Between,
    Boolean,
    Comparison,
    ComparisonOperator,
    Identifier,
    In,
    IsNull,
    Like,
    Node,
    Not,
    Number,
    Or,
    Sign,
    String,
    fold,
)
from jmsapi_selector.truth import Truth
from jmsapi_selector.values import Getter, Kind, SelectorValues, Typed, Value, getter, typed

__all__ = ["Condition", "Predicate", "compile_tree"]

Predicate = Callable[[Mapping[str, Value] | SelectorValues], bool]

_LEAST: Final = -(2**63)
_GREATEST: Final = 2**63 - 1
_CLASSES: Final = 16
"""How many classes of values a comparison remembers; there are eight in jmsapi."""
_LOCALS: Final = 16
"""How many names that come more than once are read only once."""
_DEEPEST: Final = 24
"""Height of the syntax tree of one function, since Python's compiler recurses; what is higher becomes several functions."""
_LONGEST: Final = 1000
"""Words of a shape whose tests are written out; those of a longer one are calls, which halves the time to compile it."""
_LONGEST_CHAIN: Final = 64
"""Operands of arithmetic that is written out; longer chains are worked out by ``evaluation``."""


class Condition:
    """Two tests over a message; for no message do both say yes. Pure, and safe to share between threads.

    Args:
        tree: A checked tree.
    """

    __slots__ = ("_fails", "_tree", "holds")

    def __init__(self, tree: Node) -> None:
        self._tree = tree
        self._fails: Predicate | None = None
        self.holds: Final[Predicate] = _compiled(tree, holds=True)
        """Tells whether the condition is TRUE for a message."""

    @property
    def fails(self) -> Predicate:
        """Tells whether the condition is FALSE for a message; compiled when first asked for, since a match does not need it."""
        found = self._fails
        if found is None:
            found = self._fails = _compiled(self._tree, holds=False)
        return found

    def truth(self, values: Mapping[str, Value] | SelectorValues) -> Truth:
        """Return the three-valued result for a message."""
        if self.holds(values):
            return Truth.TRUE
        return Truth.FALSE if self.fails(values) else Truth.UNKNOWN


def compile_tree(tree: Node) -> Condition:
    """Compile a checked tree."""
    return Condition(tree)


def _compiled(tree: Node, *, holds: bool) -> Predicate:
    lowering = _Lowering(tree)
    lowering.run(holds)
    shape = " ".join(lowering.words)
    codes = _shapes.get(shape)
    if codes is None:
        codes = _shapes.put(shape, _Builder(lowering.words).codes())
    names: dict[str, Any] = dict(_NAMES)
    for number, value in enumerate(lowering.constants):
        names[f"c{number}"] = value
    for code in codes:
        names[code.co_name] = FunctionType(code, names)
    return cast(Predicate, names[_ENTRY])


# ---- a tree to its shape and constants ----


class _Lowering:
    """Writes a tree down from the top, each node before its parts.

    A word is an operation, with ``:n`` behind it when the identifier that it reads is kept in local ``n``.
    """

    def __init__(self, tree: Node) -> None:
        self._tree = tree
        self._fixed, self._locals = _constants_and_locals(tree)
        self.words: list[str] = []
        self.constants: list[object] = []

    def run(self, holds: bool) -> None:
        """Write the whole."""
        pending: list[tuple[Node, bool | None]] = [(self._tree, holds)]
        while pending:
            node, role = pending.pop()
            below = self._value(node) if role is None else self._condition(node, role)
            pending.extend(reversed(below))

    def _condition(self, node: Node, holds: bool) -> list[tuple[Node, bool | None]]:
        """Write one condition; return its parts, each with whether it must hold or fail, or None for a value."""
        if isinstance(node, Not):
            return [(node.operand, not holds)]
        if isinstance(node, And | Or):
            self._add(f"{'&' if isinstance(node, And) is holds else '|'}{len(node.operands)}")
            return [(part, holds) for part in node.operands]
        if isinstance(node, Between):
            if node.negated:
                outside = Or((Comparison("<", node.value, node.low), Comparison(">", node.value, node.high)))
                return [(outside, holds)]
            return [(And((Comparison(">=", node.value, node.low), Comparison("<=", node.value, node.high))), holds)]
        if isinstance(node, Comparison):
            return self._comparison(node, holds)
        if isinstance(node, Boolean):
            self._add("yes" if node.value is holds else "no")
        elif isinstance(node, Identifier):
            self._test(holds, "set", node.name, True, lambda value: value is True)
        elif isinstance(node, IsNull):
            self._add(("null" if node.negated is not holds else "some") + self._local(node.identifier.name), node.identifier.name)
        elif isinstance(node, In):
            self._text(node.identifier.name, "!in" if node.negated else "in", holds, frozenset(node.choices))
        elif isinstance(node, Like):
            self._like(node, holds)
        else:
            raise TypeError(f"{type(node).__name__} is no condition")
        return []

    def _value(self, node: Node) -> list[tuple[Node, bool | None]]:
        """Write one value; return its parts."""
        if id(node) in self._fixed:
            self._add("fixed", self._fixed[id(node)])
            return []
        if len(node.parts) > _LONGEST_CHAIN:

            def work_out(get: Getter) -> Result:
                return fold(node, evaluation(get))

            self._add("worked", work_out)
            return []
        if isinstance(node, Identifier):
            self._add("read", node.name)
        elif isinstance(node, Sign):
            self._add("sign", node.operator)
        elif isinstance(node, Arithmetic):
            self._add(f"chain{len(node.operands)}", node.operators)
        else:
            raise TypeError(f"{type(node).__name__} is no value")
        return [(part, None) for part in node.parts]

    def _add(self, word: str, *constants: object) -> None:
        self.words.append(word)
        self.constants.extend(constants)

    def _local(self, name: str) -> str:
        number = self._locals.get(name)
        return "" if number is None else f":{number}"

    def _test(self, holds: bool, word: str, name: str, constant: object, otherwise: Callable[[object], bool]) -> None:
        """Write a test of one value that says no to NULL: that is UNKNOWN, and whatever else is not TRUE is FALSE."""
        self._add(("" if holds else "~") + word + self._local(name), name, constant, otherwise)

    def _comparison(self, node: Comparison, holds: bool) -> list[tuple[Node, bool | None]]:
        left, right = node.left, node.right
        if isinstance(left, Identifier) and id(right) in self._fixed:
            self._against_constant(left.name, node.operator, self._fixed[id(right)], holds)
            return []
        if isinstance(right, Identifier) and id(left) in self._fixed:
            self._against_constant(right.name, MIRRORED[node.operator], self._fixed[id(left)], holds)
            return []
        self._add("pair" if holds else "~pair", node.operator)
        return [(left, None), (right, None)]

    def _against_constant(self, name: str, sign: ComparisonOperator, constant: Typed | None, holds: bool) -> None:
        """Compare an identifier with what never changes."""
        if constant is None:
            self._add("no")
            return
        kind, bound = constant
        if isinstance(kind, NumberKind) and not isinstance(bound, str):
            if kind < NumberKind.FLOAT:
                self._test(holds, f"int{sign}", name, bound, _number_test(sign, kind, bound))
            else:
                self._test(holds, f"float{sign}", name, convert(NumberKind.DOUBLE, bound), _number_test(sign, kind, bound))
        elif kind is Kind.STRING and sign in {"=", "<>"}:
            self._text(name, "same" if sign == "=" else "!same", holds, bound)
        elif kind is Kind.BOOLEAN and sign in {"=", "<>"}:
            self._test(holds, "set" if sign == "=" else "!set", name, bound, _other_test(sign, constant))
        else:
            self._test(holds, "never", name, None, _never)

    def _text(self, name: str, word: str, holds: bool, constant: object) -> None:
        """Write a test of a string; a value of another class may be a string all the same."""
        plain = _TEXT_TESTS[word.removeprefix("!")]
        negated = word.startswith("!")

        def otherwise(value: object) -> bool:
            return is_string(value) and plain(value, constant) is not negated

        self._test(holds, word, name, constant, otherwise)

    def _like(self, node: Like, holds: bool) -> None:
        name, negation = node.identifier.name, "!" if node.negated else ""
        match literal_segments(node.pattern, node.escape):
            case [whole]:
                self._text(name, f"{negation}same", holds, whole)
            case [begin, ""]:
                self._text(name, f"{negation}begins", holds, begin)
            case ["", end]:
                self._text(name, f"{negation}ends", holds, end)
            case ["", inside, ""]:
                self._text(name, f"{negation}has", holds, inside)
            case _:
                self._text(name, f"{negation}covered", holds, like(node.pattern, node.escape))


_VARIES: Final = Truth.UNKNOWN
"""Marks what depends on the message, while constants are looked for."""


def _constants_and_locals(tree: Node) -> tuple[dict[int, Typed | None], dict[str, int]]:
    """Return the values that are the same for every message, by ``id``, and numbers for the names that come more than once."""
    fixed: dict[int, Typed | None] = {}
    seen: dict[str, int] = {}
    work_out = evaluation(_nobody)

    def visit(node: Node, below: list[Result]) -> Result:
        if isinstance(node, Identifier):
            seen[node.name] = seen.get(node.name, 0) + 1
            return _VARIES
        if isinstance(node, Between) and isinstance(node.value, Identifier):
            seen[node.value.name] += 1
        if not isinstance(node, Number | String | Boolean | Sign | Arithmetic) or _VARIES in below:
            return _VARIES
        result = work_out(node, below)
        if not isinstance(result, Truth):
            fixed[id(node)] = result
        return result

    fold(tree, visit)
    repeated = [name for name, count in seen.items() if count > 1]
    return fixed, {name: number for number, name in enumerate(repeated[:_LOCALS])}


def _nobody(_: str) -> None:
    """The message without values, for what needs none."""


def _never(_: object) -> bool:
    return False


def _same(value: object, constant: object) -> bool:
    return value == constant


_TEXT_TESTS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "same": _same,
    "in": lambda value, choices: value in choices,
    "begins": lambda value, begin: value.startswith(begin),
    "ends": lambda value, end: value.endswith(end),
    "has": lambda value, inside: inside in value,
    "covered": lambda value, covers: covers(value),
}
"""The tests of a string, for strings of another class than ``str``; the builder writes the same for ``str``."""


def _other_test(sign: ComparisonOperator, constant: Typed) -> Callable[[object], bool]:
    def test(value: object) -> bool:
        return compared(sign, typed(value), constant) is True

    return test


def _number_test(sign: ComparisonOperator, kind: NumberKind, bound: int | float) -> Callable[[object], bool]:
    """Return the test for values of a class that the code does not tell apart itself.

    What the bound is for a class, after promotion, is remembered. Whole numbers are left to ``test`` where the bound is a
    fraction: there the value is what has to be converted.
    """
    test = _other_test(sign, (kind, bound))
    operation = OPERATIONS[sign]
    bounds: dict[type, int | float] = {float: convert(NumberKind.DOUBLE, bound)}

    def number(value: object) -> bool:
        limit = bounds.get(type(value))
        if limit is not None:
            return operation(value, limit)
        found = typed(value)
        # The size of a plain int is its type, so there is no one bound for its class.
        if found is not None and isinstance(found[0], NumberKind) and type(value) is not int and len(bounds) < _CLASSES:
            promoted = max(found[0], kind)
            if _sized(type(value)) and (promoted < NumberKind.FLOAT or found[0] >= NumberKind.FLOAT):
                bounds[type(value)] = convert(promoted, bound)
        return test(value)

    return number


def _sized(cls: type) -> bool:
    """Tell whether the values of a class are all of one type, which a class of ints must say itself."""
    return not issubclass(cls, int) or hasattr(cls, "jms_type")


# ---- a shape to code ----

_ENTRY: Final = "selects"
_NAMES: Final[dict[str, Any]] = {
    "__builtins__": {},
    "type": type,
    "dict": dict,
    "str": str,
    "int": int,
    "float": float,
    "getter": getter,
    "typed": typed,
    "compared": compared,
    "signed": signed,
    "chained": chained,
    "least": _LEAST,
    "greatest": _GREATEST,
}
"""All that the code can name besides its constants and its own functions."""
_shapes: Final[TextCache[list[CodeType]]] = TextCache(entries=512, characters=2**18)
_CONSTANTS: Final = {
    "yes": 0,
    "no": 0,
    "null": 1,
    "some": 1,
    "pair": 1,
    "read": 1,
    "worked": 1,
    "fixed": 1,
    "sign": 1,
    "chain": 1,
    "&": 0,
    "|": 0,
}
"""How many constants an operation has; every other one is a test with three: name, constant, and what to do otherwise."""
_COMPARES: Final[dict[str, type[ast.cmpop]]] = {
    "=": ast.Eq,
    "<>": ast.NotEq,
    "<": ast.Lt,
    "<=": ast.LtE,
    ">": ast.Gt,
    ">=": ast.GtE,
}


class _Piece(NamedTuple):
    """A part of the code to be.

    Attributes:
        write: Makes the expression; given True, of a piece that reads an identifier kept in a local, from that local.
        height: Of its syntax tree.
        local: Number of the local that it reads into.
    """

    write: Callable[[bool], ast.expr]
    height: int
    local: str = ""


class _Builder:
    """Makes code objects of a shape, one for each function; the last is the entry."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._functions: list[ast.stmt] = []

    def codes(self) -> list[CodeType]:
        """Compile the shape."""
        first_constant: list[int] = []
        constants = 0
        for word in self._words:
            first_constant.append(constants)
            constants += _CONSTANTS.get(_operation(word), 3)
        # Backwards, every node stands behind its parts.
        pieces: list[_Piece] = []
        for word, first in zip(reversed(self._words), reversed(first_constant), strict=True):
            pieces.append(self._piece(word, first, pieces))
        get = _assign("get", _if(_is_type("values", "dict"), _attribute("values", "get"), _call("getter", _name("values"))))
        self._functions.append(_function(_ENTRY, "values", [get, _return(pieces[0].write(False))]))
        # A code object holds those of the functions that it defines among its constants.
        module = compile(ast.Module(self._functions, []), "<selector>", "exec", dont_inherit=True)
        return [one for one in module.co_consts if isinstance(one, CodeType)]

    def _piece(self, word: str, first: int, pieces: list[_Piece]) -> _Piece:
        """Make what a word says; its parts are taken from the end of what was made before."""
        operation, _, local = word.partition(":")
        name = f"c{first}"
        kind = _operation(word)
        if kind in {"&", "|"}:
            return self._joined(ast.And() if kind == "&" else ast.Or(), [pieces.pop() for _ in range(int(operation[1:]))])
        if kind == "chain":
            parts = [self._low(pieces.pop()) for _ in range(int(operation.removeprefix("chain")))]
            values = ast.Tuple([part.write(False) for part in parts], ast.Load(), lineno=1, col_offset=0)
            return _made(_call("chained", _name(name), values), parts)
        if kind == "sign":
            part = self._low(pieces.pop())
            return _made(_call("signed", _name(name), part.write(False)), [part])
        if kind == "pair":
            parts = [self._low(pieces.pop()), self._low(pieces.pop())]
            outcome = _call("compared", _name(name), *(part.write(False) for part in parts))
            return _made(_compare(outcome, ast.Is(), _true(not operation.startswith("~"))), parts)
        if operation in {"yes", "no"}:
            return _made(_true(operation == "yes"), [])
        if operation == "fixed":
            return _made(_name(name), [])
        if operation == "worked":
            return _made(_call(name, _name("get")), [])
        if operation == "read":
            return _made(_call("typed", _call("get", _name(name))), [])
        brief = len(self._words) > _LONGEST

        def write(known: bool) -> ast.expr:
            return _leaf(operation, first, local, known, brief=brief)

        return _Piece(write, 6, local)

    def _joined(self, operator: ast.boolop, parts: list[_Piece]) -> _Piece:
        known: set[str] = set()
        written: list[ast.expr] = []
        low = [self._low(part) for part in parts]
        for part in low:
            # All operands before this one were evaluated, and a leaf among them has read its identifier.
            written.append(part.write(part.local in known))
            if part.local:
                known.add(part.local)
        return _made(ast.BoolOp(operator, written, lineno=1, col_offset=0), low)

    def _low(self, piece: _Piece) -> _Piece:
        """Return a piece that is not too high: what is becomes a function of its own."""
        if piece.height < _DEEPEST:
            return piece
        name = f"part{len(self._functions)}"
        self._functions.append(_function(name, "get", [_return(piece.write(False))]))
        return _made(_call(name, _name("get")), [])


def _operation(word: str) -> str:
    """Return the operation of a word, without what depends on the number of parts, negation or place."""
    word = word.partition(":")[0].removeprefix("~")
    return word[0] if word[0] in "&|" else "chain" if word.startswith("chain") else word


def _made(expression: ast.expr, parts: list[_Piece]) -> _Piece:
    height = 2 + max((part.height for part in parts), default=1)

    def write(known: bool) -> ast.expr:
        return expression

    return _Piece(write, height)


def _leaf(operation: str, first: int, local: str, known: bool, *, brief: bool) -> ast.expr:
    """Write a test of one value of the message.

    Args:
        operation: The word without its local.
        first: Number of its first constant.
        local: Number of the local that keeps the value, or nothing.
        known: The local has the value already.
        brief: Leave the test to the function for values of other classes, which knows all.
    """
    variable = f"v{local}"
    read: ast.expr = _name(variable)
    if not known:
        value = _call("get", _name(f"c{first}"))
        target = ast.Name(variable, ast.Store(), lineno=1, col_offset=0)
        read = ast.NamedExpr(target, value, lineno=1, col_offset=0)
    if operation in {"null", "some"}:
        return _compare(read, ast.Is() if operation == "null" else ast.IsNot(), _none())
    word = "never" if brief else operation.removeprefix("~")
    if not operation.startswith("~"):
        return _test(word, f"c{first + 1}", f"c{first + 2}", variable, read)
    test = _test(word, f"c{first + 1}", f"c{first + 2}", variable, _name(variable))
    return _bool(ast.And(), _compare(read, ast.IsNot(), _none()), _not(test))


def _test(word: str, constant: str, otherwise: str, variable: str, read: ast.expr) -> ast.expr:
    """Write what says yes or no to a value; None gets a no.

    Args:
        word: The operation, with ``!`` before it when it is negated.
        constant: Name of what the value is compared with.
        otherwise: Name of the function for a value of another class.
        variable: Name of the value.
        read: Where the value comes from first.
    """
    plain = word.removeprefix("!")
    slow = _call(otherwise, _name(variable))
    if word == "same":
        # Most messages differ, so the class is asked last: it matters only for what claims to be equal.
        return _bool(ast.And(), _compare(read, ast.Eq(), _name(constant)), _bool(ast.Or(), _is_type(variable, "str"), slow))
    if word == "set":
        return _bool(ast.Or(), _compare(read, ast.Is(), _name(constant)), slow)
    if plain in {"set", "never"}:
        return _call(otherwise, read)
    if plain.startswith("int"):
        fast, cls = _whole(plain.removeprefix("int"), variable, _name(constant)), "int"
    elif plain.startswith("float"):
        fast, cls = _compare(_name(variable), _COMPARES[plain.removeprefix("float")](), _name(constant)), "float"
    else:
        fast, cls = _on_text(plain, variable, _name(constant)), "str"
        fast = _not(fast) if word.startswith("!") else fast
    return _if(_compare(_call("type", read), ast.Is(), _name(cls)), fast, slow)


def _whole(sign: str, variable: str, bound: ast.expr) -> ast.expr:
    """Compare an int with a whole number; one of more than 64 bits is no value of Java, and compares false."""
    value = _name(variable)
    if sign == "=":
        return _compare(value, ast.Eq(), bound)
    if sign == "<>":
        return _bool(
            ast.And(),
            _compare(value, ast.NotEq(), bound),
            _chain(_name("least"), (ast.LtE(), value), (ast.LtE(), _name("greatest"))),
        )
    if sign in {"<", "<="}:
        return _chain(_name("least"), (ast.LtE(), value), (_COMPARES[sign](), bound))
    return _chain(bound, (_COMPARES[MIRRORED[cast(ComparisonOperator, sign)]](), value), (ast.LtE(), _name("greatest")))


def _on_text(plain: str, variable: str, constant: ast.expr) -> ast.expr:
    if plain == "same":
        return _compare(_name(variable), ast.Eq(), constant)
    if plain == "in":
        return _compare(_name(variable), ast.In(), constant)
    if plain == "has":
        return _compare(constant, ast.In(), _name(variable))
    if plain == "covered":
        return ast.Call(constant, [_name(variable)], [], lineno=1, col_offset=0)
    method = _attribute(variable, "startswith" if plain == "begins" else "endswith")
    return ast.Call(method, [constant], [], lineno=1, col_offset=0)


# ---- syntax ----


@lru_cache(maxsize=1024)
def _name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load(), lineno=1, col_offset=0)


def _call(function: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(_name(function), list(arguments), [], lineno=1, col_offset=0)


def _attribute(name: str, attribute: str) -> ast.Attribute:
    return ast.Attribute(_name(name), attribute, ast.Load(), lineno=1, col_offset=0)


def _compare(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.Compare:
    return _chain(left, (operator, right))


def _chain(first: ast.expr, *rest: tuple[ast.cmpop, ast.expr]) -> ast.Compare:
    return ast.Compare(first, [one for one, _ in rest], [value for _, value in rest], lineno=1, col_offset=0)


def _bool(operator: ast.boolop, *operands: ast.expr) -> ast.BoolOp:
    return ast.BoolOp(operator, list(operands), lineno=1, col_offset=0)


def _not(operand: ast.expr) -> ast.UnaryOp:
    return ast.UnaryOp(ast.Not(), operand, lineno=1, col_offset=0)


def _if(test: ast.expr, then: ast.expr, otherwise: ast.expr) -> ast.IfExp:
    return ast.IfExp(test, then, otherwise, lineno=1, col_offset=0)


def _is_type(variable: str, cls: str) -> ast.Compare:
    return _compare(_call("type", _name(variable)), ast.Is(), _name(cls))


def _true(value: bool) -> ast.Constant:
    return ast.Constant(value, lineno=1, col_offset=0)


def _none() -> ast.Constant:
    return ast.Constant(None, lineno=1, col_offset=0)


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store(), lineno=1, col_offset=0)], value, lineno=1, col_offset=0)


def _return(value: ast.expr) -> ast.Return:
    return ast.Return(value, lineno=1, col_offset=0)


def _function(name: str, argument: str, body: list[ast.stmt]) -> ast.stmt:
    # Keywords, since later Pythons have more fields.
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg(argument, lineno=1, col_offset=0)], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    return ast.FunctionDef(name=name, args=arguments, body=body, decorator_list=[], lineno=1, col_offset=0)
