"""The page's example and those in ``examples/spark``, run as they stand but for where they read and write."""

from __future__ import annotations

import json
import re
import runpy
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import jmsapi
from jmsapi.testing import LoopbackServer

from .conftest import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "spark"


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Look for no leaks: the sockets of this process belong to Spark's gateway."""
    yield


@pytest.fixture
def loopback_place() -> Iterator[Place]:
    """Give a queue on a loopback server, which asks for credentials."""
    with LoopbackServer(user="spark", password="se:cret") as server:
        yield Place(server.url.replace("//", "//spark:se:cret@"), None)  # type: ignore[arg-type]


@pytest.fixture(params=["loopback", pytest.param("classic", marks=pytest.mark.broker)])
def anywhere(request: pytest.FixtureRequest) -> Place:
    """Give a queue on the loopback server, then one on Classic."""
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found


def changed(source: str, *changes: tuple[str, str]) -> str:
    """Change what must be there."""
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    return source


def test_the_ten_line_example_of_the_page_runs(spark: SparkSession, anywhere: Place, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert example is not None
    options = anywhere.options
    source = changed(
        example[1],
        ('"stomp://localhost:61613"', repr(options["url"])),
        (
            '.option("queue", "ORDERS")',
            f".options(username={anywhere.user!r}, password={anywhere.password!r}, queue={anywhere.queue!r})",
        ),
        ("/data/", f"{tmp_path}/"),
    )
    program = tmp_path / "program.py"
    program.write_text(source, encoding="utf-8")
    anywhere.send("kettle", "pot", region="EU")
    query = runpy.run_path(str(program))["query"]
    try:
        anywhere.send("pan", region="US")
        query.processAllAvailable()
    finally:
        query.stop()
    rows = spark.read.parquet(str(tmp_path / "orders")).collect()
    assert sorted((row.text, row.region) for row in rows) == [("kettle", "EU"), ("pan", "US"), ("pot", "EU")]
    assert all(row.message_id.startswith("ID:") and row.timestamp is not None for row in rows)
    assert anywhere.left() == []


def secret(place: Place, folder: Path) -> str:
    """Write a place's password to a file and say where: Spark's processes have the environment that they began with."""
    file = folder / f"password-{place.queue}"
    file.write_text(place.password, encoding="utf-8")
    return f"file:{file}"


def run_example(name: str, folder: Path, spark: SparkSession, *changes: tuple[str, str]) -> int:
    """Run a pipeline of the examples with changes."""
    from jmsapi.spark.pipeline import read_pipeline, run_pipeline

    file = folder / name
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    file.write_text(changed(text, *changes), encoding="utf-8")
    return run_pipeline(read_pipeline(file), spark, lambda _: None)


def test_orders_go_to_a_lake_partitioned_by_day(spark: SparkSession, loopback_place: Place, tmp_path: Path) -> None:
    place = loopback_place
    changes = (
        ("env:ORDERS_PASSWORD", secret(place, tmp_path)),
        ("stomp://localhost:61613", place.options["url"]),
        ('queue = "ORDERS"', f'queue = "{place.queue}"'),
        ('username = "lake"', f'username = "{place.user}"'),
        ("/data/", f"{tmp_path}/"),
    )
    for round_ in ("first", "second"):  # the second run goes on where the first one ended
        place.send(*(f'{{"round": "{round_}", "order": {number}}}' for number in range(10)), region="EU")
        assert run_example("orders_to_lake.toml", tmp_path, spark, *changes) == 10
    rows = spark.read.parquet(str(tmp_path / "orders")).collect()
    assert sorted((json.loads(row.event)["round"], json.loads(row.event)["order"]) for row in rows) == [
        (round_, number) for round_ in ("first", "second") for number in range(10)
    ]
    assert {row.region for row in rows} == {"EU"}
    assert {folder.name for folder in (tmp_path / "orders").glob("day=*")} == {f"day={row.timestamp.date()}" for row in rows}
    assert place.left() == []


@pytest.mark.broker
def test_messages_cross_a_bridge_to_another_broker_with_kinds_and_properties_kept(
    spark: SparkSession, loopback_place: Place, artemis_place: Place, tmp_path: Path
) -> None:
    old, new = loopback_place, artemis_place
    old.send("an invoice", b"\0\xff", {"total": 12.5}, region="EU", number=7)
    read = run_example(
        "bridge.toml",
        tmp_path,
        spark,
        ("stomp://old-broker:61613", old.options["url"]),
        ("amqp://new-broker:5672", new.options["url"]),
        (
            'queue = "INVOICES"\nusername = "bridge"\npassword = "env:OLD',
            f'queue = "{old.queue}"\nusername = "{old.user}"\npassword = "env:OLD',
        ),
        (
            'queue = "INVOICES"\nusername = "bridge"\npassword = "env:NEW',
            f'queue = "{new.queue}"\nusername = "{new.user}"\npassword = "env:NEW',
        ),
        ("env:OLD_PASSWORD", secret(old, tmp_path)),
        ("env:NEW_PASSWORD", secret(new, tmp_path)),
        ("/data/", f"{tmp_path}/"),
        ("5 seconds", "available-now"),
    )
    assert read == 3
    found: dict[type[Any], Any] = {}
    with jmsapi.connection_factory(new.full_url).create_context() as context:
        consumer = context.create_consumer(context.create_queue(new.queue))
        for _ in range(3):
            message = consumer.receive(20_000)
            assert message is not None
            assert message.get_int_property("number") == 7 and message.get_string_property("region") == "EU"
            for kind in (str, bytes, dict):
                if message.is_body_assignable_to(kind):
                    found[kind] = message.get_body(kind)
    assert found == {str: "an invoice", bytes: b"\0\xff", dict: {"total": 12.5}}
    assert old.left() == []


def test_a_corrected_file_is_queued_again(spark: SparkSession, loopback_place: Place, tmp_path: Path) -> None:
    place = loopback_place
    place.send('{"quantity": -1}', '{"quantity": -2}', region="EU", attempt=3)
    dead = spark.read.format("jms").options(
        **place.options, readMode="consume", stagingLocation=str(tmp_path / "dead"), loadId="1"
    )
    columns = ("text", "type", "correlation_id", "properties", "property_types")
    dead.load().select(*columns).coalesce(1).write.json(str(tmp_path / "orders"))
    (written,) = (tmp_path / "orders").glob("*.json")
    file = tmp_path / "corrected.json"
    file.write_text(written.read_text(encoding="utf-8").replace("-", ""), encoding="utf-8")
    login = ["--url", place.options["url"], "--queue", place.queue, "--username", place.user, "--password", place.password]
    main: Callable[[list[str]], int] = runpy.run_path(str(EXAMPLES / "requeue_corrected.py"))["main"]
    assert main([str(file), *login]) == 2
    with jmsapi.connection_factory(place.full_url).create_context() as context:
        consumer = context.create_consumer(context.create_queue(place.queue), "region = 'EU' AND attempt > 2")
        texts = [message.get_body(str) if (message := consumer.receive(20_000)) else None for _ in range(2)]
    assert sorted(map(str, texts)) == ['{"quantity": 1}', '{"quantity": 2}']
    file.write_text(file.read_text(encoding="utf-8") + "\n{no JSON", encoding="utf-8")
    with pytest.raises(Exception, match=r"(?i)malformed"):
        main([str(file), *login])
    assert place.left() == []


def test_a_corrected_file_with_a_job_id_is_queued_once_however_often(
    spark: SparkSession, loopback_place: Place, tmp_path: Path
) -> None:
    place = loopback_place
    file = tmp_path / "orders.json"
    file.write_text("\n".join(json.dumps({"text": f"order {number}"}) for number in range(5)), encoding="utf-8")
    login = ["--url", place.options["url"], "--queue", place.queue, "--username", place.user, "--password", place.password]
    main: Callable[[list[str]], int] = runpy.run_path(str(EXAMPLES / "requeue_corrected.py"))["main"]
    for _ in range(2):
        assert main([str(file), *login, "--job-id", "monday", "--staging", str(tmp_path / "staging")]) == 5
    assert sorted(place.left(5)) == [f"order {number}" for number in range(5)]


MINUTE_MS = 60_000
START_MS = 1_700_000_040_000 // MINUTE_MS * MINUTE_MS


def stamped(place: Place, orders: list[tuple[int, str]]) -> None:
    """Send orders with timestamps of our own, as a client may that is not ours."""
    port = int(place.options["url"].rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        client.sendall(f"CONNECT\naccept-version:1.2\nlogin:{place.user}\npasscode:{place.password}\n\n\0".encode())
        for time, region in orders:
            client.sendall(f"SEND\ndestination:/queue/{place.queue}\ntimestamp:{time}\nregion:{region}\n\nan order\0".encode())
        client.sendall(b"DISCONNECT\nreceipt:bye\n\n\0")
        answer = b""
        while b"receipt-id:bye" not in answer:
            data = client.recv(4096)
            assert data, answer
            answer += data


def test_orders_are_counted_by_minute_and_region_and_late_ones_in_their_minute(
    spark: SparkSession, loopback_place: Place, tmp_path: Path
) -> None:
    place = loopback_place
    login = ["--url", place.options["url"], "--queue", place.queue, "--username", place.user, "--password", place.password]
    main: Callable[[list[str]], None] = runpy.run_path(str(EXAMPLES / "orders_per_minute.py"))["main"]
    first = [(START_MS + 1000 * second, "EU" if second % 3 else "US") for second in range(0, 150, 10)]
    stamped(place, first)
    main([*login, "--folder", str(tmp_path)])
    stamped(place, [(START_MS + 59_000, "EU"), (START_MS + 6 * MINUTE_MS, "EU")])  # late, but not too late; then a later one
    main([*login, "--folder", str(tmp_path)])
    stamped(place, [(START_MS, "EU"), (START_MS + 12 * MINUTE_MS, "EU")])  # much too late
    main([*login, "--folder", str(tmp_path)])
    rows = spark.read.parquet(str(tmp_path / "per-minute")).collect()
    minutes = {(int(row.minute.timestamp() * 1000) - START_MS) // MINUTE_MS for row in rows}
    expected: dict[tuple[int, str], int] = {}
    for time, region in [*first, (START_MS + 59_000, "EU"), (START_MS + 6 * MINUTE_MS, "EU")]:
        key = ((time - START_MS) // MINUTE_MS, region)
        expected[key] = expected.get(key, 0) + 1
    assert minutes == {0, 1, 2, 6}
    found = {((int(row.minute.timestamp() * 1000) - START_MS) // MINUTE_MS, row.region): row["count"] for row in rows}
    assert found == expected
    assert place.left() == []


def test_the_demo_has_each_order_in_its_lake_once(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = runpy.run_path(str(EXAMPLES / "demo.py"))
    assert demo["main"](["--orders", "60", "--folder", str(tmp_path / "demo"), "--no-chart"]) == 0
    printed = capsys.readouterr().out
    assert "in the lake: 60 rows, 60 different orders" in printed and "|  ASIA|" in printed


def test_the_demo_draws_messages_per_minute(tmp_path: Path) -> None:
    from pyspark.sql import Row

    rows = [
        Row(minute=START_MS // 1000 + 60 * number, region=region, count=number) for number in range(5) for region in ("EU", "US")
    ]
    file = tmp_path / "chart.png"
    runpy.run_path(str(EXAMPLES / "demo.py"))["draw"](rows, file)
    assert file.read_bytes().startswith(b"\x89PNG")
