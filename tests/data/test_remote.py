"""Folders that are elsewhere: in the memory of this process, as fsspec has it."""

import pathlib
import secrets

import fsspec
import pytest

from t2t_lite import errors
from t2t_lite.bin import datagen
from t2t_lite.data import remote


@pytest.fixture
def url(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the address of a new folder; copies lie in tmp_path/cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return f"memory://bucket-{secrets.token_hex(4)}/corpus"


def _write(url: str, name: str, text: str) -> None:
    with fsspec.open(f"{url}/{name}", "w") as file:
        file.write(text)  # pyright: ignore[reportAttributeAccessIssue]


def _names(url: str) -> list[str]:
    files, root = fsspec.url_to_fs(url)
    return sorted(path.removeprefix(f"{root}/") for path in files.find(root))


def _texts(folder: str) -> dict[str, str]:
    paths = [path for path in pathlib.Path(folder).rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in paths
        if not path.name.startswith(".")
    }


def test_a_copy_follows_what_is_there(url: str):
    assert remote.local("data") == "data"  # a folder of this machine stays as it is
    _write(url, "a.txt", "one")
    _write(url, "folder/b.txt", "two")
    _write(url, "c.txt", "three")
    folder = remote.local(url)
    assert _texts(folder) == {"a.txt": "one", "folder/b.txt": "two", "c.txt": "three"}
    copied = (pathlib.Path(folder) / "c.txt").stat().st_mtime_ns
    _write(url, "a.txt", "ONE")  # as long as before
    fsspec.url_to_fs(url)[0].rm(f"{url}/folder/b.txt")
    assert remote.local(url + "/") == folder
    assert _texts(folder) == {"a.txt": "ONE", "c.txt": "three"}
    assert (pathlib.Path(folder) / "c.txt").stat().st_mtime_ns == copied  # not copied again


def test_work_that_was_not_sent_stays(url: str):
    _write(url, "a.txt", "one")
    folder = pathlib.Path(remote.local(url))
    (folder / "a.txt").write_text("new work")
    (folder / "b.txt").write_text("more of it")
    remote.local(url)
    assert _texts(str(folder)) == {"a.txt": "new work", "b.txt": "more of it"}


def test_while_not_all_is_sent_the_last_file_is_missing(url: str, monkeypatch: pytest.MonkeyPatch):
    _write(url, "shard", "old")
    _write(url, "x.manifest.json", "of old")
    folder = pathlib.Path(remote.local(url))
    (folder / "shard").write_text("new")
    (folder / "x.manifest.json").write_text("of new")
    files = fsspec.url_to_fs(url)[0]

    def broken(*_: object) -> None:
        raise TimeoutError("the network is down")

    with monkeypatch.context() as patch:
        patch.setattr(type(files), "put_file", broken)
        with pytest.raises(errors.UserError, match="corpus: the network is down"):
            remote.send(url, ["shard", "x.manifest.json"])
    assert _names(url) == ["shard"]
    assert pathlib.Path(remote.local(url)) == folder  # the same command again
    remote.send(url, ["shard", "x.manifest.json"])
    assert _names(url) == ["shard", "x.manifest.json"]
    assert files.cat(f"{url}/shard") == b"new"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("memory://nowhere/at_all", "holds no files"),
        ("nosuch://bucket/data", "nosuch://bucket/data: Protocol not known: nosuch"),
    ],
)
def test_what_cannot_be_read_gives_a_line(url: str, address: str, message: str):
    with pytest.raises(errors.UserError, match=message):
        remote.local(address)


def test_data_are_made_in_a_bucket_from_text_in_another(
    url: str, tiny_data: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture
):
    raw, data = f"{url}/raw", f"{url}/data"
    for path in tiny_data.parent.glob("*.[st]*"):
        _write(raw, path.name, path.read_text("utf-8"))
    command = [
        *("t2t-lite-datagen", "--problem=parallel_text", f"--raw_dir={raw}"),
        *(f"--data_dir={data}", "--vocab_size=600", "--num_workers=1"),
    ]
    assert datagen.main(command) == 0
    assert f"complete: {data}" in capsys.readouterr().out
    here = {path.name: path.read_bytes() for path in tiny_data.iterdir() if path.is_file()}
    files = fsspec.url_to_fs(data)[0]
    assert {name: files.cat(f"{data}/{name}") for name in _names(data)} == here
    changes = files.info(f"{data}/parallel_text.manifest.json")
    assert datagen.main(command) == 0  # nothing is left to do
    assert files.info(f"{data}/parallel_text.manifest.json") == changes
