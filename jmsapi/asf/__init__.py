"""A ready-made pool of server sessions for connection consumers: a thread and a listener of its own for each.

    with factory.create_connection() as connection:
        with SampleServerSessionPool(connection, 4, OrderListener) as pool:
            consumer = connection.create_connection_consumer(queue, None, pool, 10)
            connection.start()

Any object with ``get_server_session`` can be a pool instead, and any with ``session`` and ``start`` a server session.

Spec: ASF-4, ASF-20 to ASF-46; the names are those of the sample that the requirements describe.
"""

from __future__ import annotations

from jmsapi.asf.sample import SampleServerSession, SampleServerSessionPool

__all__ = ["SampleServerSession", "SampleServerSessionPool"]
