"""Start, kill, restart and find the real brokers that tests and certification runs need.

with launch("artemis") as broker:
    print(broker.version, broker.url("amqp"))
    broker.kill()
    broker.restart()
"""

from ._broker import Broker
from ._kinds import INFO, KINDS, BrokerKind, How, KindInfo, LauncherError, Wire
from ._launch import BrokerUnavailable, LaunchHow, available, found, launch, leased_folder, shared

__all__ = [
    "INFO",
    "KINDS",
    "Broker",
    "BrokerKind",
    "BrokerUnavailable",
    "How",
    "KindInfo",
    "LaunchHow",
    "LauncherError",
    "Wire",
    "available",
    "found",
    "launch",
    "leased_folder",
    "shared",
]
