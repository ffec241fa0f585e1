"""Options every provider knows, as a pydantic model. A provider's own options subclass it.

Not imported by ``jmsapi.spi`` itself, so that pydantic is loaded only when a factory is configured.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, NonNegativeInt, PositiveInt, SecretStr

__all__ = ["ProviderOptions", "TlsOptions", "Words"]


def _words(value: object) -> object:
    if isinstance(value, str):
        return frozenset(word for word in value.replace(",", " ").split() if word)
    return value


Words = Annotated[frozenset[str], BeforeValidator(_words)]
"""A set of words; text is split at commas and blanks."""


class ProviderOptions(BaseModel):
    """What can be said of any connection. Times are milliseconds; names are those of URL parameters and of the config file."""

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
    connect_timeout_ms: PositiveInt = Field(default=15_000, description="Longest wait for a connection")
    request_timeout_ms: PositiveInt = Field(default=30_000, description="Longest wait for an answer of the broker")
    send_timeout_ms: PositiveInt = Field(default=30_000, description="Longest wait for a confirmed send, or for room to send")
    close_timeout_ms: PositiveInt = Field(default=15_000, description="Longest time close() may take")
    max_redeliveries: int = Field(
        default=6,
        ge=-1,
        description="A listener's failures after which a message goes to the dead letter queue; -1 never",
    )
    object_allow: Words = Field(
        default=frozenset(),
        description="Classes (module.Class) that an ObjectMessage may restore by pickle; empty: no pickle at all",
    )
    checked: bool = Field(default=False, description="Assert the provider contract on every call, for tests; slow")


class TlsOptions(ProviderOptions):
    """TLS settings of the wires that have it. Each check can be switched off by itself, which is logged."""

    host: str = Field(min_length=1, description="Host name or address")
    tls_ca: str | None = Field(default=None, description="File of trusted certificates (PEM); the system's when left out")
    tls_cert: str | None = Field(default=None, description="Client certificate (PEM)")
    tls_key: str | None = Field(default=None, description="Key of the client certificate (PEM)")
    tls_key_password: SecretStr | None = Field(default=None, description="Password of the key; never shown")
    tls_verify: bool = Field(default=True, description="Check the certificate chain")
    tls_verify_host: bool = Field(default=True, description="Check that the certificate names the host")
    vhost: str | None = Field(default=None, description="Virtual host of the broker")
