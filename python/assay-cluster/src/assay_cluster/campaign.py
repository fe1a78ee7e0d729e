"""Places jobs on nodes. A job is a run of the program; what its reply means is its owner's business.

Ray's own retries are off: they do not avoid the node that failed, and do not say that they happened.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from assay_cluster import node as on_node
from assay_cluster.cluster import capable_nodes, check_nodes, cores_of, driver_node, wait_for_nodes
from assay_cluster.errors import Again, Failure
from assay_cluster.progress import Progress, say

TICK_S = 1.0
NODES_CHECKED_EVERY_S = 5.0


@dataclass(frozen=True)
class Placement:
    """Where and how jobs run: the arguments that all commands have."""

    address: str | None
    program: str
    par: int
    processes: int | None
    retries: int
    wait_s: float


@dataclass(frozen=True)
class Job:
    """A task under the name that Ray's dashboard shows."""

    name: str
    task: on_node.Task
    # A node that should not have it.
    avoid: str | None = None


@dataclass
class _Attempt:
    job: Job
    # Nodes that failed on it.
    avoided: set[str] = field(default_factory=set)
    tries: int = 1
    # The node that it is bound to.
    node: str | None = None


# Takes a reply: whether the campaign is over. Raises `Again` if the reply is no good, `Failure` if all is lost.
Judge = Callable[[Job, on_node.Reply], bool]


