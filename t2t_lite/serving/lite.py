"""A training run as a LiteRT model with what turns text into its ids, for t2t_lite_runtime.

export_dir/1/model.tflite
             manifest.json                             languages, checkpoint, options, vocabularies
             source.model, target.model                SentencePiece's, of both sides in one file
                                                       where they are the same
"""

import contextlib
import dataclasses
import json
import pathlib
from typing import Any

from t2t_lite import errors, registry
from t2t_lite.decode import engine, litert, translator
from t2t_lite.text import piece_vocabulary
from t2t_lite.text import vocabulary as vocabularies

MODEL_FILE = "model.tflite"
RECORD_FILE = "manifest.json"


def save(
    model: translator.Translator, path: pathlib.Path, *, problem: str, weights: litert.Weights
) -> None:
    """Write the files into the new folder `path`; raise UserError for what LiteRT does not do."""
    if mistake := engine.mistake(model):
        raise errors.UserError(mistake)
    source, target = model.vocabulary, model.vocabulary.targets
    if not (source.sentencepiece_model and target.sentencepiece_model):
        raise errors.UserError(
            "a LiteRT export has a SentencePiece vocabulary, which this run's is not: export it "
            "for TensorFlow Serving"
        )
    options = model.options
    model_bytes = litert.convert(
        model,
        longest_source=options.max_source_length,
        num_kept=options.beam_size,
        weights=weights,
    )
    path.mkdir()
    (path / MODEL_FILE).write_bytes(model_bytes)
    sides = {"source": source} | ({} if target is source else {"target": target})
    record = {
        "problem": problem,
        "languages": _languages(problem, source),
        "checkpoint": model.name,
        "weights": weights,
        "options": dataclasses.asdict(options),
        # Of the target language that inputs get which name none.
        "label": model.task.label,
        # An input's bytes beyond these cannot change its ids.
        "max_bytes": model.task.max_bytes(options.max_source_length),
        "vocabularies": {name: _side(side, name, path) for name, side in sides.items()},
    }
    text = json.dumps(record, ensure_ascii=False)
    (path / RECORD_FILE).write_text(text + "\n", "utf-8")


def _languages(problem: str, vocabulary: vocabularies.Vocabulary) -> dict[str, Any]:
    """Return the languages as far as the problem, or a vocabulary with labels, tells them."""
    source = target = ""
    with contextlib.suppress(errors.UserError):  # a problem of a user's own folder
        known = registry.problem(problem)
        source, target = known.languages[::-1] if known.is_reversed else known.languages
    labels = sorted(label.strip("<>") for label in vocabulary.labels)
    return {"source": source, "targets": labels or ([target] if target else [])}


def _side(side: vocabularies.Vocabulary, name: str, path: pathlib.Path) -> dict:
    """Write a side's SentencePiece model; return its record."""
    assert side.sentencepiece_model is not None
    file = path / f"{name}.model"
    file.write_bytes(side.sentencepiece_model)
    if isinstance(side, piece_vocabulary.PieceVocabulary):
        return {"model": file.name, "pieces": list(side.pieces)}
    return {"model": file.name}
