"""`assay-cluster stats`: Parquet files of a chain by range of heights, then one SQL query over all of them.

A range is one `assay chain stats --heights A..B --parquet`; `assay chain sql --parquet` takes the folder of ranges.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay_cluster.campaign import Campaign, Job, Placement
from assay_cluster.cluster import connected, program_here
from assay_cluster.errors import Again, Failure
from assay_cluster.node import FILES_BYTES_MAX, Inspection, Reply, Task
from assay_cluster.progress import Progress, say
from assay_cluster.results import same_campaign, write

TABLES = ("blocks.parquet", "txs.parquet")


@dataclass(frozen=True)
class Options:
    """The arguments of the command."""

    blocks: str
    chain: str | None
    ranges: int
    out: Path
    placement: Placement
    sql: str | None
    # How the answer is printed: a flag of `assay chain sql`, or nothing.
    form: str | None


def run(options: Options) -> int:
    """Writes the ranges that are missing, and asks; the exit status."""
    here = program_here(options.placement.program)
    start, last = _heights(options)
    size = -(-(last + 1 - start) // options.ranges)
    ranges = [(first, min(last, first + size - 1)) for first in range(start, last + 1, size)]
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        same_campaign(options.out, {"program": here.digest, "blocks": options.blocks, "ranges": ranges})
    except OSError as error:
        raise Failure(f"{options.out}: {error.strerror or error}") from None
    missing = [number for number in range(len(ranges)) if not _is_done(options.out, number)]
    if len(missing) < len(ranges):
        say(f"{len(ranges) - len(missing)} of {len(ranges)} ranges are there")
    if missing:
        with connected(options.placement.address, options.placement.processes):
            placed = Campaign(options.placement, here, paths=(options.blocks,))
            _place(options, ranges, missing, placed, here)
    say(f"parquet: {options.out / 'parquet'}")
    return _ask(options) if options.sql else 0


def _heights(options: Options) -> tuple[int, int]:
    """First and last of the chain in the block files of this machine; reads the headers, and a block or two.

    The first is 1 in forged chains, whose files lack the genesis block.
    """
    report = _program(options, ["chain", "stats", "--heights", "0..1", "--json", *_source(options)])
    try:
        counted = json.loads(report.stdout)
        return int(counted["first_height"]), int(counted["chain_last_height"])
    except (ValueError, KeyError, TypeError):
        raise Failure("`assay chain stats` gave no heights; is the program of this version?") from None


def _source(options: Options) -> list[str]:
    return ["--blocks", options.blocks, *(["--chain", options.chain] if options.chain else [])]


def _program(options: Options, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([options.placement.program, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(done.stderr.strip() or f"assay {' '.join(arguments[:2])} ended with status {done.returncode}")
    return done


def _place(
    options: Options, ranges: list[tuple[int, int]], missing: list[int], placed: Campaign, here: Inspection
) -> None:
    weights = {number: float(ranges[number][1] - ranges[number][0] + 1) for number in missing}
    progress = Progress(weights, len(ranges) - len(missing), "blocks", "range")

    def judge(job: Job, reply: Reply) -> bool:
        number = job.task.number
        if reply.code == 1:
            raise Failure(f"range {number}: blocks could not be counted: {reply.stderr}")
        if reply.code != 0:
            raise Again(reply.stderr or f"exit status {reply.code}")
        if reply.files.keys() != set(TABLES):
            limit = FILES_BYTES_MAX >> 20
            raise Failure(
                f"range {number} makes more than {limit} MiB of Parquet; give more --ranges, and an empty folder"
            )
        _store(options.out, number, reply.files, reply.stdout)
        first, last = ranges[number]
        progress.end(number, f"range {number} ({first} to {last})", last - first + 1, reply.host, reply.elapsed_s)
        return False

    def job(number: int) -> Job:
        first, last = ranges[number]
        arguments = ["chain", "stats", *_source(options), "--heights", f"{first}..{last}"]
        arguments += ["--parquet", "{out}", "--threads", str(options.placement.par), "--json"]
        task = Task(number, options.placement.program, here.digest, tuple(arguments), files=TABLES)
        return Job(f"range {number}: heights {first} to {last}", task)

    placed.run(map(job, missing), judge, progress)


def _folder(out: Path, number: int) -> Path:
    return out / "parquet" / f"range-{number:05}"


def _is_done(out: Path, number: int) -> bool:
    return (_folder(out, number) / "counts.json").is_file()


def _store(out: Path, number: int, files: dict[str, bytes], report: str) -> None:
    folder = _folder(out, number)
    folder.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        write(folder / name, files[name], 0o666)
    # Last, since it says that the range is there.
    write(folder / "counts.json", report.encode(), 0o666)


def totals(out: Path) -> dict[str, Any]:
    """Sums over all ranges, as `assay chain stats` counted them."""
    sums: dict[str, Any] = {}
    for path in sorted(out.glob("parquet/range-*/counts.json")):
        for name, value in json.loads(path.read_text())["total"].items():
            if isinstance(value, int):
                sums[name] = sums.get(name, 0) + value
    return sums


def _ask(options: Options) -> int:
    command = [options.placement.program, "chain", "sql", str(options.sql), "--parquet", str(options.out / "parquet")]
    asked = subprocess.run(command + ([options.form] if options.form else []), stdout=subprocess.PIPE, text=True)
    print(asked.stdout, end="", flush=True)
    return asked.returncode if asked.returncode in (0, 1) else 2
