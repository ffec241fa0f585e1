"""Connections that are made again when they are lost, for ``failover:`` URLs.

``connection`` is the provider interface, ``lifecycle`` makes links and notices their loss, ``state`` is what the parts share,
``epoch`` is one link, ``records`` are the handles that outlive it. ``requests``, ``pending_sends``, ``restoring`` and
``temporary_destinations`` carry over a break what was asked for, sent, opened and created.
"""

from jmsapi._emulation.reconnecting.connection import Reconnecting
from jmsapi._emulation.reconnecting.lifecycle import AttemptObserver

__all__ = ["AttemptObserver", "Reconnecting"]
