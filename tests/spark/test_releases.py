"""What an older PySpark cannot do is refused by name, with the reason."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from test_messages import frame
from test_readers import schema

import jmsapi.spark
from jmsapi.errors import JMSException
from jmsapi.spark.pipeline import run_pipeline
from jmsapi.spark.source import JmsDataSource

OPTIONS = {"url": "stomp://127.0.0.1:1", "queue": "q", "stagingLocation": "/nowhere"}


def old_reader() -> Any:
    """Return the reader of a stream; one that is not made at all would be hidden behind an error of PySpark's own."""
    reader = JmsDataSource(OPTIONS).streamReader(schema())
    reader.stop()
    return pickle.loads(pickle.dumps(reader))


@pytest.mark.parametrize(
    ("release", "what", "said"),
    [
        ("4.1.2", lambda: JmsDataSource(OPTIONS).streamReader(schema()).initialOffset(), "reading a stream needs PySpark 4.2"),
        ("4.1.2", lambda: old_reader().latestOffset(), "reading a stream needs PySpark 4.2"),
        ("4.1.2", lambda: old_reader().partitions({}, {}), "reading a stream needs PySpark 4.2"),
        ("4.1.2", lambda: old_reader().read(None), "reading a stream needs PySpark 4.2"),
        ("4.0.0", lambda: JmsDataSource(OPTIONS).streamWriter(frame(text="string"), False), "writing a stream needs PySpark 4.1"),
        ("4.0.0", lambda: JmsDataSource({**OPTIONS, "pushdown": "true"}).reader(schema()), "pushdown needs PySpark 4.1"),
        ("3.5.4", lambda: jmsapi.spark.register(None), "needs PySpark 4.0 or newer, 4.2 for streams"),  # type: ignore[arg-type]
    ],
)
def test_what_a_release_cannot_do_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, release: str, what: Any, said: str) -> None:
    monkeypatch.setattr("pyspark.__version__", release)
    with pytest.raises(JMSException, match=said) as caught:
        what()
    assert caught.value.error_code == "missing-extra"
    assert release in str(caught.value)


@pytest.mark.parametrize(
    ("release", "what", "instead"),
    [
        ("4.1.2", lambda: old_reader().initialOffset(), "readMode=consume"),
        ("4.0.0", lambda: JmsDataSource(OPTIONS).streamWriter(frame(text="string"), False), "foreachBatch"),
    ],
)
def test_the_refusal_says_what_works_there(monkeypatch: pytest.MonkeyPatch, release: str, what: Any, instead: str) -> None:
    monkeypatch.setattr("pyspark.__version__", release)
    with pytest.raises(JMSException, match=f"There .*{instead}"):
        what()


def test_a_pipeline_from_a_file_says_it_before_a_query_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.1.2")
    nothing: Any = None
    with pytest.raises(JMSException, match=r"reading a stream needs PySpark 4\.2 or newer, this is 4\.1\.2"):
        run_pipeline(nothing, nothing, print)


def test_an_old_release_still_reads_and_writes_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.0.0")
    assert JmsDataSource(OPTIONS).reader(schema()) is not None
    assert JmsDataSource(OPTIONS).writer(frame(text="string"), overwrite=False) is not None


class Conf:
    def get(self, name: str, default: str | None = None) -> str | None:
        return default


class Sources:
    def __init__(self) -> None:
        self.found: list[Any] = []

    def register(self, source: Any) -> None:
        self.found.append(source)


def test_a_name_that_was_discovered_before_is_no_fault_of_an_old_release() -> None:
    class Taken:
        def register(self, source: Any) -> None:
            raise ValueError("[DATA_SOURCE_ALREADY_EXISTS] Data source already exists")

    class Session:
        conf = Conf()
        dataSource = Taken()

    Session.__module__ = "pyspark.sql.connect.session"
    session: Any = Session()
    jmsapi.spark.register(session)
    with pytest.raises(ValueError, match="ALREADY_EXISTS"):
        jmsapi.spark.register(session, "other")


def test_a_session_of_spark_connect_has_no_context_and_is_registered_all_the_same() -> None:
    class Session:
        conf = Conf()
        dataSource = Sources()

    Session.__module__ = "pyspark.sql.connect.session"
    session: Any = Session()
    jmsapi.spark.register(session)
    assert [one.name() for one in session.dataSource.found] == ["jms"]
