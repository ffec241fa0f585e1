"""The annotation ``JMSPasswordCredential``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from jmsapi.api._annotation import annotate

__all__ = ["JMSPasswordCredential"]

_Target = TypeVar("_Target")


@dataclass(frozen=True, slots=True, kw_only=True)
class JMSPasswordCredential:
    """Says with which name and password an injected context signs in; printing it does not show the password.

    It decorates a class or function, or stands in ``Annotated[JMSContext, JMSPasswordCredential(...)]``.

    Args:
        user_name: Name to sign in with.
        password: The password, or ``${ALIAS=name}`` for one that is kept elsewhere.
    Threads: any number at once; it is frozen.
    Spec: 11.3.3-4, 11.3.3-5.
    """

    user_name: str
    password: str = field(repr=False)

    def __call__(self, target: _Target) -> _Target:
        """Decorate a class or function and give it back.

        Raises:
            TypeError: The target is neither.
        """
        annotate(target, self)
        return target
