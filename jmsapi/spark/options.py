"""Options of the data source, as one table each for source and sink: it parses, validates, and prints the documentation.

Spark hands option names over in lower case, and values as text. Nothing here quotes a value that may be a secret.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

import jmsapi
from jmsapi.errors import InvalidSelectorException, JMSException
from jmsapi.selector import compile_selector
from jmsapi.spark.option_values import NAME, Count, Duration, Size, lower, option, upper
from jmsapi.spark.staging import open_store

__all__ = ["LEDGER", "JmsOptions", "SinkOptions", "SourceOptions", "documentation", "read_options", "read_stream_sink"]

T = TypeVar("T", bound="JmsOptions")
_USER_INFO: Final = re.compile(r"//[^/?#,()]*@")
_TLS: Final = re.compile(r"(stomp\+ssl|amqps)://", re.IGNORECASE)
_IN_PROCESS: Final = re.compile(r"(?:^|[(,])\s*inproc:", re.IGNORECASE)
_HADOOP_PATH: Final = re.compile("file:/(?!/)")
LEDGER: Final = "jmsapi.ledger."
"""Begins the name of a ledger's queue."""
_SECRETS: Final = ("password", "secret", "token")
_OUR_NAMES: Final = {"url": "url", "user": "username", "password": "password", "client_id": "clientId"}
"""Options of providers that have one of ours, which others are checked with."""
_HINTS: Final = {
    "brokerurl": "url",
    "broker": "url",
    "connectionfactory": "url",
    "destination": "queue or topic",
    "host": "url, such as amqp://host:5672",
    "port": "url, such as amqp://host:5672",
    "maxmessagespertrigger": "maxMessagesPerBatch",
    "maxoffsetspertrigger": "maxMessagesPerBatch",
    "maxrowspertrigger": "maxMessagesPerBatch",
    "maxbytespertrigger": "maxBytesPerBatch",
    "numpartitions": "parallelism",
    "minpartitions": "parallelism",
    "user": "username",
    "queuename": "queue",
    "topicname": "topic",
    "startingoffsets": "nothing: a queue is read from its head, and what is read is gone from it",
    "subscribe": "topic with subscription, or queue",
}
"""Names that other data sources and clients have for an option, and ours."""
# Options that Spark itself puts among ours, in lower case.
_OF_SPARK: Final = frozenset({"path", "checkpointlocation", "maxfilespertrigger", "paths", "queryname"})


