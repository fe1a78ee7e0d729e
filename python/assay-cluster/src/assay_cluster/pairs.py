"""`assay-cluster run`: pairs of a plan of the laboratory, each on a machine of its own.

A pair is one `assay run PLAN --pairs N --pair I`: all of its runs on one node, with no other job of Ray's meanwhile.
Results are kept as `machines/NAME/pair-00003/`; `assay compare --machines` judges them, here nothing is computed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay_cluster import __version__
from assay_cluster.campaign import Campaign, Job
from assay_cluster.cluster import connected, program_here
from assay_cluster.errors import Again, Failure
from assay_cluster.node import Inspection, Reply, Task
from assay_cluster.progress import Progress, say
from assay_cluster.results import same_campaign, write

RESULTS = "results.json"


@dataclass
class Pairs:
    """What is in the folder of results."""

    dir: Path
    # Folder of each pair that is there, counted from 1.
    done: dict[int, Path] = field(default_factory=dict)

    def read(self) -> None:
        for path in sorted(self.dir.glob("machines/*/pair-*/" + RESULTS)):
            number = path.parent.name.removeprefix("pair-")
            if not number.isdigit():
                raise Failure(f"{path.parent}: is no folder of a pair; remove it")
            if int(number) in self.done:
                raise Failure(f"pair {int(number)} is in {self.done[int(number)]} and in {path.parent}; remove one")
            self.done[int(number)] = path.parent

    def store(self, number: int, machine: str, results: bytes, record: dict[str, Any]) -> None:
        folder = self.dir / "machines" / machine / f"pair-{number:05}"
        folder.mkdir(parents=True, exist_ok=True)
        write(folder / "pair.json", json.dumps({"pair": number, "machine": machine, **record}).encode(), 0o666)
        # Last, since it says that the pair is there.
        write(folder / RESULTS, results, 0o666)
        self.done[number] = folder

    def records(self) -> list[dict[str, Any]]:
        records = []
        for number, folder in sorted(self.done.items()):
            try:
                records.append(json.loads((folder / "pair.json").read_text()))
            except (OSError, ValueError):
                records.append({"pair": number, "machine": folder.parent.name})
        return records


def run(options: argparse.Namespace) -> int:
    """Runs what is missing, and prints what all pairs say; the exit status."""
    here = program_here(options.placement.program)
    pairs = Pairs(options.out)
    try:
        plan = _plan_file(options)
        options.out.mkdir(parents=True, exist_ok=True)
        work = {"plan": plan or options.plan, "pairs": options.pairs, "arguments": list(options.more)}
        same_campaign(options.out, {"program": here.digest, **work})
        pairs.read()
    except OSError as error:
        raise Failure(f"{error.filename or options.out}: {error.strerror or error}") from None
    missing = [number for number in range(1, options.pairs + 1) if number not in pairs.done]
    if pairs.done:
        say(f"{len(pairs.done)} of {options.pairs} pairs have a result")
    if missing:
        if options.placement.address is None:
            # Ray's own workers stand back behind everything else, which is wrong for what is measured.
            os.environ.setdefault("RAY_worker_niceness", "0")
        with connected(options.placement.address, options.placement.processes):
            _place(options, missing, pairs, Campaign(options.placement, here, plan, alone=True), here)
    return _report(options, pairs, here)


def _place(options: argparse.Namespace, missing: list[int], pairs: Pairs, placed: Campaign, here: Inspection) -> None:
    progress = Progress(dict.fromkeys(missing, 1.0), len(pairs.done), "runs", "pair")
    if placed.shared:
        say(f"several nodes on one host ({', '.join(sorted(placed.shared))}): their pairs disturb each other")

    def judge(job: Job, reply: Reply) -> bool:
        number = job.task.number
        data = reply.files.get(RESULTS)
        if reply.code not in (0, 1) or data is None:
            raise Again(reply.stderr or f"exit status {reply.code}, and no results")
        runs = _check(number, data)
        record: dict[str, Any] = {
            "node": reply.node,
            "host": reply.host,
            "elapsed_s": reply.elapsed_s,
            "niceness": reply.niceness,
            "shared_host": placed.names[reply.node] in placed.shared,
            "invalid": reply.code == 1,
        }
        machine = machine_name(reply.node, placed.names[reply.node], record["shared_host"])
        pairs.store(number, machine, data, record)
        progress.end(number, f"pair {number}", runs, reply.host, reply.elapsed_s)
        if reply.code == 1:
            last = reply.stderr.splitlines()[-1:] or ["see its results"]
            say(f"pair {number} has an invalid run: {last[0]}")
        return False

    def job(number: int) -> Job:
        arguments = ["run", _plan_path(options.plan), "--pairs", str(options.pairs), "--pair", str(number)]
        arguments += ["--out", "{out}", *options.more]
        if options.chains:
            # A chain is kept for each node, since two nodes may share a disk.
            arguments += ["--chain", f"{options.chains}/{Path(options.plan).stem}-{{node}}"]
        task = Task(number, options.placement.program, here.digest, tuple(arguments), files=(RESULTS,))
        return Job(f"pair {number}: {options.plan}", task)

    placed.run(map(job, missing), judge, progress)


def _check(number: int, data: bytes) -> int:
    """Runs in the results of a pair."""
    try:
        targets = json.loads(data)["targets"]
        rounds = {run["repeat"] for target in targets for run in target["runs"]}
        runs = sum(len(target["runs"]) for target in targets)
    except (ValueError, KeyError, TypeError):
        raise Again("its results are none that this version knows") from None
    if len(targets) < 2:
        raise Failure("the plan has one target, and a pair has two: give --target twice, behind --")
    if rounds != {number - 1}:
        raise Again(f"its results are not those of pair {number}")
    return runs


def machine_name(node: str, host: str, is_shared: bool) -> str:
    """A folder's name for a node: its host and address, and Ray's id where there are several of them."""
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", host).strip("-.") or "node"
    return f"{name}-{node[:8]}" if is_shared else name


def _report(options: argparse.Namespace, pairs: Pairs, here: Inspection) -> int:
    """Has the pairs judged, and writes both forms of the report."""
    machines = options.out / "machines"

    def compare(form: str) -> subprocess.CompletedProcess[str]:
        command = [options.placement.program, "compare", "--machines", str(machines), *([form] if form else [])]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise Failure(f"the pairs cannot be compared: {done.stderr.strip()}")
        return done

    judged = compare("--json")
    records = pairs.records()
    report = {
        "schema": 1,
        "campaign": "run",
        "plan": options.plan,
        "pairs": options.pairs,
        "command": options.line,
        "versions": _versions(here),
        "chain": _chain(next(iter(pairs.done.values()))),
        "caveats": _caveats(records),
        "runs": records,
        "comparison": json.loads(judged.stdout),
    }
    try:
        write(options.out / "run.json", (json.dumps(report, indent=2) + "\n").encode(), 0o666)
        write(options.out / "run.md", _page(report, compare("--markdown").stdout).encode(), 0o666)
    except OSError as error:
        raise Failure(f"{options.out}: {error.strerror or error}") from None
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        print(compare("").stdout, end="")
        for caveat in report["caveats"]:
            print(f"note: {caveat}")
    say(f"report: {options.out / 'run.md'}")
    return int(judged.returncode == 1 or any(record.get("invalid") for record in records))


def _versions(here: Inspection) -> dict[str, str]:
    import ray

    return {
        "assay": here.version.removeprefix("assay "),
        "assay_sha256": here.digest,
        "assay_cluster": __version__,
        "ray": ray.__version__,
        "python": platform.python_version(),
    }


def _chain(folder: Path) -> dict[str, Any]:
    """What was validated; the program has checked that it is the same for all pairs."""
    results = json.loads((folder / RESULTS).read_text())
    names = ("recipe", "seed", "scale", "variant", "height", "tip", "inputs")
    chain = {name: results["chain"].get(name) for name in names}
    versions = {target["name"]: target["version"] for target in results["targets"]}
    return {**chain, "targets": versions}


def _caveats(records: list[dict[str, Any]]) -> list[str]:
    caveats = []
    if any(record.get("shared_host") for record in records):
        caveats.append("several nodes were on one host, and measured at the same time: this is a test, no measurement")
    nice = sorted({record["niceness"] for record in records if record.get("niceness")})
    if nice:
        values = ", ".join(map(str, nice))
        caveats.append(f"the runs had niceness {values}; start Ray with RAY_worker_niceness=0 on every node")
    invalid = [str(record["pair"]) for record in records if record.get("invalid")]
    if invalid:
        caveats.append(f"invalid runs in pairs {', '.join(invalid)}")
    return caveats


def _page(report: dict[str, Any], compared: str) -> str:
    versions, chain = report["versions"], report["chain"]
    lines = [
        f"# {report['plan']}: {report['pairs']} pairs over machines",
        "",
        f"Command: `{report['command']}`",
        "",
        f"Chain: recipe {chain['recipe']}, seed {chain['seed']}, scale {chain['scale']}, {chain['variant']}, "
        f"{chain['height']} blocks, {chain['inputs']} inputs, tip `{chain['tip']}`.",
        "",
        "Targets: " + ", ".join(f"{name} ({version})" for name, version in chain["targets"].items()) + ".",
        "",
        f"Program: assay {versions['assay']} (SHA-256 `{versions['assay_sha256']}`), placed by assay-cluster "
        f"{versions['assay_cluster']}, Ray {versions['ray']}, Python {versions['python']}.",
        "",
        compared.rstrip(),
        *[f"- note: {caveat}" for caveat in report["caveats"]],
        "",
        "## Pairs",
        "",
        "| pair | machine | elapsed, s | niceness |",
        "|---:|---|---:|---:|",
    ]
    for record in report["runs"]:
        elapsed = f"{record['elapsed_s']:.1f}" if "elapsed_s" in record else "unknown"
        lines.append(f"| {record['pair']} | {record['machine']} | {elapsed} | {record.get('niceness', 'unknown')} |")
    return "\n".join(lines) + "\n"


def _plan_file(options: argparse.Namespace) -> tuple[str, str] | None:
    """File and SHA-256 of a plan that is one; of a built-in name, whether the program knows it."""
    path = Path(_plan_path(options.plan))
    if path.is_absolute():
        return str(path), hashlib.sha256(path.read_bytes()).hexdigest()
    shown = subprocess.run([options.placement.program, "plan", "show", options.plan], capture_output=True, text=True)
    if shown.returncode != 0:
        raise Failure(shown.stderr.strip())
    return None


def _plan_path(plan: str) -> str:
    is_path = os.sep in plan or bool(Path(plan).suffix)
    return str(Path(plan).absolute()) if is_path else plan
