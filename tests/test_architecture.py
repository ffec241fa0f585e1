"""The rules of the architecture, read from the source: who may import whom, no circles, how long a function may be, names."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

# One worker parses the tree.
pytestmark = pytest.mark.xdist_group("architecture")

ROOT = Path(__file__).parent.parent
FOLDERS = ("jmsapi", "pyspark_jms", "selector", "providers", "conformance")
"""Where the packages are that get installed."""
BESIDE = ("tools", "examples", "benchmarks")
LONGEST_FUNCTION = 60
BANNED_NAMES = ("util", "common", "manager", "misc", "helper")

# Package -> the packages it may import. A module belongs to the row with the longest name that its own dotted name begins with.
# PUBLIC is what an application sees: the package jmsapi itself, with errors, values and the interfaces.
PUBLIC = ("jmsapi", "jmsapi.errors", "jmsapi.values", "jmsapi.xa", "jmsapi.api")
LAYERS: dict[str, tuple[str, ...]] = {
    "jmsapi_selector": (),
    "jmsapi.errors": (),
    "jmsapi._version": (),
    # What every part that takes a callback of the application asks of it.
    "jmsapi._callbacks": ("jmsapi.errors",),
    # What lives with a connection says so.
    "jmsapi._not_copied": (),
    "jmsapi.values": ("jmsapi.errors",),
    "jmsapi.xa": ("jmsapi.errors",),
    "jmsapi.api": ("jmsapi.errors", "jmsapi.values"),
    # Capabilities hand over a broker's selector dialect.
    "jmsapi.spi": ("jmsapi.errors", "jmsapi.values", "jmsapi_selector.dialects"),
    "jmsapi.wire": ("jmsapi.errors", "jmsapi.values", "jmsapi.spi"),
    "jmsapi.selector": ("jmsapi.errors", "jmsapi_selector"),
    "jmsapi._emulation": ("jmsapi.errors", "jmsapi.values", "jmsapi.spi", "jmsapi.wire", "jmsapi_selector"),
    "jmsapi._core": (
        "jmsapi.errors",
        "jmsapi.xa",
        "jmsapi.values",
        "jmsapi.api",
        "jmsapi.spi",
        "jmsapi._emulation",
        "jmsapi_selector",
        "jmsapi._version",
        "jmsapi.transactions",
        "jmsapi._callbacks",
        "jmsapi._not_copied",
    ),
    "jmsapi.config": ("jmsapi.errors", "jmsapi.api", "jmsapi.spi"),
    "jmsapi": (*PUBLIC, "jmsapi.config", "jmsapi._core", "jmsapi._version", "jmsapi.selector", "jmsapi_selector", "jmsapi.spi"),
    "jmsapi.listener": (
        *PUBLIC,
        "jmsapi._callbacks",
        "jmsapi._not_copied",
        "jmsapi._calls_in_threads",
        "jmsapi._core.container",
        "jmsapi._core.endpoint",
        # A worker of an asynchronous callback is a task.
        "jmsapi.aio.loop_driver",
        "jmsapi.config",
        "jmsapi.injection",
        "jmsapi.selector",
        "jmsapi.transactions",
    ),
    # The simplified API for asyncio: another face of the core.
    "jmsapi.aio": (*PUBLIC, "jmsapi._core", "jmsapi._not_copied", "jmsapi.spi"),
    # It watches connections, as the core lets it.
    "jmsapi.otel": (*PUBLIC, "jmsapi._core", "jmsapi._version", "jmsapi.spi"),
    "jmsapi.asf": (*PUBLIC, "jmsapi._callbacks", "jmsapi._core.endpoint"),
    "jmsapi.transactions": ("jmsapi.errors", "jmsapi._callbacks"),
    "jmsapi.injection": (*PUBLIC, "jmsapi._calls_in_threads", "jmsapi.transactions", "jmsapi._core.container"),
    "jmsapi.pool": (*PUBLIC, "jmsapi._not_copied", "jmsapi._core.container", "jmsapi._core.endpoint"),
    # Staged messages are read as the provider has them, since message objects would cost as much again.
    "jmsapi.spark": (*PUBLIC, "jmsapi.selector", "jmsapi.spi"),
    "pyspark_jms": (*PUBLIC, "jmsapi.spark"),
    # What people are shown of a message, by the command line and by the test kit.
    "jmsapi._showing": PUBLIC,
    # The loopback server writes and reads the wire by the very code of its client; the test kit stands before a connection as
    # a decorator of the SPI, and shows a message as the very object that a receiver gets.
    "jmsapi.testing": (
        *PUBLIC,
        "jmsapi._callbacks",
        "jmsapi.config",
        "jmsapi.spi",
        "jmsapi.selector",
        "jmsapi._showing",
        "jmsapi._emulation.forwarding",
        "jmsapi._core.message",
        "jmsapi._core.object_codec",
        "jmsapi_inproc",
        "jmsapi_stomp",
        "jmsapi.wire",
    ),
    "jmsapi.cli": (
        *PUBLIC,
        "jmsapi._showing",
        # An object is exported as its encoded bytes.
        "jmsapi._core.message",
        "jmsapi_brokers",
        # The broker in this process is asked which queues it has.
        "jmsapi_inproc",
        "jmsapi.config",
        "jmsapi.spi",
        # TLS is checked by the very settings of a connection.
        "jmsapi.wire",
        "jmsapi_selector",
        "jmsapi.listener",
        "jmsapi.spark",
        "jmsapi.testing",
    ),
    "jmsapi_inproc": ("jmsapi.errors", "jmsapi.values", "jmsapi.xa", "jmsapi.spi", "jmsapi_selector"),
    "jmsapi_brokers": ("jmsapi.errors", "jmsapi.values", "jmsapi.spi", "jmsapi_selector.dialects"),
    "jmsapi_stomp": ("jmsapi.errors", "jmsapi.values", "jmsapi.spi", "jmsapi.wire", "jmsapi_brokers"),
    "jmsapi_amqp": ("jmsapi.errors", "jmsapi.values", "jmsapi.spi", "jmsapi.wire", "jmsapi_brokers"),
    # A stored broker of this process is restarted by its own means.
    "jmsapi_conformance": (
        *PUBLIC,
        "jmsapi._showing",
        "jmsapi.spi",
        "jmsapi_inproc",
        # Its other face.
        "jmsapi.aio",
        "jmsapi.asf",
        "jmsapi.injection",
        "jmsapi.listener",
        "jmsapi.transactions",
    ),
}
# Modules that belong to a row without bearing its name.
SAME_LAYER = {
    "jmsapi._entry": "jmsapi",
    "jmsapi._config_file": "jmsapi.config",
    "jmsapi._failover_url": "jmsapi.config",
    "jmsapi._url": "jmsapi.config",
    "jmsapi._validation": "jmsapi.config",
}
# Only these may import these libraries; nobody may import them at the top of what ``import jmsapi`` loads.
LIBRARIES = {
    "stomp": ("jmsapi_stomp",),
    "proton": ("jmsapi_amqp",),
    "cproton": ("jmsapi_amqp",),
    "pyspark": ("jmsapi.spark", "pyspark_jms"),
    "typer": ("jmsapi.cli",),
    "rich": ("jmsapi.cli", "jmsapi_conformance"),
    "prometheus_client": ("jmsapi.cli",),
    "opentelemetry": ("jmsapi.otel",),
    "pytest": ("jmsapi_conformance", "jmsapi.testing"),
    "testcontainers": ("jmsapi_conformance",),
    "pydantic": (
        "jmsapi.spi",
        "jmsapi.config",
        "jmsapi.listener",
        "jmsapi._core",
        "jmsapi_inproc",
        "jmsapi_stomp",
        "jmsapi_amqp",
        "jmsapi.spark",
        "jmsapi_conformance",
    ),
}


def modules(*folders: str) -> dict[str, Path]:
    """Return every module of ours below some folders by dotted name."""
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = list(path.relative_to(ROOT).with_suffix("").parts)
            if folder == "providers" or parts[:2] == ["examples", "provider-board"]:
                parts = parts[2:]
            elif folder in ("selector", "conformance", "tools"):
                parts = parts[1:]
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules(*FOLDERS)
WHOLE_TREE = modules(*FOLDERS, *BESIDE, "tests")
OURS = tuple(sorted({name.split(".")[0] for name in MODULES} | {name.split(".")[0] for name in LAYERS}))


class Named(NamedTuple):
    """A function or a class: not its node, which would keep its whole tree."""

    name: str
    line: int
    length: int


@dataclass(frozen=True)
class Statements:
    """What these tests look for in a file."""

    imports: list[ast.Import | ast.ImportFrom]
    functions: list[Named]
    classes: list[Named]
    """Those inside functions left out: their names are of no concern elsewhere."""


def named(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Named:
    """Return where a definition is, and how many lines it has."""
    return Named(node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1)


@cache
def statements_of(path: Path) -> Statements:
    """Parse a file and walk its statements, once for all tests; expressions hold none of them."""
    found = Statements([], [], [])
    left: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text(encoding="utf-8"), str(path)), False)]
    while left:
        node, in_function = left.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.imports.append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.functions.append(named(node))
            in_function = True
        elif isinstance(node, ast.ClassDef) and not in_function:
            found.classes.append(named(node))
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, block, ())
            left += ((one, in_function) for one in (inner if isinstance(inner, list) else ()))
    return found


def layer_of(module: str) -> str:
    """Return the row of a module: the longest name of the table that the module's begins with."""
    for part, layer in SAME_LAYER.items():
        if module == part or module.startswith(part + "."):
            return layer
    candidates = [layer for layer in LAYERS if module == layer or module.startswith(layer + ".")]
    assert candidates, f"{module} is in no row of the table: give it one"
    return max(candidates, key=len)


