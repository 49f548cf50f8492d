"""Resources of this machine: cores, memory, cache folder."""

import contextlib
import ctypes
import functools
import importlib.metadata
import math
import os
import pathlib
import re
import subprocess
from collections.abc import Iterator

from t2t_lite import errors

_ROOT = pathlib.Path("/")
# mallopt's parameters, as glibc's malloc.h numbers them.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8


def cores() -> int:
    """Return how many cores this process may keep busy, at least 1.

    These are the cores that it is bound to (`taskset`, a container's `--cpuset-cpus`), or fewer if
    a control group limits its time (a container's `--cpus`, systemd's CPUQuota), rounded up.
    """
    # macOS has no sched_getaffinity
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limits = filter(None, map(_quota, _groups("cpu")))
    return max(1, min([bound or 1, *map(math.ceil, limits)]))


def memory() -> int:
    """Return the bytes of memory that this process can get: those free, or a group's limit."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError):  # macOS has no such file
        match = re.search(r"MemAvailable: +(\d+) kB", (_ROOT / "proc/meminfo").read_text("ascii"))
        free = min(free, int(match[1]) * 1024) if match else free
    return min([free, *filter(None, map(_memory_limit, _groups("memory")))])


def keep_freed_memory() -> None:
    """Make glibc's malloc keep freed memory for reuse; other C libraries are left as they are.

    For a process that allocates gigabytes in every step. Call it before threads exist, since each
    would get its own arena. By default malloc returns large blocks to the system, which must zero
    the pages again, within the time of the step.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "gnu_get_libc_version"):
        for parameter, value in ((_ARENA_MAX, 1), (_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1)):
            library.mallopt(parameter, value)


@functools.cache
def gpus() -> list[tuple[str, int]]:
    """Return the name and the bytes of memory of each GPU that NVIDIA's driver sees."""
    query = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        lines = subprocess.run(
            query, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        cards = (line.rpartition(", ") for line in lines)
        return [(name, int(mebibytes) * 2**20) for name, _, mebibytes in cards]
    except (OSError, subprocess.SubprocessError, ValueError):
        return []


def prepare_gpus() -> None:
    """Set what TensorFlow on GPUs reads from the environment, unless it is set already.

    Call it before TensorFlow is imported. Memory is taken as it is needed, for others may use the
    card; kernels that CUDA compiles, and the programs that XLA compiles, are kept for later starts.
    """
    if not gpus():
        return
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    os.environ.setdefault("CUDA_CACHE_MAXSIZE", str(1 << 32))  # the largest that CUDA takes
    flags = os.environ.get("TF_XLA_FLAGS", "")
    if "persistent_cache_directory" in flags:
        return
    with contextlib.suppress(OSError, errors.UserError):  # without a folder nothing is kept
        device = re.sub(r"\W+", "-", gpus()[0][0])
        folder = cache_dir() / "xla" / f"{device}-{importlib.metadata.version('tensorflow')}"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK) and " " not in str(folder):  # the flags end at a space
            flags = f"{flags} --tf_xla_persistent_cache_directory={folder}"
            os.environ["TF_XLA_FLAGS"] = flags.strip()


def cache_dir() -> pathlib.Path:
    """Return the cache folder: ~/.cache/t2t-lite, or t2t-lite in $XDG_CACHE_HOME.

    Raises UserError for a user without a home folder, as in many containers.
    """
    try:
        caches = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    except RuntimeError as error:
        raise errors.UserError(
            "this user has no home folder for a cache: set XDG_CACHE_HOME to a folder"
        ) from error
    return pathlib.Path(caches) / "t2t-lite"


def _groups(controller: str) -> Iterator[pathlib.Path]:
    """Yield the folders of the process's control groups and of all groups above them.

    In a container the groups named by /proc often do not exist; its limits are then at the root.
    """
    mounts = _ROOT / "sys/fs/cgroup"
    try:
        lines = (_ROOT / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:  # "0::/user.slice" or, in version 1, "4:cpu,cpuacct:/docker/1f2e"
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if not controllers or controller in controllers.split(","):
            folder = mounts / controllers / group.lstrip("/")
            yield from (p for p in (folder, *folder.parents) if p.is_relative_to(mounts))


def _quota(group: pathlib.Path) -> float | None:
    """Return a group's limit in cores, None where it has none."""
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()  # "max 100000" without a limit
        else:
            files = (group / f"cpu.cfs_{name}_us" for name in ("quota", "period"))
            quota, period = (file.read_text() for file in files)
        return int(quota) / int(period) if int(quota) > 0 else None  # version 1: -1 is no limit


def _memory_limit(group: pathlib.Path) -> int | None:
    """Return a group's limit in bytes, None where it has none."""
    for name in ("memory.max", "memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # "max" without a limit
            return int((group / name).read_text())
