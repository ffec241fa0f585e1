"""A server of Spark Connect on a port of this machine: says which on its first line, and ends with its input."""

from __future__ import annotations

import sys
from pathlib import Path

from spark_session import end_session, new_session


def main(place: Path) -> None:
    """Serve.

    Args:
        place: All that Spark writes goes there.
    """
    session = new_session(
        place,
        {
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
        },
    )
    service = getattr(session._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    print(service.__getattr__("MODULE$").localPort(), flush=True)
    sys.stdin.read()
    end_session(session)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