class JmsOptions(BaseModel):
    """The options that source and sink share."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
    what: ClassVar[str] = "jms"

    url: str = Field(
        alias="url",
        description="Broker: `stomp://`, `stomp+ssl://`, `amqp://`, `amqps://`, or `failover:(url,url)`; no user name in it",
    )
    queue: str | None = option("queue", None, "Name of the queue", "", min_length=1)
    topic: str | None = option("topic", None, "Name of the topic", "", min_length=1)
    username: str | None = option("username", None, "User name; with `password` or not at all", "", min_length=1)
    password: str | None = option(
        "password",
        None,
        "Password; `env:NAME` and `file:PATH` are read in the process that connects, and never shipped",
        "",
        repr=False,
    )
    client_id: str | None = option("clientId", None, "Client id; needed by `subscriptionType=durable`", "", min_length=1)
    connect_timeout: Duration = option("connectTimeout", 10_000, "Longest wait for a connection", "10s")
    heartbeat: Duration = option(
        "heartbeat", 10_000, "Heart-beats; bounds how long an executor that vanished keeps messages", "10s"
    )
    broker_retry_timeout: Duration = option(
        "brokerRetryTimeout",
        120_000,
        "How long a stream pauses while the broker is away before it fails; refused credentials fail at once",
        "2m",
    )
    staging_location: str | None = option(
        "stagingLocation",
        None,
        "Absolute path or URL of a store that driver and executors share; one for each query",
        "",
        min_length=1,
    )
    extra: Mapping[str, str] = Field(default_factory=dict[str, str], exclude=True, repr=False)
    """``tls.*`` and ``provider.*``, by the provider's own names; secrets among them may be ``env:`` and ``file:`` as well."""

    def check(self) -> None:
        """Check what concerns several options at once; raises JMSException."""
        if _USER_INFO.search(self.url):
            raise _bad(
                self, "url holds a user name or password, which would be written into plans and logs: use username and password"
            )
        if "***" in jmsapi.redact_url(self.url):
            self._check_readable()
            raise _bad(
                self,
                "url holds a password or another secret among its parameters, which would be written into plans and logs: give "
                "password=env:NAME or file:PATH, and others as tls.* or provider.* in the same form",
            )
        if _IN_PROCESS.search(self.url):
            raise _bad(
                self, "url: the inproc broker lives in one process, and the tasks of Spark are others; use a broker with a port"
            )
        if self.password is not None and self.username is None:
            raise _bad(self, "password is given without username")
        if self.username is not None and self.password is None:
            raise _bad(self, "username is given without password")
        if self.queue is not None and self.topic is not None:
            raise _bad(self, "queue and topic are both given; choose one")
        for alias, name in (("queue", self.queue), ("topic", self.topic)):
            self._check_name(alias, name)
        if any(name.startswith("tls_") for name in self.extra) and _TLS.search(self.url) is None:
            raise _bad(self, "tls.* is given, and the URL has no TLS: write stomp+ssl:// or amqps://")
        for name, ours in _OUR_NAMES.items():
            if name in self.extra:
                raise _bad(self, f"provider.{name} is given; use the option {ours}")
        if "object_allow" in self.extra:
            raise _bad(self, "provider.object_allow: objects are never unpickled here")
        if self.staging_location is not None:
            open_store(self.staging_location)
        # Reads URL and provider options; opens nothing.
        self.factory(secret=False)

    @property
    def place(self) -> str:
        """Return where messages come from or go to, as people read it."""
        queue = f"the queue {self.queue!r}" if self.queue is not None else ""
        topic = f"the topic {self.topic!r}" if self.topic is not None else ""
        return queue or topic or "the queues and topics of its rows"

    def _check_name(self, alias: str, name: str | None) -> None:
        """Refuse a destination as columns have it, which would be a queue of that name."""
        if name is not None and name.startswith(("queue://", "topic://")):
            raise _bad(self, f"{alias} is a name alone, without {name[:8]}")

    def _check_readable(self) -> None:
        """Raise what is wrong with a URL that cannot be read: it is shown as one that is nothing but a secret."""
        try:
            self.factory(secret=False)
        except JMSException as error:
            if error.error_code == "bad-url":
                raise

    def factory(self, *, secret: bool = True, **more: object) -> jmsapi.ConnectionFactory:
        """Return a factory for these options.

        Args:
            secret: Whether to read the password.
            more: Further options of the provider.
        """
        extra = {
            name: _secret(value, name) if secret and name.endswith(_SECRETS) else value for name, value in self.extra.items()
        }
        given: dict[str, object] = {"connect_timeout_ms": max(1, round(self.connect_timeout)), **more, **extra}
        if self.url[:9].lower() == "failover:":
            # Each server is tried when a connection is made. One that is lost ends with its session: what it had received comes
            # again, and only who begins anew can tell those messages from others.
            given["max_reconnect_attempts"] = 0
        if self.url.lower().startswith("stomp"):
            given.setdefault("heartbeat_ms", round(self.heartbeat))
        elif self.url.lower().startswith("amqp"):
            given.setdefault("idle_timeout_ms", round(self.heartbeat))
        if self.client_id is not None:
            given["client_id"] = self.client_id
        if self.username is not None:
            given["user"] = self.username
        if secret and self.password is not None:
            given["password"] = _secret(self.password)
        return jmsapi.connection_factory(self.url, **given)