class Campaign:
    """Runs jobs until all are done, one ends it, or one failed everywhere.

    With `alone`, a job has all cores of its node: what is measured there shares it with no other job.
    """

    def __init__(
        self,
        placement: Placement,
        here: on_node.Inspection,
        plan: tuple[str, str] | None = None,
        paths: tuple[str, ...] = (),
        alone: bool = False,
        probe: tuple[str, ...] = ("--version",),
    ) -> None:
        """Checks every node for the program of this machine, the plan (file and SHA-256) and what must be there."""
        self.threads = placement.par
        self.retries = placement.retries
        self.wait_s = placement.wait_s
        self.alone = alone
        self.nodes = wait_for_nodes(self.threads, self.wait_s, say)
        for remark in check_nodes(self.nodes, placement.program, here, plan, paths, probe):
            say(remark)
        count, named = len(self.nodes), ", ".join(sorted(self.nodes.values())[:8])
        say(f"{here.version}, SHA-256 {here.digest[:16]}…, on {count} node{'s' * (count > 1)}: {named}")
        # Next to the driver: it should live as long.
        pinned = NodeAffinitySchedulingStrategy(driver_node(), soft=True)
        actor = ray.remote(num_cpus=0, max_restarts=-1)(on_node.Board)
        self.board = actor.options(scheduling_strategy=pinned).remote()
        self.task = ray.remote(max_retries=0, num_cpus=self.threads)(on_node.run)
        self.pending: dict[Any, _Attempt] = {}
        # What waits for a node of its own.
        self.queue: list[_Attempt] = []
        # All nodes there ever were, and hosts that had several at the same time.
        self.names = dict(self.nodes)
        self.shared = _hosts_of_several(self.nodes)
        self.nodes_seen = self.nodes_checked = 0.0

    def run(self, jobs: Iterable[Job], judge: Judge, progress: Progress) -> bool:
        """Whether a reply ended it."""
        progress.board = self.board
        names = {}
        self.nodes_seen = time.monotonic()
        try:
            for job in jobs:
                names[job.task.number] = job.name.partition(":")[0]
                self._submit(_Attempt(job, {job.avoid} if job.avoid else set()))
            while self.pending or self.queue:
                self._fill()
                ready = self._wait()
                progress.tick(names.__getitem__)
                self._mind_nodes()
                for reference in ready:
                    if self._take(self.pending.pop(reference), reference, judge):
                        return True
            return False
        finally:
            self._cancel()

    def _wait(self) -> list[Any]:
        if self.pending:
            ready: list[Any] = ray.wait(list(self.pending), timeout=TICK_S)[0]
            return ready
        time.sleep(TICK_S)
        return []

    def _fill(self) -> None:
        """Gives each idle node a job, the first that may run there."""
        idle = self.nodes.keys() - {attempt.node for attempt in self.pending.values()}
        for attempt in list(self.queue):
            possible = sorted(idle - attempt.avoided)
            if possible:
                attempt.node = possible[0]
                idle.discard(attempt.node)
                self.queue.remove(attempt)
                self._submit(attempt)

    def _submit(self, attempt: _Attempt) -> None:
        options: dict[str, Any] = {"name": attempt.job.name}
        if self.alone:
            if attempt.node is None:
                self.queue.append(attempt)
                return
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(attempt.node, soft=False)
            options["num_cpus"] = cores_of(attempt.node, self.threads)
        elif attempt.avoided:
            options["label_selector"] = {"ray.io/node-id": f"!in({','.join(sorted(attempt.avoided))})"}
        reference = self.task.options(**options).remote(attempt.job.task, self.board)
        self.pending[reference] = attempt

    def _take(self, attempt: _Attempt, reference: Any, judge: Judge) -> bool:  # noqa: ANN401
        name = attempt.job.name.partition(":")[0]
        try:
            reply = ray.get(reference)
        except ray.exceptions.TaskUnschedulableError as error:
            if self.alone:
                self._again(attempt, f"{name}: its node died")
                return False
            raise Failure(f"{name}: no node is left for it: {error}") from None
        except ray.exceptions.RayTaskError as error:
            # Of this package, or of the node's system: a full disk, no memory.
            self._again(attempt, f"{name}: {str(error).strip().splitlines()[-1]}")
            return False
        except ray.exceptions.RayError as error:
            self._again(attempt, f"{name}: {_what_died(error)}")
            return False
        if reply.code < 0:
            self._again(attempt, f"{name}: the program was killed by signal {-reply.code} on {reply.host}")
            return False
        try:
            return judge(attempt.job, reply)
        except Again as error:
            attempt.avoided.add(reply.node)
            self._again(attempt, f"{name} on {reply.host}: {error}")
            return False

    def _again(self, attempt: _Attempt, why: str) -> None:
        if attempt.tries > self.retries:
            raise Failure(
                f"{why}\n{attempt.tries} tries are enough (--retries); the same command goes on with the rest"
            )
        self.nodes = capable_nodes(self.threads)
        if self.nodes and not self.nodes.keys() - attempt.avoided:
            everywhere = "on the only node" if len(self.nodes) == 1 else "on every node"
            raise Failure(f"{why}\nit failed {everywhere}; the same command goes on with the rest")
        say(f"{why}; trying again{' elsewhere' if attempt.avoided else ''}")
        attempt.tries += 1
        attempt.node = None
        self._submit(attempt)

    def _mind_nodes(self) -> None:
        """Nothing may wait for a node that does not come."""
        now = time.monotonic()
        if now - self.nodes_checked < NODES_CHECKED_EVERY_S:
            return
        self.nodes_checked = now
        before, self.nodes = self.nodes, capable_nodes(self.threads)
        for node in before.keys() - self.nodes.keys():
            say(f"node {before[node]} is lost")
        for node in self.nodes.keys() - before.keys() if before else ():
            say(f"node {self.nodes[node]} is new")
        self.names |= self.nodes
        self.shared |= _hosts_of_several(self.nodes)
        unfinished = [*self.pending.values(), *self.queue]
        waiting = [a for a in unfinished if not self.nodes.keys() - a.avoided]
        if not waiting:
            self.nodes_seen = now
        elif now - self.nodes_seen > self.wait_s:
            name = waiting[0].job.name.partition(":")[0]
            raise Failure(
                f"{name}: no node that could run it for {self.wait_s:.0f} s; the same command goes on with the rest"
            )

    def _cancel(self) -> None:
        for reference in self.pending:
            # The worker process dies, and the program with it, since its standard input closes.
            ray.cancel(reference, force=True)
        self.pending.clear()
        self.queue.clear()


def _hosts_of_several(nodes: dict[str, str]) -> set[str]:
    return {host for host, count in Counter(nodes.values()).items() if count > 1}


def _what_died(error: Exception) -> str:
    kinds = {
        "NodeDiedError": "its node died",
        "WorkerCrashedError": "its worker process died",
        "OutOfMemoryError": "its node had no memory left",
        "TaskCancelledError": "it was cancelled",
        "LocalRayletDiedError": "its node died",
        "ObjectLostError": "its node died before the result arrived",
        "OwnerDiedError": "its node died before the result arrived",
    }
    lines = str(error).strip().splitlines()
    return kinds.get(type(error).__name__, lines[0] if lines else type(error).__name__)
