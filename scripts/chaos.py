"""Kill every process of an experiment repeatedly; the results must equal an undisturbed run's.

  python scripts/chaos.py [--seed=1] [--kills=10] [--work_dir=DIR]

An experiment is t2t-lite-datagen on a small corpus, t2t-lite-trainer as two workers,
t2t-lite-avg-checkpoints, t2t-lite-decoder and t2t-lite-exporter. It runs once undisturbed. Then, in
another folder, each process is killed with SIGKILL at --kills random moments and started again by
the same command, a worker together with its peer. Half of the kills come while a process starts,
half while it works: soon after its files begin to change, so that it is not finished too early.

These must be equal: the bytes of shards, vocabulary, manifest and translations; the values of the
last checkpoint (weights, optimizer moments, step) and of the average; of each export the answers
and the bytes of all files except saved_model.pb and fingerprint.pb, in which TensorFlow numbers
things anew in every process. Files that killed processes left behind count as a difference.

It prints a line for each event and exits with status 1 if anything differs. Training is float32 on
a CPU, where it is exact. With ten kills it takes some 20 minutes on two cores.
"""

import argparse
import dataclasses
import itertools
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

from t2t_lite import errors, registry
from t2t_lite.bin import command

GRACE = 3.0  # seconds that a worker has to notice that its peer is gone
LONGEST = 3600.0  # seconds that a process may run, on a busy machine
_POLL = 0.005
_DISTINCT = 10_000  # pairs; making them takes a second
_SOURCES = ("The dog sees a cat.", "", "A small green house.")
_NOT_COMPARED = ("saved_model.pb", "fingerprint.pb")  # of an export


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scale:
    """How large the experiment is, and how often its processes die."""

    seed: int = 1
    kills: int = 10  # of each process
    killed: Sequence[str] = ("datagen", "trainer", "average", "decoder", "exporter")
    pairs: int = 60_000
    train_steps: int = 60
    lines: int = 400


@dataclasses.dataclass(frozen=True)
class Part:
    """One step of the experiment: the commands of its processes and the files that show its work.

    A training's are its checkpoints, since what matters is what happens between them.
    """

    name: str
    folder: pathlib.Path
    commands: Sequence[Sequence[str]]  # paths are relative to the folder
    shows: str

    def content(self) -> dict[str, int]:
        """Return the sizes of the files that show the work, empty ones left out."""
        sizes = {}
        for path in self.folder.glob(self.shows):
            try:
                status = path.stat()
            except FileNotFoundError:  # a temporary file
                continue
            if status.st_size and path.is_file():
                sizes[str(path)] = status.st_size
        return sizes


@dataclasses.dataclass(frozen=True)
class Times:
    """Seconds that a part takes undisturbed: until its work shows, and from then on."""

    start: float
    work: float


