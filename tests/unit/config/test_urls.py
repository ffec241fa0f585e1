"""URLs and options: what they become, and what is said when they are wrong."""

import json
import logging
from typing import Any, Literal, cast

import pytest
from pydantic import ConfigDict, Field, field_validator, model_validator

from jmsapi.config import parse_url, redact_url, split_url
from jmsapi.errors import JMSException
from jmsapi.spi import VERSION, Clock, Provider, ProviderEntry
from jmsapi.spi.options import ProviderOptions, TlsOptions

SECRET = "s3cret-pässw/rd"


class WireOptions(TlsOptions):
    model_config = ConfigDict(populate_by_name=True)

    heartbeat_ms: int = Field(default=10_000, ge=0)
    broker: Literal["artemis", "classic"] | None = None
    window: int = Field(default=1, alias="artemis.window")

    @field_validator("broker", mode="before")
    @classmethod
    def _no_shouting(cls, value: object) -> object:
        if value == "SHOUT":
            raise ValueError("no shouting")
        return value

    @model_validator(mode="after")
    def _talks_too_much(self) -> "WireOptions":
        if self.vhost == "leak" and self.password is not None:
            raise ValueError(f"the vhost does not like {self.password.get_secret_value()}")
        return self


class Entry:
    spi_version = VERSION
    extra = None

    def __init__(self, name: str, schemes: tuple[str, ...], model: type[ProviderOptions]) -> None:
        self.name, self.schemes, self._model = name, schemes, model

    def options(self) -> type[ProviderOptions]:
        return self._model

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        raise AssertionError("parsing creates nothing")


WIRE = Entry("wire", ("wire", "wires"), WireOptions)
MEMORY = Entry("memory", ("memory",), ProviderOptions)
ENTRIES: dict[str, ProviderEntry] = {"wire": WIRE, "wires": WIRE, "memory": MEMORY}


def parse(url: str, **options: object) -> Any:
    return parse_url(url, options, entries=ENTRIES)


def refusal(url: str, **options: object) -> JMSException:
    with pytest.raises(JMSException) as raised:
        parse(url, **options)
    return raised.value


# ---------------------------------------------------------------- what a URL becomes


def test_a_url_gives_host_port_user_password_path_and_options() -> None:
    options = parse("wire://me:pw@broker.example:61613/vh?client_id=c1&prefetch=10&tls_verify=false")
    assert isinstance(options, WireOptions)
    assert (options.scheme, options.host, options.port, options.path) == ("wire", "broker.example", 61613, "vh")
    assert options.user == "me"
    assert options.password is not None
    assert options.password.get_secret_value() == "pw"
    assert (options.client_id, options.prefetch, options.tls_verify) == ("c1", 10, False)


def test_what_is_not_said_has_its_default() -> None:
    options = parse("wire://host")
    assert (options.port, options.user, options.password, options.prefetch) == (None, None, None, 1000)


def test_user_and_password_are_percent_decoded() -> None:
    options = parse("wire://a%40b:p%3Aw%2Fd%C3%A4%25@host")
    assert (options.user, options.password.get_secret_value()) == ("a@b", "p:w/dä%")


def test_an_empty_password_is_a_password_and_no_colon_is_none() -> None:
    assert parse("wire://me:@host").password.get_secret_value() == ""
    assert parse("wire://me@host").password is None


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("wire://[::1]:61613", "::1", 61613),
        ("wire://[2001:db8::7]", "2001:db8::7", None),
        ("wire://me:pw@[::1]:1?prefetch=1", "::1", 1),
        ("wire://[fe80::1%25eth0]:5", "fe80::1%eth0", 5),
    ],
)
def test_an_ipv6_address_stands_in_brackets(url: str, host: str, port: int | None) -> None:
    options = parse(url)
    assert (options.host, options.port) == (host, port)


def test_a_name_in_process_keeps_its_case_and_may_be_empty() -> None:
    assert parse("memory://Orders").host == "Orders"
    assert parse("memory://").host == ""


