"""The shop on the web with ``jmsapi.aio``: everything runs in the event loop, and nothing in it blocks.

    pip install 'jmsapi' fastapi uvicorn
    JMSAPI_URL=inproc://shop uvicorn async_shop:app

- ``POST /orders`` sends; all requests share one context, since several tasks may send with it at once.
- A task packs a parcel for each order, with a context of its own, and acknowledges what it has packed.
- ``GET /parcels`` waits for a parcel, which takes no thread.
- ``GET /health`` says whether orders are packed.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Request, Response
from pydantic import BaseModel, ValidationError

import jmsapi.aio
from jmsapi import JMSRuntimeException, MessageFormatException
from jmsapi.aio import AsyncJMSContext

ORDERS, PARCELS = "async-shop.orders", "async-shop.parcels"
# Whoever fetches a parcel takes one from the broker and leaves the others to those who ask at the same time.
factory = jmsapi.aio.connection_factory(os.environ.get("JMSAPI_URL", "inproc://async-shop"), prefetch=1)
log = logging.getLogger("shop")


class ShopOrder(BaseModel):
    """What somebody wants."""

    item: str
    count: int = 1


async def pack(shared: AsyncJMSContext) -> None:
    """Make a parcel of each order: it is sent before the order is acknowledged, so none is lost."""
    async with shared.create_context(AsyncJMSContext.CLIENT_ACKNOWLEDGE) as context:
        producer, parcels = context.create_producer(), context.create_queue(PARCELS)
        async for message in await context.create_consumer(context.create_queue(ORDERS)):
            try:
                order = ShopOrder.model_validate_json(message.get_body(str) or "")
            except (ValidationError, MessageFormatException):
                log.warning("message %s is no order", message.jms_message_id)
            else:
                await producer.send(parcels, f"{order.count} x {order.item}")
            await context.acknowledge()


async def keep_packing(shared: AsyncJMSContext) -> None:
    """Begin again when the broker has ended a consumer."""
    while True:
        try:
            await pack(shared)
        except JMSRuntimeException:
            log.exception("packing goes on in a second")
            await asyncio.sleep(1)


@asynccontextmanager
async def life(app: FastAPI) -> AsyncGenerator[None]:
    """Connect, and pack while the application runs."""
    async with factory.create_context() as context, asyncio.TaskGroup() as tasks:
        app.state.jms = context
        app.state.packing = tasks.create_task(keep_packing(context))
        try:
            yield
        finally:
            app.state.packing.cancel()


app = FastAPI(lifespan=life)


@app.post("/orders", status_code=202)
async def place(order: ShopOrder, request: Request) -> dict[str, str | None]:
    """Take an order."""
    context: AsyncJMSContext = request.app.state.jms
    message = context.create_text_message(order.model_dump_json())
    await context.create_producer().send(context.create_queue(ORDERS), message)
    return {"id": message.jms_message_id}


@app.get("/parcels")
async def fetch(request: Request, wait_ms: int = 1000) -> str:
    """Hand out the next parcel, once: it is acknowledged when it is read."""
    shared: AsyncJMSContext = request.app.state.jms
    async with shared.create_context(AsyncJMSContext.AUTO_ACKNOWLEDGE) as context:
        consumer = await context.create_consumer(context.create_queue(PARCELS))
        parcel = await consumer.receive_body(str, max(1, wait_ms))
    if parcel is None:
        raise HTTPException(404, "there is no parcel")
    return parcel


@app.get("/health")
async def health(request: Request, response: Response) -> dict[str, bool]:
    """Say whether orders are packed."""
    packing: asyncio.Task[None] = request.app.state.packing
    response.status_code = 503 if packing.done() else 200
    return {"packing": not packing.done()}