def main(argv: Sequence[str] | None = None) -> int:
    """Run the comparison; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=Scale.seed, help="of the moments")
    parser.add_argument("--kills", type=int, default=Scale.kills, help="of each process")
    parser.add_argument("--work_dir", type=pathlib.Path, help="a new folder, which is kept")
    flags = parser.parse_args(argv)
    scale = Scale(seed=flags.seed, kills=flags.kills)
    try:
        if flags.work_dir:
            return _report(run(flags.work_dir, scale))
        with tempfile.TemporaryDirectory(prefix="t2t-lite-chaos-") as folder:
            return _report(run(pathlib.Path(folder), scale))
    except errors.UserError as error:
        print(f"chaos: {error}", file=sys.stderr)
        return 1


def run(work_dir: pathlib.Path, scale: Scale) -> list[str]:
    """Run both experiments in a new folder and return what differs, a line each."""
    if work_dir.exists() and any(work_dir.iterdir()):
        raise errors.UserError(f"{work_dir} is not empty: give a new folder")
    quiet, killed = work_dir / "quiet", work_dir / "killed"
    for folder in (quiet, killed):
        _write_corpus(folder / "raw", scale)
    times = {}
    for part in _parts(quiet, scale):
        times[part.name] = _time(part)
        seconds = times[part.name]
        _say(f"{part.name}: undisturbed, {seconds.start:.1f} s and {seconds.work:.1f} s of work")
    rng = random.Random(scale.seed)
    count = 0
    for part in _parts(killed, scale):
        kills = scale.kills if part.name in scale.killed else 0
        count += _torment(part, times[part.name], kills=kills, rng=rng)
    _say(f"{count} kills")
    return list(differences(work_dir))


def _report(differences: Sequence[str]) -> int:
    for line in differences:
        _say(f"DIFFERS: {line}")
    _say("something differs" if differences else "all is the same")
    return 1 if differences else 0


# The experiment


def _write_corpus(folder: pathlib.Path, scale: Scale) -> None:
    """Write pairs of the embedded toy grammar as parallel text, the training's several times."""
    folder.mkdir(parents=True)
    samples = registry.problem("toy_ende").samples("train")
    for split, count in (("dev", 20), ("test", scale.lines), ("train", scale.pairs)):
        distinct = itertools.islice(samples, min(count, _DISTINCT))
        pairs = list(itertools.islice(itertools.cycle(distinct), count))
        for side, key in (("source", "inputs"), ("target", "targets")):
            lines = "".join(f"{pair[key]}\n" for pair in pairs)
            (folder / f"{split}.{side}").write_text(lines, "utf-8")


def _parts(folder: pathlib.Path, scale: Scale) -> list[Part]:
    """Return the experiment's steps."""
    corpus = ["--problem=parallel_text", "--data_dir=data"]
    trainer = [
        "trainer",
        *corpus,
        "--output_dir=run",
        "--hparams_set=transformer_toy",
        "--hparams=d_model=32,d_ff=64,num_heads=2,d_k=16,d_v=16,num_encoder_layers=1,"
        "num_decoder_layers=1,batch_tokens=1024,max_buckets=1,warmup_steps=20,dropout=0.1",
        "--precision=float32",
        "--save_checkpoints_steps=2",
        "--keep_checkpoint_max=6",
        f"--eval_frequency={scale.train_steps // 3}",
        "--eval_sentences=4",
        f"--train_steps={scale.train_steps}",
    ]
    model = ["--output_dir=run", "--checkpoint_path=run/averaged"]
    decoder = [
        "decoder",
        *model,
        "--decode_from_file=raw/test.source",
        "--decode_to_file=test.out",
        "--decode_hparams=beam_size=2,batch_size=8,extra_length=10",
    ]
    datagen = ["datagen", *corpus, "--raw_dir=raw", "--vocab_size=600", "--num_workers=2"]
    average = ["avg_checkpoints", "--output_dir=run", "--num_last_checkpoints=3"]
    exporter = ["exporter", *model, "--export_dir=export"]
    return [
        Part("datagen", folder, [datagen], "data/**/*"),
        Part("trainer", folder, [trainer, trainer], "run/ckpt-*.index"),
        Part("average", folder, [average], "run/averaged/**/*"),
        Part("decoder", folder, [decoder], "test.out*"),
        Part("exporter", folder, [exporter], "export/**/*"),
    ]


# Processes


