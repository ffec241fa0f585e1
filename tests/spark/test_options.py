"""Every option of source and sink has a bad value that is refused by name, and a row in the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from jmsapi.errors import InvalidSelectorException, JMSException
from jmsapi.spark.options import JmsOptions, SinkOptions, SourceOptions, documentation, read_options

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
BASE = {"url": "stomp://localhost:61613", "queue": "q"}
BAD_BOTH = {
    "url": "localhost",
    "queue": "",
    "topic": "",
    "username": "",
    "password": "alone",
    "clientId": "",
    "connectTimeout": "soon",
    "heartbeat": "10",
    "brokerRetryTimeout": "-1s",
    "stagingLocation": "relative/path",
}
BAD_SOURCE = {
    "selector": "price >",
    "subscription": "without-a-topic",
    "subscriptionType": "non-durable",
    "parallelism": "0",
    "maxMessagesPerBatch": "0",
    "maxBytesPerBatch": "many",
    "leadMessages": "none",
    "pollTimeout": "1 day",
    "claimTimeout": "x",
    "firstWait": "500",
    "idleGap": "-",
    "roundMessages": "100001",
    "roundBytes": "8q",
    "dedup": "always",
    "dedupWindow": "10",
    "doubtRetention": "a week",
    "mode": "LENIENT",
    "failOnDataLoss": "perhaps",
    "onStagingReuse": "ignore",
    "keepBatches": "-1",
    "compression": "gzip",
    "readMode": "peek",
    "pushdown": "perhaps",
    "maxMessages": "0",
    "loadId": "../escape",
}
BAD_SINK = {
    "delivery": "at-most-once",
    "sinkId": "a/b",
    "ledgerQueue": "without-exactly-once",
    "jobId": "../escape",
    "duplicateIdProperty": "no-identifier",
    "transactionMessages": "0",
    "otherColumns": "drop",
    "deadLetterQueue": "",
    "deliveryMode": "fast",
    "priority": "10",
    "timeToLive": "later",
    "deliveryDelay": "soon",
}


def refusal(kind: type[JmsOptions], options: dict[str, str]) -> str:
    with pytest.raises(JMSException) as caught:
        read_options(kind, options)
    return str(caught.value)


@pytest.mark.parametrize(("name", "value"), (BAD_BOTH | BAD_SOURCE).items())
def test_a_bad_value_of_the_source_is_refused_by_name(name: str, value: str) -> None:
    if name == "selector":
        with pytest.raises(InvalidSelectorException, match="price >"):
            read_options(SourceOptions, {**BASE, name: value})
        return
    text = refusal(SourceOptions, {**BASE, name.lower(): value})
    assert name in text or name in ("url", "stagingLocation")
    if name == "password":
        assert value not in text


@pytest.mark.parametrize(("name", "value"), (BAD_BOTH | BAD_SINK).items())
def test_a_bad_value_of_the_sink_is_refused_by_name(name: str, value: str) -> None:
    text = refusal(SinkOptions, {**BASE, name.lower(): value})
    assert name in text or name in ("url", "stagingLocation")


def test_exactly_once_needs_a_place_to_stage_and_a_job_a_name() -> None:
    once = {**BASE, "delivery": "EXACTLY-ONCE"}
    assert "stagingLocation is missing" in refusal(SinkOptions, once)
    assert "ledgerQueue is for delivery=exactly-once" in refusal(SinkOptions, {**BASE, "ledgerQueue": "l"})
    options = read_options(SinkOptions, {**once, "stagingLocation": "/x"})
    assert options.once
    options.check_stream()
    with pytest.raises(JMSException, match="needs jobId"):
        options.check_job()
    named = read_options(SinkOptions, {**BASE, "jobId": "monday"})
    named.check_job()
    with pytest.raises(JMSException, match="jobId is for write"):
        named.check_stream()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("maxOffsetsPerTrigger", "maxMessagesPerBatch"),
        ("maxMessagesPerTrigger", "maxMessagesPerBatch"),
        ("brokerURL", "url"),
        ("user", "username"),
        ("destination", "queue or topic"),
        ("host", "url, such as"),
        ("queu", "queue"),
    ],
)
def test_the_names_of_other_sources_lead_to_ours(given: str, meant: str) -> None:
    said = refusal(SourceOptions, {"url": "stomp://a", "queue": "q", given: "5"})
    assert f"did you mean {meant}" in said


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("", "does not begin with a scheme"),
        (" stomp://a", "does not begin with a scheme"),
        ("broker:61613", "does not begin with a scheme"),
        ("stomp://a:1 ", "the port is no number"),
        ("failover:(stomp://a", "a failover list is written"),
        ("failover:stomp://a", "a failover list is written"),
    ],
)
def test_a_url_that_cannot_be_read_is_said_to_be_so_and_not_to_hold_a_secret(url: str, told: str) -> None:
    said = refusal(SourceOptions, {"url": url, "queue": "q"})
    assert told in said and "plans and logs" not in said


@pytest.mark.parametrize(
    "url",
    [
        "stomp://a?password=hunter2",
        "amqp://a?user=me&password=hunter2",
        "failover:(stomp://a,stomp://b?password=hunter2)",
        "failover:(stomp://a)?password=hunter2",
        "amqps://a?tls.key_password=hunter2",
        "amqps://a?key_password=hunter2",
    ],
)
def test_a_secret_among_the_parameters_of_a_url_is_refused_and_not_told(url: str) -> None:
    said = refusal(SourceOptions, {"url": url, "queue": "q"})
    assert "which would be written into plans and logs" in said and "hunter2" not in said


def test_no_secret_is_shown_and_each_can_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "url": "amqps://a",
        "queue": "q",
        "username": "me",
        "password": "hunter2",
        "tls.key_password": "hunter3",
    }
    assert "hunter" not in repr(read_options(SourceOptions, given))
    named = read_options(SourceOptions, {**given, "tls.key_password": "env:KEY_PASSWORD"})
    with pytest.raises(JMSException, match="tls_key_password: the environment variable KEY_PASSWORD is not set"):
        named.factory()
    monkeypatch.setenv("KEY_PASSWORD", "hunter3")
    assert named.factory() is not None


def test_no_option_is_without_a_bad_value_here() -> None:
    assert {field.alias for field in SourceOptions.model_fields.values() if field.alias} == set(BAD_BOTH | BAD_SOURCE)
    assert {field.alias for field in SinkOptions.model_fields.values() if field.alias} == set(BAD_BOTH | BAD_SINK)


@pytest.mark.parametrize("kind", [JmsOptions, SourceOptions, SinkOptions])
def test_the_documentation_has_the_table_that_the_options_print(kind: type[JmsOptions]) -> None:
    assert documentation(kind) in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"queue": "a", "topic": "b"}, "choose one"),
        ({"url": "stomp://me:pw@host", "queue": "q"}, "use username and password"),
        ({"url": "inproc://here", "queue": "q"}, "lives in one process"),
        ({"url": "failover:(stomp://a,inproc://here)", "queue": "q"}, "lives in one process"),
        ({"url": "failover:(stomp://me:pw@a)", "queue": "q"}, "use username and password"),
        ({"queue": "q", "leadMesages": "3"}, "did you mean leadMessages"),
        ({"queue": "q", "stagingLocation": "hdfs://name/path"}, "hdfs://"),
        ({"queue": "q", "provider.prefetchh": "3"}, "prefetch"),
        ({"queue": "q", "provider.object_allow": "x.Y"}, "never unpickled"),
        ({"queue": "q", "provider.url": "stomp://b"}, "use the option url"),
        ({"queue": "q", "provider.client_id": "a"}, "use the option clientId"),
        ({"topic": "topic://t", "subscription": "s"}, "topic is a name alone"),
        ({"queue": "q", "PROVIDER.User": "a"}, "use the option username"),
        ({"queue": "q", "stagingLocation": "/a\0b"}, "NUL"),
        ({"queue": "q", "stagingLocation": "s3://"}, "names no bucket"),
        ({"topic": "t"}, "subscription"),
        ({"topic": "t", "subscription": "s", "subscriptionType": "durable"}, "clientId"),
        ({}, "queue or topic is missing"),
        ({"queue": "q", "username": "me"}, "username is given without password"),
        ({"queue": "q", "subscriptionType": "shared-durable"}, "subscriptionType is for a topic"),
        ({"queue": "q", "dedupWindow": "5m"}, "dedupWindow is for dedup=window"),
        ({"queue": "q", "dedup": "off", "doubtRetention": "5m"}, "doubtRetention has no meaning"),
        ({"queue": "q", "tls.ca": "/ca.pem"}, "the URL has no TLS"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, str], text: str) -> None:
    assert text in refusal(SourceOptions, {"url": "stomp://localhost", **options})


ONCE = {"delivery": "exactly-once", "stagingLocation": "/s"}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({**ONCE, "ledgerQueue": "q"}, "the ledger needs a queue for itself"),
        ({**ONCE, "ledgerQueue": "l", "deadLetterQueue": "l"}, "the ledger needs a queue for itself"),
        ({**ONCE, "sinkId": "x", "queue": "jmsapi.ledger.x"}, "the ledger needs a queue for itself"),
        ({**ONCE, "jobId": "x", "deadLetterQueue": "jmsapi.ledger.x"}, "the ledger needs a queue for itself"),
        ({"deadLetterQueue": "q"}, "deadLetterQueue is the queue that the rows go to"),
        ({"queue": "queue://q"}, "queue is a name alone, without queue://"),
        ({"queue": "topic://q"}, "queue is a name alone, without topic://"),
        ({"deadLetterQueue": "queue://dead"}, "deadLetterQueue is a name alone"),
        ({**ONCE, "ledgerQueue": "queue://l"}, "ledgerQueue is a name alone"),
        ({"duplicateIdProperty": "Not"}, "a word of selectors"),
    ],
)
def test_options_of_a_sink_that_do_not_go_together_are_refused(options: dict[str, str], text: str) -> None:
    assert text in refusal(SinkOptions, {"url": "stomp://localhost", "queue": "q", **options})


def test_a_name_that_is_no_ledger_of_this_sink_is_a_queue_like_others() -> None:
    for more in ({"queue": "jmsapi.ledger.x"}, {**ONCE, "sinkId": "y", "queue": "jmsapi.ledger.x"}):
        assert read_options(SinkOptions, {"url": "stomp://localhost", **more}).queue == "jmsapi.ledger.x"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"loadId": "a"}, "loadId is for readMode=consume"),
        ({"maxMessagesPerBatch": "5"}, "maxMessagesPerBatch is for a stream; maxMessages limits"),
        (
            {"readMode": "consume", "stagingLocation": "/s", "loadId": "a", "maxMessagesPerBatch": "5"},
            "maxMessagesPerBatch is for a stream",
        ),
        ({"readMode": "consume", "stagingLocation": "/s", "loadId": "a", "pushdown": "true"}, "pushdown is for readMode=browse"),
    ],
)
def test_options_of_one_way_to_read_are_refused_in_the_other(options: dict[str, str], text: str) -> None:
    given = read_options(SourceOptions, {"url": "stomp://localhost", "queue": "q", **options})
    with pytest.raises(JMSException, match=text):
        given.check_load()


@pytest.mark.parametrize("option", [{"loadId": "a"}, {"readMode": "consume"}, {"maxMessages": "5"}, {"pushdown": "true"}])
def test_options_of_a_load_are_refused_in_a_stream(option: dict[str, str]) -> None:
    given = read_options(SourceOptions, {"url": "stomp://localhost", "queue": "q", "stagingLocation": "/s", **option})
    with pytest.raises(JMSException, match=f"{next(iter(option))} is for spark.read"):
        given.check_stream()


def test_secrets_are_read_where_they_are_used_and_shown_nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SPARK_TEST_SECRET", raising=False)
    options = read_options(SourceOptions, {**BASE, "username": "u", "password": "env:SPARK_TEST_SECRET"})
    with pytest.raises(JMSException, match="SPARK_TEST_SECRET is not set"):
        options.factory()
    monkeypatch.setenv("SPARK_TEST_SECRET", "hunter2")
    assert options.factory() is not None
    plain = read_options(SourceOptions, {**BASE, "username": "u", "password": "hunter2"})
    assert "hunter2" not in repr(plain) and "hunter2" not in str(plain)
    with pytest.raises(JMSException, match="cannot be read"):
        read_options(SourceOptions, {**BASE, "username": "u", "password": f"file:{tmp_path / 'none'}"}).factory()


def test_units_and_cases_are_read_as_people_write_them() -> None:
    options = read_options(SourceOptions, {**BASE, "POLLTIMEOUT": "1.5s", "roundbytes": "4K", "MODE": "failfast", "Queue": "q"})
    assert (options.poll_timeout, options.round_bytes, options.mode) == (1500, 4096, "FAILFAST")


def test_an_exclusive_subscription_has_one_claim_at_a_time() -> None:
    topic = {"url": "stomp://localhost", "topic": "t", "subscription": "s", "parallelism": "8"}
    assert read_options(SourceOptions, topic).claims == 8
    assert read_options(SourceOptions, {**topic, "subscriptionType": "durable", "clientId": "c"}).claims == 1
