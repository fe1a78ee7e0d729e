"""`assay-cluster validate`: the parts of a plan."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import subprocess
import time
from dataclasses import replace

from assay_cluster.campaign import Campaign, Job
from assay_cluster.cluster import capable_nodes, connected, program_here
from assay_cluster.errors import Again, Failure
from assay_cluster.node import Inspection, Reply, Secret, Task
from assay_cluster.plan import TEXT_NAME, Part, Plan
from assay_cluster.progress import Progress, say
from assay_cluster.results import Results

# What a plan names, and options replace.
FILES = ("blocks", "spent", "coins", "hints")


def run(options: argparse.Namespace) -> int:
    """The exit status."""
    plan = Plan.open(options.plan)
    results = Results(options.out, plan)
    here = program_here(options.placement.program)
    there = [results.read(part.number) for part in plan.parts]
    missing = [part for part, result in zip(plan.parts, there, strict=True) if result is None]
    if len(missing) < len(there):
        say(f"{len(there) - len(missing)} of {len(there)} parts have a result")
    is_rejected = any(result and result.rejected for result in there)
    if not is_rejected and (missing or options.audit_percent):
        with connected(options.placement.address, options.placement.processes):
            _Run(options, plan, results, here).all(missing)
    return _merge(options)


class _Run:
    def __init__(self, options: argparse.Namespace, plan: Plan, results: Results, here: Inspection) -> None:
        self.options = options
        self.plan = plan
        self.results = results
        self.digest = here.digest
        text = (options.plan / TEXT_NAME).absolute()
        self.plan_dir = str(text.parent)
        plan_text = (str(text), hashlib.sha256(text.read_bytes()).hexdigest())
        self.campaign = Campaign(options.placement, here, plan_text, self._paths())
        self.secret = Secret(results.salt)
        # Which node computed which part.
        self.done_by: dict[int, Reply] = {}

    def all(self, missing: list[Part]) -> None:
        start = time.monotonic()
        if missing:
            progress = self._progress(missing, len(self.plan.parts) - len(missing))
            inputs = {part.number: part for part in missing}

            def judge(job: Job, reply: Reply) -> bool:
                number = job.task.number
                rejected = self._store(number, reply)
                part = inputs[number]
                progress.end(number, f"part {number} ({part.label})", part.inputs, reply.host, reply.elapsed_s)
                if rejected:
                    say(f"part {number} is rejected; the rest is cancelled")
                return rejected

            if self.campaign.run(map(self._job, missing), judge, progress):
                return
            elapsed_s = time.monotonic() - start
            count = sum(part.inputs for part in missing)
            say(f"{len(missing)} parts in {elapsed_s:.2f} s, {count / elapsed_s:.0f} inputs/s")
        if self.options.audit_percent:
            self._audit()

    def _store(self, number: int, reply: Reply) -> bool:
        """Whether the part was rejected."""
        data = self._result_of(number, reply)
        rejected = self.results.check(number, data).rejected is not None
        if rejected != (reply.code == 1):
            raise Again(f"exit status {reply.code} does not fit the result")
        self.results.store(number, data)
        self.done_by[number] = reply
        return rejected

    def _result_of(self, number: int, reply: Reply) -> bytes:
        data = reply.files.get(self.results.path(number).name)
        if reply.code not in (0, 1) or data is None:
            raise Again(reply.stderr or f"exit status {reply.code}")
        return data

    def _audit(self) -> None:
        """Parts drawn now, when nobody can know which, computed once more by other nodes."""
        parts = self.plan.parts
        count = min(len(parts), math.ceil(len(parts) * self.options.audit_percent / 100))
        drawn = sorted(random.SystemRandom().sample(parts, count), key=lambda part: part.number)
        nodes = capable_nodes(self.options.placement.par)
        numbers = ", ".join(str(part.number) for part in drawn)
        say(f"audit: parts {numbers} again{' elsewhere' if len(nodes) > 1 else ''}")
        progress = self._progress(drawn, 0)

        def judge(job: Job, reply: Reply) -> bool:
            number = job.task.number
            data = self._result_of(number, reply)
            self.results.check(number, data)
            if data != self.results.path(number).read_bytes():
                first = self.done_by[number].host if number in self.done_by else "an earlier run"
                raise Failure(
                    f"part {number}: {first} and {reply.host} disagree; the run is invalid, and one of them wrong"
                )
            progress.end(number, f"audit of part {number}", 0, reply.host, reply.elapsed_s)
            return False

        def elsewhere(part: Part) -> Job:
            job, first = self._job(part), self.done_by.get(part.number)
            avoid = first.node if first and nodes.keys() - {first.node} else None
            return replace(job, name=f"audit of {job.name}", avoid=avoid)

        self.campaign.run(map(elsewhere, drawn), judge, progress)
        say(f"audit: {count} parts gave the same bytes")

    def _job(self, part: Part) -> Job:
        given = {name: getattr(self.options, name) for name in FILES}
        more = [word for name, path in given.items() if path for word in (f"--{name}", path)]
        arguments = ["shard", "run", self.plan_dir, "--part", str(part.number), "--out", "{out}"]
        arguments += ["--par", str(self.options.placement.par), "--with-parent", "--json", *more]
        name = self.results.path(part.number).name
        task = Task(part.number, self.options.placement.program, self.digest, tuple(arguments), self.secret, (name,))
        return Job(part.name, task)

    def _paths(self) -> tuple[str, ...]:
        named = [name for name in FILES if getattr(self.plan, name)]
        return tuple(getattr(self.options, name) or getattr(self.plan, name) for name in named)

    def _progress(self, parts: list[Part], already: int) -> Progress:
        return Progress({part.number: part.weight_us for part in parts}, already, "inputs", "part")


def _merge(options: argparse.Namespace) -> int:
    """The verdict, from `assay shard merge`; results are on this machine."""
    command = [options.placement.program, "shard", "merge", str(options.plan), str(options.out)]
    merged = subprocess.run(command + ["--json"] * options.json, stdout=subprocess.PIPE, text=True)
    if options.json and merged.stdout:
        # Nothing but what was promised reaches standard output.
        json.loads(merged.stdout)
    print(merged.stdout, end="", flush=True)
    return merged.returncode if merged.returncode in (0, 1) else 2