def test_the_scheme_may_be_written_in_capitals_and_one_provider_may_have_several() -> None:
    assert parse("WIRES://host").scheme == "wires"


def test_option_values_are_percent_decoded_and_a_plus_is_a_plus() -> None:
    assert parse("wire://host?client_id=a%26b%3Dc+d").client_id == "a&b=c+d"


def test_words_are_split_at_commas() -> None:
    assert parse("wire://host?emulate=tx,queue-selector").emulate == {"tx", "queue-selector"}
    assert parse("wire://host", emulate=["tx"]).emulate == {"tx"}


def test_keyword_options_win_over_the_url() -> None:
    options = parse("wire://me:pw@host:1?prefetch=1", prefetch=2, user="you", password="other", host="there", port=2)
    assert (options.prefetch, options.user, options.host, options.port) == (2, "you", "there", 2)
    assert options.password.get_secret_value() == "other"


def test_a_dotted_option_has_a_dot_in_the_url_and_an_underscore_in_code() -> None:
    assert parse("wire://host?artemis.window=5").window == 5
    assert parse("wire://host", window=6).window == 6
    assert parse("wire://host?artemis.window=5", window=6).window == 6


# ---------------------------------------------------------------- what is said when it is wrong


def test_an_unknown_scheme_names_the_nearest_or_all_known_ones() -> None:
    near, far = refusal("wyre://host"), refusal("zzz://host")
    assert near.error_code == far.error_code == "unknown-scheme"
    assert "'wyre'" in str(near)
    assert "did you mean 'wire'?" in str(near)
    assert "known schemes: memory, wire, wires" in str(far)


@pytest.mark.parametrize(
    ("url", "options"), [("wire://host?prefech=1", {}), ("wire://host", {"prefech": 1})], ids=["in the URL", "by keyword"]
)
def test_a_misspelt_option_names_the_nearest_one(url: str, options: dict[str, object]) -> None:
    error = refusal(url, **options)
    assert error.error_code == "unknown-option"
    assert "'prefech'" in str(error)
    assert "did you mean 'prefetch'?" in str(error)


def test_an_option_near_to_none_lists_what_there_is() -> None:
    error = refusal("wire://host?zzzzzz=1")
    assert "known options: artemis.window, broker, c" in str(error)
    assert " scheme" not in str(error)


def test_host_and_port_are_no_parameters_of_a_url() -> None:
    assert refusal("wire://host?port=1").error_code == "unknown-option"
    assert refusal("wire://host", scheme="memory").error_code == "unknown-option"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("host:61613", "does not begin with a scheme"),
        ("", "does not begin with a scheme"),
        ("wire:host", "does not begin with a scheme"),
        ("wire://host:port", "the port is no number"),
        ("wire://host:٣", "the port is no number"),
        ("wire://::1", "needs brackets"),
        ("wire://[::1", "needs brackets"),
        ("wire://[::1]5", "needs brackets"),
        ("wire://host#x", "%23"),
        ("wire://host?prefetch", "has no value"),
        ("wire://host?prefetch=1&prefetch=2", "given twice"),
        ("wire://host?client_id=%ff", "not percent-encoded UTF-8"),
        ("wire://h%ffst", "not percent-encoded UTF-8"),
    ],
)
def test_a_bad_url_says_what_is_wrong_with_it(url: str, reason: str) -> None:
    error = refusal(url)
    assert error.error_code == "bad-url"
    assert reason in str(error)


@pytest.mark.parametrize(
    ("url", "options", "place"),
    [
        ("wire://host:70000", {}, "port"),
        ("wire://host?prefetch=many", {}, "prefetch"),
        ("wire://host?prefetch=-1", {}, "prefetch"),
        ("wire://host?broker=rabbit", {}, "broker"),
        ("wire://host?broker=SHOUT", {}, "broker: Value error, no shouting"),
        ("wire://host?tls_verify=perhaps", {}, "tls_verify"),
        ("wire://host", {"client_id": ""}, "client_id"),
        ("wire://", {}, "host"),
    ],
)
def test_a_wrong_value_is_one_readable_line_that_names_the_option(url: str, options: dict[str, object], place: str) -> None:
    error = refusal(url, **options)
    assert error.error_code == "bad-option"
    assert place in str(error)
    assert "\n" not in str(error)
    assert "pydantic" not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None


