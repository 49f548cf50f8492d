"""The paper's Table 1, measured: what a layer takes for a sequence of n positions of width d.

  python benchmarks/layers.py                                        # forward, the table below
  python benchmarks/layers.py --backward --n=256,512,1024,2048,4096
  python benchmarks/layers.py --memory --layers=full,restricted --n=256,512,1024,2048,4096,8192
  python benchmarks/layers.py --svg=layers.svg

Layers, each mapping one sequence [1, n, d] to [1, n, d] (--batch for more):

    full          self-attention with heads of 64, all projections included
    restricted    the same, each position seeing --window to either side
    recurrent     Keras' LSTM
    convolution   Keras' Conv1D, k = 3
    separable     Keras' SeparableConv1D, k = 3

Times are medians of the clock, the layers in turns, on the device that TensorFlow takes. Beside
them stand the operations that must follow one another, and through how many layers a signal must go
from any position to any other (maximum path length; k = 3 without dilation, Keras' default). Slopes
are of log time against log n by least squares, over the larger half of the sizes; "attention" is
the time of self-attention less that of its projections. With --memory each case runs in a process
of its own, and its largest resident memory less that of the same process with n = 1 is told (CPU
alone).
"""

import argparse
import json
import math
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

LAYERS = ("full", "restricted", "recurrent", "convolution", "separable")
COLORS = ("#0072b2", "#56b4e9", "#d55e00", "#009e73", "#a67c00")
_STYLE = (  # of the figure, on a light and on a dark page
    "rect{fill:#fff}"
    "@media (prefers-color-scheme:dark){rect{fill:#131416}text:not([fill]){fill:#eee}"
    "[stroke-width],text[fill]{filter:brightness(1.4)}}"
)


def main() -> None:
    """Measure, print RESULT lines, a table and slopes."""
    flags = _flags()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if flags.child:
        print(json.dumps(_run_once(*json.loads(flags.child))))
        return
    measure = _memories if flags.memory else _times
    unit = "MiB" if flags.memory else "ms"
    results = []
    for d in flags.d:
        for n in flags.n:
            for name, value in measure(flags, n, d).items():
                sequential, path = _structure(name, n, flags.window)
                results.append({"layer": name, "n": n, "d": d, unit: round(value, 3)})
                results[-1] |= {"sequential": sequential, "path": path}
                print("RESULT", json.dumps(results[-1]), flush=True)
    for d in flags.d:
        _print_table([each for each in results if each["d"] == d], d, unit)
    if flags.svg:
        pathlib.Path(flags.svg).write_text(_drawing(results, flags.d, unit), "utf-8")


def _flags() -> argparse.Namespace:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=numbers, default=[16, 64, 128, 256, 512, 1024, 2048])
    parser.add_argument("--d", type=numbers, default=[128, 512])
    parser.add_argument("--layers", type=lambda text: text.split(","), default=list(LAYERS))
    parser.add_argument("--window", type=int, default=128)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--backward", action="store_true", help="with gradients, as in training")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--svg", help="write a figure there")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def _structure(name: str, n: int, window: int) -> tuple[int, int]:
    """Return Table 1's sequential operations and maximum path length, constants included."""
    if name == "recurrent":
        return n, n
    name = name.removeprefix("attention (").removesuffix(")")
    reach = {"restricted": window, "convolution": 1, "separable": 1}.get(name, n)
    return 1, max(1, math.ceil((n - 1) / reach))


