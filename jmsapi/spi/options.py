"""Options every provider knows, as a pydantic model. A provider's own options subclass it.

Not imported by ``jmsapi.spi`` itself, so that pydantic is loaded only when a factory is configured.
"""

from __future__ import annotations

from typing import Annotated, Final, Self, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    SecretStr,
    SerializeAsAny,
    model_validator,
)

__all__ = ["FailoverOptions", "Milliseconds", "PositiveMilliseconds", "ProviderOptions", "TlsOptions", "Words"]

_LONGEST_MS: Final = 1_000_000_000_000
"""Some thirty years; no clock of the system waits longer than three hundred."""


def _words(value: object) -> object:
    if isinstance(value, str):
        return frozenset(word for word in value.replace(",", " ").split() if word)
    return value


Words = Annotated[frozenset[str], BeforeValidator(_words)]
"""A set of words; text is split at commas and blanks."""

Milliseconds = Annotated[int, Field(ge=0, le=_LONGEST_MS)]
"""A time that a clock can wait."""
PositiveMilliseconds = Annotated[int, Field(gt=0, le=_LONGEST_MS)]
"""The same, and not none at all."""


class ProviderOptions(BaseModel):
    """The options of any connection. Times are milliseconds; names are those of URL parameters and of the config file."""

    # An error's text must not quote what was given: it may be a password in the wrong place.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    scheme: str = Field(description="URL scheme; picks the provider")
    host: str = Field(default="", description="Host name or address; for inproc the broker's name")
    port: int | None = Field(default=None, ge=0, le=65535, description="TCP port; the wire's own default when left out")
    path: str = Field(default="", description="Path of the URL, without its leading slash")
    user: str | None = Field(default=None, repr=False, description="User name; never shown")
    password: SecretStr | None = Field(default=None, description="Password; never shown")
    client_id: str | None = Field(default=None, min_length=1, description="JMS client identifier of every connection")
    emulate: Words = Field(default=frozenset(), description="Weaker emulations asked for by name, separated by commas")
    prefetch: NonNegativeInt = Field(default=1000, description="Messages a consumer may hold ahead; 0 fetches one per receive")
    max_unacknowledged: PositiveInt | None = Field(
        default=None, description="The most messages a consumer may have waiting and unacknowledged; more come when some are"
    )
    max_in_flight: PositiveInt = Field(default=1000, description="Unanswered sends of a connection; the next one waits")
    connect_timeout_ms: PositiveMilliseconds = Field(default=15_000, description="Longest wait for a connection")
    request_timeout_ms: PositiveMilliseconds = Field(default=30_000, description="Longest wait for an answer of the broker")
    send_timeout_ms: PositiveMilliseconds = Field(
        default=30_000, description="Longest wait for a confirmed send, or for room to send"
    )
    close_timeout_ms: PositiveMilliseconds = Field(default=15_000, description="Longest time close() may take")
    max_redeliveries: int = Field(
        default=6,
        ge=-1,
        description="Failures after which a message goes to the dead letter queue; -1 never",
    )
    redelivery_delay_ms: Milliseconds = Field(
        default=1_000,
        description="Longest wait of recover() and rollback() on a message that fails again and again; 0: none",
    )
    object_allow: Words = Field(
        default=frozenset(),
        description="Classes (module.Class) that an ObjectMessage may restore by pickle; see docs/objects.md. Empty: none",
    )
    user_id: bool = Field(default=True, description="Messages bear the user name as JMSXUserID")
    local_expiry: bool | None = Field(
        default=None,
        description="Discard what has expired by this machine's clock; left out: only where the broker expires nothing by itself",
    )
    telemetry: bool | None = Field(
        default=None,
        description="Watch by OpenTelemetry: true or false; left out: if jmsapi.otel.instrument() was called before connecting",
    )
    checked: bool = Field(default=False, description="Assert the provider contract on every call, for tests; slow")

    failover: FailoverOptions | None = Field(
        default=None, description="How a lost link is made again; None: it is not. From a failover: URL, never from an option"
    )

    @property
    def silence_ms(self) -> int:
        """How long this wire's peer may be silent before it is taken for dead; 0 when nobody watches."""
        return 0

    def having(self, **changes: object) -> Self:
        """Return a copy with some fields changed, for every server of a failover list too.

        Args:
            changes: Fields by name, already of the right type.
        """
        changed = self.model_copy(update=changes)
        if self.failover is None:
            return changed
        servers = tuple(server.model_copy(update=changes) for server in self.failover.servers)
        return changed.model_copy(update={"failover": self.failover.model_copy(update={"servers": servers})})


