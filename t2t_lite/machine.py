"""Resources of this machine: cores, memory, cache folder."""

import contextlib
import ctypes
import math
import os
import pathlib
from collections.abc import Iterator

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
    return max(1, min([bound or 1, *map(math.ceil, _limits(_ROOT))]))


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


def cache_dir() -> pathlib.Path:
    """Return the cache folder: ~/.cache/t2t-lite, or t2t-lite in $XDG_CACHE_HOME."""
    caches = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(caches) / "t2t-lite"


def _limits(root: pathlib.Path) -> Iterator[float]:
    """Yield the limits, in cores, of the process's control groups and of all groups above them.

    In a container the groups named by /proc often do not exist; its limits are then at the root.
    """
    mounts = root / "sys/fs/cgroup"
    for controllers, group in _groups(root):
        folder = mounts / controllers / group.lstrip("/")
        for place in (folder, *folder.parents):
            if place.is_relative_to(mounts):
                with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
                    quota, period = _quota(place)
                    if quota > 0:  # version 1: -1 means no limit
                        yield quota / period


def _groups(root: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Yield the controllers, "" in version 2, and the path of each group that limits time."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:  # "0::/user.slice" or, in version 1, "4:cpu,cpuacct:/docker/1f2e"
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if not controllers or "cpu" in controllers.split(","):
            yield controllers, group


def _quota(group: pathlib.Path) -> tuple[int, int]:
    """Return the microseconds per period and the period; ValueError if there is no limit."""
    if (group / "cpu.max").exists():
        quota, period = (group / "cpu.max").read_text().split()  # "max 100000" without a limit
        return int(quota), int(period)
    quota, period = (group / f"cpu.cfs_{name}_us" for name in ("quota", "period"))
    return int(quota.read_text()), int(period.read_text())
