"""Opening and ending AMQP sessions and links. Runs on the I/O thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from jmsapi.spi import Address, ErrorKind, ProviderError
from jmsapi_amqp import engine
from jmsapi_amqp.codec import Described, Symbol, encode_value
from jmsapi_amqp.codec.types import ULong
from jmsapi_amqp.context import ConnectionContext
from jmsapi_amqp.draining import drain_answered
from jmsapi_amqp.engine import Pointer
from jmsapi_amqp.links import ReceiverLink, SenderLink, WireSession

__all__ = [
    "Source",
    "Target",
    "attach_receiver",
    "attach_sender",
    "end_link",
    "end_session",
    "leave_session",
    "open_wire_session",
    "session_with_room",
]

_WINDOW: Final = 0x7FFF_0000
"""The session's window in bytes: link credit alone limits what comes."""
_OUTCOMES: Final = engine.symbols(("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list"))
_PAIRED: Final = encode_value({Symbol("paired"): True})
_SELECTOR: Final = ULong(0x0000_468C_0000_0004)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a receiver reads from."""

    address: str | None
    name: str = ""
    """The link's name; a new one when empty."""
    capabilities: tuple[str, ...] = ()
    selector: str | None = None
    durable: bool = False
    copy: bool = False
    browse: bool = False
    paired: bool = False
    """One of a pair of links with one name, both settled as they go (RabbitMQ's management)."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a sender sends to."""

    address: str | None
    capabilities: tuple[str, ...] = ()
    dynamic: bool = False
    coordinator: bool = False
    name: str = ""
    """The link's name; a new one when empty."""
    paired: bool = False


def open_wire_session(context: ConnectionContext) -> WireSession:
    """Begin an AMQP session, or take an idle one; what is opened on it is pipelined behind.

    Raises:
        ProviderError: RESOURCE; both sides allow no more of them.
    """
    if context.link_lost is not None:
        raise context.link_lost
    while context.idle_sessions:
        idle = context.idle_sessions.pop()
        if idle.pointer is not None:
            idle.users = 1
            return idle
    most = engine.transport_channel_max(context.traffic.transport) + 1
    if len(context.sessions) + len(context.ending) >= most:
        raise ProviderError(ErrorKind.RESOURCE, f"the broker allows no more than {most} sessions of a connection")
    pointer = engine.new_session(context.engine_connection)
    engine.session_set_incoming_capacity(pointer, _WINDOW)
    engine.session_open(pointer)
    session = WireSession(pointer)
    context.sessions[pointer] = session
    return session


def session_with_room(context: ConnectionContext, session: WireSession | None) -> tuple[WireSession, bool]:
    """Return a session for one more link, and whether the link holds a use of it, to be given up by ``leave_session``.

    That is the session itself, or where it has as many links as the broker allows, one that such links share.
    """
    most = context.behaviour.max_links
    if session is not None and (most is None or len(session.links) < most):
        return session, False
    for other in context.further_sessions:
        if other.pointer is not None and (most is None or other.users < most):
            other.users += 1
            return other, True
    further = open_wire_session(context)
    context.further_sessions.append(further)
    return further, True


def leave_session(context: ConnectionContext, session: WireSession) -> None:
    """Give up a link's use of a session, which ends with the last one."""
    session.users -= 1
    if session.users == 0:
        if session in context.further_sessions:
            context.further_sessions.remove(session)
        end_session(context, session)


def _pointer(context: ConnectionContext, session: WireSession, asked: str) -> Pointer:
    if context.link_lost is not None:
        raise context.link_lost
    if session.pointer is None:
        raise ProviderError(ErrorKind.CLOSED, f"{asked}: the session has ended")
    most = context.behaviour.max_links
    if most is not None and len(session.links) >= most:
        raise ProviderError(ErrorKind.RESOURCE, f"{asked}: the session has {most} links, and the broker allows no more")
    return session.pointer


async def attach_receiver(
    context: ConnectionContext, session: WireSession, source: Source, near: Address, asked: str
) -> ReceiverLink:
    """Attach a receiver and wait for the broker's answer.

    Raises:
        ProviderError: The broker refused it.
    """
    parent = _pointer(context, session, asked)
    pointer = engine.new_receiver(parent, source.name or f"jmsapi:r:{uuid4()}")
    terminus = engine.link_source(pointer)
    if source.address is None:
        engine.terminus_set_type(terminus, engine.TERMINUS_NONE)
    else:
        engine.terminus_set_address(terminus, source.address)
        engine.write_data(engine.terminus_outcomes(terminus), _OUTCOMES)
        if source.durable:
            engine.terminus_set_durability(terminus, engine.DURABLE_STATE)
            engine.terminus_set_expiry(terminus, engine.EXPIRE_NEVER)
        else:
            engine.terminus_set_expiry(terminus, engine.EXPIRE_WITH_LINK)
        if source.copy or source.browse:
            engine.terminus_set_mode(terminus, engine.MODE_COPY)
        if source.capabilities:
            engine.write_data(engine.terminus_capabilities(terminus), engine.symbols(source.capabilities))
        if source.selector is not None:
            entry = {Symbol("jms-selector"): Described(_SELECTOR, source.selector)}
            engine.write_data(engine.terminus_filter(terminus), encode_value(entry))
    engine.link_set_snd_settle_mode(pointer, engine.SND_SETTLED if source.browse or source.paired else engine.SND_UNSETTLED)
    if source.paired:
        engine.write_data(engine.link_properties(pointer), _PAIRED)
    engine.link_set_rcv_settle_mode(pointer, engine.RCV_FIRST)
    context.traffic.serial += 1
    link = ReceiverLink(context.traffic, context.traffic.serial, pointer, session, asked, near)
    link.has_selector = source.selector is not None
    link.keeps = source.durable
    link.browse = source.browse
    link.window = context.behaviour.credit_window
    await _attach(context, link, pointer)
    return link


