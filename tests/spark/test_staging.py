"""What every staging store must do, on a folder and on an object store that creates on condition; and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from jmsapi.errors import JMSException
from jmsapi.spark.staging import Gone, LocalStore, ObjectStore, Store, open_store, self_test


class Bucket:
    """As much of an fsspec file system as is used, with the condition kept, or not, as in fsspec's own base class."""

    def __init__(self, *, honest: bool = True) -> None:
        self._honest = honest
        self._objects: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def pipe_file(self, path: str, data: bytes, mode: str = "overwrite") -> None:
        with self._lock:
            if mode == "create" and self._honest and path in self._objects:
                raise FileExistsError(path)
            self._objects[path] = data

    def cat_file(self, path: str) -> bytes:
        with self._lock:
            if path not in self._objects:
                raise FileNotFoundError(path)
            return self._objects[path]

    def find(self, path: str) -> list[str]:
        with self._lock:
            return [one for one in self._objects if one.startswith(f"{path}/")]

    def rm_file(self, path: str) -> None:
        with self._lock:
            if self._objects.pop(path, None) is None:
                raise FileNotFoundError(path)

    def invalidate_cache(self) -> None:
        """There is none."""


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "staging") if request.param == "folder" else ObjectStore(Bucket(), "bucket/prefix/")


def test_a_name_is_given_once_with_all_its_content(store: Store) -> None:
    store.make_folder("b/1")
    assert store.publish("b/1/x", b"first") and not store.publish("b/1/x", b"second")
    assert bytes(store.read("b/1/x")) == b"first"
    store.put("b/1/y", memoryview(b"data"))
    store.mark("b/1/z")
    store.mark("b/1/z")
    assert sorted(store.list("b")) == ["1/x", "1/y", "1/z"]
    assert bytes(store.read("b/1/z")) == b""
    store.delete("b/1/z")
    store.delete("b/1/z")
    with pytest.raises(FileNotFoundError):
        store.read("b/1/z")


def test_of_many_rivals_one_gets_the_name(store: Store) -> None:
    store.make_folder("b")
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda number: store.publish(f"b/{number // 8}", str(number).encode()), range(160)))
    assert sum(won) == 20
    for name in range(20):
        assert won[int(bytes(store.read(f"b/{name}")))], "the content is that of the one who was told so"
    assert len(store.list("b")) == 20, "no drafts are left"


def test_a_folder_that_is_removed_is_gone_with_all_in_it(store: Store) -> None:
    store.make_folder("b/1")
    store.publish("b/1/x", b"data")
    kept = store.read("b/1/x")
    store.remove("b/1")
    store.remove("b/1")
    assert store.list("b") == []
    assert bytes(kept) == b"data", "who reads already goes on reading"


def test_a_folder_refuses_whoever_comes_late(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    late: list[Callable[[], object]] = [
        lambda: store.publish("b/1/x", b""),
        lambda: store.put("b/1/x", b""),
        lambda: store.mark("b/1/x"),
    ]
    for call in late:
        with pytest.raises(Gone):
            call()
    assert list(tmp_path.rglob("*")) == []


def test_what_a_process_left_when_it_died_while_removing_goes_with_the_next(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    (tmp_path / ".dead").mkdir()
    store.make_folder("b/1")
    assert store.list("b") == []
    store.remove("b/1")
    assert not (tmp_path / ".dead").exists()


def test_the_self_test_accepts_what_keeps_the_promise_and_refuses_what_overwrites(store: Store) -> None:
    self_test(store)
    with pytest.raises(JMSException, match="only if there is none"):
        self_test(ObjectStore(Bucket(honest=False), "bucket"))


def test_the_self_test_says_what_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way", encoding="utf-8")
    with pytest.raises(JMSException, match="cannot be used"):
        self_test(LocalStore(file))


@pytest.mark.parametrize("location", ["relative", "file://relative", "memory://x", "hdfs://name/x", "ftp://host/x"])
def test_a_location_that_cannot_keep_the_promise_is_refused(location: str) -> None:
    with pytest.raises(JMSException) as caught:
        open_store(location)
    assert caught.value.error_code == "bad-staging"


def test_an_object_store_without_its_file_system_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    def missing(name: str, package: str | None = None) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(JMSException) as caught:
        open_store("s3://bucket/x")
    assert caught.value.error_code == "missing-extra"