class SourceOptions(JmsOptions):
    """Options of ``spark.readStream`` and ``spark.read``."""

    what: ClassVar[str] = "source"

    selector: str | None = option("selector", None, "JMS selector; messages it leaves out stay on the queue", "", min_length=1)
    subscription: str | None = option("subscription", None, "Name of the subscription; a topic needs one", "", min_length=1)
    subscription_type: Annotated[Literal["shared-durable", "durable"], BeforeValidator(lower)] = option(
        "subscriptionType", "shared-durable", "`shared-durable`, or `durable`: one consumer at a time, so `parallelism` is 1"
    )
    parallelism: int = option(
        "parallelism", 2, "Most claims planned beside the lead, 1 to 1024; 1 keeps the broker's order", ge=1, le=1024
    )
    max_messages_per_batch: Count = option("maxMessagesPerBatch", 100_000, "Most messages of a batch, over lead and claims")
    max_bytes_per_batch: Size = option(
        "maxBytesPerBatch", 256 << 20, "Most bytes of a batch, and of a load if given; one message may exceed it", "256m"
    )
    lead_messages: Count = option("leadMessages", 1000, "Size of the lead claim")
    poll_timeout: Duration = option(
        "pollTimeout", 1000, "How long an idle stream waits for a first message before it looks again", "1s"
    )
    claim_timeout: Duration = option(
        "claimTimeout", 10_000, "A claim ends after this; one of a load only if this is given", "10s"
    )
    first_wait: Duration = option("firstWait", 500, "How long a claim waits for its first message", "500ms")
    idle_gap: Duration = option(
        "idleGap", 50, "A claim ends when nothing came for so long and the broker says that it has nothing", "50ms"
    )
    round_messages: int = option(
        "roundMessages", 1000, "Most unacknowledged messages of a consumer, 1 to 100000", ge=1, le=100_000
    )
    round_bytes: Size = option("roundBytes", 8 << 20, "Most bytes of a round; one message may exceed it", "8m")
    dedup: Annotated[Literal["in-doubt", "window", "off"], BeforeValidator(lower)] = option(
        "dedup", "in-doubt", "`in-doubt`; `window`: for brokers that may forget acknowledgements; `off`: at least once"
    )
    dedup_window: Duration = option(
        "dedupWindow", 600_000, "How long `dedup=window` remembers, at least; by the driver's clock", "10m"
    )
    doubt_retention: Duration = option(
        "doubtRetention",
        86_400_000,
        "How long ids in doubt are remembered; longer than the broker needs to notice a dead consumer",
        "24h",
    )
    mode: Annotated[Literal["PERMISSIVE", "DROPMALFORMED", "FAILFAST"], BeforeValidator(upper)] = option(
        "mode",
        "PERMISSIVE",
        "A message that cannot be decoded: a row with `error`, no row (`DROPMALFORMED`), or failure (`FAILFAST`)",
    )
    fail_on_data_loss: bool = option(
        "failOnDataLoss", True, "Fail when rows that a checkpoint asks for are deleted; else warn", "true"
    )
    on_staging_reuse: Annotated[Literal["fail", "adopt"], BeforeValidator(lower)] = option(
        "onStagingReuse", "fail", "A new checkpoint on a used staging area: `fail`, or `adopt` what is staged"
    )
    keep_batches: int = option("keepBatches", 0, "Sealed batches that are kept for going back by hand", ge=0, le=10_000)
    compression: Annotated[Literal["none", "lz4", "zstd"], BeforeValidator(lower)] = option(
        "compression", "lz4", "Of staged files: `none`, `lz4`, `zstd`"
    )
    read_mode: Annotated[Literal["browse", "consume"], BeforeValidator(lower)] = option(
        "readMode", "browse", "`spark.read` only: `browse` leaves the messages on the queue, `consume` takes them"
    )
    pushdown: bool = option(
        "pushdown",
        False,
        "`browse` only: conditions on header columns become a selector; needs `spark.sql.python.filterPushdown.enabled`",
        "false",
    )
    max_messages: Count | None = option("maxMessages", None, "`spark.read` only: most messages", "")
    load_id: str | None = option(
        "loadId",
        None,
        "Name of a load with `readMode=consume`; the same again gives the same rows, until released",
        "",
        pattern=NAME,
    )

    def check(self) -> None:
        """Check the options of a source; raises JMSException."""
        super().check()
        if self.queue is None and self.topic is None:
            raise _bad(self, "queue or topic is missing")
        if self.selector is not None:
            compile_selector(self.selector)
        if self.topic is not None and self.subscription is None:
            raise _bad(self, "a topic needs subscription: without one, messages published between two batches would be lost")
        if self.topic is None and (self.subscription is not None or "subscription_type" in self.model_fields_set):
            raise _bad(self, f"{'subscriptionType' if self.subscription is None else 'subscription'} is for a topic")
        if self.dedup != "window" and "dedup_window" in self.model_fields_set:
            raise _bad(self, "dedupWindow is for dedup=window")
        if self.dedup == "off" and "doubt_retention" in self.model_fields_set:
            raise _bad(self, "doubtRetention has no meaning with dedup=off")
        if self.subscription_type == "durable" and self.client_id is None:
            raise _bad(self, "subscriptionType=durable needs clientId")

    def check_staging(self) -> None:
        """Check what only a stream, or a load that consumes, needs; raises JMSException."""
        if self.staging_location is None:
            raise _bad(self, "stagingLocation is missing: messages are staged there before they are acknowledged")

    def check_stream(self) -> None:
        """Check what only ``spark.readStream`` needs; raises JMSException."""
        self.check_staging()
        for name, alias in (
            ("read_mode", "readMode"),
            ("load_id", "loadId"),
            ("max_messages", "maxMessages"),
            ("pushdown", "pushdown"),
        ):
            if name in self.model_fields_set:
                raise _bad(self, f"{alias} is for spark.read; a stream consumes, and maxMessagesPerBatch limits its batches")

    def check_load(self) -> None:
        """Check what only ``spark.read`` needs; raises JMSException."""
        if "max_messages_per_batch" in self.model_fields_set:
            raise _bad(self, "maxMessagesPerBatch is for a stream; maxMessages limits what spark.read reads")
        if self.read_mode == "browse":
            if self.load_id is not None:
                raise _bad(self, "loadId is for readMode=consume; browsing takes nothing")
            if self.queue is None:
                raise _bad(self, "readMode=browse is for a queue; a topic cannot be browsed")
            return
        self.check_staging()
        if self.pushdown:
            raise _bad(self, "pushdown is for readMode=browse: what is consumed must not depend on a query's plan; give selector")
        if self.load_id is None:
            raise _bad(self, "readMode=consume needs loadId: what a job has consumed when it crashes is found again by that name")

    @property
    def place(self) -> str:
        """Return where messages come from, and which of them; without secrets, which a URL has not."""
        by = f" by the subscription {self.subscription!r}" if self.subscription is not None else ""
        which = f" where {self.selector}" if self.selector is not None else ""
        return f"{super().place} at {self.url}{by}{which}"

    @property
    def claims(self) -> int:
        """Return how many claims may run at once."""
        return 1 if self.topic is not None and self.subscription_type == "durable" else self.parallelism


