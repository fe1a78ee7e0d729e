"""`assay-cluster fuzz`: the repository's fuzz targets over nodes, each with many seeds.

A job is one run of one target, as `cargo xtask fuzz` runs it, with a seed of its own. The first finding ends the
campaign. What every run adds to the corpus returns with it, and at the end libFuzzer itself merges all of it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay_cluster.campaign import Campaign, Job
from assay_cluster.cluster import connected
from assay_cluster.errors import Again, Failure
from assay_cluster.node import Reply, Task, inspect
from assay_cluster.progress import Progress, say
from assay_cluster.results import same_campaign, write

# The limits of `cargo xtask fuzz`.
LIMITS = ("-max_len=32768", "-timeout=10", "-rss_limit_mb=2048")
_UNITS = re.compile(r"^stat::number_of_executed_units:\s*(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class One:
    """A run of a target."""

    target: str
    seed: int


def run(options: argparse.Namespace) -> int:
    """Prints what was run and found; the exit status."""
    targets = _targets(options)
    # Every target with a seed before the next seed: an early end has tried all of them.
    runs = [One(target, seed) for seed in options.seeds for target in targets]
    # libFuzzer explains itself and ends.
    probe = (f"--target={targets[0]}", "-help=1")
    here = inspect(options.placement.program, None, (), ("", "driver"), probe)
    if here.trouble:
        raise Failure(here.trouble)
    work = {
        "program": here.digest,
        "targets": targets,
        "seeds": [options.seeds.start, options.seeds.stop],
        "seconds": options.seconds,
    }
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        same_campaign(options.out, work)
        reports = {number: report for number, one in enumerate(runs) if (report := _read(options.out, one))}
    except OSError as error:
        raise Failure(f"{options.out}: {error.strerror or error}") from None
    missing = [number for number in range(len(runs)) if number not in reports]
    if reports:
        say(f"{len(reports)} of {len(runs)} runs have a result")
    if missing and not any(report["found"] for report in reports.values()):
        paths = (options.corpus,) if options.corpus else ()
        with connected(options.placement.address, options.placement.processes):
            placed = Campaign(options.placement, here, paths=paths, probe=probe)
            _place(options, runs, missing, reports, here.digest, placed)
    merged = {target: _merge(options, target) for target in targets}
    return _report(options, [reports[number] for number in sorted(reports)], merged)


def _targets(options: argparse.Namespace) -> list[str]:
    """Those named, or all that the program lists."""
    program = options.placement.program
    try:
        listed = subprocess.run([program, "--list"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise Failure(f"{program} does not start: {error}; `cargo xtask fuzz` builds it") from None
    known = listed.stdout.split()
    if listed.returncode != 0 or not known:
        raise Failure(f"{program} lists no fuzz targets; `cargo xtask fuzz` builds the program that does")
    for name in options.targets:
        if name not in known:
            raise Failure(f"{program}: there is no target {name}; there are {', '.join(known)}")
    return list(dict.fromkeys(options.targets)) or known


def _place(
    options: argparse.Namespace,
    runs: list[One],
    missing: list[int],
    reports: dict[int, Any],
    digest: str,
    placed: Campaign,
) -> None:
    progress = Progress(dict.fromkeys(missing, 1.0), len(reports), "executions", "run")

    def judge(job: Job, reply: Reply) -> bool:
        number = job.task.number
        one = runs[number]
        found = {name: data for name, data in reply.files.items() if name.startswith("artifacts/")}
        if reply.code != 0 and not found:
            raise Again(reply.stderr or f"exit status {reply.code}")
        units = _UNITS.search(reply.stderr)
        executions = int(units[1]) if units else 0
        report = {
            "target": one.target,
            "seed": one.seed,
            "found": bool(found),
            "executions": executions,
            "elapsed_s": reply.elapsed_s,
            "host": reply.host,
            "inputs": _keep(options.out, one, found, reply),
        }
        write(_path(options.out, one), json.dumps(report).encode(), 0o666)
        reports[number] = report
        progress.end(number, f"{one.target}, seed {one.seed}", executions, reply.host, reply.elapsed_s)
        if found:
            say(f"{one.target} has a finding; the rest is cancelled")
        return bool(found)

    def job(number: int) -> Job:
        one = runs[number]
        arguments = [f"--target={one.target}", f"-seed={one.seed}", f"-max_total_time={options.seconds}", *LIMITS]
        arguments += ["-print_final_stats=1", "-artifact_prefix={out}/artifacts/", "{out}/new"]
        if options.corpus:
            arguments.append(f"{options.corpus}/{one.target}")
        task = Task(
            number,
            options.placement.program,
            digest,
            tuple(arguments),
            files=("artifacts/*", "new/*"),
            folders=("artifacts", "new"),
            # `folder` of fuzz/src/input.rs: libFuzzer ends the process without a chance to remove it.
            leftovers=("/dev/shm/assay-fuzz-{pid}", "/tmp/assay-fuzz-{pid}"),
        )
        return Job(f"run {number}: {one.target}, seed {one.seed}", task)

    placed.run(map(job, missing), judge, progress)


def _keep(out: Path, one: One, found: dict[str, bytes], reply: Reply) -> list[str]:
    """Writes what a run left; the files of its findings."""
    kept = []
    for name, data in found.items():
        path = out / "found" / f"{one.target}-seed-{one.seed}" / Path(name).name
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, data, 0o666)
        write(path.parent / "log.txt", reply.stderr.encode(), 0o666)
        kept.append(str(path))
    for name, data in reply.files.items():
        if name.startswith("new/"):
            folder = out / "new" / one.target
            folder.mkdir(parents=True, exist_ok=True)
            # Named by its SHA-1, as libFuzzer does: the same input is the same file.
            write(folder / Path(name).name, data, 0o666)
    return kept


def _merge(options: argparse.Namespace, target: str) -> int:
    """The fewest inputs that reach all that the old and the new ones reach, in `corpus/TARGET`; how many there are."""
    new, corpus = options.out / "new" / target, options.out / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    given = Path(options.corpus) / target if options.corpus else None
    folders = [str(folder) for folder in (new, given) if folder and folder.is_dir()]
    if folders:
        command = [options.placement.program, f"--target={target}", "-merge=1", *LIMITS, str(corpus), *folders]
        merged = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        if merged.returncode != 0:
            say(f"{target}: the corpora could not be merged, and stay in {new}: {merged.stderr[-300:].strip()}")
    return sum(1 for path in corpus.iterdir() if path.is_file())


def _report(options: argparse.Namespace, reports: list[dict[str, Any]], corpus: dict[str, int]) -> int:
    findings = [report for report in reports if report["found"]]
    executions = sum(report["executions"] for report in reports)
    if options.json:
        head = {"schema": 1, "campaign": "fuzz", "found": bool(findings), "executions": executions}
        print(json.dumps({**head, "corpus": corpus, "runs": reports}, indent=2))
    else:
        for target, inputs in corpus.items():
            own = [report for report in reports if report["target"] == target]
            count = sum(report["executions"] for report in own)
            print(f"{target:<16}{len(own):>5} runs{count:>14} executions{inputs:>8} inputs")
        print(f"{'a finding' if findings else 'nothing found'} in {executions} executions, {len(reports)} runs")
    for report in findings:
        for path in report["inputs"]:
            say(f"{report['target']}, seed {report['seed']}: {path}")
    return int(bool(findings))


def _path(out: Path, one: One) -> Path:
    return out / f"run-{one.target}-{one.seed}.json"


def _read(out: Path, one: One) -> Any:  # noqa: ANN401 (JSON)
    path = _path(out, one)
    if not path.exists():
        return None
    try:
        report = json.loads(path.read_text())
        return {**report, "found": bool(report["found"]), "executions": int(report["executions"])}
    except (ValueError, KeyError, TypeError):
        raise Failure(f"{path}: is no report of a run; remove it") from None
