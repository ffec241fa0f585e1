"""The house's rules, read from the source: who may import whom, how long a module may be, what nothing is called."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("jmsapi", "pyspark_jms", "selector", "providers", "conformance")
LONGEST_MODULE = 400
BANNED_NAMES = ("util", "common", "manager", "misc", "helper")

# Room -> the rooms it may import. A module belongs to the longest room that its dotted name begins with. "public" is
# what an application sees: the package jmsapi itself, with errors, values and the interfaces. Later rooms have their row already.
PUBLIC = ("jmsapi", "jmsapi.errors", "jmsapi.values", "jmsapi.xa", "jmsapi.api")
ROOMS: dict[str, tuple[str, ...]] = {
    "jmsapi_selector": (),
    "jmsapi.errors": (),
    "jmsapi._version": (),
    "jmsapi.values": ("jmsapi.errors",),
    "jmsapi.xa": ("jmsapi.errors",),
    "jmsapi.api": ("jmsapi.errors", "jmsapi.values"),
    "jmsapi.spi": ("jmsapi.errors", "jmsapi.values"),
    "jmsapi.selector": ("jmsapi.errors", "jmsapi_selector"),
    "jmsapi._emulation": ("jmsapi.errors", "jmsapi.values", "jmsapi.spi", "jmsapi_selector"),
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
    ),
    "jmsapi.config": ("jmsapi.errors", "jmsapi.api", "jmsapi.spi"),
    "jmsapi": (*PUBLIC, "jmsapi.config", "jmsapi._core", "jmsapi._version", "jmsapi.selector", "jmsapi_selector", "jmsapi.spi"),
    "jmsapi.listener": (
        *PUBLIC,
        "jmsapi._core.container",
        "jmsapi._core.endpoint",
        "jmsapi.config",
        "jmsapi.injection",
        "jmsapi.selector",
        "jmsapi.transactions",
    ),
    "jmsapi.asf": (*PUBLIC, "jmsapi._core.endpoint"),
    "jmsapi.transactions": ("jmsapi.errors",),
    "jmsapi.injection": (*PUBLIC, "jmsapi.transactions", "jmsapi._core.container"),
    "jmsapi.pool": (*PUBLIC, "jmsapi._core.container", "jmsapi._core.endpoint"),
    "jmsapi.spark": (*PUBLIC, "jmsapi.selector"),
    "pyspark_jms": (*PUBLIC, "jmsapi.spark"),
    # What people are shown of a message, by the command line and by the test kit.
    "jmsapi._showing": PUBLIC,
    # The loopback server writes and reads the wire by the very code of its client; the test kit stands before a connection as
    # a decorator of the seam, and shows a message as the very object that a receiver gets.
    "jmsapi.testing": (
        *PUBLIC,
        "jmsapi.config",
        "jmsapi.spi",
        "jmsapi.selector",
        "jmsapi._showing",
        "jmsapi._emulation.forwarding",
        "jmsapi._core.message",
        "jmsapi._core.object_codec",
        "jmsapi_inproc",
        "jmsapi_stomp",
    ),
    "jmsapi.cli": (
        *PUBLIC,
        "jmsapi._showing",
        "jmsapi.spi",
        "jmsapi_selector",
        "jmsapi.listener",
        "jmsapi.spark",
        "jmsapi.testing",
    ),
    "jmsapi_inproc": ("jmsapi.errors", "jmsapi.values", "jmsapi.xa", "jmsapi.spi", "jmsapi_selector"),
    "jmsapi_stomp": ("jmsapi.errors", "jmsapi.values", "jmsapi.spi"),
    "jmsapi_amqp": ("jmsapi.errors", "jmsapi.values", "jmsapi.spi"),
    # A stored broker of this process is restarted by its own means.
    "jmsapi_conformance": (
        *PUBLIC,
        "jmsapi.spi",
        "jmsapi_inproc",
        "jmsapi.asf",
        "jmsapi.injection",
        "jmsapi.listener",
        "jmsapi.transactions",
    ),
}
# Parts of a room that carry its rules but not its name.
SAME_ROOM = {"jmsapi._entry": "jmsapi", "jmsapi._config_file": "jmsapi.config", "jmsapi._failover_url": "jmsapi.config"}
# Only these rooms may import these libraries; nobody may import them at the top of what ``import jmsapi`` loads.
LIBRARIES = {
    "stomp": ("jmsapi_stomp",),
    "proton": ("jmsapi_amqp",),
    "cproton": ("jmsapi_amqp",),
    "pyspark": ("jmsapi.spark", "pyspark_jms"),
    "typer": ("jmsapi.cli",),
    "rich": ("jmsapi.cli", "jmsapi_conformance"),
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


def modules() -> dict[str, Path]:
    """Return every module of ours by dotted name."""
    found: dict[str, Path] = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = list(path.relative_to(ROOT).with_suffix("").parts)
            if folder == "providers":
                parts = parts[2:]
            elif folder in ("selector", "conformance"):
                parts = parts[1:]
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()
OURS = tuple(sorted({name.split(".")[0] for name in MODULES} | {name.split(".")[0] for name in ROOMS}))


def room_of(module: str) -> str:
    """Return the room of a module; a room is the longest name of the table that the module's begins with."""
    for part, room in SAME_ROOM.items():
        if module == part or module.startswith(part + "."):
            return room
    candidates = [room for room in ROOMS if module == room or module.startswith(room + ".")]
    assert candidates, f"{module} is in no room: give it a row"
    return max(candidates, key=len)


def imports(path: Path, module: str) -> Iterator[tuple[str, int]]:
    """Give the modules that a file imports, by full name, with the line; ``from a import b`` gives a.b if that is a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            start = node.module or ""
            if node.level:
                base = package.split(".")[: len(package.split(".")) - node.level + 1]
                start = ".".join([*base, start] if start else base)
            for alias in node.names:
                whole = f"{start}.{alias.name}"
                yield (whole if whole in MODULES else start), node.lineno


def may_import(room: str, target: str) -> bool:
    """Tell whether a room may import a module of ours."""
    if room_of(target) == room:
        return True
    return any(target == allowed or (room_of(target) == allowed) for allowed in ROOMS[room])


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_its_room_may(module: str) -> None:
    room = room_of(module)
    wrong: list[str] = []
    for target, line in imports(MODULES[module], module):
        top = target.split(".")[0]
        if top in OURS and not may_import(room, target):
            wrong.append(f"{MODULES[module].relative_to(ROOT)}:{line} imports {target}")
        if top in LIBRARIES and room not in LIBRARIES[top]:
            wrong.append(f"{MODULES[module].relative_to(ROOT)}:{line} imports {target}, which is for {', '.join(LIBRARIES[top])}")
    assert not wrong, f"the room {room} may import {', '.join(ROOMS[room]) or 'nothing of ours'}:\n" + "\n".join(wrong)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_short(module: str) -> None:
    lines = len(MODULES[module].read_text(encoding="utf-8").splitlines())
    assert lines < LONGEST_MODULE, f"{MODULES[module].relative_to(ROOT)} has {lines} lines"


def test_no_module_is_called_by_a_name_that_says_nothing() -> None:
    assert [module for module in MODULES if any(word in module.split(".")[-1].lower() for word in BANNED_NAMES)] == []


def test_no_class_is_called_by_a_name_that_says_nothing() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in MODULES.values()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and any(word in node.name.lower() for word in BANNED_NAMES)
    ]
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
    assert room_of("jmsapi.spi.options") == "jmsapi.spi"
    assert room_of("jmsapi") == "jmsapi"