def test_all_wrong_values_are_told_at_once() -> None:
    text = str(refusal("wire://host?prefetch=x&heartbeat_ms=y"))
    assert "prefetch" in text
    assert "heartbeat_ms" in text


# ---------------------------------------------------------------- secrets

QUOTED = "s3cret-p%C3%A4ssw%2Frd"


@pytest.mark.parametrize(
    "url",
    [
        f"wire://user-name:{QUOTED}@host:61613?prefech=1",
        f"wire://user-name:{QUOTED}@host?prefetch=x",
        f"wire://user-name:{QUOTED}@host?tls_key_password={QUOTED}&heartbeat_ms=x",
        f"wire://user-name:{QUOTED}@host?vhost=leak",
        f"wire://host?password={QUOTED}&prefetch=x",
        f"wire://host?vhost=leak&password={QUOTED}",
        f"wyre://user-name:{QUOTED}@host",
        "wire://user-name:s3cret-pässw/rd@host",
        "wire://user-name:s3cret-pässw?rd@host",
        "wire://user-name:s3cret-pässw#rd@host",
        "wire://user-name:s3cret-pässw:rd@host:port",
        "wire://user-name:s3cret-pässw@rd@host:port",
        f"//user-name:{QUOTED}@host",
    ],
)
def test_no_error_holds_a_credential(url: str) -> None:
    error = refusal(url)
    for secret in ("s3cret", "pässw", "user-name", "p%C3%A4ssw"):
        assert secret not in str(error)
        assert secret not in repr(error)
        assert secret not in json.dumps(list(map(str, error.args)))
    assert error.__context__ is None or "s3cret" not in str(error.__context__)


def test_a_password_that_is_no_string_is_not_repeated() -> None:
    assert "1234567" not in str(refusal("wire://host", password=1234567, prefetch="x"))


def test_options_and_the_parts_of_a_url_show_no_credential() -> None:
    options = parse(f"wire://user-name:{QUOTED}@host", tls_key_password=SECRET)
    parts = split_url(f"wire://user-name:{QUOTED}@host?password=s3cret")
    for text in (repr(options), str(options), repr(parts), str(parts)):
        assert "s3cret" not in text
        assert "user-name" not in text


