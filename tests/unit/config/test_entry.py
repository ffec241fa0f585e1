"""The way in: factories by URL, objects by name, and what importing the package costs."""

import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import jmsapi

PUBLIC_NAMES = Path(__file__).parents[2] / "data" / "public_names.txt"


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "objects.toml"
    monkeypatch.setenv("JMSAPI_CONFIG", str(file))
    return file


@pytest.fixture
def bound() -> Iterator[str]:
    name = "bound by a test"
    yield name
    jmsapi.register_object(name, None)


# ---------------------------------------------------------------- factories


def test_a_factory_serves_both_domains() -> None:
    factory = jmsapi.connection_factory("inproc://entry")
    assert isinstance(factory, jmsapi.QueueConnectionFactory)
    assert isinstance(factory, jmsapi.TopicConnectionFactory)


def test_a_message_goes_through_a_factory() -> None:
    with jmsapi.connection_factory("inproc://entry").create_context() as context:
        queue = context.create_queue("way in")
        context.create_producer().send(queue, "hello")
        assert context.create_consumer(queue).receive_body(str, 5000) == "hello"


def test_a_factory_shows_no_credentials() -> None:
    factory = jmsapi.connection_factory("stomp://user-name:s3cret@nowhere:1")
    for text in (repr(factory), str(factory), f"{vars(factory)}"):
        assert "s3cret" not in text
        assert "user-name" not in text


def test_a_factory_survives_pickling() -> None:
    factory = pickle.loads(pickle.dumps(jmsapi.connection_factory("stomp://me:s3cret@nowhere:1", prefetch=7)))
    assert repr(factory) == repr(jmsapi.connection_factory("stomp://nowhere:1"))


def test_a_wrong_url_is_refused_before_anything_is_opened() -> None:
    with pytest.raises(jmsapi.JMSException, match="did you mean 'stomp'"):
        jmsapi.connection_factory("stopm://host")


def test_an_open_connection_tells_what_its_provider_can_do() -> None:
    factory = jmsapi.connection_factory("inproc://entry")
    with factory.create_connection() as connection, factory.create_context() as context:
        assert jmsapi.capabilities(connection).provider == "inproc"
        assert jmsapi.capabilities(context) == jmsapi.capabilities(connection)


# ---------------------------------------------------------------- lookup


def test_the_same_name_leads_to_another_broker_when_the_file_changes(config_file: Path) -> None:
    config_file.write_text('[factories.main]\nurl = "inproc://one"\n')
    assert "one" in repr(jmsapi.lookup("main", jmsapi.ConnectionFactory))
    config_file.write_text('[factories.main]\nurl = "stomp://two:1"\nclient_id = "c"\n')
    assert "two" in repr(jmsapi.lookup("main", jmsapi.ConnectionFactory))


def test_queues_and_topics_are_found_by_name(config_file: Path) -> None:
    config_file.write_text('[queues.in]\nname = "orders.in"\n[topics.news]\nname = "the.news"\n')
    assert jmsapi.lookup("in", jmsapi.Queue).queue_name == "orders.in"
    assert jmsapi.lookup("news", jmsapi.Topic).topic_name == "the.news"


