"""The WMT archives as TensorFlow Datasets knows them: names, checksums, contents.

TFDS' builder finds, fetches, checks and unpacks the archives; the text is then read from the
unpacked files as it stands, streaming, in the builder's order. (Its own `download_and_prepare`
holds whole archives in memory and writes all text once more, which for 36 million pairs is no small
thing.)
"""

import dataclasses
import functools
import os
import pathlib
import socket
from collections.abc import Iterator
from typing import Any
from urllib import parse

from t2t_lite import errors
from t2t_lite.text import bitexts

_TIMEOUT = 5  # seconds in which a host must answer


class Archives:
    """The archives of one TFDS configuration, e.g. "wmt14_translate/de-en"."""

    def __init__(self, config: str):
        self.config = config
        self._unpacked: dict[tuple[str, str], dict[str, Any]] = {}

    def placed(self, raw_dir: str | os.PathLike[str]) -> list[pathlib.Path]:
        """Return the archives in raw_dir; raise UserError with what to download."""
        paths = {url: pathlib.Path(raw_dir) / name for url, name in self._names().items()}
        missing = [url for url, path in paths.items() if not path.is_file()]
        if missing:
            raise errors.UserError(
                f"{raw_dir} lacks {', '.join(paths[url].name for url in missing)}: "
                f"download {' and '.join(missing)} into it"
            )
        return list(paths.values())

    def read(
        self,
        split: str,
        *,
        languages: tuple[str, str],
        raw_dir: str | os.PathLike[str] | None,
        tmp_dir: str | os.PathLike[str],
    ) -> Iterator[tuple[str, str]]:
        """Yield a split's pairs ("train", "validation" or "test").

        The archives are taken from raw_dir, or else downloaded into tmp_dir, where they are
        unpacked too. Raises UserError at once where there is no network.
        """
        places = str(raw_dir), str(tmp_dir)
        if places not in self._unpacked:
            self._unpacked[places] = self._unpack(raw_dir, tmp_dir)
        for subset, folders in self._unpacked[places][split]:
            paths = self._paths(subset, folders, languages)
            yield from bitexts.read(paths, languages)

    @functools.cached_property
    def _builder(self) -> Any:
        import tensorflow_datasets as tfds

        return tfds.builder(self.config, try_gcs=False)

    @property
    def _source(self) -> str:
        """The language beside English by which TFDS names everything."""
        return self._builder.builder_config.language_pair[0]

    def _names(self) -> dict[str, str]:
        """Return every archive's URL and its file name."""
        from tensorflow_datasets.translate import wmt

        subsets = [name for names in self._builder.subsets.values() for name in names]
        urls = [url for name in subsets for url in wmt.DATASET_MAP[name].get_url(self._source)]
        return {url: pathlib.PurePosixPath(parse.urlsplit(url).path).name for url in urls}

    def _unpack(self, raw_dir, tmp_dir) -> dict[str, list[tuple[str, list[str]]]]:
        """Return for each split its subsets with the folders that they were unpacked into."""
        from tensorflow_datasets.core import download
        from tensorflow_datasets.core.download import checksums, download_manager

        infos: dict[str, Any] = dict(self._builder.url_infos)
        downloads = pathlib.Path(tmp_dir) / "downloads"
        if raw_dir is None:
            _require_network(list(self._names()), downloads)
        else:
            # An archive that TFDS has no checksum of is believed; the manifest records its hash.
            for (url, name), path in zip(self._names().items(), self.placed(raw_dir)):
                if url not in infos:
                    believed = checksums.compute_url_info(path)
                    infos[url] = dataclasses.replace(believed, filename=name)
        manager = download.DownloadManager(
            download_dir=downloads,
            extract_dir=downloads / "extracted",
            manual_dir=raw_dir,
            url_infos=infos,
            dataset_name=self._builder.name,
        )
        try:
            generators = self._builder._split_generators(manager)
        except download_manager.NonMatchingChecksumError as error:
            raise errors.UserError(
                f"an archive is not the one that WMT published: {str(error).splitlines()[0]}"
            ) from error
        return {
            str(generator.name): [
                (subset, [os.fspath(folder) for folder in arguments["extraction_map"][subset]])
                for subset in arguments["split_subsets"]
            ]
            for generator in generators
            for arguments in [generator.gen_kwargs]
        }

    def _paths(self, subset: str, folders: list[str], languages) -> list[pathlib.Path]:
        """Return a subset's files, one for each language, in the order of `languages`."""
        from tensorflow_datasets.translate import wmt

        inner = wmt.DATASET_MAP[subset].get_path(self._source)
        folders = folders * len(inner) if len(folders) == 1 else folders
        paths = [pathlib.Path(folder, path) for folder, path in zip(folders, inner)]
        for path in paths:
            if not path.is_file():
                raise errors.UserError(f"the archive of {subset} lacks {path.name}")
        # TFDS gives the source language first, and English second.
        return paths if languages[0] == self._source else paths[::-1]


def _require_network(urls: list[str], downloads: pathlib.Path) -> None:
    """Raise UserError within seconds where a host does not answer and nothing was downloaded."""
    if downloads.is_dir() and any(downloads.iterdir()):
        return
    for host in sorted({parse.urlsplit(url).netloc for url in urls}):
        try:
            socket.create_connection((host, 80), timeout=_TIMEOUT).close()
        except OSError as error:
            raise errors.UserError(
                f"cannot reach {host} ({error}): download {' and '.join(urls)} "
                "by other means and give their folder as --raw_dir"
            ) from error
