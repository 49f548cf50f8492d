"""The workers that TF_CONFIG names, and the wait until all have started.

TensorFlow's own wait says nothing and ends at no signal, so it begins when all are here.
"""

import json
import os
import socket
import time
from collections.abc import Callable
from typing import NamedTuple

from t2t_lite import errors

KINDS = ("chief", "worker")  # the types of tasks that train
_SILENT_SECONDS = 5  # before the missing ones are named
_RETRY_SECONDS = 0.5


class Cluster(NamedTuple):
    """The addresses "host:port" of this worker and of the others, by name ("worker 1")."""

    own: str
    others: dict[str, str]


def read() -> Cluster | None:
    """Return what TF_CONFIG says; None if it names no cluster, UserError if it is wrong."""
    text = os.environ.get("TF_CONFIG")
    try:
        given = json.loads(text or "{}")
        if not (cluster := given.get("cluster")):
            return None
        task = given.get("task", {})
        addresses = {
            (kind, index): address
            for kind, tasks in cluster.items()
            for index, address in enumerate(tasks)
        }
        own = addresses.pop((task["type"], task["index"]))
        if set(cluster) <= set(KINDS) and all(map(_port, [own, *addresses.values()])):
            return Cluster(own, {f"{kind} {at}": there for (kind, at), there in addresses.items()})
    except (AttributeError, LookupError, TypeError, ValueError):
        pass
    raise errors.UserError(
        'TF_CONFIG is {"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", '
        '"index": 0}}, with tasks of type chief or worker only (there are no parameter servers, '
        f"ps), and this process is one of them; got {text}"
    )


def wait(cluster: Cluster, say: Callable[[str], None]) -> None:
    """Return when all others have started; after some seconds say which have not.

    Each listens until it has reached all others, and then leaves the port to TensorFlow.
    Raises UserError if the own port is taken.
    """
    others, named, start = cluster.others, None, time.monotonic()
    with _listening(cluster.own):
        while others := {name: at for name, at in others.items() if not _is_reached(at)}:
            if others != named and time.monotonic() - start > _SILENT_SECONDS:
                missing = ", ".join(f"{name} at {address}" for name, address in others.items())
                say(f"waiting for {missing}; the command must be started there, too")
                named = others
            time.sleep(_RETRY_SECONDS)


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def _listening(address: str) -> socket.socket:
    has_both = socket.has_dualstack_ipv6()
    try:
        return socket.create_server(
            ("", _port(address)),
            family=socket.AF_INET6 if has_both else socket.AF_INET,
            dualstack_ipv6=has_both,
            backlog=4096,
        )
    except OSError as error:
        raise errors.UserError(
            f"TF_CONFIG gives this worker {address}, where it cannot listen: {error.strerror}; "
            "another process may still run there: end it, or give another port"
        ) from error


def _is_reached(address: str) -> bool:
    try:
        socket.create_connection(
            (address.rpartition(":")[0].strip("[]"), _port(address)), 1
        ).close()
    except OSError:
        return False
    return True
