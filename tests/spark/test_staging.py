"""What every staging store must do, on a folder and on an object store that creates on condition; and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import jmsapi.spark
from jmsapi.errors import JMSException
from jmsapi.spark.batchlog import Slot
from jmsapi.spark.engine import Engine
from jmsapi.spark.options import SinkOptions, SourceOptions, read_options
from jmsapi.spark.outbox import Outbox
from jmsapi.spark.sink import JmsStreamWriter
from jmsapi.spark.staging import Gone, LocalStore, ObjectStore, StagingStore, check_shared, mark_of, open_store, self_test, take


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

    def ls(self, path: str, detail: bool) -> list[str]:
        assert not detail
        found = {f"{path}/{one.removeprefix(f'{path}/').partition('/')[0]}" for one in self.find(path)}
        if not found:
            raise FileNotFoundError(path)
        return list(found)

    def rm_file(self, path: str) -> None:
        with self._lock:
            if self._objects.pop(path, None) is None:
                raise FileNotFoundError(path)

    def invalidate_cache(self) -> None:
        """There is none."""


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> StagingStore:
    return LocalStore(tmp_path / "staging") if request.param == "folder" else ObjectStore(Bucket(), "bucket/prefix/")


def test_a_name_is_given_once_with_all_its_content(store: StagingStore) -> None:
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


def test_of_many_rivals_one_gets_the_name(store: StagingStore) -> None:
    store.make_folder("b")
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda number: store.publish(f"b/{number // 8}", str(number).encode()), range(160)))
    assert sum(won) == 20
    for name in range(20):
        assert won[int(bytes(store.read(f"b/{name}")))], "the content is that of the one who was told so"
    assert len(store.list("b")) == 20, "no drafts are left"


def test_a_folder_that_is_removed_is_gone_with_all_in_it(store: StagingStore) -> None:
    take(store)
    store.make_folder("b/1")
    store.publish("b/1/0.slot", b"data")
    store.put(f"b/1/d-{'0' * 32}.arrow", b"rows")
    store.mark("b/1/0.ok")
    kept = store.read("b/1/0.slot")
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
    take(store)
    left = tmp_path / "removed" / ("a" * 32)
    left.mkdir(parents=True)
    (left / "000000.slot").touch()
    store.make_folder("b/1")
    assert store.list("b") == []
    store.remove("b/1")
    assert list((tmp_path / "removed").iterdir()) == []


def test_what_somebody_else_put_into_our_folders_stays_and_is_in_nobodys_way(tmp_path: Path) -> None:
    place, other = tmp_path / "staging", tmp_path / "other"
    other.mkdir()
    (other / "000000.slot").touch()
    store = LocalStore(place)
    engine = Engine(read_options(SourceOptions, {"url": "stomp://127.0.0.1:1", "queue": "q", "stagingLocation": str(place)}))
    engine.stream().initial()
    engine.log.open_batch(1)
    engine.log.append(engine.log.look().batch(1), Slot(end=0))
    box = Outbox(store)
    box.open(0)
    box.fix(0, [])
    foreign = [
        f"{folder}/{name}"
        for folder in ("b", "b/000000001", "s", "s/000000000", "runs", "floor", "doubt", "removed", "test")
        for name in (".git/HEAD", "docs/x.txt", "notes", ".profile", "1.bak/000000.slot")
    ]
    for name in foreign:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("precious", encoding="utf-8")
    links = [place / folder / "link" for folder in ("b", "b/000000001", "s/000000000", "removed")]
    for link in (*links, place / "b" / "000000002"):
        link.symlink_to(other)
    engine.log.seal(2)
    box.clear(0)
    again = Engine(engine.options)
    with pytest.raises(JMSException, match="deleted"):
        again.log.content(1, 0)
    stream = again.stream()
    stream.latest(stream.initial())
    assert again.log.look().floor == 2
    assert [name for name in foreign if not (place / name).is_file()] == []
    assert [link for link in links if not link.is_symlink()] == []
    assert (other / "000000.slot").is_file()
    assert sorted(place.rglob("*.slot")) == sorted(place.rglob("1.bak/*.slot")), "ours are gone"


def test_an_object_that_somebody_else_put_into_a_prefix_stays() -> None:
    bucket = Bucket()
    store = ObjectStore(bucket, "bucket/s")
    store.publish("b/1/0.slot", b"")
    bucket.pipe_file("bucket/s/b/1/.git/HEAD", b"precious")
    store.remove("b/1")
    assert store.list("b") == ["1/.git/HEAD"]


def home(folder: Path) -> list[str]:
    """Make a folder that is in use, with names that are ours as well."""
    for name in (".ssh/id_rsa", ".git/HEAD", "docs/x.txt", "b/000000001/000000.slot", "floor/7", "removed/x/y", ".profile"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("precious", encoding="utf-8")
    other = folder.parent / "other"
    other.mkdir()
    (other / "file").write_text("precious", encoding="utf-8")
    (folder / ".link").symlink_to(other)
    return everything(folder)


def everything(folder: Path) -> list[str]:
    return sorted(str(one.relative_to(folder.parent)) for one in folder.parent.rglob("*"))


def test_a_folder_in_use_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    place = tmp_path / "home"
    before = home(place)
    options = {"url": "stomp://127.0.0.1:1", "queue": "q", "stagingLocation": str(place)}
    engine = Engine(read_options(SourceOptions, options))
    box = Outbox(LocalStore(place))
    written = dict(options, delivery="exactly-once")
    uses: list[Callable[[], object]] = [
        engine.stream().initial,
        lambda: engine.stream().latest({"v": 1, "stream": "x", "seq": 0, "claims": 0}),
        lambda: engine.stream().commit({"v": 1, "stream": "x", "seq": 1, "claims": 0}),
        lambda: box.clear(1),
        lambda: JmsStreamWriter(read_options(SinkOptions, written), {"text": "string"}),
        lambda: LocalStore(place).remove("docs"),
    ]
    for use in uses:
        with pytest.raises(JMSException) as caught:
            use()
        assert caught.value.error_code == "bad-staging"
        assert "holds other things" in str(caught.value) or "nothing is deleted" in str(caught.value)
    assert everything(place) == before


@pytest.mark.parametrize("kind", ["folder", "bucket"])
def test_a_place_with_foreign_things_is_refused_and_a_new_one_taken_once(kind: str, tmp_path: Path) -> None:
    bucket = Bucket()
    store = LocalStore(tmp_path / "s") if kind == "folder" else ObjectStore(bucket, "bucket/s")
    with ThreadPoolExecutor(4) as pool:
        marks = set(pool.map(lambda _: take(store), range(8)))
    assert marks == {mark_of(store)}
    check_shared(store, *marks)
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "notes").touch()
    bucket.pipe_file("bucket/t/notes", b"")
    foreign = LocalStore(tmp_path / "t") if kind == "folder" else ObjectStore(bucket, "bucket/t")
    with pytest.raises(JMSException, match="holds other things \\(notes\\)"):
        take(foreign)
    for other in (foreign, LocalStore(tmp_path / "nowhere")):
        with pytest.raises(JMSException, match="share") as caught:
            check_shared(other, *marks)
        assert caught.value.error_code == "staging-unshared"


def test_a_place_of_a_version_without_marks_is_taken(tmp_path: Path) -> None:
    for name in ("b/000000001", "floor", "runs"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "owner.json").write_text('{"stream": "abc"}', encoding="utf-8")
    assert take(LocalStore(tmp_path)) == "abc"
    (tmp_path / "owner.json").unlink()
    take(LocalStore(tmp_path))


def test_only_a_load_that_is_there_is_released(tmp_path: Path) -> None:
    take(LocalStore(tmp_path / "st" / "load-jobA"))
    before = everything(tmp_path / "st")
    for location, load in (("sT", "jobA"), ("st", "joba"), ("none", "x")):
        with pytest.raises(JMSException, match="there is no load") as caught:
            jmsapi.spark.release(str(tmp_path / location), load)
        assert caught.value.error_code == "bad-staging"
    assert everything(tmp_path / "st") == before
    jmsapi.spark.release(str(tmp_path / "st"), "jobA")


def test_the_self_test_accepts_what_keeps_the_promise_and_refuses_what_overwrites(store: StagingStore) -> None:
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