def test_a_secret_comes_from_the_environment(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config_file.write_text('[factories.main]\nurl = "inproc://one"\nuser = "u"\npassword = "${ENTRY_PASSWORD}"\n')
    monkeypatch.delenv("ENTRY_PASSWORD", raising=False)
    with pytest.raises(jmsapi.JMSException, match="the environment variable 'ENTRY_PASSWORD' is not set"):
        jmsapi.lookup("main")
    monkeypatch.setenv("ENTRY_PASSWORD", "s3cret")
    assert "s3cret" not in repr(jmsapi.lookup("main"))


def test_an_unknown_name_is_an_error_that_names_the_nearest(config_file: Path) -> None:
    config_file.write_text('[queues.orders]\nname = "x"\n')
    with pytest.raises(jmsapi.JMSException, match=r"nothing is registered under 'ordres'; did you mean 'orders'\?") as raised:
        jmsapi.lookup("ordres")
    assert raised.value.error_code == "unknown-name"


def test_without_any_file_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JMSAPI_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(jmsapi.JMSException, match=r"no jmsapi\.toml was found: name one by JMSAPI_CONFIG, or call register"):
        jmsapi.lookup("main")


def test_an_object_of_another_kind_is_refused(config_file: Path) -> None:
    config_file.write_text('[queues.in]\nname = "orders.in"\n')
    with pytest.raises(jmsapi.JMSException, match="'in' is a Queue, not a ConnectionFactory") as raised:
        jmsapi.lookup("in", jmsapi.ConnectionFactory)
    assert raised.value.error_code == "wrong-kind"


def test_a_program_can_bind_objects_itself(bound: str, config_file: Path) -> None:
    config_file.write_text(f'[queues."{bound}"]\nname = "from the file"\n')
    factory = jmsapi.connection_factory("inproc://bound")
    jmsapi.register_object(bound, factory)
    assert jmsapi.lookup(bound) is factory
    jmsapi.register_object(bound, None)
    assert jmsapi.lookup(bound, jmsapi.Queue).queue_name == "from the file"
    with pytest.raises(jmsapi.JMSException):
        jmsapi.register_object("", factory)


# ---------------------------------------------------------------- the package itself


def test_the_public_names_are_those_that_are_checked_in() -> None:
    """To change them on purpose: write ``sorted(jmsapi.__all__)`` to tests/data/public_names.txt, one a line."""
    assert sorted(jmsapi.__all__) == PUBLIC_NAMES.read_text(encoding="utf-8").split()
    assert len(set(jmsapi.__all__)) == len(jmsapi.__all__)
    assert [name for name in jmsapi.__all__ if not hasattr(jmsapi, name)] == []


def python(code: str, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | variables
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.program
def test_importing_the_package_is_silent_and_loads_no_heavy_library() -> None:
    heavy = "stomp proton cproton pydantic pyspark pytest rich typer importlib.metadata asyncio"
    assert python(f"import jmsapi, sys; print([name for name in '{heavy}'.split() if name in sys.modules])") == "[]"


@pytest.mark.program
def test_using_the_package_in_process_and_in_memory_loads_no_wire_library_and_no_store() -> None:
    code = (
        "import jmsapi, sys\n"
        "jmsapi.connection_factory('inproc://x').create_context().close()\n"
        "print([name for name in 'stomp proton cproton sqlite3 pyspark pytest rich typer'.split() if name in sys.modules])"
    )
    assert python(code) == "[]"


@pytest.mark.program
@pytest.mark.skipif("JMSAPI_SKIP_TIMING" in os.environ, reason="JMSAPI_SKIP_TIMING is set")
def test_importing_the_package_takes_less_than_150_ms_of_a_processor(tmp_path: Path) -> None:
    """On a processor that is shared, as long as a few modules of the standard library, which take 115 ms on a free one."""

    def takes_ms(modules: str) -> float:
        code = f"import time; begun = time.process_time(); import {modules}; print((time.process_time() - begun) * 1000)"
        return float(python(code, PYTHONPYCACHEPREFIX=str(tmp_path)))

    both = [(takes_ms("jmsapi"), takes_ms("asyncio, http.client, unittest.mock")) for _ in range(5)]
    ours, others = map(min, zip(*both, strict=True))
    assert ours < max(150, others)


def test_a_program_that_says_nothing_about_logging_sees_none() -> None:
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("jmsapi").handlers)


def test_what_an_application_may_not_do_in_a_container_is_said_in_whole_sentences() -> None:
    from jmsapi._core.container import container_mode

    with container_mode(), jmsapi.connection_factory("inproc://sentences").create_connection() as connection:
        with pytest.raises(jmsapi.JMSException) as refused:
            connection.client_id = "me"
        assert str(refused.value) == (
            "setting client_id is not for an application in a container: give it to the connection factory"
        )
        connection.create_session()
        with pytest.raises(jmsapi.JMSException) as second:
            connection.create_session()
        assert str(second.value) == (
            "a second session on one connection is not for an application in a container: close the first one before"
        )