def test_parsing_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        parse(f"wire://me:{QUOTED}@host")
    assert caplog.records == []


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("stomp://me:pw@host:61613", "stomp://***@host:61613"),
        ("stomp+ssl://me@host/path?x=1", "stomp+ssl://***@host/path?x=1"),
        ("stomp://host?client_id=a@b", "stomp://host?client_id=a@b"),
        ("stomp://host:5?client_id=a@b", "stomp://host:5?client_id=a@b"),
        ("stomp://host/path?client_id=a@b", "stomp://host/path?client_id=a@b"),
        ("stomp://host?password=pw&x=1", "stomp://host?password=***&x=1"),
        ("stomp://host?tls_key_passw%6Frd=pw", "stomp://host?tls_key_passw%6Frd=***"),
        ("stomp://me:p/w@host", "stomp://***"),
        ("stomp://me:p?w@host", "stomp://***"),
        ("stomp://me:1?w@host", "stomp://***"),
        ("stomp://me:p@w@host", "stomp://***@host"),
        ("failover:(stomp://me:pw@host)", "failover:(stomp://***@host)"),
        ("me:pw@host", "***"),
        ("nothing", "***"),
        ("", "***"),
        ("amqp://user:secret%21xhost", "amqp://***"),
        ("failover:(amqp://user:secret%21xhost,amqp://b)", "failover:(amqp://***,amqp://b)"),
        ("failover:amqp://me:pw@host", "failover:***"),
        ("tcp://h:1?p?assword=pw&user=u", "tcp://***"),
        ("tcp://h:1?pa%3Fssword=pw&prefetch=1", "tcp://***"),
        ("tcp://h&password=pw", "tcp://***"),
        ("tcp://[password=pw]", "tcp://***"),
    ],
)
def test_a_url_can_be_shown_without_its_credentials(url: str, shown: str) -> None:
    assert redact_url(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "wire://user:{}xhost",
        "wire://user:{}@host:port",
        "wire:/user:{}@host",
        "user:{}@host",
        "wire://user:{}#x@host",
        "wire://user:1?{}",
        "wire://user:1?{}@host",
        "wire://user:1?{}=x@host",
        "wire://user:1?a=1&{}",
        "wire://user:1?{0}=1&{0}=2",
        "wire://us:er:{}",
        "wire://[user:{}",
        "wire://user:%FF{}@host",
        "wire://user:1?%FF{}=1",
        "failover:(wire://user:{}xhost)",
        "failover:(wire://user:{}xhost,wire://b)",
        "failover:(wire://b,wire://user:{}xhost",
        "failover:wire://user:{}@host",
        "failover:({}",
    ],
)
def test_a_url_that_cannot_be_read_is_shown_by_its_scheme_only(url: str) -> None:
    secret = "geheim%21"
    error: BaseException | None = refusal(url.format(secret))
    while error is not None:
        assert "geheim" not in f"{error} {error!r}"
        error = error.__cause__ or error.__context__
    if "=x@" not in url:  # that one could be read, were there such an option
        assert "geheim" not in redact_url(url.format(secret))


@pytest.mark.parametrize(
    "url",
    [
        "wire://host?pw={}",
        "wire://host?login={}",
        "wire://host?tls.key_pasword={}&prefetch=1",
        "failover:(wire://a?creds={},wire://b)",
        "failover:(wire://a,wire://b)?creds={}",
        "nowire://host?pw={}",
    ],
)
def test_the_value_of_an_option_that_nobody_knows_is_not_shown(url: str) -> None:
    assert "geheim" not in str(refusal(url.format("geheim")))


def test_a_hidden_error_of_pydantic_quotes_no_input() -> None:
    from pydantic import ValidationError

    with pytest.raises(ValidationError) as raised:
        WireOptions.model_validate({"scheme": "wire", "host": "h", "password": ["s3cret"]})
    assert "s3cret" not in str(cast("Exception", raised.value))


# ---------------------------------------------------------------- failover lists


def test_a_failover_list_gives_the_first_server_and_all_of_them_in_its_order() -> None:
    options = parse("failover:(wire://me:pw@a:1,wire://b?emulate=x,tx)?emulate=x,tx&client_id=c1")
    assert isinstance(options, WireOptions)
    assert (options.host, options.port, options.client_id, options.emulate) == ("a", 1, "c1", {"x", "tx"})
    assert [(one.host, one.port, one.user, one.client_id) for one in options.failover.servers] == [
        ("a", 1, "me", "c1"),
        ("b", None, None, "c1"),
    ]


def test_a_plain_url_does_not_reconnect() -> None:
    assert parse("wire://a").failover is None


@pytest.mark.parametrize("name", ["maxReconnectAttempts", "failover.maxReconnectAttempts", "max_reconnect_attempts"])
def test_an_option_of_reconnecting_may_be_spelt_as_in_java_or_as_here(name: str) -> None:
    assert parse(f"failover:(wire://a)?{name}=7").failover.max_reconnect_attempts == 7
    assert parse("failover:(wire://a)?jitter=0.5", **{name: 7}).failover.max_reconnect_attempts == 7


@pytest.mark.parametrize("name", ["initialReconnectDelay", "initial_reconnect_delay", "initial_reconnect_delay_ms"])
def test_a_time_may_be_spelt_without_its_unit(name: str) -> None:
    assert parse(f"failover://(wire://a)?{name}=70").failover.initial_reconnect_delay_ms == 70