class _Life:
    """A part's processes from their start to their end."""

    def __init__(self, part: Part):
        self.part = part
        self._before = part.content()
        self._started = time.monotonic()
        ports = _free_ports(len(part.commands))
        self._outputs = [tempfile.TemporaryFile() for _ in part.commands]  # noqa: SIM115
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-m", f"t2t_lite.bin.{module}", *flags],
                cwd=part.folder,
                env=_environment(ports, index),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # with its own worker processes
            )
            for index, ((module, *flags), output) in enumerate(zip(part.commands, self._outputs))
        ]

    def __enter__(self) -> "_Life":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        for output in self._outputs:
            output.close()

    @property
    def age(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def sleep(self, until: float) -> bool:
        """Wait for an age; return whether a process ended before it."""
        while self.age < until:
            if any(process.poll() is not None for process in self.processes):
                return True
            time.sleep(_POLL)
        return False

    def sleep_until_work_shows(self) -> bool:
        """Wait until files change; return whether a process ended before that."""
        while self.part.content() == self._before:
            if self.sleep(self.age + _POLL):
                return True
        return False

    def finish(self) -> None:
        """Wait for the end of all processes; raise UserError where one fails."""
        if self.sleep_all(LONGEST):
            raise errors.UserError(f"{self.part.name} hangs: no end after {LONGEST:.0f} s")
        for index, process in enumerate(self.processes):
            if process.returncode:
                raise errors.UserError(
                    f"{self.part.name} fails with status {process.returncode}: {self.said(index)}"
                )

    def sleep_all(self, longest: float) -> bool:
        """Wait for the end of all processes; return whether one is still there after `longest`."""
        while any(process.poll() is None for process in self.processes):
            if self.age > longest:
                return True
            time.sleep(_POLL)
        return False

    def said(self, index: int) -> str:
        """Return the end of what a process wrote."""
        self._outputs[index].seek(0)
        lines = self._outputs[index].read().decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "nothing")


def _time(part: Part) -> Times:
    """Run a part undisturbed."""
    with _Life(part) as life:
        life.sleep_until_work_shows()
        start = life.age
        life.finish()
        return Times(start, life.age - start)


def _torment(part: Part, times: Times, *, kills: int, rng: random.Random) -> int:
    """Run a part, kill each of its processes so many times, and let it finish; return the kills."""
    victims = list(range(len(part.commands))) * kills
    rng.shuffle(victims)
    count, finished = 0, False
    for victim in victims:
        while True:
            killed, finished = _kill_once(part, times, victim, len(victims), finished, rng)
            if killed:
                break
        count += 1
    with _Life(part) as life:
        life.finish()
        _say(f"{part.name}: finished in {life.age:.1f} s after {count} kills")
    return count


def _kill_once(
    part: Part, times: Times, victim: int, kills: int, finished: bool, rng: random.Random
) -> tuple[bool, bool]:
    """Start a part and kill one process at a random moment.

    Returns:
      Whether it was killed: it may be faster; and whether the part has finished its work before,
      so that its files will change no more.
    """
    is_at_work = rng.random() < 0.5 and not finished
    name = f"{part.name} {victim}" if len(part.commands) > 1 else part.name
    with _Life(part) as life:
        if is_at_work:
            ended = life.sleep_until_work_shows()
            moment = life.age + rng.uniform(0, times.work / (kills + 1))
        else:
            ended, moment = False, rng.uniform(0, times.start)
        if ended or life.sleep(moment):
            life.finish()
            _say(f"{name}: finished after {life.age:.1f} s, before its kill")
            return False, True
        process = life.processes[victim]
        process.send_signal(signal.SIGKILL)
        process.wait()
        what = "at work" if is_at_work else "starting"
        _say(f"{name}: killed after {life.age:.1f} s, {what}{_peers_end(life, victim)}")
    return True, finished


def _peers_end(life: _Life, victim: int) -> str:
    """Wait a moment for the others to notice, kill those that do not; return what they said."""
    peers = [i for i in range(len(life.processes)) if i != victim]
    life.sleep_all(life.age + GRACE)
    lines = []
    for index in peers:
        process = life.processes[index]
        if process.poll() is None:
            process.kill()
            process.wait()
            lines.append(f"; {index} waited for it and is stopped")
        else:
            lines.append(f"; {index} ended with status {process.returncode}: {life.said(index)}")
    return "".join(lines)