async def attach_sender(context: ConnectionContext, session: WireSession, target: Target, asked: str) -> SenderLink:
    """Attach a sender and wait for the broker's answer.

    Raises:
        ProviderError: The broker refused it.
    """
    parent = _pointer(context, session, asked)
    pointer = engine.new_sender(parent, target.name or f"jmsapi:{'t' if target.dynamic else 's'}:{uuid4()}")
    terminus = engine.link_target(pointer)
    if target.coordinator:
        engine.terminus_set_type(terminus, engine.TERMINUS_COORDINATOR)
    elif target.dynamic:
        engine.terminus_set_dynamic(terminus, True)
        engine.terminus_set_expiry(terminus, engine.EXPIRE_WITH_LINK)
        policy = Described(ULong(0x2B), [])  # delete-on-close
        engine.write_data(engine.terminus_properties(terminus), encode_value({Symbol("lifetime-policy"): policy}))
    elif target.address is not None:
        engine.terminus_set_address(terminus, target.address)
    if target.capabilities:
        engine.write_data(engine.terminus_capabilities(terminus), engine.symbols(target.capabilities))
    engine.link_set_snd_settle_mode(pointer, engine.SND_SETTLED if target.paired else engine.SND_UNSETTLED)
    engine.link_set_rcv_settle_mode(pointer, engine.RCV_FIRST)
    if target.paired:
        engine.write_data(engine.link_properties(pointer), _PAIRED)
    context.traffic.serial += 1
    link = SenderLink(context.traffic, context.traffic.serial, pointer, session, asked)
    link.settles = target.paired
    link.anonymous = target.address is None
    await _attach(context, link, pointer)
    return link


async def _attach(context: ConnectionContext, link: SenderLink | ReceiverLink, pointer: Pointer) -> None:
    context.links[pointer] = link
    context.by_number[link.number] = link
    link.session.links[link.number] = link
    engine.link_open(pointer)
    await link.opened


async def end_link(context: ConnectionContext, link: SenderLink | ReceiverLink, *, delete: bool = False) -> None:
    """End a link and wait until the broker has confirmed it.

    Args:
        context: Whose link.
        link: Which; nothing happens when it has ended already.
        delete: Close even a durable subscription's link, which deletes the subscription.
    """
    pointer = link.pointer
    if pointer is None:
        return
    if isinstance(link, ReceiverLink) and link.draining and not link.leaving:
        await drain_answered(context, link)
        pointer = link.pointer
    if not link.leaving and pointer is not None:
        if isinstance(link, ReceiverLink):
            link.leave(give_back=not context.behaviour.returns_at_once)
        link.leaving = True
        if link.keeps and not delete:
            engine.link_detach(pointer)
        else:
            engine.link_close(pointer)
    await link.closed
    if link.own_session:
        # Once, though its consumer and its session may be released at the same time: by now it may be somebody else's.
        link.own_session = False
        leave_session(context, link.session)


def end_session(context: ConnectionContext, session: WireSession) -> None:
    """End an AMQP session with what is left on it; nobody waits for the broker's word."""
    pointer = session.pointer
    if pointer is None:
        return
    if not session.opened.done:
        # proton takes the answer to a begin for a fault of the peer when the session is gone by then.
        session.opened.when_done(lambda: end_session(context, session))
        return
    for link in session.links.values():
        if not link.opened.done:
            # Artemis 2.56.0 frees a link twice that it opens when its session has ended, and then writes nothing more.
            link.opened.when_done(lambda: end_session(context, session))
            return
    if context.behaviour.keeps_sessions and not session.links:
        context.idle_sessions.append(session)
        return
    session.pointer = None
    context.sessions.pop(pointer, None)
    for link in list(session.links.values()):
        context.forget(link)
        link.end(ProviderError(ErrorKind.CLOSED, f"{link.asked}: the session is closed"))
    engine.session_close(pointer)
    context.ending.add(pointer)
