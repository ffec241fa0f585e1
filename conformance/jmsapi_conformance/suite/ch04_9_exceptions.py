"""4.9 JMS exceptions."""

import jmsapi
from jmsapi import JMSException, JMSRuntimeException
from jmsapi_conformance.marks import requirement


@requirement("4.9-1")
def test_each_jms_exception_derives_from_exactly_one_of_the_two_bases() -> None:
    kinds = {name: kind for name, kind in vars(jmsapi).items() if isinstance(kind, type) and issubclass(kind, jmsapi.JMSError)}
    for name, kind in kinds.items():
        bases = [base for base in (JMSException, JMSRuntimeException) if issubclass(kind, base)]
        assert bases == ([] if name == "JMSError" else [JMSRuntimeException if "Runtime" in name else JMSException]), name
    checked = {
        *("IllegalState", "InvalidClientID", "InvalidDestination", "InvalidSelector", "JMSSecurity", "MessageEOF"),
        *("MessageFormat", "MessageNotReadable", "MessageNotWriteable", "ResourceAllocation", "TransactionInProgress"),
        "TransactionRolledBack",
    }
    assert {f"{name}Exception" for name in checked} <= set(kinds)
    unchecked = checked - {"MessageEOF", "MessageNotReadable"}
    assert {f"{name}RuntimeException" for name in unchecked} <= set(kinds)
