"""Models on Hugging Face's hub, which the extra `opus_mt` fetches or finds in its cache."""

import pathlib
import re
from collections.abc import Sequence

from t2t_lite import errors


def folder(name: str, files: Sequence[str], weights: Sequence[str]) -> tuple[pathlib.Path, str]:
    """Return the folder of a model's newest revision, or of the cached one, and what it is.

    Args:
      name: "Helsinki-NLP/opus-mt-en-de".
      files: those to fetch.
      weights: fetch the first of these that the model has.

    Raises UserError where there is no such model, or neither a network nor a copy.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        raise errors.UserError(
            f"there is no folder {name}, and it is not a name on the hub, such as "
            "Helsinki-NLP/opus-mt-en-de"
        )
    try:
        import huggingface_hub  # pyright: ignore[reportMissingImports]
        from huggingface_hub import errors as hub_errors  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise errors.UserError(
            f"there is no folder {name}; to fetch a model of this name from the hub run pip "
            "install 't2t-lite[opus_mt]'"
        ) from error
    try:
        path = pathlib.Path(huggingface_hub.snapshot_download(name, allow_patterns=list(files)))
        for file in weights:
            try:
                huggingface_hub.hf_hub_download(name, file, revision=path.name)
                break
            except hub_errors.EntryNotFoundError:  # also where the cache does not have it
                continue
    except Exception as error:  # of the network, of any library below
        reason = str(error).strip().partition("\n")[0]
        raise errors.UserError(
            f"cannot fetch {name} from the hub, and no copy is in its cache: {reason:.200}"
        ) from error
    return path, f"{name}@{path.name}"
