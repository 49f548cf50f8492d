"""Files and tar archives for tests."""

import io
import tarfile


def unpacked(folder, files):
    """Write contents by name, text or bytes, as files of a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def write(path, files):
    """Write contents by name, text or bytes, as .tar or gzipped as any other suffix."""
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as tar:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def texts(path):
    """Yield the name and the text of each file of an archive."""
    with tarfile.open(path) as tar:
        for member in tar:
            stream = tar.extractfile(member)
            if stream is not None:
                yield member.name, stream.read().decode()