class SinkOptions(JmsOptions):
    """Options of ``writeStream`` and ``write``."""

    what: ClassVar[str] = "sink"

    delivery: Annotated[Literal["at-least-once", "exactly-once"], BeforeValidator(lower)] = option(
        "delivery",
        "at-least-once",
        "`at-least-once`, or `exactly-once`: tasks stage, one process sends; needs real transactions and `stagingLocation` "
        "(a stream's default is `jms-sink` in its `checkpointLocation`)",
    )
    sink_id: str | None = option(
        "sinkId",
        None,
        "Names the sink in the ledger and in duplicate ids; default: the query's own id, or `jobId`. Never another sink's",
        "",
        pattern=NAME,
    )
    ledger_queue: str | None = option(
        "ledgerQueue",
        None,
        "Queue of the token of `exactly-once`, for it alone: nothing may expire there; default: `jmsapi.ledger.<sinkId>`",
        "",
        min_length=1,
    )
    job_id: str | None = option(
        "jobId",
        None,
        "`write` only: names a job; run again under the same name, it continues and does not repeat (`exactly-once`)",
        "",
        pattern=NAME,
    )
    duplicate_id_property: str | None = option(
        "duplicateIdProperty",
        None,
        "Property for a broker that drops duplicates, such as Artemis' `_AMQ_DUPL_ID`: from the column `duplicate_id`, else from "
        "sink, batch, partition and row",
        "",
        pattern=r"^[A-Za-z_$][A-Za-z0-9_$]*$",
    )
    other_columns: Annotated[Literal["refuse", "properties", "json"], BeforeValidator(lower)] = option(
        "otherColumns",
        "refuse",
        "Columns that the sink does not know: `refuse`; `properties`: each is a property; `json`: together they are the body",
    )
    dead_letter_queue: str | None = option(
        "deadLetterQueue",
        None,
        "Queue for rows that cannot be messages, as JSON with the property `jmsapi_error`; without it they fail the write",
        "",
        min_length=1,
    )
    transaction_messages: int = option(
        "transactionMessages",
        1000,
        "Messages of a JMS transaction, 1 to 100000; a broker without them confirms each message",
        ge=1,
        le=100_000,
    )
    delivery_mode: Annotated[Literal["persistent", "non-persistent"], BeforeValidator(lower)] = option(
        "deliveryMode", "persistent", "`persistent` or `non-persistent`; a column `delivery_mode` wins"
    )
    priority: int = option("priority", 4, "0 to 9; a column `priority` wins", ge=0, le=9)
    time_to_live: Duration = option("timeToLive", 0, "Life of a message, 0 for ever; a column `time_to_live` (ms) wins", "0ms")
    delivery_delay: Duration = option("deliveryDelay", 0, "Delay of delivery; a column `delivery_delay` (ms) wins", "0ms")

    def check_queues(self) -> None:
        """Check that dead letters and the ledger do not come where the rows go, or each other; raises JMSException."""
        self._check_name("deadLetterQueue", self.dead_letter_queue)
        self._check_name("ledgerQueue", self.ledger_queue)
        if self.dead_letter_queue is not None and self.dead_letter_queue == self.queue:
            raise _bad(self, "deadLetterQueue is the queue that the rows go to")
        if self.ledger_queue is not None and not self.once:
            raise _bad(self, "ledgerQueue is for delivery=exactly-once")
        name = self.sink_id or self.job_id
        ledger = self.ledger_queue or (f"{LEDGER}{name}" if self.once and name is not None else None)
        if ledger is not None and ledger in (self.queue, self.dead_letter_queue):
            raise _bad(self, "the ledger needs a queue for itself, and rows or dead letters go there: give another ledgerQueue")

    @property
    def once(self) -> bool:
        """Tell whether each row is sent once."""
        return self.delivery == "exactly-once"

    def check(self) -> None:
        """Check the options of a sink; raises JMSException."""
        super().check()
        self.check_queues()
        name = self.duplicate_id_property or ""
        if name.startswith("JMS") and not name.startswith("JMS_"):
            raise _bad(self, "duplicateIdProperty begins with JMS, and JMS keeps such names to itself")
        if name:
            try:
                compile_selector(f"{name} IS NULL")
            except InvalidSelectorException:
                raise _bad(self, "duplicateIdProperty is a word of selectors, which no property can have for its name") from None
        if self.once and self.staging_location is None:
            raise _bad(self, "stagingLocation is missing: delivery=exactly-once stages rows before it sends them")

    def check_stream(self) -> None:
        """Check what only a stream needs; raises JMSException."""
        if self.job_id is not None:
            raise _bad(self, "jobId is for write; a stream goes on by its checkpoint")

    def check_job(self) -> None:
        """Check what only ``write`` needs; raises JMSException."""
        if self.once and self.job_id is None:
            raise _bad(self, "delivery=exactly-once needs jobId: what a job has sent when it crashes is known by that name")


