"""4.4.8 Distributed transactions."""

from jmsapi import ConnectionFactory, XAConnectionFactory
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.marks import requirement


@requirement("4.4.8-1", "B.4.5.2-3")
def test_distributed_transactions_come_through_the_xa_interfaces_or_not_at_all(
    backend: Backend, factory: ConnectionFactory
) -> None:
    if not backend.capabilities.xa:
        assert not isinstance(factory, XAConnectionFactory)
        return
    assert isinstance(factory, XAConnectionFactory)
    with factory.create_xa_connection() as connection:
        assert connection.create_xa_session().xa_resource is not None
