"""The connection to Ray, and whether its nodes can do the work."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

# Read when Ray is imported.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from assay_cluster import node as on_node
from assay_cluster.errors import Failure

# Nodes need not have this package, nor another version of it.
ray.cloudpickle.register_pickle_by_value(on_node)

# Memory for objects on this machine: results of parts are a megabyte at most.
OBJECT_STORE_BYTES = 128 << 20
# For a head to take a connection.
REACH_S = 10
# For a node to say what it has.
INSPECTION_S = 120


@contextlib.contextmanager
def connected(address: str | None, processes: int | None) -> Iterator[None]:
    """Without an address, a cluster of this machine alone that ends with the block."""
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        cores = processes or os.cpu_count() or 1
        options |= {"address": "local", "num_cpus": cores, "object_store_memory": OBJECT_STORE_BYTES}
    else:
        _reach(address)
        options |= {"address": address}
    # Ray prints the logs of dead nodes to standard output, where data belongs.
    with contextlib.redirect_stdout(sys.stderr if os.environ.get("ASSAY_CLUSTER_RAY_LOG") else _Nowhere()):
        try:
            ray.init(**options)
        except Exception as error:
            where = address or "this machine"
            raise Failure(f"cannot connect to Ray at {where}: {_first_line(error)}") from None
        # Ray has put a handler of its own in place.
        signal.signal(signal.SIGTERM, _interrupt)
        try:
            yield
        finally:
            ray.shutdown()


def _reach(address: str) -> None:
    """Ray would try for minutes where nothing listens."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=REACH_S).close()
    except (OSError, OverflowError) as error:
        raise Failure(f"cannot connect to Ray at {address}: {error}; does `ray start --head` run there?") from None


def capable_nodes(threads: int) -> dict[str, str]:
    """Ids and addresses of the nodes that are alive and have so many cores."""
    return {
        node["NodeID"]: f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get("CPU", 0) >= threads
    }


def cores_of(node: str, least: int) -> int:
    """All cores of a node; `least` of one that is gone, where nothing will run."""
    return next((int(other["Resources"].get("CPU", 0)) for other in ray.nodes() if other["NodeID"] == node), 0) or least


def wait_for_nodes(threads: int, wait_s: float, say: Callable[[str], None]) -> dict[str, str]:
    """A cluster that has just been started may have none yet."""
    start = time.monotonic()
    while not (nodes := capable_nodes(threads)):
        if time.monotonic() - start > wait_s:
            raise Failure(f"no node has {threads} cores (--par); the cluster is empty, or its nodes are smaller")
        if time.monotonic() - start < 1:
            say(f"waiting for a node with {threads} cores, for {wait_s:.0f} s at most")
        time.sleep(1)
    return nodes


def program_here(program: str) -> on_node.Inspection:
    """What the driver's machine has: it merges."""
    found = on_node.inspect(program, None, (), ("", "driver"))
    if found.trouble:
        raise Failure(found.trouble)
    return found


def check_nodes(
    nodes: dict[str, str],
    program: str,
    here: on_node.Inspection,
    plan: tuple[str, str] | None,
    paths: tuple[str, ...],
    probe: tuple[str, ...],
) -> list[str]:
    """Raises `Failure` with all that is wrong; returns remarks about nodes that went away meanwhile."""
    task = ray.remote(num_cpus=0, max_retries=0)(on_node.inspect)
    asked = {}
    for node in nodes:
        pinned = NodeAffinitySchedulingStrategy(node, soft=False)
        asked[node] = task.options(name="check a node", scheduling_strategy=pinned).remote(
            program, plan, paths, None, probe
        )
    deadline = time.monotonic() + INSPECTION_S
    troubles, remarks = [], []
    for node, reference in asked.items():
        try:
            found = ray.get(reference, timeout=max(0, deadline - time.monotonic()))
        except ray.exceptions.GetTimeoutError:
            troubles.append(f"node {nodes[node]} does not respond")
            continue
        except ray.exceptions.RayError as error:
            remarks.append(f"node {nodes[node]} is lost: {_first_line(error)}")
            continue
        if found.trouble:
            troubles.append(f"node {found.host}: {found.trouble}")
        elif (found.version, found.digest) != (here.version, here.digest):
            troubles.append(
                f"node {found.host} has another program: {found.version}, SHA-256 {found.digest[:16]}…; "
                f"the driver has {here.version}, {here.digest[:16]}…"
            )
    if troubles:
        raise Failure("\n".join(troubles))
    return remarks


def driver_node() -> str:
    """Ray's id of the node that this process is connected to."""
    return str(ray.get_runtime_context().get_node_id())


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


class _Nowhere:
    """A file that forgets."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False