@pytest.mark.parametrize(
    ("url", "options", "code", "reason"),
    [
        ("failover:wire://a", {}, "bad-url", "failover:(amqp://a,amqp://b)"),
        ("failover:()", {}, "bad-url", "is written"),
        ("failover:(wire://a,memory://b)", {}, "bad-url", "different wires"),
        ("failover:(wire://a,b)", {}, "bad-url", "each server has its scheme"),
        ("failover:(wire://a,,wire://b)", {}, "bad-url", "each server has its scheme"),
        ("failover:(failover:(wire://a))", {}, "bad-url", "in another list"),
        ("failover:(wire://a)?jitter=0&failover.jitter=1", {}, "bad-option", "given twice"),
        ("failover:(wire://a)?reconnectDelay=1&reconnect_delay_ms=2", {}, "bad-option", "given twice"),
        ("failover:(wire://a)", {"reconnectDelay": 1, "reconnect_delay": 2}, "bad-option", "given twice"),
        ("failover:(wire://a)?startupTimeout=99999999999999999", {}, "bad-option", "startup_timeout_ms"),
        ("failover:(wire://a)?clientIdGrace=99999999999999999", {}, "bad-option", "client_id_grace_ms"),
        ("wire://a?request_timeout_ms=99999999999999999", {}, "bad-option", "request_timeout_ms"),
        ("failover:(wire://a?prefetch=1,wire://b)", {}, "bad-option", "'prefetch' is not the same for all servers"),
        ("failover:(wire://a)", {"host": "b"}, "bad-option", "'host' is for one server"),
        ("failover:(wire://a)?maxReconnectAttempts=many", {}, "bad-option", "max_reconnect_attempts"),
        ("failover:(wire://a)?jitter=2", {}, "bad-option", "jitter"),
        ("failover:(wire://a)?failover.maxReconectAttempts=1", {}, "unknown-option", "'max_reconnect_attempts'"),
        ("failover:(wire://a)?maxReconectAttempts=1", {}, "unknown-option", "'maxReconnectAttempts'"),
        ("failover:(wire://a)?prefech=1", {}, "unknown-option", "'prefetch'"),
        ("wire://a?failover=1", {}, "unknown-option", "'failover'"),
        ("wire://a?maxReconnectAttempts=1", {}, "unknown-option", "'maxReconnectAttempts'"),
    ],
)
def test_a_bad_failover_list_says_what_is_wrong_with_it(url: str, options: dict[str, object], code: str, reason: str) -> None:
    error = refusal(url, **options)
    assert error.error_code == code
    assert reason in str(error)


def test_a_failover_list_can_be_shown_without_its_credentials() -> None:
    url = f"failover:(wire://me:{SECRET}@a,wire://me:{SECRET}@b?password={SECRET})?password={SECRET}&jitter=0"
    shown = redact_url(url)
    assert SECRET not in shown
    assert shown == "failover:(wire://***,wire://***)?password=***&jitter=0"
    assert "s3cret" not in redact_url("failover:wire://me:s3cret@a")


@pytest.mark.parametrize("scheme", ["wire", "wires"])
@pytest.mark.parametrize(
    ("tail", "vhost"),
    [("", None), ("/", None), ("/orders", "orders"), ("/%2F", "/"), ("/a%2Fb", "a/b"), ("/orders?vhost=orders", "orders")],
)
def test_the_path_of_a_url_names_the_virtual_host(scheme: str, tail: str, vhost: str | None) -> None:
    assert parse(f"{scheme}://user:word@broker{tail}").vhost == vhost


def test_a_path_and_an_option_that_name_two_virtual_hosts_are_refused() -> None:
    error = refusal("wire://broker/orders?vhost=bills")
    assert error.error_code == "bad-option"
    assert "two virtual hosts" in str(error)


def test_each_server_of_a_failover_list_may_name_its_virtual_host() -> None:
    options = parse("failover:(wire://a/orders,wire://b/%2F)")
    assert [server.vhost for server in options.failover.servers] == ["orders", "/"]