def imports(path: Path, module: str) -> Iterator[tuple[str, int]]:
    """Give the modules that a file imports, by full name, with the line; ``from a import b`` gives a.b if that is a module."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in statements_of(path).imports:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        else:
            start = node.module or ""
            if node.level:
                base = package.split(".")[: len(package.split(".")) - node.level + 1]
                start = ".".join([*base, start] if start else base)
            for alias in node.names:
                whole = f"{start}.{alias.name}"
                yield (whole if whole in WHOLE_TREE else start), node.lineno


def may_import(layer: str, target: str) -> bool:
    """Tell whether the modules of a row may import a module of ours."""
    if layer_of(target) == layer:
        return True
    return any(target == allowed or (layer_of(target) == allowed) for allowed in LAYERS[layer])


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_its_layer_may(module: str) -> None:
    layer = layer_of(module)
    wrong: list[str] = []
    for target, line in imports(MODULES[module], module):
        top = target.split(".")[0]
        if top in OURS and not may_import(layer, target):
            wrong.append(f"{MODULES[module].relative_to(ROOT)}:{line} imports {target}")
        if top in LIBRARIES and layer not in LIBRARIES[top]:
            wrong.append(f"{MODULES[module].relative_to(ROOT)}:{line} imports {target}, which is for {', '.join(LIBRARIES[top])}")
    assert not wrong, f"{layer} may import {', '.join(LAYERS[layer]) or 'nothing of ours'}:\n" + "\n".join(wrong)


@pytest.mark.parametrize("module", WHOLE_TREE)
def test_no_function_is_long(module: str) -> None:
    long = [
        f"{WHOLE_TREE[module].relative_to(ROOT)}:{one.line} {one.name} has {one.length} lines"
        for one in statements_of(WHOLE_TREE[module]).functions
        if one.length > LONGEST_FUNCTION
    ]
    assert not long, "\n".join(long)


def import_circles(graph: dict[str, set[str]]) -> list[tuple[str, ...]]:
    """Return the sets of modules that import one another, directly or through others (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    circles: list[tuple[str, ...]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for target in sorted(graph[module]):
            if target not in order:
                visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in stack:
                lowest[module] = min(lowest[module], order[target])
        if lowest[module] == order[module]:
            begin = stack.index(module)
            members = stack[begin:]
            del stack[begin:]
            if len(members) > 1 or module in graph[module]:
                circles.append(tuple(sorted(members)))

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return sorted(circles)


def import_graph() -> dict[str, set[str]]:
    """Return which module of the tree imports which: inside functions, for types alone, and in tests and tools as well."""
    return {
        module: {target for target, _ in imports(path, module) if target in WHOLE_TREE and target != module}
        for module, path in WHOLE_TREE.items()
    }


def test_no_modules_import_one_another_in_a_circle() -> None:
    circles = import_circles(import_graph())
    assert not circles, "\n".join(" <-> ".join(circle) for circle in circles)


def test_one_import_the_wrong_way_round_is_a_circle_that_is_found() -> None:
    graph = import_graph()
    graph["jmsapi.spi.model"] |= {"jmsapi._core.session"}
    (circle,) = import_circles(graph)
    assert {"jmsapi.spi.model", "jmsapi._core.session"} <= set(circle)


def test_a_circle_is_found_wherever_it_is() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set[str](), "e": {"a", "f"}, "f": {"e"}}
    assert import_circles(graph) == [("b", "c"), ("e", "f")]


def test_no_module_is_called_by_a_name_that_says_nothing() -> None:
    assert [module for module in MODULES if any(word in module.split(".")[-1].lower() for word in BANNED_NAMES)] == []


def test_no_class_is_called_by_a_name_that_says_nothing() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{one.line} {one.name}"
        for path in MODULES.values()
        for one in statements_of(path).classes
        if any(word in one.name.lower() for word in BANNED_NAMES)
    ]
    assert found == []


