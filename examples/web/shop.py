"""A shop on the web: orders come by HTTP and go to a queue, a listener makes parcels of them, parcels are fetched by HTTP.

    pip install 'jmsapi' fastapi uvicorn
    JMSAPI_URL=inproc://shop uvicorn shop:app

- ``POST /orders`` sends by a context that is injected: one for each request, closed at its end.
- ``GET /parcels`` receives by a session that is borrowed from a pool.
- ``GET /health`` says how the listener is.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Response
from pydantic import BaseModel

import jmsapi
from jmsapi import JMSContext, Session
from jmsapi.injection import Injector
from jmsapi.listener import JMSListenerProperty, JMSQueueListener, MessageDrivenContext, deploy
from jmsapi.pool import SessionPool

ORDERS, PARCELS = "shop.orders", "shop.parcels"
factory = jmsapi.connection_factory(os.environ.get("JMSAPI_URL", "inproc://shop"))
pool = SessionPool(factory, sessions=20, connections=2)
injected = Depends(Injector(factory).dependency())


class Order(BaseModel):
    """What somebody wants."""

    item: str
    count: int = 1


@JMSQueueListener()
@JMSListenerProperty("destination", ORDERS)
@JMSListenerProperty("concurrency", "1-4")
@JMSListenerProperty("redeliveryLimit", "3")
@JMSListenerProperty("deadLetterDestination", f"{ORDERS}.dead")
def on_order(order: Order, container: MessageDrivenContext) -> None:
    """Make a parcel of an order: both are one transaction."""
    session = container.session
    with session.create_producer(session.create_queue(PARCELS)) as producer:
        producer.send(session.create_text_message(f"{order.count} x {order.item}"))


listeners = deploy(on_order, factory=factory, start=False)


@asynccontextmanager
async def life(_: FastAPI) -> AsyncGenerator[None]:
    """Run the listener while the application runs."""
    try:
        async with listeners:
            yield
    finally:
        # It waits for the broker, which the event loop must not.
        await asyncio.to_thread(pool.close)


app = FastAPI(lifespan=life)


# Plain functions: the framework runs them in threads, where they may wait.
@app.post("/orders", status_code=202)
def place(order: Order, jms: Annotated[JMSContext, injected]) -> dict[str, str | None]:
    """Take an order."""
    message = jms.create_text_message(order.model_dump_json())
    jms.create_producer().send(jms.create_queue(ORDERS), message)
    return {"id": message.jms_message_id}


@app.get("/parcels")
def fetch(wait_ms: int = 1000) -> str:
    """Hand out the next parcel, once: it is acknowledged when it is read."""
    with pool.session(Session.AUTO_ACKNOWLEDGE) as session:
        message = session.create_consumer(session.create_queue(PARCELS)).receive(max(1, wait_ms))
        if message is None:
            raise HTTPException(404, "there is no parcel")
        return str(message.get_body(str))


@app.get("/health")
def health(response: Response) -> dict[str, object]:
    """Say whether orders are handled, and if not, why."""
    found = listeners.health
    response.status_code = 200 if found.healthy else 503
    return {"healthy": found.healthy, "reasons": found.reasons}
