"""What a GPU does: training, decoding, memory, agreement with the CPU; JSON and a Markdown page.

  scripts/gpu_report.sh --minutes=4          # the most telling figure first
  scripts/gpu_report.sh --minutes=60         # goes on where the last call stopped
  python benchmarks/gpu_report.py --small    # the same with tiny models in minutes, GPU or not

Every row is measured in a process of its own, so that one that fails, or runs out of memory, costs
no other; it stands in the table with the reason, and the next call tries it again. Where a batch
does not fit it is computed in parts, as --hparams=max_tokens_per_device does, and the row says of
how many tokens.

Sentences are random ids with lengths like those of news: source lengths are log-normal with a mean
of 27 tokens, target lengths are 1.05 times as long with some noise. Tokens a second count real
source and target tokens, no padding.
"""

import argparse
import dataclasses
import itertools
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

from t2t_lite import config, errors, machine, registry

VOCABULARY = 37_000  # Section 5.1
_CHECKED_STEPS = 20
_LEARNT_STEPS = 200  # of the toy problem, dropout and all
_NOISE = 0.05  # of the dev loss after these: other devices draw other masks
# Largest differences that count as agreement: of logits, and of losses over the checked steps. With
# the rounding of TF32 (10 bits of mantissa) and bfloat16 (7), sums of some hundred products are off
# in the third and second decimal.
_BOUNDS = {"float32": (1e-3, 1e-4), "tf32": (0.05, 5e-3), "bfloat16": (0.5, 0.05)}
_SMALL = {
    "d_model": 32,
    "d_ff": 64,
    "num_heads": 2,
    "d_k": 16,
    "d_v": 16,
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page; return the exit status: 1 where outputs do not agree with the CPU's."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="tiny models: to try this script")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin nothing after these")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--only", default="", help="rows whose names begin like this")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("gpu_report"))
    parser.add_argument("--one", help=argparse.SUPPRESS)  # a child's task, as JSON
    flags = parser.parse_args(argv)
    machine.prepare_gpus()
    if flags.one:
        task = json.loads(flags.one)
        kinds = (_check, _learn, _train, _decode, _machine)
        kind = {function.__name__: function for function in kinds}[f"_{task.pop('kind')}"]
        print("RESULT " + json.dumps(kind(**task)), flush=True)
        return 0
    end = time.monotonic() + 60 * flags.minutes
    record, page = flags.output.with_suffix(".json"), flags.output.with_suffix(".md")
    results = json.loads(record.read_text("utf-8")) if record.exists() else {}
    results = {name: result for name, result in results.items() if "failure" not in result}
    results["machine"] = _child({"kind": "machine"}, end)
    for name, task in _tasks(small=flags.small, several=results["machine"].get("devices", 1) > 1):
        if name in results or not name.startswith(flags.only):
            continue
        if time.monotonic() > end:
            break
        task["seconds"] = flags.seconds
        results[name] = _measured(task, end)
        print(f"{name}: {json.dumps(results[name])[:300]}", flush=True)
        record.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
        page.write_text("\n".join(_page(results)) + "\n", "utf-8")
    lines = list(_page(results))
    print("\n".join(lines))
    return int(any("DIFFERS" in line for line in lines))


def _tasks(*, small: bool, several: bool) -> Iterator[tuple[str, dict]]:
    """Yield the rows by name, the most telling first."""

    def train(size: str, precision: str, xla: str, devices: str = "one_device", shapes: int = 1):
        name = f"train {size} {devices} {precision} xla={xla} shapes={shapes}"
        return name, {
            "kind": "train", "size": size, "precision": precision, "xla": xla,
            "strategy": devices, "shapes": shapes, "small": small,
        }  # fmt: skip

    yield train("base", "bfloat16", "on")
    if several:
        yield train("base", "bfloat16", "on", "mirrored")
        yield train("big", "bfloat16", "on", "mirrored")
    yield train("big", "bfloat16", "on")
    yield train("base", "float32", "on")
    yield train("base", "bfloat16", "off")
    for precision, xla in itertools.product(("bfloat16", "float32"), (True, False)):
        task = {"kind": "decode", "precision": precision, "xla": xla, "small": small}
        yield f"decode base {precision} xla={'on' if xla else 'off'}", task
    for products, xla in [("cpu", False), *itertools.product(_BOUNDS, (True, False))]:
        task = {"kind": "check", "products": products, "xla": xla, "small": small}
        yield f"check {products} xla={'on' if xla else 'off'}", task
    for products in ("cpu", "float32", "bfloat16"):
        yield f"learn {products}", {"kind": "learn", "products": products}
    yield train("base", "bfloat16", "on", shapes=3)
    yield train("big", "float32", "on")
    yield train("big", "bfloat16", "off")


def _measured(task: dict, end: float) -> dict:
    """Return a row's result; where memory is too small, that of a batch in parts."""
    if task["kind"] != "train":
        return _child(task, end)
    tokens, result = 512 if task["small"] else 25_000, {}
    for parts in (1, 2, 4, 8, 16):
        at_a_time = -(-tokens // parts)
        result = _child({**task, "batch_tokens": tokens, "at_a_time": at_a_time}, end)
        result["at_a_time"] = at_a_time
        if "out of memory" not in result.get("failure", ""):
            break
    return result


def _page(results: dict) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# GPU report of t2t-lite"
    yield ""
    yield from (f"- {name}: {value}" for name, value in results["machine"].items())
    for title, columns, cells in (
        (
            "train",
            "ms a step | real tokens/s | fill | tokens at a time | peak memory, GiB | s to compile",
            lambda found: (
                f"{found['milliseconds']:,.1f} | {found['tokens_per_second']:,.0f} | "
                f"{found['fill']:.0%} | {found['at_a_time']:,} | {found['memory']} | "
                f"{found['compile_seconds']:.1f} for {found['shapes']} shapes"
            ),
        ),
        (
            "decode",  # beam 4, 64 sentences of 32 tokens, outputs of 32 tokens
            "target tokens/s | ms a position | s for the first call",
            lambda found: (
                f"{found['tok_s']:,} | {found['median_s'] * 1e3 / 32:.2f} | "
                f"{found['first_call_s']:.1f}"
            ),
        ),
        (
            "check",  # the same weights, inputs and updates without dropout as on the CPU
            "logits differ by | losses differ by | greedy outputs equal |",
            lambda found: _agreement(results, found),
        ),
        (
            "learn",
            f"dev loss of the toy problem after {_LEARNT_STEPS} steps | the CPU's |",
            lambda found: _learning(results, found),
        ),
    ):
        yield from ("", f"| {title} | {columns} |", "|---" * (columns.count("|") + 2) + "|")
        for name, found in results.items():
            if name.startswith(title):
                row = found["failure"] if "failure" in found else cells(found)
                is_check = title in ("check", "learn") and "failure" in found
                verdict = "DIFFERS: " if is_check else ""
                yield f"| {name.removeprefix(title + ' ')} | {verdict}{row} |"


def _agreement(results: dict, found: dict) -> str:
    """Return a row's cells: how far a check is from the CPU's."""
    import numpy as np

    expected = results.get("check cpu xla=off", {})
    if "logits" not in expected or found is expected:
        return "the CPU's | | |"
    logits = float(np.abs(np.subtract(expected["logits"], found["logits"])).max())
    losses = float(np.abs(np.subtract(expected["losses"], found["losses"])).max())
    pairs = list(zip(expected["outputs"], found["outputs"]))
    equal = f"{np.mean([a == b for a, b in pairs]):.0%}" if pairs else "not compared"
    bounds = _BOUNDS[found["products"]]
    # A comparison with NaN is false: that is no agreement.
    verdict = "agrees" if logits <= bounds[0] and losses <= bounds[1] else "DIFFERS"
    return f"{logits:.1e} | {losses:.1e} | {equal} | {verdict}"


def _learning(results: dict, found: dict) -> str:
    """Return a row's cells: how far a training's loss is from the CPU's."""
    expected = results.get("learn cpu", {}).get("loss", float("nan"))
    verdict = "agrees" if abs(found["loss"] / expected - 1) <= _NOISE else "DIFFERS"
    return f"{found['loss']:.4f} | {expected:.4f} | {verdict}"


def _child(task: dict, end: float) -> dict:
    """Return what this program finds out in a process of its own, on the CPU alone if asked."""
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3")
    if task.get("products") == "cpu":
        environment["CUDA_VISIBLE_DEVICES"] = "-1"
    command = [sys.executable, __file__, f"--one={json.dumps(task)}"]
    return _result(command, max(end - time.monotonic(), 60), environment)


def _result(command: list[str], limit: float, environment: dict) -> dict:
    """Return the RESULT of a command, or {"failure": why there is none}."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failure": f"more than {limit:.0f} s"}
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line.removeprefix("RESULT "))
    if "ResourceExhausted" in done.stderr or "out of memory" in done.stderr or done.returncode < 0:
        return {"failure": "out of memory" if done.returncode > 0 else "killed: out of memory?"}
    last = (done.stderr.strip().splitlines() or ["no output"])[-1]
    return {"failure": last[:200].replace("|", "/")}


# What the children do


def _machine() -> dict:
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    build = tf.sysconfig.get_build_info()
    found = {
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "CUDA, cuDNN": f"{build.get('cuda_version')}, {build.get('cudnn_version')}",
        "devices": len(gpus) or 1,
        "hosts": f"{os.cpu_count()} logical processors, {platform.machine()}",
    }
    for index, gpu in enumerate(gpus):
        details = tf.config.experimental.get_device_details(gpu)
        name, capability = details.get("device_name"), details.get("compute_capability")
        found[f"GPU {index}"] = f"{name}, compute capability {capability}"
    if not gpus:
        found["GPU"] = "none: the figures are the CPU's"
    query = ["nvidia-smi", "--query-gpu=driver_version,memory.total,power.limit,clocks.max.sm"]
    try:
        smi = subprocess.run(
            [*query, "--format=csv,noheader"], capture_output=True, text=True, check=True
        )
        found["driver, memory, power, clock"] = "; ".join(smi.stdout.split("\n")).strip("; ")
    except (OSError, subprocess.CalledProcessError):
        pass
    return found


def _decode(small: bool, precision: str, xla: bool, seconds: float) -> dict:
    """Return what decode.py measures: beam 4, outputs of 32 tokens."""
    del seconds
    command = [str(pathlib.Path(__file__).with_name("decode.py")), f"--precision={precision}"]
    command += ["--workers=1", *["--xla"] * xla]
    if not small:
        command += ["--hparams_set=transformer_base", f"--vocab_size={VOCABULARY}", "--batch=64"]
    result = _result([sys.executable, *command], 600, dict(os.environ))
    if "failure" in result:
        raise RuntimeError(result["failure"])
    return result


def _check(small: bool, products: str, xla: bool, seconds: float) -> dict:
    """Return logits, losses and outputs of a model whose weights NumPy has drawn."""
    import numpy as np
    import tensorflow as tf

    from t2t_lite.decode import beam_search, cached_decoder, candidates, options
    from t2t_lite.model import transformer
    from t2t_lite.train import devices, optimizer, step

    del seconds
    tf.config.experimental.enable_tensor_float_32_execution(products == "tf32")
    sizes = _SMALL if small else {"num_encoder_layers": 3, "num_decoder_layers": 3}
    hparams = dataclasses.replace(registry.hparams("transformer_base"), **sizes, dropout=0.0)
    policy = devices.dtype_policy("bfloat16" if products == "bfloat16" else "float32")
    model = transformer.Transformer(hparams, 1000, dtype=policy)
    random = np.random.default_rng(7)
    for name, variable in sorted(model.named_variables().items()):
        if len(variable.shape) == 2:  # kernels and the embedding; the others begin the same anyway
            deviation = 1 / np.sqrt(variable.shape[-1 if "embedding" in name else 0])
            variable.assign(random.normal(0, deviation, variable.shape).astype(np.float32))
    ids = random.integers(3, 1000, (2, 16, 24))
    ids[:, 1::3, 17:] = 0  # padding
    batch = {name: tf.constant(x, tf.int32) for name, x in zip(("inputs", "targets"), ids)}
    logits = model(batch["inputs"], batch["targets"])
    decode_options = options.DecodeOptions(beam_size=1)
    decoder = cached_decoder.of_models([model], decode_options)

    @tf.function(autograph=False)
    def search(inputs):
        return beam_search.search(
            decoder,
            decoder.encode(inputs),
            decode_options,
            emittable=candidates.EmittableIds(1000, forbidden=(0, 2)),
            max_lengths=tf.fill([tf.shape(inputs)[0]], 24),
        )

    outputs = search(batch["inputs"]).ids[:, 0].numpy().tolist() if products != "bfloat16" else []
    train_step = step.TrainStep(
        model,
        optimizer.Adam(model.named_variables(), beta1=0.9, beta2=0.98, epsilon=1e-9),
        hparams=hparams,
        strategy=devices.strategy("one_device"),
        xla=xla,
        random_seed=1,
    )
    losses = [
        float(train_step(batch, step=number, learning_rate=1e-4).loss)
        for number in range(1, _CHECKED_STEPS + 1)
    ]
    logits = tf.cast(logits, tf.float32).numpy()[:, :, ::50].tolist()
    return {"products": products, "logits": logits, "losses": losses, "outputs": outputs}


def _learn(products: str, seconds: float) -> dict:
    """Return the dev loss of a short training by the commands themselves, with XLA on a GPU."""
    del seconds
    with tempfile.TemporaryDirectory() as folder:
        flags = [f"--data_dir={folder}/data", "--problem=toy_ende"]
        precision = "bfloat16" if products == "bfloat16" else "float32"
        trainer = [
            *(f"--output_dir={folder}/run", "--hparams_set=transformer_toy"),
            *(f"--train_steps={_LEARNT_STEPS}", "--hparams=max_buckets=2", "--eval_sentences=0"),
            *(f"--precision={precision}", "--notf32"),
        ]
        for name, more in (("datagen", []), ("trainer", trainer)):
            command = [sys.executable, "-m", f"t2t_lite.bin.{name}", *flags, *more]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stderr.strip())
    loss = re.findall(r"dev: loss ([0-9.]+)", done.stderr)[-1]
    return {"loss": float(loss)}


def _train(
    *,
    size: str,
    precision: str,
    xla: str,
    strategy: str,
    shapes: int,
    small: bool,
    seconds: float,
    batch_tokens: int,
    at_a_time: int,
) -> dict:
    """Return what a training's steps take, compilation apart."""
    import tensorflow as tf

    from t2t_lite.model import transformer
    from t2t_lite.train import devices, optimizer, step, throughput

    hparams = dataclasses.replace(
        registry.hparams(f"transformer_{size}"),
        **(_SMALL if small else {}),
        batch_tokens=batch_tokens,
        max_tokens_per_device=at_a_time if at_a_time < batch_tokens else 0,
    )
    distributed = devices.strategy(strategy)
    with distributed.scope():
        policy = devices.dtype_policy(precision)
        model = transformer.Transformer(hparams, 1000 if small else VOCABULARY, dtype=policy)
        adam = optimizer.Adam(model.named_variables(), beta1=0.9, beta2=0.98, epsilon=1e-9)
    train_step = step.TrainStep(
        model,
        adam,
        hparams=hparams,
        strategy=distributed,
        xla=devices.use_xla(xla),
        random_seed=1,
    )
    batches = _batches(hparams, shapes)
    numbers = itertools.count(1)

    def run(batch) -> step.StepResult:
        return train_step(batch, step=next(numbers), learning_rate=1e-4)

    start = time.perf_counter()
    for batch in batches:
        float(run(batch).loss)
    compiling = time.perf_counter() - start
    for batch in batches:
        float(run(batch).loss)
    done, spent = throughput.Throughput(), 0.0
    steps, begun = 0, time.perf_counter()
    while time.perf_counter() < begun + seconds:
        start = time.perf_counter()
        results = [run(batch) for batch in batches for _ in range(4)]
        float(results[-1].loss)  # waits for all
        spent = time.perf_counter() - start
        steps += len(results)
        for batch in batches:
            for _ in range(4):
                done.add(batch, seconds=spent / len(results))
    memory = "not measured"
    if tf.config.list_physical_devices("GPU"):
        memory = f"{tf.config.experimental.get_memory_info('GPU:0')['peak'] / 2**30:.1f}"
    return {
        "milliseconds": 1e3 * (time.perf_counter() - begun) / steps,
        "tokens_per_second": done.tokens_per_second,
        "fill": done.fill,
        "memory": memory,
        "compile_seconds": compiling,
        "shapes": train_step.traces,
    }


def _batches(hparams: config.HParams, shapes: int) -> list[dict]:
    """Return one batch of each of some shapes."""
    import numpy as np
    import tensorflow as tf

    from t2t_lite.data import buckets, token_batches

    random = np.random.default_rng(0)
    sources = np.clip(random.lognormal(3.13, 0.58, 40_000), 2, hparams.max_length).astype(int)
    targets = np.clip(sources * random.normal(1.05, 0.15, 40_000), 2, hparams.max_length)
    lengths = np.stack([sources, targets.astype(int)], 1)
    batches = []
    table = np.column_stack(np.unique(lengths, axis=0, return_counts=True))
    sizes = np.array(buckets.choose(table, max_buckets=hparams.max_buckets))
    fits = (lengths[:, None] <= sizes).all(2)
    bucket = np.where(fits, sizes.sum(1), 1 << 30).argmin(1)
    # Of as many groups of pairs, short to long, the shape of the one in the middle.
    by_size = np.argsort(lengths.sum(1), kind="stable")
    middles = by_size[((np.arange(shapes) + 0.5) * len(lengths) / shapes).astype(int)]
    for chosen in dict.fromkeys(bucket[middles].tolist()):
        shape = token_batches.shape(tuple(sizes[chosen].tolist()), hparams.batch_tokens)
        of_shape = np.resize(lengths[bucket == chosen], (shape.batch, 2))
        batch = {}
        for name, of_side, length in zip(("inputs", "targets"), of_shape.T, shape[1:]):
            ids = random.integers(10, 1000, (shape.batch, length))
            ids[np.arange(length) >= of_side[:, None]] = 0
            batch[name] = tf.constant(ids, tf.int32)
        batches.append(batch)
    return batches


if __name__ == "__main__":
    try:
        sys.exit(main())
    except errors.UserError as error:
        sys.exit(f"gpu_report: {error}")