def test_no_two_classes_have_one_name() -> None:
    places: dict[str, list[str]] = {}
    for module, path in modules(*FOLDERS, *BESIDE).items():
        # The suite's modules are test files: a class there is part of its test.
        if not module.startswith("jmsapi_conformance.suite."):
            for one in statements_of(path).classes:
                places.setdefault(one.name, []).append(f"{path.relative_to(ROOT)}:{one.line}")
    twice = [f"{name}: {', '.join(found)}" for name, found in sorted(places.items()) if len(found) > 1]
    assert not twice, "\n".join(twice)


# What belongs to one broker stands in jmsapi_brokers, once for both wires; a wire only writes it into frames.
OF_A_BROKER = {
    "a queue of RabbitMQ": re.compile(
        r"\bjms\.[dsvn]\.|jmsapi\.(?:delay|temp|lock)\.|amq\.topic|x-(?:message-ttl|dead-letter|expires|jmsapi)"
    ),
    "an error code of Artemis": re.compile(r"\bamq\d{3,6}\b", re.IGNORECASE),
    "a virtual topic of Classic": re.compile(r"\bVirtualTopic\.|\bConsumer\.(?:\*|x|\{)|ActiveMQ\.Advisory"),
}


@pytest.mark.parametrize("what", OF_A_BROKER)
def test_a_wire_does_not_know_what_belongs_to_a_broker(what: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number} {line.strip()}"
        for module, path in MODULES.items()
        if module.startswith(("jmsapi_amqp", "jmsapi_stomp"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if OF_A_BROKER[what].search(line)
    ]
    assert found == [], f"{what} belongs into jmsapi_brokers"


def test_no_code_asks_which_dialect_it_has() -> None:
    asks = re.compile(r"isinstance\(.*dialect", re.IGNORECASE)
    found = [str(path) for path in MODULES.values() if asks.search(path.read_text(encoding="utf-8"))]
    assert found == []


def test_each_package_says_that_it_is_typed() -> None:
    packages = {MODULES[module].parent for module in MODULES if "." not in module and MODULES[module].name == "__init__.py"}
    assert [str(package) for package in packages if not (package / "py.typed").exists()] == []


def test_the_table_itself_refuses_what_it_should() -> None:
    assert may_import("jmsapi._core", "jmsapi.spi.model")
    assert not may_import("jmsapi.spi", "jmsapi._core.session")
    assert not may_import("jmsapi_stomp", "jmsapi")
    assert not may_import("jmsapi.cli", "jmsapi._core.session")
    assert may_import("jmsapi.listener", "jmsapi._core.endpoint")
    assert not may_import("jmsapi.listener", "jmsapi._core.session")
    assert layer_of("jmsapi.spi.options") == "jmsapi.spi"
    assert layer_of("jmsapi") == "jmsapi"
