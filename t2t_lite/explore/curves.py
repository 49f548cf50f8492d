"""The curves of a run from TensorBoard's event files: loss, learning rate, figures of dev."""

import math
import pathlib

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.util import tensor_util

# Points of a curve that are kept, evenly: as many as a screen can show.
_POINTS = 500
_FOLDERS = {"": "", "eval": "dev "}


def read(directory: pathlib.Path) -> dict[str, list[list[float]]]:
    """Return [[step, value], ...] by name: "loss", "learning_rate", "dev BLEU", ..."""
    curves: dict[str, list[list[float]]] = {}
    for folder, prefix in _FOLDERS.items():
        if not list((directory / folder).glob("events.out.tfevents.*")):
            continue
        sizes = {event_accumulator.TENSORS: _POINTS}
        events = event_accumulator.EventAccumulator(str(directory / folder), size_guidance=sizes)
        events.Reload()
        for tag in events.Tags()["tensors"]:
            points = {
                event.step: float(tensor_util.make_ndarray(event.tensor_proto))
                for event in events.Tensors(tag)
            }
            # What is not finite has no place in a drawing, nor in JSON.
            curves[prefix + tag.rpartition("/")[2] if folder else tag] = [
                [step, points[step]] for step in sorted(points) if math.isfinite(points[step])
            ]
    return curves
