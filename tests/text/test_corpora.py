"""Which files of a folder are read for a split, and what is said of the others."""

import gzip
import json
import zipfile

import pytest

from t2t_lite import errors, registry

EN, DE = ["A dog runs.", 'It said "yes".'], ["Ein Hund rennt.", "Es sagte „ja“."]
PAIRS = list(zip(EN, DE))
TMX = "<tmx><body>{}</body></tmx>".format(
    "".join(
        f'<tu><tuv xml:lang="de"><seg>{de}</seg></tuv><tuv xml:lang="en"><seg>{en}</seg></tuv></tu>'
        for en, de in PAIRS
    )
)


def _content(name):
    """Return what a file of this name may hold."""
    if name.endswith(".zip"):
        return {"de-en.de": "\n".join(DE), "de-en.en": "\n".join(EN)}
    if "tmx" in name:
        return TMX
    if ".tsv" in name:
        pairs = [pair[::-1] for pair in PAIRS] if "de-en" in name else PAIRS
        return "".join("\t".join(pair) + "\n" for pair in pairs)
    if ".csv" in name:
        return "".join('"{}","{}"\n'.format(a.replace('"', '""'), b) for a, b in PAIRS)
    if ".jsonl" in name:
        return "".join(json.dumps({"source": a, "target": b}) + "\n" for a, b in PAIRS)
    endings = name.removesuffix(".gz").removesuffix(".txt").removesuffix(".sgm").split(".")
    is_target = endings[-1] in ("de", "target", "tgt", "trg", "deu") or "tgt" in name
    lines = DE if is_target else EN
    return "".join(f"<seg>{x}</seg>\n" if "sgm" in name else f"{x}\n" for x in lines)


def _write(folder, names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = _content(name)
        if isinstance(content, dict):
            with zipfile.ZipFile(path, "w") as archive:
                for member, text in content.items():
                    archive.writestr(member, text)
        else:
            data = content.encode()
            path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


# names for the training --> how many times its pairs are read, or what is said
NAMES = {
    "train.source train.target": 1,
    "train.src train.tgt": 1,
    "train.source.txt train.target.txt.gz": 1,
    "train.2.source train.2.target train.source train.target": 2,
    "train.en-de.en train.en-de.de": 1,
    "train.Europarl.en-de.en train.Europarl.en-de.de": 1,
    "train.en-de.zip": 1,
    "train.en-de.txt.zip train.2.en-de.tmx.gz": 2,
    "train.en-de.tmx train.news.tsv train.jsonl": 3,
    "train.tsv": 1,
    "train.web.csv train.csv": 2,
    "train.source.sgm train.target.sgm": 1,
    "train/source.txt/a.source train/source.txt/a.target": 1,
    "train/a.tsv train/b.tsv.gz train/deep/c.csv": 3,
    "train.en-de/Europarl.de-en.de train.en-de/Europarl.de-en.en train.en-de/README": 1,
    "train.en-de/de-en.txt.zip train.en-de/x.tmx train.en-de/mtdata.de-en.tsv": 3,
    "train.en-de/a.en.gz train.en-de/a.de train.b.source train.b.target": 2,
    "train.en-de/newstest-src.en.sgm train.en-de/newstest-ref.de.sgm": 1,
    "train.en-de.tsv train.en train.de train.source train.target": 3,
    "train.en train.de": "train.de and train.en cannot .* call them train.de-en or train.en-de",
    "train.eng train.deu": r"call them train.deu-eng or train.eng-deu \(train.deu-eng.deu, ...\)",
    "train/Europarl.de-en.de train/Europarl.de-en.en": "call the folder train.de-en or train.en-de",
    "train.en-de.tmx train.2.en-fr.tmx": "from en-de and from en-fr",
    "train.en-de.zip train.2.de-en.zip": "from en-de and from de-en .* rename them to one order",
    "train.source train.target train.2.source": "train.2.source cannot .* no file of the other",
    "train.tsv train.tsv.gz": "has both train.tsv and train.tsv.gz: leave one",
    "train.tsv train2.source": "train2.source looks like part of train .*: call it train.2.source",
    "train.tsv train_news.tsv": "train_news.tsv looks .*: call it train.news.tsv",
    "train.tsv train_en-de.tmx": "train_en-de.tmx looks .*: call it train.en-de.tmx",
    "train.tsv news-train.tsv": "news-train.tsv looks .*: call it train.news.tsv",
    "src-train.txt tgt-train.txt": "src-train.txt looks .*: call it train.src.txt",
    "Train.source Train.target": "Train.source looks .*: call it train.source",
    "train.tsv training.tsv": "training.tsv looks .*: call it train.tsv",
    "train.tsv valid.source": "valid.source looks like part of dev .*: call it dev.source",
    "train.tsv test2.tsv": "test2.tsv looks like part of test .*: call it test.2.tsv",
    "train.tsv train2/a.tsv": "train2 looks like part of train .*: call it train.2",
    "train.tsv train.json": "train.json cannot be used as train: expected two files",
    "train.tsv train/a.tar": "train/a.tar cannot be used as train: .* expected two files",
    "train.tsv train.parquet": "train.parquet cannot be used",
    "train.txt": "train.txt cannot be used",
    "corpus.source corpus.target": "lacks train.source and train.target",
}


@pytest.mark.parametrize("names", NAMES)
def test_names_that_people_give(tmp_path, names):
    _write(tmp_path, [*names.split(), "dev.source", "dev.target"])
    generic = registry.problem("parallel_text")
    expected = NAMES[names]
    if isinstance(expected, str):
        with pytest.raises(errors.UserError, match=expected):
            generic.raw_files(tmp_path)
        return
    files = {tmp_path / name for name in names.split() if not name.endswith("README")}
    assert files < set(generic.raw_files(tmp_path))
    samples = list(generic.samples("train", raw_dir=tmp_path))
    assert [(one["inputs"], one["targets"]) for one in samples] == PAIRS * expected
    assert len({one["file"] for one in samples}) == expected
