"""``jmsapi pipeline``: what a file may say, and one that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from jmsapi.cli import main

GOOD = """
[source]
url = "stomp://localhost:61613"
queue = "ORDERS"
username = "app"
password = "hunter2"
stagingLocation = "/data/orders-staging"

[transform]
sql = "SELECT text, properties['region'] AS region FROM messages"

[sink]
format = "parquet"
path = "/data/orders"
partitionBy = ["region"]

[run]
checkpoint = "/data/orders-checkpoint"
"""


def check(folder: Path, text: str) -> int:
    file = folder / "pipeline.toml"
    file.write_text(text, encoding="utf-8")
    return main(["pipeline", "check", str(file)])


def test_a_good_pipeline_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tmp_path, GOOD) == 0
    assert "ORDERS to parquet /data/orders, available-now" in capsys.readouterr().out


ONCE = """
format = "jms"
url = "amqp://localhost"
queue = "OUT"
delivery = "exactly-once"
"""


def test_a_pipeline_to_jms_stages_beside_its_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start, end = GOOD.index("format = "), GOOD.index("[run]")
    text = GOOD[:start] + ONCE + GOOD[end:]
    assert check(tmp_path, text) == 0
    assert check(tmp_path, text.replace("/data/orders-checkpoint", "hdfs://name/checkpoint")) == 1
    assert "a staging location cannot be on hdfs://" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('queue = "ORDERS"', 'quue = "ORDERS"', "did you mean queue"),
        ('stagingLocation = "/data/orders-staging"', "", "stagingLocation is missing"),
        ('stagingLocation = "/data/orders-staging"', 'stagingLocation = "data"', "not absolute"),
        ("FROM messages", "FROM orders", "reads nothing from the view messages"),
        ('format = "parquet"', 'format = "excel"', "sink.format"),
        ('path = "/data/orders"', "", "sink.path: is missing"),
        ('format = "parquet"', 'format = "jms"', "url"),
        ("[run]", '[run]\ntrigger = "sometimes"', "run.trigger"),
        ("[run]", '[run]\ntriger = "1 s"', "run.triger"),
        ('checkpoint = "/data/orders-checkpoint"', "", "run.checkpoint"),
        ("[source]", "[source", "pipeline.toml"),
        ('password = "hunter2"', 'password = "hunter2"\nleadMessages = 0', "leadMessages"),
    ],
)
def test_what_is_wrong_in_a_pipeline_is_said_without_running_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, text: str
) -> None:
    assert old in GOOD
    assert check(tmp_path, GOOD.replace(old, new, 1)) == 1
    told = capsys.readouterr().err
    assert text in told and "hunter2" not in told


def test_a_file_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "check", str(tmp_path / "none.toml")]) == 2
    assert "none.toml" in capsys.readouterr().err


@pytest.mark.parametrize(
    "file", sorted((Path(__file__).parents[2] / "examples" / "spark").glob("*.toml")), ids=lambda file: file.stem
)
def test_the_examples_are_good(file: Path) -> None:
    assert main(["pipeline", "check", str(file)]) == 0


def test_the_pipeline_of_the_documentation_is_good(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
    assert check(tmp_path, page.partition("```toml\n")[2].partition("```")[0]) == 0
