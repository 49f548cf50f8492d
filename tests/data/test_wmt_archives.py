"""WMT's archives, placed by hand, are read as TensorFlow Datasets' own builder reads them."""

import collections
import gzip
import http.server
import pathlib
import subprocess
import threading
import time
import tracemalloc
from typing import Any

import archives
import pytest

from t2t_lite import errors, registry
from t2t_lite.bin import datagen
from t2t_lite.data import generate, wmt_archives

pytest.importorskip("tensorflow_datasets")


def _lines(name, side, count):
    return "".join(f"{name} {side} line {i}: Äpfel\n" for i in range(count)).encode()


def _sgm(name, side, count):
    segments = "".join(
        f'<seg id="{i}">{name} {side} line {i}: Äpfel</seg>\n' for i in range(1, count + 1)
    )
    return f'<refset setid="x">\n<doc docid="1">\n<p>\n{segments}</p>\n</doc>\n</refset>\n'.encode()


def _archives(source):
    """Return the files of every archive of a language pair, in WMT's own format."""
    pair, test = f"{source}-en", f"dev/newstest2014-{source}en"
    sides = (source, "en")

    def parallel(stem, count):
        return {f"{stem}.{side}": _lines(stem, side, count) for side in sides}

    files = {
        "training-parallel-europarl-v7.tgz": parallel(f"training/europarl-v7.{pair}", 300),
        "training-parallel-commoncrawl.tgz": parallel(f"commoncrawl.{pair}", 200),
        "training-parallel-nc-v9.tgz": parallel(f"training/news-commentary-v9.{pair}", 100),
        "dev.tgz": {
            **parallel("dev/newstest2013", 7),
            f"{test}-src.{source}.sgm": _sgm("2014", source, 5),
            f"{test}-ref.en.sgm": _sgm("2014", "en", 5),
        },
    }
    if source == "fr":
        stem = "giga-fren.release2.fixed"
        files["training-parallel-un.tgz"] = parallel(f"un/undoc.2000.{pair}", 50)
        files["training-giga-fren.tar"] = {
            f"{stem}.{side}.gz": gzip.compress(_lines(stem, side, 60)) for side in sides
        }
    return files


@pytest.fixture(params=["de", "fr"])
def source(request):
    return request.param


@pytest.fixture
def raw_dir(tmp_path, source):
    folder = tmp_path / "raw"
    folder.mkdir()
    for name, files in _archives(source).items():
        archives.write(folder / name, files)
    return folder


@pytest.fixture
def problem(source, monkeypatch):
    """Return the problem with TFDS' checksums of the real archives forgotten."""
    wmt14 = registry.problem(f"wmt14_en{source}")
    monkeypatch.setattr(type(wmt14._archives._builder), "url_infos", {})
    return wmt14


def test_archives_are_used_without_a_network(problem, source, raw_dir, tmp_path):
    made = generate.generate(
        problem, raw_dir=raw_dir, data_dir=tmp_path / "data", vocab_size=340, num_workers=1
    )
    assert made.pairs("train") == (600 if source == "de" else 710)
    assert {entry["name"] for entry in made.raw_files} == set(_archives(source))
    dev = made.text("newstest2013")
    assert dev.sources == [f"dev/newstest2013 en line {i}: Äpfel" for i in range(7)]
    test = made.text("newstest2014")
    assert test.references == [f"2014 {source} line {i}: Äpfel" for i in range(1, 6)]


def test_the_builder_itself_reads_the_same(problem, source, raw_dir, tmp_path, monkeypatch):
    import tensorflow_datasets as tfds
    from tensorflow_datasets.core.download import checksums

    reader = problem._archives
    sides = {"languages": (source, "en"), "raw_dir": raw_dir, "tmp_dir": tmp_path / "ours"}
    ours = {split: sorted(reader.read(split, **sides)) for split in ("train", "validation", "test")}
    believed = {}
    for url, path in reader._paths(raw_dir).items():
        info = checksums.compute_url_info(path)
        believed[url] = checksums.UrlInfo(info.size, info.checksum, path.name)
    monkeypatch.setattr(type(reader._builder), "url_infos", believed)
    builder: Any = tfds.builder(problem.tfds_config, data_dir=tmp_path / "tfds", try_gcs=False)
    config = tfds.download.DownloadConfig(manual_dir=raw_dir, verify_ssl=False)
    builder.download_and_prepare(download_config=config, download_dir=tmp_path / "theirs")
    for split, pairs in ours.items():
        theirs = tfds.as_numpy(builder.as_dataset(split=split))
        assert sorted((e[source].decode(), e["en"].decode()) for e in theirs) == pairs


@pytest.mark.parametrize("source", ["de"], indirect=True)
def test_another_archive_of_the_same_name_is_refused(raw_dir, tmp_path):
    problem = registry.problem("wmt14_ende")
    with pytest.raises(errors.UserError, match="not the one that WMT published"):
        next(problem.samples("train", raw_dir=raw_dir, tmp_dir=tmp_path / "tmp"))


@pytest.mark.parametrize("source", ["fr"], indirect=True)
def test_an_archive_without_a_known_checksum_is_believed_once(problem, raw_dir, tmp_path):
    def read():
        archives_of_problem = wmt_archives.Archives(problem.tfds_config)
        sides = {"languages": ("en", "fr"), "raw_dir": raw_dir, "tmp_dir": tmp_path / "tmp"}
        return next(archives_of_problem.read("train", **sides))

    read()
    recorded = raw_dir / "training-giga-fren.tar.sha256"
    done = subprocess.run(["sha256sum", "-c", recorded.name], cwd=raw_dir, check=False)
    assert done.returncode == 0
    read()
    files = _archives("fr")["training-giga-fren.tar"]
    archives.write(raw_dir / "training-giga-fren.tar", {**files, "more": "x"})
    with pytest.raises(errors.UserError, match=r"giga-fren.tar is not the one whose check"):
        read()
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("source", ["de"], indirect=True)
def test_a_member_that_an_archive_lacks_is_named(problem, raw_dir, tmp_path):
    archives.write(raw_dir / "training-parallel-commoncrawl.tgz", {"commoncrawl.de-en.de": "x"})
    with pytest.raises(errors.UserError, match=r"commoncrawl.tgz lacks commoncrawl.de-en.en"):
        list(problem.samples("train", raw_dir=raw_dir, tmp_dir=tmp_path / "tmp"))


