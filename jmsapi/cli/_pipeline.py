"""``jmsapi pipeline``: run or check a pipeline on Spark from a file."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated, Any

import typer

from jmsapi.cli._directory import JsonOption
from jmsapi.cli._terminal import say, say_json, tell
from jmsapi.errors import JMSException

__all__ = ["app"]

app = typer.Typer(help="Read from JMS, transform by SQL, write to files or to JMS; on Spark.", no_args_is_help=True)
FileArgument = Annotated[
    Path, typer.Argument(metavar="PIPELINE.TOML", exists=True, dir_okay=False, help="The pipeline; see docs/spark.md.")
]


@app.command("check")
def check(file: FileArgument, as_json: JsonOption = False) -> None:
    """Check a pipeline: every option of source and sink. Connects to nothing."""
    from jmsapi.spark.pipeline import read_pipeline

    pipeline = read_pipeline(file)
    source = pipeline.source.get("queue") or pipeline.source.get("topic")
    target = (
        pipeline.sink.path or pipeline.sink_options().get("queue") or pipeline.sink_options().get("topic") or "destination column"
    )
    if as_json:
        say_json({"source": source, "format": pipeline.sink.format, "target": target, "trigger": pipeline.run.trigger})
    else:
        say(f"{file}: {source} to {pipeline.sink.format} {target}, {pipeline.run.trigger}")


@app.command("run")
def run(file: FileArgument) -> None:
    """Run a pipeline until nothing is left, or with an interval until it is interrupted. A line tells of each batch."""
    from jmsapi.spark.pipeline import read_pipeline, run_pipeline, session_for

    pipeline = read_pipeline(file)
    try:
        spark = session_for(pipeline)
    except ModuleNotFoundError as error:
        raise JMSException(f"a pipeline needs {error.name}: pip install 'jmsapi[spark]'", "missing-extra") from error
    stop = False

    def interrupted(number: int, frame: Any) -> None:
        nonlocal stop
        if stop:
            raise KeyboardInterrupt
        stop = True
        tell("stopping; once more to stop at once")

    before = {number: signal.signal(number, interrupted) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        rows = run_pipeline(pipeline, spark, say, lambda: stop)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        spark.stop()
    say(f"{rows} rows")
