"""Numbers of the XA standard, and the exception that carries them.

What ``XAResource`` takes are flags, what it returns and raises are codes; their names and values are those of X/Open's ``xa.h``,
which JTA keeps. A provider of XA raises ``XAException``, an application or transaction manager looks at its ``xa_code``.

Spec: 8.3.3-2, 8.3.5-1, 8.3.5-2.
"""

from __future__ import annotations

from typing import Final

from jmsapi.errors import JMSException

__all__ = [
    "TMENDRSCAN",
    "TMFAIL",
    "TMJOIN",
    "TMNOFLAGS",
    "TMONEPHASE",
    "TMRESUME",
    "TMSTARTRSCAN",
    "TMSUCCESS",
    "TMSUSPEND",
    "XAER_ASYNC",
    "XAER_DUPID",
    "XAER_INVAL",
    "XAER_NOTA",
    "XAER_OUTSIDE",
    "XAER_PROTO",
    "XAER_RMERR",
    "XAER_RMFAIL",
    "XA_HEURCOM",
    "XA_HEURHAZ",
    "XA_HEURMIX",
    "XA_HEURRB",
    "XA_NOMIGRATE",
    "XA_OK",
    "XA_RBBASE",
    "XA_RBCOMMFAIL",
    "XA_RBDEADLOCK",
    "XA_RBEND",
    "XA_RBINTEGRITY",
    "XA_RBOTHER",
    "XA_RBPROTO",
    "XA_RBROLLBACK",
    "XA_RBTIMEOUT",
    "XA_RBTRANSIENT",
    "XA_RDONLY",
    "XA_RETRY",
    "XAException",
    "code_name",
]

TMNOFLAGS: Final = 0x00000000
TMJOIN: Final = 0x00200000
TMENDRSCAN: Final = 0x00800000
TMSTARTRSCAN: Final = 0x01000000
TMSUSPEND: Final = 0x02000000
TMSUCCESS: Final = 0x04000000
TMRESUME: Final = 0x08000000
TMFAIL: Final = 0x20000000
TMONEPHASE: Final = 0x40000000

XA_OK: Final = 0
XA_RDONLY: Final = 3
XA_RETRY: Final = 4
XA_HEURMIX: Final = 5
XA_HEURRB: Final = 6
XA_HEURCOM: Final = 7
XA_HEURHAZ: Final = 8
XA_NOMIGRATE: Final = 9
XA_RBBASE: Final = 100
XA_RBROLLBACK: Final = 100
XA_RBCOMMFAIL: Final = 101
XA_RBDEADLOCK: Final = 102
XA_RBINTEGRITY: Final = 103
XA_RBOTHER: Final = 104
XA_RBPROTO: Final = 105
XA_RBTIMEOUT: Final = 106
XA_RBTRANSIENT: Final = 107
XA_RBEND: Final = 107

XAER_ASYNC: Final = -2
XAER_RMERR: Final = -3
XAER_NOTA: Final = -4
XAER_INVAL: Final = -5
XAER_PROTO: Final = -6
XAER_RMFAIL: Final = -7
XAER_DUPID: Final = -8
XAER_OUTSIDE: Final = -9

_NOT_CODES: Final = frozenset({"XA_RBBASE", "XA_RBEND"})
_NAMES: Final[dict[int, str]] = {
    value: name for name, value in list(globals().items()) if name.startswith(("XA_", "XAER_")) and name not in _NOT_CODES
}


def code_name(code: int) -> str:
    """Return the name of a code, such as ``XAER_NOTA``; its digits if it has none."""
    return _NAMES.get(code, str(code))


class XAException(JMSException):
    """A call of an ``XAResource`` failed, or the branch was rolled back.

    Args:
        reason: What was asked, what is so, what to do.
        xa_code: One of the ``XA_`` and ``XAER_`` numbers.
    Spec: 8.3.5-1.
    """

    def __init__(self, reason: str, xa_code: int) -> None:
        super().__init__(f"{reason} ({code_name(xa_code)})", error_code="xa")
        self.xa_code = xa_code

    @property
    def rolled_back(self) -> bool:
        """Whether the branch was rolled back: one of the ``XA_RB`` codes."""
        return XA_RBBASE <= self.xa_code <= XA_RBEND