@pytest.mark.parametrize("source", ["de"], indirect=True)
def test_two_readers_do_not_disturb_each_other(problem, raw_dir, tmp_path):
    places = {"raw_dir": raw_dir, "tmp_dir": tmp_path / "tmp"}
    first, second = problem.samples("train", **places), problem.samples("train", **places)
    assert all(one == other for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("source", ["de"], indirect=True)
def test_members_are_never_held_whole(problem, raw_dir, tmp_path):
    lines = b"and so on, as they say in the books about this\n" * 400_000  # 19 MB
    sides = {f"commoncrawl.de-en.{side}": lines for side in ("de", "en")}
    archives.write(raw_dir / "training-parallel-commoncrawl.tgz", sides)
    samples = problem.samples("train", raw_dir=raw_dir, tmp_dir=tmp_path / "tmp")
    next(samples)  # with what is imported for it
    tracemalloc.start()
    assert sum(1 for _ in samples) == 400_399
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 15e6


class _Wmt(http.server.SimpleHTTPRequestHandler):
    """Stands in for statmt.org, as a proxy; counts the bytes that it sends and may hang up."""

    folder: pathlib.Path
    sent: collections.Counter[str]
    hang_up_after = 0  # bytes of the first answer; 0: it does not

    def do_GET(self):
        name = self.path.rpartition("/")[2]
        content = (self.folder / name).read_bytes()
        start = int(self.headers.get("Range", "bytes=0-")[6:-1])
        if start >= len(content):
            self.send_error(416)
            return
        rest = content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if self.hang_up_after:
            rest, type(self).hang_up_after = rest[: self.hang_up_after], 0
        self.wfile.write(rest)
        self.sent[name] += len(rest)

    def log_message(self, *args):
        pass


@pytest.fixture
def wmt(raw_dir, monkeypatch):
    """Return the stand-in's class; all that is downloaded comes from it."""
    handler = type("Handler", (_Wmt,), {"folder": raw_dir, "sent": collections.Counter()})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.setattr("urllib.request._opener", None)  # it keeps the proxy of before
        yield handler
        server.shutdown()
        thread.join()


def test_downloads_stay_and_go_on_where_they_stopped(
    problem, source, raw_dir, wmt, tmp_path, monkeypatch, capsys
):
    sizes = {path.name: path.stat().st_size for path in raw_dir.iterdir()}
    monkeypatch.setattr(registry, "problem", lambda name: problem)
    data_dir, wmt.hang_up_after = tmp_path / "data", 1_000
    command = ["t2t-lite-datagen", f"--problem={problem.name}", "--vocab_size=340"]
    begin = [*command, f"--data_dir={data_dir}", "--num_workers=1"]
    assert datagen.main(begin) == 1
    err = capsys.readouterr().err
    assert "ended after 1,000 of " in err
    assert "the same command goes on from here" in err
    # an earlier process was killed when all but the renaming was done
    downloads = data_dir / "tmp" / "downloads"
    (downloads / "dev.tgz.incomplete").write_bytes((raw_dir / "dev.tgz").read_bytes())
    assert datagen.main(begin) == 0
    assert f"{downloads} (0.0 GB): use them as --raw_dir" in capsys.readouterr().out
    assert wmt.sent == sizes  # each byte once
    assert {path.name for path in downloads.iterdir() if path.suffix != ".sha256"} == set(sizes)
    # both another data_dir and the same made anew take what is there
    assert datagen.main([*begin, "--overwrite"]) == 0
    other = [*command, f"--data_dir={tmp_path / 'other'}", f"--raw_dir={downloads}"]
    assert datagen.main([*other, "--num_workers=1"]) == 0
    assert wmt.sent == sizes
    shard = f"{problem.base_name}-train-00000-of-00001"
    assert (tmp_path / "other" / shard).read_bytes() == (data_dir / shard).read_bytes()
    assert not (tmp_path / "other" / "tmp").exists()


@pytest.mark.parametrize("source", ["fr"], indirect=True)
def test_missing_archives_are_named_with_their_addresses(raw_dir):
    (raw_dir / "training-giga-fren.tar").unlink()
    with pytest.raises(errors.UserError) as caught:
        registry.problem("wmt14_enfr").raw_files(raw_dir)
    assert f"{raw_dir} lacks training-giga-fren.tar" in str(caught.value)
    assert "http://www.statmt.org/wmt10/training-giga-fren.tar" in str(caught.value)


def test_a_missing_network_is_told_at_once(tmp_path, monkeypatch):
    def unreachable(address, timeout):
        assert timeout <= 5
        raise OSError("Network is unreachable")

    monkeypatch.setattr(wmt_archives.socket, "create_connection", unreachable)
    start = time.monotonic()
    with pytest.raises(errors.UserError) as caught:
        generate.generate(registry.problem("wmt14_ende"), data_dir=tmp_path / "data")
    assert time.monotonic() - start < 10
    for part in ("Network is unreachable", "training-parallel-europarl-v7.tgz", "--raw_dir"):
        assert part in str(caught.value)
    assert not (tmp_path / "data").exists()