def _function(name: str, n: int, d: int, *, window: int, batch: int, backward: bool) -> Callable:
    """Return a function without arguments that runs a layer once, to its end."""
    import keras
    import tensorflow as tf

    from t2t_lite.model import attention, restricted

    heads = max(d // 64, 1)
    sizes = {"d_k": d // heads, "d_v": d // heads}

    def self_attention() -> attention.MultiHeadAttention:
        return attention.MultiHeadAttention(d, heads, **sizes)

    layer = {
        "full": self_attention,
        "restricted": lambda: restricted.RestrictedAttention(d, heads, window=window, **sizes),
        "recurrent": lambda: keras.layers.LSTM(d, return_sequences=True),
        "convolution": lambda: keras.layers.Conv1D(d, 3, padding="same"),
        "separable": lambda: keras.layers.SeparableConv1D(d, 3, padding="same"),
        "projections": self_attention,
    }[name]()
    x = tf.random.stateless_normal([batch, n, d], seed=[1, 2])
    layer.build(x.shape)
    variables = [variable.value for variable in layer.trainable_variables]

    def forward(x: tf.Tensor) -> tf.Tensor:
        if name != "projections":
            return tf.reduce_sum(layer(x) ** 2)
        # What self-attention is without attention: the same products, values passed on.
        queries, keys, values = tf.split(tf.matmul(x, variables[0]), 3, axis=-1)
        return tf.reduce_sum(tf.matmul(queries + keys + values, variables[1]) ** 2)

    def run(x: tf.Tensor) -> tf.Tensor:
        if not backward:
            return forward(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = forward(x)
        gradients = tape.gradient(value, [x, *variables])
        # Grappler takes out what nothing is made of, even where something waits for it.
        return value + tf.add_n([tf.reduce_sum(gradient) for gradient in gradients])

    compiled = tf.function(run, autograph=False).get_concrete_function(x)
    return lambda: float(compiled(x))


def _times(flags: argparse.Namespace, n: int, d: int) -> dict[str, float]:
    """Return milliseconds by layer, "attention (...)" among them."""
    names = [*flags.layers]
    with_attention = [name for name in ("full", "restricted") if name in names]
    names += ["projections"] if with_attention else []
    settings = {"window": flags.window, "batch": flags.batch, "backward": flags.backward}
    functions = {name: _function(name, n, d, **settings) for name in names}
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(flags.rounds + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if turn:
                times[name].append(1e3 * (time.perf_counter() - start))
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name in with_attention:
        medians[f"attention ({name})"] = max(medians[name] - medians["projections"], 1e-3)
    medians.pop("projections", None)
    return medians


def _memories(flags: argparse.Namespace, n: int, d: int) -> dict[str, float]:
    """Return MiB by layer."""
    found = {}
    for name in flags.layers:
        case = [name, n, d, flags.window, flags.batch, flags.backward]
        base, used = (_in_a_process([name, size, *case[2:]]) for size in (1, n))
        found[name] = max(used - base, 0.01)
    return found


def _in_a_process(case: list[Any]) -> float:
    command = [sys.executable, __file__, f"--child={json.dumps(case)}"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(answer.stdout.splitlines()[-1])


def _run_once(name: str, n: int, d: int, window: int, batch: int, backward: bool) -> float:
    """Return the MiB that this process has needed at most, after a layer ran."""
    function = _function(name, n, d, window=window, batch=batch, backward=backward)
    for _ in range(2):
        function()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _print_table(results: list[dict], d: int, unit: str) -> None:
    names = list(dict.fromkeys(each["layer"] for each in results))
    sizes = sorted({each["n"] for each in results})
    values = {(each["layer"], each["n"]): each[unit] for each in results}
    print(f"\nd = {d}, {unit}:  n = " + "".join(f"{n:>10}" for n in sizes) + "     slope")
    for name in names:
        line = [values[name, n] for n in sizes]
        slope = _slope(sizes, line) if len(sizes) > 1 else float("nan")
        print(f"{name:24}" + "".join(f"{value:10.2f}" for value in line) + f"{slope:10.2f}")
    if unit == "ms" and {"full", "recurrent"} <= set(names):
        crossing = _crossing(sizes, [values["full", n] - values["recurrent", n] for n in sizes])
        print(f"self-attention is faster than the LSTM {crossing}; by operations it is while n < d")
    print(f"sequential operations and longest path at n = {sizes[-1]:,}:")
    for each in results:
        if each["n"] == sizes[-1] and "(" not in each["layer"]:
            print(f"  {each['layer']:22}{each['sequential']:10,}{each['path']:10,}")


def _slope(sizes: list[int], values: list[float]) -> float:
    """Return the slope of log value against log n over the larger half of the sizes."""
    half = len(sizes) // 2 if len(sizes) > 3 else 0
    xs, ys = ([math.log(v) for v in each[half:]] for each in (sizes, values))
    return statistics.linear_regression(xs, ys).slope


def _crossing(sizes: list[int], differences: list[float]) -> str:
    if all(value < 0 for value in differences):
        return f"at every n up to {sizes[-1]:,}"
    if all(value >= 0 for value in differences):
        return "nowhere"
    place = next(i for i, value in enumerate(differences) if value >= 0)
    if place == 0:
        place = next(i for i, value in enumerate(differences) if value < 0)
        return f"from between n = {sizes[place - 1]:,} and {sizes[place]:,}"
    return f"up to between n = {sizes[place - 1]:,} and {sizes[place]:,}"


def _drawing(results: list[dict], widths: list[int], unit: str) -> str:
    """Return an SVG: a panel for each d, both axes logarithmic."""
    panel, height, margin = 420, 320, 52
    lowest, highest = (f(each[unit] for each in results) for f in (min, max))
    sizes = sorted({each["n"] for each in results})
    names = [name for name in dict.fromkeys(each["layer"] for each in results) if "(" not in name]

    def x(n: float, place: int) -> float:
        share = math.log(n / sizes[0]) / math.log(sizes[-1] / sizes[0])
        return place * panel + margin + share * (panel - margin - 20)

    def y(value: float) -> float:
        share = math.log(value / lowest) / math.log(highest / lowest)
        return height - margin - share * (height - margin - 30)

    def text(x: float, y: float, words: Any, **attributes: str) -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}"{_attributes(attributes)}>{words}</text>'

    def line(points: list[tuple[float, float]], **attributes: str) -> str:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        return f'<polyline points="{path}" fill="none"{_attributes(attributes)}/>'

    parts = [text(4, 18, unit)]
    for place, d in enumerate(widths):
        left, right, bottom = x(sizes[0], place), x(sizes[-1], place), height - margin
        parts.append(text(left, 18, f"d = {d}", font_weight="bold"))
        if sizes[0] <= d <= sizes[-1]:
            middle = x(d, place)
            parts.append(text(middle, height - 12, "n = d", text_anchor="middle"))
            parts.append(
                line([(middle, 30), (middle, bottom)], stroke="#888", stroke_dasharray="4")
            )
        for exponent in range(math.ceil(math.log10(lowest)), int(math.log10(highest)) + 1):
            level = y(10**exponent)
            parts.append(line([(left, level), (right, level)], stroke="#8884"))
            parts.append(text(left - 6, level + 4, f"{10**exponent:g}", text_anchor="end"))
        for n in sizes:
            parts.append(text(x(n, place), bottom + 18, n, text_anchor="middle"))
        for name, color in zip(names, COLORS):
            own = [each for each in results if each["layer"] == name and each["d"] == d]
            points = [(x(each["n"], place), y(each[unit])) for each in own]
            parts.append(line(points, stroke=color, stroke_width="2"))
    for place, (name, color) in enumerate(zip(names, COLORS)):
        parts.append(text(margin + 110 * place, height + 16, name, fill=color))
    size = _attributes({"width": str(panel * len(widths)), "height": str(height + 24)})
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg"{size} font-family="Helvetica, Arial, sans-serif" '
        f'font-size="12"><style>{_STYLE}</style><rect{size} rx="6"/>{"".join(parts)}</svg>\n'
    )


def _attributes(values: dict[str, str]) -> str:
    return "".join(f' {name.replace("_", "-")}="{value}"' for name, value in values.items())


if __name__ == "__main__":
    main()
