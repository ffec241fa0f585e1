"""``jmsapi.toml``: what it may say, and what is said when it is wrong."""

from pathlib import Path

import pytest

from jmsapi.config import load_config
from jmsapi.errors import JMSException

EXAMPLE = """
[factories.orders]
url = "stomp://broker:61613"
user = "app"
password = "${BROKER_PASSWORD}"
prefetch = 100
emulate = ["tx", "${WORD}"]
artemis.prefix = "jms."

[factories.orders.classic]
scheduler = true

[queues.incoming]
name = "orders.incoming"
description = "from the shop"

[topics.news]
name = "news"
"""


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "jmsapi.toml"
    file.write_text(text, encoding="utf-8")
    return file


def refusal(tmp_path: Path, text: str) -> JMSException:
    with pytest.raises(JMSException) as raised:
        load_config(written(tmp_path, text))
    return raised.value


def test_a_file_has_factories_queues_and_topics(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, EXAMPLE))
    assert config.names() == ["incoming", "news", "orders"]
    assert config.queues["incoming"].name == "orders.incoming"
    assert config.topics["news"].name == "news"
    assert config.source.endswith("jmsapi.toml")


def test_a_factory_resolves_references_and_flattens_nested_options(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, EXAMPLE))
    url, options = config.factories["orders"].resolved("orders", {"BROKER_PASSWORD": "p@w", "WORD": "delay"})
    assert url == "stomp://broker:61613"
    assert options == {
        "user": "app",
        "password": "p@w",
        "prefetch": 100,
        "emulate": ["tx", "delay"],
        "artemis.prefix": "jms.",
        "classic.scheduler": True,
    }


def test_a_missing_variable_is_named_with_its_place(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, EXAMPLE))
    with pytest.raises(JMSException, match=r"factory 'orders', option 'password': the environment variable 'BROKER_PASSWORD'"):
        config.factories["orders"].resolved("orders", {"WORD": "x"})


@pytest.mark.parametrize(
    ("url", "environment", "expected"),
    [
        ("stomp://${U}:${P}@host", {"U": "me", "P": "p@w/d:x"}, "stomp://me:p%40w%2Fd%3Ax@host"),
        ("stomp://${HOST}/${PATH}", {"HOST": "host:61613", "PATH": "a/b"}, "stomp://host:61613/a/b"),
        ("${URL}", {"URL": "stomp://me:pw@host"}, "stomp://me:pw@host"),
        ("stomp://host?client_id=$${X}$$", {}, "stomp://host?client_id=${X}$"),
        ("stomp://me:$5@host", {}, "stomp://me:$5@host"),
    ],
)
def test_references_in_a_url_are_encoded_where_credentials_stand(
    tmp_path: Path, url: str, environment: dict[str, str], expected: str
) -> None:
    config = load_config(written(tmp_path, f'[factories.f]\nurl = "{url}"\n'))
    assert config.factories["f"].resolved("f", environment) == (expected, {})


def test_no_repr_shows_a_secret(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, '[factories.f]\nurl = "stomp://me:s3cret@host"\npassword = "s3cret"\n'))
    assert "s3cret" not in repr(config)
    assert "s3cret" not in str(config)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[factory.f]\nurl = 'x'", "unknown table 'factory'; did you mean 'factories'?"),
        ("[queues.q]\nnme = 'x'", "[queues.q] has the unknown key 'nme'; did you mean 'name'?"),
        ("[queues.q]\n", "queues.q.name: Field required"),
        ("[factories.f]\npassword = 's3cret'", "factories.f.url: Field required"),
        ("[queues]\nq = 'x'", "queues.q"),
        ("factories = 's3cret'", "factories"),
        ("[queues.x]\nname='a'\n[topics.x]\nname='b'", "'x' names several things"),
        ("[queues.q", "is no TOML"),
    ],
)
def test_a_wrong_file_says_what_is_wrong_and_where(tmp_path: Path, text: str, said: str) -> None:
    error = refusal(tmp_path, text)
    assert error.error_code == "bad-config"
    assert said in str(error)
    assert "jmsapi.toml" in str(error)
    assert "s3cret" not in str(error)


def test_without_a_file_the_working_directory_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JMSAPI_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    assert load_config().names() == []
    written(tmp_path, EXAMPLE)
    assert load_config().names() == ["incoming", "news", "orders"]


def test_the_environment_can_name_the_file_which_then_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMSAPI_CONFIG", str(tmp_path / "other.toml"))
    with pytest.raises(JMSException, match=r"other\.toml \(named by JMSAPI_CONFIG\) cannot be read") as raised:
        load_config()
    assert raised.value.error_code == "no-config"
    (tmp_path / "other.toml").write_text(EXAMPLE)
    assert "orders" in load_config().factories


def test_each_server_of_a_failover_list_gets_its_secret_encoded(tmp_path: Path) -> None:
    file = tmp_path / "jmsapi.toml"
    file.write_text('[factories.main]\nurl = "failover:(amqp://me:${PW}@a,amqp://me:${PW}@b)?jitter=${J}"\n')
    url, options = load_config(file).factories["main"].resolved("main", {"PW": "a/b@c", "J": "0.5"})
    assert url == "failover:(amqp://me:a%2Fb%40c@a,amqp://me:a%2Fb%40c@b)?jitter=0.5"
    assert options == {}


@pytest.mark.parametrize("value", ["${PASSWORD", "${OUTER_${INNER}}", "a${"])
def test_a_reference_without_an_end_is_no_text_of_its_own(tmp_path: Path, value: str) -> None:
    config = load_config(written(tmp_path, f'[factories.x]\nurl = "inproc://x"\npassword = "{value}"\n'))
    with pytest.raises(JMSException, match=r"option 'password': a reference .* has no end") as raised:
        config.factories["x"].resolved("x", {"INNER": "secret"})
    assert raised.value.error_code == "bad-config"
    assert "secret" not in str(raised.value)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    assert load_config(written(tmp_path, '\ufeff[factories.x]\nurl = "inproc://x"\n')).names() == ["x"]
