"""Campaigns over ranges of seeds.

Each range is a run of a program whose exit status 1 is a find, which ends the campaign. What ranges report is added up
to what one run over all of them reports. A range that has ended is kept in the folder of results as `range-00003.json`,
so that a campaign goes on after an interruption; what a find left lies in `found/`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay_cluster.campaign import Campaign, Job, Placement
from assay_cluster.cluster import connected, program_here
from assay_cluster.errors import Again, Failure
from assay_cluster.node import Reply, Task
from assay_cluster.progress import Progress, say
from assay_cluster.results import same_campaign, write


@dataclass(frozen=True)
class Range:
    """One run of the program."""

    label: str
    # "{out}" stands for a folder on the node.
    arguments: tuple[str, ...]
    # Work in it, in the campaign's unit.
    count: int


@dataclass(frozen=True)
class Seeds:
    """A campaign."""

    kind: str
    unit: str
    ranges: tuple[Range, ...]
    # Fields of a report that are added up; all of them, where `None`.
    added: tuple[str, ...] | None
    out: Path
    placement: Placement


def kernel(
    out: Path, placement: Placement, seed: int, blocks: int, round_blocks: int, rounds: int, first_round: int
) -> Seeds:
    """`assay-peer-kernel compare`, some rounds a range."""
    ranges = []
    size = rounds * round_blocks
    for start in range(0, blocks, size):
        count = min(size, blocks - start)
        first = first_round + start // round_blocks
        last = first + -(-count // round_blocks) - 1
        arguments = ["compare", "--seed", str(seed), "--first-round", str(first), "--blocks", str(count)]
        arguments += ["--round-blocks", str(round_blocks), "--jobs", str(placement.par), "--out", "{out}", "--json"]
        ranges.append(Range(f"rounds {first} to {last}", tuple(arguments), count))
    return Seeds("compare-kernel", "blocks", tuple(ranges), None, out, placement)


def crash(out: Path, placement: Placement, seeds: range, kills: int, scale: str, more: list[str]) -> Seeds:
    """`assay crash`, a seed a range; chains are forged from the seed, too. Times are in the runs' own reports."""
    added = ("kills", "kills_by_activity", "rounds", "blocks_acknowledged", "blocks_lost", "turns_back", "verified")
    ranges = []
    for seed in seeds:
        arguments = ["crash", "--seed", str(seed), "--kills", str(kills), "--scale", scale, *more]
        ranges.append(Range(f"seed {seed}", (*arguments, "--out", "{out}", "--json"), kills))
    return Seeds("crash", "kills", tuple(ranges), added, out, placement)


def run(campaign: Seeds, as_json: bool) -> int:
    """Prints the report of all ranges; the exit status."""
    here = program_here(campaign.placement.program)
    try:
        campaign.out.mkdir(parents=True, exist_ok=True)
        arguments = [list(one.arguments) for one in campaign.ranges]
        same_campaign(campaign.out, {"program": here.digest, "ranges": arguments})
        reports = {number: report for number in range(len(campaign.ranges)) if (report := _read(campaign, number))}
    except OSError as error:
        raise Failure(f"{campaign.out}: {error.strerror or error}") from None
    missing = [number for number in range(len(campaign.ranges)) if number not in reports]
    if reports:
        say(f"{len(reports)} of {len(campaign.ranges)} ranges have a result")
    if missing and not any(report["found"] for report in reports.values()):
        with connected(campaign.placement.address, campaign.placement.processes):
            _place(campaign, missing, reports, here.digest, Campaign(campaign.placement, here))
    ended = [reports[number] for number in sorted(reports)]
    found = any(report["found"] for report in ended)
    if as_json:
        head = {"schema": 1, "campaign": campaign.kind, "ranges": len(ended), "found": found}
        print(json.dumps(head | _whole(campaign, [report["report"] for report in ended]), indent=2))
    else:
        count = sum(campaign.ranges[number].count for number in reports)
        print(f"{'a find' if found else 'nothing found'} in {count} {campaign.unit}, {len(ended)} ranges")
    if found:
        say(f"a find: {campaign.out / 'found'}")
    return int(found)


def _place(campaign: Seeds, missing: list[int], reports: dict[int, Any], digest: str, placed: Campaign) -> None:
    progress = Progress(
        {number: float(campaign.ranges[number].count) for number in missing}, len(reports), campaign.unit, "range"
    )

    def judge(job: Job, reply: Reply) -> bool:
        number = job.task.number
        if reply.code not in (0, 1):
            raise Again(reply.stderr or f"exit status {reply.code}")
        try:
            report = {"found": reply.code == 1, "report": json.loads(reply.stdout)}
        except ValueError:
            raise Again("its report is no JSON") from None
        if report["found"]:
            for name, data in reply.files.items():
                path = campaign.out / "found" / f"range-{number:05}" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        write(_path(campaign, number), json.dumps(report).encode(), 0o666)
        reports[number] = report
        one = campaign.ranges[number]
        progress.end(number, f"range {number} ({one.label})", one.count, reply.host, reply.elapsed_s)
        if report["found"]:
            say(f"range {number} has a find; the rest is cancelled")
        return bool(report["found"])

    def job(number: int) -> Job:
        one = campaign.ranges[number]
        task = Task(number, campaign.placement.program, digest, one.arguments, evidence=("**/*",))
        return Job(f"range {number}: {one.label}", task)

    placed.run(map(job, missing), judge, progress)


def _path(campaign: Seeds, number: int) -> Path:
    return campaign.out / f"range-{number:05}.json"


def _read(campaign: Seeds, number: int) -> Any:  # noqa: ANN401 (JSON)
    path = _path(campaign, number)
    if not path.exists():
        return None
    try:
        report = json.loads(path.read_text())
        return {"found": bool(report["found"]), "report": dict(report["report"])}
    except (ValueError, KeyError, TypeError):
        raise Failure(f"{path}: is no report of a range; remove it") from None


def _whole(campaign: Seeds, reports: list[dict[str, Any]]) -> dict[str, Any]:
    if campaign.added is None:
        whole: dict[str, Any] = {}
        for report in reports:
            whole = _plus(whole, {key: value for key, value in report.items() if key != "seed"})
        return {"seed": reports[0]["seed"], **whole} if reports else whole
    whole = {}
    for report in reports:
        whole = _plus(whole, {key: report[key] for key in campaign.added})
    return {**whole, "runs": reports}


def _plus(first: Any, second: Any) -> Any:  # noqa: ANN401 (JSON)
    """Sums of numbers and of objects field by field; lists one after the other."""
    if isinstance(first, dict):
        names = sorted(first.keys() | second.keys())
        return {
            name: _plus(first[name], second[name]) if name in first and name in second else (first | second)[name]
            for name in names
        }
    return first + second