def read_options(kind: type[T], given: Mapping[str, str]) -> T:
    """Validate the options that Spark hands over.

    Args:
        kind: The table.
        given: Names in any case, values as text.
    Raises:
        JMSException: ``unknown-option`` with the nearest known name, or ``bad-option``; never with a value.
    Threads: any.
    """
    names = {field.alias.lower(): field.alias for field in kind.model_fields.values() if field.alias}
    values: dict[str, object] = {}
    extra: dict[str, str] = {}
    for name, value in given.items():
        key = name.lower()
        if key.startswith(("tls.", "provider.")):
            extra["tls_" + key[4:] if key.startswith("tls.") else key[9:]] = value
        elif key in names:
            values[names[key]] = value
        elif key not in _OF_SPARK:
            near = difflib.get_close_matches(key, names, n=1)
            hint = (
                f"; did you mean {_HINTS.get(key) or names[near[0]]}?"
                if near or key in _HINTS
                else f"; there are {', '.join(names.values())}, tls.*, provider.*"
            )
            raise JMSException(f"the jms {kind.what} knows no option {name!r}{hint}", "unknown-option")
    problems: list[str] = []
    try:
        options = kind.model_validate({**values, "extra": extra})
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_context=False, include_input=False):
            place = ".".join(map(str, detail["loc"]))
            problems.append(f"{place}: {'is missing' if detail['type'] == 'missing' else detail['msg']}")
    else:
        options.check()
        return options
    raise JMSException(f"the jms {kind.what}: {'; '.join(problems)}", "bad-option")