def _environment(ports: Sequence[int], index: int) -> dict[str, str]:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    environment.pop("TF_CONFIG", None)
    if len(ports) > 1:
        cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
        task = {"type": "worker", "index": index}
        environment["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
    return environment


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


# Comparison


def differences(work_dir: pathlib.Path) -> Iterator[str]:
    """Yield the differences between the killed and the quiet experiment."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with command.quiet_import():
        import tensorflow_text  # noqa: F401  registers the tokenizer's operations
    quiet, killed = work_dir / "quiet", work_dir / "killed"
    yield from _files_differ(quiet / "data", killed / "data")
    yield from _checkpoints_differ(quiet / "run", killed / "run")
    yield from _checkpoints_differ(quiet / "run" / "averaged", killed / "run" / "averaged")
    yield from _checkpoints_differ(quiet / "run" / "best", killed / "run" / "best")
    if (quiet / "test.out").read_bytes() != (killed / "test.out").read_bytes():
        yield "the translations"
    _say(f"translations: {(quiet / 'test.out').stat().st_size:,} bytes compared")
    yield from _exports_differ(quiet / "export" / "1", killed / "export")
    for folder in ("data", "run", "export", "."):
        yield from _left_behind(quiet / folder, killed / folder)


def _files_differ(one: pathlib.Path, other: pathlib.Path) -> Iterator[str]:
    """Yield the names of files, below two folders, that are missing or have other bytes."""
    contents = [
        {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        for folder in (one, other)
    ]
    same = 0
    for name in sorted({*contents[0], *contents[1]}):
        if pathlib.Path(name).name in _NOT_COMPARED:
            continue
        if contents[0].get(name) != contents[1].get(name):
            yield f"{other.parent.name}/{other.name}/{name}"
        else:
            same += len(contents[0][name])
    _say(f"{other.parent.name}/{other.name}: {same:,} bytes of files are the same")


def _checkpoints_differ(one: pathlib.Path, other: pathlib.Path) -> Iterator[str]:
    """Yield the tensors of the newest checkpoints that are not equal to the bit."""
    import numpy as np
    import tensorflow as tf

    from t2t_lite.run import checkpoint

    prefixes = [checkpoint.resolve(folder) for folder in (one, other)]
    steps = [checkpoint.step_of(prefix) for prefix in prefixes]
    if steps[0] != steps[1]:
        yield f"{other.name}: the last checkpoint is {steps[1]}, not {steps[0]}"
        return
    readers = [tf.train.load_checkpoint(prefix) for prefix in prefixes]
    shapes = [reader.get_variable_to_shape_map() for reader in readers]
    if shapes[0] != shapes[1]:
        yield f"{other.name}: the checkpoints' variables"
        return
    # The pipeline's position holds paths and times; the weights show that it is right.
    keys = [key for key in shapes[0] if key.startswith(("model/", "optimizer/"))]
    for key in keys:
        values = [reader.get_tensor(key) for reader in readers]
        if not np.array_equal(*values):
            yield f"{other.name}, step {steps[0]}: {key}"
    _say(f"{other.name}: step {steps[0]}, {len(keys)} tensors compared")


def _exports_differ(one: pathlib.Path, versions: pathlib.Path) -> Iterator[str]:
    """Yield how each of the other experiment's versions differs from an export."""
    import tensorflow as tf

    def answers(path: pathlib.Path) -> list:
        signatures = tf.saved_model.load(str(path)).signatures
        texts = tf.constant(_SOURCES)
        outputs = [signatures[name](inputs=texts) for name in ("serving_default", "nbest")]
        return [{key: value.numpy().tolist() for key, value in each.items()} for each in outputs]

    expected = answers(one)
    for path in sorted(path for path in versions.iterdir() if path.name.isdecimal()):
        yield from _files_differ(one, path)
        if answers(path) != expected:
            yield f"export/{path.name}: the answers"
        _say(f"export/{path.name}: answers compared")


def _left_behind(one: pathlib.Path, other: pathlib.Path) -> Iterator[str]:
    """Yield files that a killed process left in a folder and no later one removed."""
    names = [{path.name for path in folder.iterdir()} for folder in (one, other)]
    for name in sorted(names[1] - names[0]):
        if not name.startswith("events.out.tfevents") and not name.isdecimal():
            yield f"{other.name}/{name} was left behind"


_BEGAN = time.monotonic()


def _say(text: str) -> None:
    print(f"{time.monotonic() - _BEGAN:7.1f} s  {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
