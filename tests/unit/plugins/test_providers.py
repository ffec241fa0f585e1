"""How providers are found: lazily, by scheme, and only those of this SPI."""

from importlib.metadata import EntryPoint

import pytest

from jmsapi._core.plugins import Providers, create_provider
from jmsapi.errors import JMSException
from jmsapi.spi import VERSION, Clock, Provider, ProviderEntry, SystemClock
from jmsapi.spi.options import ProviderOptions


class Entry:
    extra: str | None = None

    def __init__(self, name: str, *schemes: str, version: tuple[int, int] = VERSION, missing: ImportError | None = None) -> None:
        self.name, self.schemes, self.spi_version, self._missing = name, schemes or (name,), version, missing

    def options(self) -> type[ProviderOptions]:
        return ProviderOptions

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        raise self._missing or AssertionError("not asked for here")


class Point(EntryPoint):
    """An entry point that gives what it is told, and remembers that it was loaded."""

    loaded: list[str] = []  # noqa: RUF012 - emptied by each test's own installation

    def load(self) -> object:
        self.loaded.append(self.name)
        found = INSTALLED[self.name]
        if isinstance(found, Exception):
            raise found
        return found


INSTALLED: dict[str, object] = {}


def installed(**entries: object) -> Providers:
    INSTALLED.clear()
    INSTALLED.update(entries)
    Point.loaded.clear()
    return Providers(lambda: [Point(name, f"{name}_module:provider", "jmsapi.providers") for name in entries])


def test_only_the_provider_asked_for_is_loaded() -> None:
    amqp = Entry("amqp", "amqp", "amqps")
    providers = installed(amqp=amqp, stomp=Entry("stomp"))
    assert providers["amqps"] is amqp
    assert Point.loaded == ["amqp"]
    assert providers["amqp"] is amqp
    assert Point.loaded == ["amqp"]


def test_a_scheme_unlike_its_entry_point_is_found_too() -> None:
    odd = Entry("odd", "strange")
    assert installed(a=Entry("a"), odd=odd)["strange"] is odd


def test_an_unknown_scheme_is_a_key_error_and_all_schemes_can_be_listed() -> None:
    providers = installed(b=Entry("b", "b", "bb"), a=Entry("a"))
    with pytest.raises(KeyError):
        providers["c"]
    assert list(providers) == ["a", "b", "bb"]
    assert len(providers) == 3
    assert [entry.name for entry in providers.entries()] == ["a", "b"]


def test_a_registered_provider_comes_before_an_installed_one() -> None:
    providers = installed(stomp=Entry("stomp"))
    mine = Entry("mine", "stomp", "mine")
    providers.register(mine)
    assert providers["stomp"] is mine
    assert providers["mine"] is mine


@pytest.mark.parametrize("version", [(VERSION[0] + 1, 0), (VERSION[0] - 1, 9)])
def test_a_provider_of_another_major_version_is_refused_with_both_numbers(version: tuple[int, int]) -> None:
    ours, theirs = ".".join(map(str, VERSION)), ".".join(map(str, version))
    providers = installed(old=Entry("old", version=version), stomp=Entry("stomp"))
    with pytest.raises(JMSException) as raised:
        providers["old"]
    assert raised.value.error_code == "provider-version"
    assert ours in str(raised.value)
    assert theirs in str(raised.value)
    assert "old" in str(raised.value)
    with pytest.raises(JMSException):
        providers.register(Entry("old", version=version))
    assert list(providers) == ["stomp"]
    assert list(providers.faults()) == ["old"]


def test_another_minor_version_is_welcome() -> None:
    assert installed(new=Entry("new", version=(VERSION[0], VERSION[1] + 1)))["new"].name == "new"


def test_a_broken_installation_is_told_to_whoever_asks_for_it_and_to_nobody_else() -> None:
    providers = installed(bad=ModuleNotFoundError("No module named 'bad_module'"), odd=object(), stomp=Entry("stomp"))
    assert list(providers) == ["stomp"]
    with pytest.raises(JMSException, match=r"'bad' is installed as bad_module:provider but cannot be loaded: No module"):
        providers["bad"]
    with pytest.raises(JMSException, match="no provider entry, it has no spi_version, name, schemes"):
        providers["odd"]


def test_a_missing_wire_library_names_the_line_that_installs_it() -> None:
    entry = Entry("stomp", missing=ModuleNotFoundError("No module named 'stomp'", name="stomp"))
    entry.extra = "stomp"
    with pytest.raises(JMSException) as raised:
        create_provider(entry, ProviderOptions(scheme="stomp"), SystemClock())
    assert raised.value.error_code == "missing-extra"
    assert "pip install 'jmsapi[stomp]'" in str(raised.value)
    assert "the module stomp" in str(raised.value)
    assert isinstance(raised.value.__cause__, ModuleNotFoundError)


def test_the_installed_distribution_has_its_three_providers() -> None:
    providers = Providers()
    found: dict[str, ProviderEntry] = {scheme: providers[scheme] for scheme in ("inproc", "stomp", "stomp+ssl", "amqp", "amqps")}
    assert {scheme: entry.name for scheme, entry in found.items()} == {
        "inproc": "inproc",
        "stomp": "stomp",
        "stomp+ssl": "stomp",
        "amqp": "amqp",
        "amqps": "amqp",
    }
    assert providers.faults() == {}