def read_stream_sink(given: Mapping[str, str]) -> SinkOptions:
    """Validate the options of a stream's sink; what it stages is by default beside its checkpoint.

    Args:
        given: As for ``read_options``, with Spark's ``checkpointLocation`` where it is an option of the query.
    Raises:
        JMSException: As ``read_options``.
    Threads: any.
    """
    values = {name.lower(): value for name, value in given.items()}
    checkpoint = values.get("checkpointlocation", "").rstrip("/")
    if checkpoint and values.get("delivery", "").strip().lower() == "exactly-once":
        # Hadoop writes a path as file:/place.
        place = checkpoint.removeprefix("file:") if _HADOOP_PATH.match(checkpoint) else checkpoint
        values.setdefault("staginglocation", f"{place}/jms-sink")
    options = read_options(SinkOptions, values)
    options.check_stream()
    return options


def documentation(kind: type[JmsOptions]) -> str:
    """Return the table of one kind's own options, in Markdown."""
    return "\n".join(["| option | default | meaning |", "|---|---|---|", *_rows(kind)])


def _rows(kind: type[JmsOptions]) -> Iterator[str]:
    inherited = {} if kind is JmsOptions else JmsOptions.model_fields
    for name, field in kind.model_fields.items():
        if name in inherited or field.alias is None:
            continue
        extra = cast("dict[str, str] | None", field.json_schema_extra)
        default = "required" if extra is None else extra["shown"]
        yield f"| `{field.alias}` | {f'`{default}`' if default not in ('', 'required') else default} | {field.description} |"


def _secret(text: str, what: str = "password") -> str:
    if text.startswith("env:"):
        found = os.environ.get(text[4:])
        if found is None:
            raise JMSException(f"{what}: the environment variable {text[4:]} is not set in this process", "missing-variable")
        return found
    if text.startswith("file:"):
        try:
            return Path(text[5:]).read_text(encoding="utf-8").rstrip("\r\n")
        except OSError as error:
            raise JMSException(f"{what}: the file {text[5:]} cannot be read: {error.strerror}", "missing-variable") from None
    return text


def _bad(options: JmsOptions, text: str) -> JMSException:
    return JMSException(f"the jms {options.what}: {text}", "bad-option")