class FailoverOptions(BaseModel):
    """How a lost link is made again: the options of ``failover:(url,url)?...``. Java's names are those of Qpid JMS.

    Times are milliseconds. One attempt tries each server of the list once.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, populate_by_name=True)

    servers: tuple[SerializeAsAny[ProviderOptions], ...] = Field(default=(), description="The servers, in the order of the list")
    max_reconnect_attempts: int = Field(
        default=-1,
        ge=-1,
        alias="maxReconnectAttempts",
        description="Attempts after a lost link; -1 no end, 0 none",
    )
    startup_max_reconnect_attempts: int = Field(
        default=-1,
        ge=-1,
        alias="startupMaxReconnectAttempts",
        description="The same for the first link of a connection; -1: as maxReconnectAttempts",
    )
    startup_timeout_ms: PositiveMilliseconds = Field(
        default=60_000, alias="startupTimeout", description="Longest time that create_connection may take, all attempts together"
    )
    initial_reconnect_delay_ms: Milliseconds = Field(
        default=0, alias="initialReconnectDelay", description="Wait before the first attempt after a lost link"
    )
    reconnect_delay_ms: Milliseconds = Field(default=10, alias="reconnectDelay", description="Wait before the second attempt")
    max_reconnect_delay_ms: PositiveMilliseconds = Field(
        default=30_000, alias="maxReconnectDelay", description="Longest wait between two attempts"
    )
    use_reconnect_back_off: bool = Field(
        default=True, alias="useReconnectBackOff", description="Let the wait grow from attempt to attempt"
    )
    reconnect_back_off_multiplier: float = Field(
        default=2.0, ge=1.0, le=1000.0, alias="reconnectBackOffMultiplier", description="By how much the wait grows"
    )
    jitter: float = Field(
        default=0.1, ge=0.0, le=1.0, description="Chance in each wait, as a part of it, so that clients do not come all at once"
    )
    randomize: bool = Field(default=False, description="Try the servers in an order of chance")
    client_id_grace_ms: Milliseconds | None = Field(
        default=None,
        alias="clientIdGrace",
        description="How long our own dead link may still hold the client id or a durable subscription; "
        "left out: twice the heart-beat",
    )
    resend_unconfirmed: bool = Field(
        default=False,
        alias="resendUnconfirmed",
        description="Send again what was not confirmed when the link was lost, marked; left out: it fails as in doubt",
    )
    recreate_temporary: bool = Field(
        default=False,
        alias="recreateTemporary",
        description="Make temporary destinations again under the same objects; left out: they are gone",
    )


class TlsOptions(ProviderOptions):
    """TLS settings of the wires that have it. Each check can be switched off by itself, which is logged."""

    host: str = Field(min_length=1, description="Host name or address")
    tls_ca: str | None = Field(default=None, description="File of trusted certificates (PEM); the system's when left out")
    tls_cert: str | None = Field(default=None, description="Client certificate (PEM)")
    tls_key: str | None = Field(default=None, description="Key of the client certificate (PEM)")
    tls_key_password: SecretStr | None = Field(default=None, description="Password of the key; never shown")
    tls_verify: bool = Field(default=True, description="Check the certificate chain")
    tls_verify_host: bool = Field(default=True, description="Check that the certificate names the host")
    vhost: str | None = Field(
        default=None, description="Virtual host of the broker; the path of the URL is another way to name it"
    )

    @model_validator(mode="before")
    @classmethod
    def _path_is_the_virtual_host(cls, given: object) -> object:
        """Let the path name the virtual host, by RabbitMQ's rule for URIs; ``amqp://host/%2F`` means the one called ``/``."""
        if not isinstance(given, dict):
            return given
        fields = cast("dict[str, object]", given)
        path, vhost = fields.get("path"), fields.get("vhost")
        if not path:
            return fields
        if vhost is not None and vhost != path:
            raise ValueError("the path of the URL and the option vhost name two virtual hosts")
        return {**fields, "vhost": path}


ProviderOptions.model_rebuild()
TlsOptions.model_rebuild()
