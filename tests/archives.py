"""Tar archives for tests."""

import io
import tarfile


def write(path, files):
    """Write contents by name, text or bytes, as .tar or gzipped as any other suffix."""
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as tar:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path
