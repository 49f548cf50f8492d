"""The cores that a process may use, in a container too, and the memory that it keeps."""

import builtins
import os
import platform
import subprocess
import sys

import pytest

from t2t_lite import errors, machine
from t2t_lite.bin import prompt


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        ("0::/", {"cpu.max": "200000 100000"}, 2),  # docker run --cpus=2
        ("0::/", {"cpu.max": "5000 100000"}, 1),
        ("0::/", {"cpu.max": "max 100000"}, 96),
        ("0::/a.slice/b.service", {"a.slice/cpu.max": "300000 100000"}, 3),  # of the group above
        (
            "0::/a.slice/b.service",
            {"a.slice/cpu.max": "max 100000", "a.slice/b.service/cpu.max": "50000 10000"},
            5,
        ),
        (
            # a container's own group is at the top
            "3:memory:/docker/1f\n4:cpu,cpuacct:/docker/1f",
            {"cpu,cpuacct/cpu.cfs_quota_us": "400000", "cpu,cpuacct/cpu.cfs_period_us": "100000"},
            4,
        ),
        ("4:cpu:/x", {"cpu/x/cpu.cfs_quota_us": "-1", "cpu/x/cpu.cfs_period_us": "1000"}, 96),
        ("", {}, 96),
        ("0::/", {"cpu.max": "nonsense"}, 96),
        ("0::/", {"cpu.max": "1 0"}, 96),
    ],
)
def test_a_quota_limits_the_cores(tmp_path, monkeypatch, groups, files, cores):
    monkeypatch.setattr(machine, "_ROOT", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(96)), raising=False)
    _write(tmp_path, groups, files)
    assert machine.cores() == cores


@pytest.mark.parametrize(
    ("groups", "files", "free"),
    [
        ("0::/", {}, 7 << 20),
        ("0::/a.slice/b.scope", {"a.slice/memory.max": "1000000"}, 1_000_000),  # as systemd sets it
        ("0::/a.slice", {"memory.max": "max", "a.slice/memory.max": "2000000"}, 2_000_000),
        ("3:memory:/docker/1f\n4:cpu:/x", {"memory/memory.limit_in_bytes": "3000000"}, 3_000_000),
        ("3:memory:/", {"memory/memory.limit_in_bytes": str(1 << 63)}, 7 << 20),
    ],
)
def test_memory_is_what_is_free_within_the_limit_of_any_group(
    tmp_path, monkeypatch, groups, files, free
):
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 1 << 24 < machine.memory() <= whole
    monkeypatch.setattr(machine, "_ROOT", tmp_path)
    assert machine.memory() == whole
    _write(tmp_path, groups, files)
    (tmp_path / "proc/meminfo").write_text("MemTotal:  9000 kB\nMemAvailable:  7168 kB\n")
    assert machine.memory() == free


def _write(root, groups, files):
    names = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    for name, text in {"proc/self/cgroup": groups, **names}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


def test_a_user_without_a_home_folder_is_told_what_to_set(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 987_654)
    with pytest.raises(errors.UserError, match="set XDG_CACHE_HOME"):
        machine.cache_dir()
    monkeypatch.setattr(builtins, "input", lambda _: "a dog")
    prompt.ask(lambda line: line == "a dog")  # without a history


@pytest.mark.parametrize(
    ("affinity", "count", "cores"), [({3, 5}, 8, 2), (None, 10, 10), (None, None, 1)]
)
def test_without_a_quota_those_count_that_the_process_may_use(
    tmp_path, monkeypatch, affinity, count, cores
):
    monkeypatch.setattr(machine, "_ROOT", tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    if affinity:
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: affinity, raising=False)
    else:  # as on macOS
        monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert machine.cores() == cores


_FAULTS_OF_A_SECOND_ARRAY = """
import ctypes, resource, sys, threading
from t2t_lite import errors, machine
from t2t_lite.bin import prompt

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def fill():
    bytearray(b"1") * (64 << 20)  # freed at once

ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # no large pages: a fault for each of 4 KiB
if sys.argv[1] == "kept":
    machine.keep_freed_memory()
threads = [threading.Thread(target=fill) for _ in range(2)]
counts = [faults()]
for thread in threads:
    thread.start()
    thread.join()
    counts.append(faults())
print(counts[2] - counts[1])
"""


@pytest.mark.parametrize(("kept", "few"), [("kept", True), ("given back", False)])
def test_freed_memory_can_be_kept(kept, few):
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("the C library is not glibc")
    command = [sys.executable, "-c", _FAULTS_OF_A_SECOND_ARRAY, kept]
    faults = int(subprocess.run(command, capture_output=True, check=True).stdout)
    assert (faults < 500) is few  # of 16,384 pages


def test_what_is_compiled_for_a_gpu_is_kept_by_its_name(tmp_path, monkeypatch):
    script = tmp_path / "nvidia-smi"
    script.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771'\necho 'NVIDIA H200, 143770'\n")
    script.chmod(0o755)
    names = "TF_FORCE_GPU_ALLOW_GROWTH", "CUDA_CACHE_MAXSIZE", "TF_XLA_FLAGS"
    for name in names:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    machine.gpus.cache_clear()
    machine.prepare_gpus()
    assert not set(names) & set(os.environ)  # no GPU here
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    machine.gpus.cache_clear()
    try:
        assert machine.gpus() == [("NVIDIA H200", 143771 * 2**20), ("NVIDIA H200", 143770 * 2**20)]
        monkeypatch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", "false")
        machine.prepare_gpus()
        machine.prepare_gpus()
    finally:
        machine.gpus.cache_clear()
    (folder,) = (tmp_path / "t2t-lite" / "xla").iterdir()
    assert folder.name.startswith("NVIDIA-H200-2.")
    found = [os.environ.pop(name) for name in names]
    flag = f"--tf_xla_persistent_cache_directory={folder}"
    assert found == ["false", str(2**32), flag]
