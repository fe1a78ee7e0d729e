"""The arguments."""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from assay_cluster import __version__
from assay_cluster.errors import Failure

if TYPE_CHECKING:
    from assay_cluster.campaign import Placement

EXIT = (
    "Exit status: 0 the chain is valid, 1 it is not or a file of coins is wrong (`assay validate` shows which), 2 that "
    "could not be found out, 130 interrupted."
)

COMPARED = (
    "Exit status: 0 the pairs were compared, 1 a target became slower or a run is invalid, 2 the pairs could not be "
    "made or compared, 130 interrupted."
)


def parser() -> argparse.ArgumentParser:
    """All commands."""
    top = argparse.ArgumentParser(
        prog="assay-cluster",
        description="Places work of the program `assay` on many machines, by Ray. Data goes to standard output, "
        "everything else to standard error.",
    )
    top.add_argument("--version", action="version", version=f"assay-cluster {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_validate(commands)
    _add_run(commands)
    _add_fuzz(commands)
    return top


def _add_validate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "validate",
        help="Validate a chain in parts",
        description="Judges all parts of a plan that have no result yet, each by `assay shard run` on some node, and "
        "merges the results. Make the plan with `assay shard plan`. The salt and the results are those of "
        "`assay shard run --all`: after an interruption either command goes on. A rejected part ends the run; any "
        "other failure of a part is tried again on another node. Every node needs the same program, the plan and the "
        "files of blocks and coins at one path.",
        epilog=EXIT,
    )
    command.add_argument("plan", type=Path, metavar="PLAN", help="folder of the plan, at this path on every node")
    _add_out(command)
    _add_cluster(command)
    for flag, metavar, files in [
        ("--blocks", "DIR", "folder of the block files"),
        ("--spent", "DIR", "folder of the spent coins"),
        ("--coins", "FILE", "snapshot of the coins left over"),
        ("--hints", "FILE", "hints file"),
    ]:
        text = f"{files} on the nodes, if not where the plan says"
        command.add_argument(flag, type=_absolute, metavar=metavar, help=text)
    command.add_argument(
        "--audit",
        dest="audit_percent",
        type=_percent,
        default=0.0,
        metavar="PERCENT",
        help="of the parts, drawn after the run, to be judged again on other nodes; the bytes must be the same",
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(module="validate")


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "run",
        help="Run the pairs of a plan of the laboratory, each on a machine of its own",
        usage="assay-cluster run PLAN --pairs N --out RESULTS [options] [-- ARGUMENTS of `assay run`]",
        description="Runs each pair of a plan by `assay run PLAN --pairs N --pair I`, whole on one node, which has no "
        "other job of Ray's meanwhile; a pair whose node is lost is run again elsewhere from its beginning. `assay "
        "compare --machines RESULTS/machines` then judges all pairs: ratios within each machine first, then over "
        "machines. What follows `--` goes to `assay run`, such as `-- --target assay --target assay=PATH --scale 0.1`; "
        "programs and files that it names must be on every node. The report is in RESULTS/run.md and run.json. After "
        "an interruption the same command goes on.",
        epilog=COMPARED,
    )
    command.add_argument("plan", metavar="PLAN", help="a built-in plan (`assay plan list`), or a file on every node")
    command.add_argument("--pairs", type=_pairs, required=True, metavar="N", help="pairs, 1 to 100, fixed in advance")
    _add_out(command)
    _add_cluster(command, has_par=False)
    command.add_argument(
        "--chains",
        type=_absolute,
        metavar="DIR",
        help="folder on every node where the chain is kept for its later pairs [default: forged again for each]",
    )
    command.add_argument("--json", action="store_true", help="print the report as JSON")
    command.set_defaults(module="pairs")


def _add_fuzz(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "fuzz",
        help="Run the fuzz targets with many seeds",
        description="Runs the fuzz targets that `cargo xtask fuzz` has built, each with every seed of a range. The "
        "first finding ends the campaign; its input is in RESULTS/found. Inputs that reach something new return from "
        "every node, and libFuzzer merges them with those given into RESULTS/corpus. After an interruption the same "
        "command goes on.",
        epilog="Exit status: 0 nothing was found, 1 a finding, 2 the campaign could not be finished, 130 interrupted.",
    )
    command.add_argument("targets", nargs="*", metavar="TARGET", help="fuzz targets [default: all]")
    command.add_argument(
        "--program",
        required=True,
        metavar="PATH",
        help="the program of all targets, on every node: fuzz/target/HOST/release/fuzz of the repository",
    )
    command.add_argument(
        "--corpus",
        type=_absolute,
        metavar="DIR",
        help="folder with a folder of inputs for each target, on every node, such as fuzz/corpus [default: none]",
    )
    command.add_argument("--seeds", type=_seeds, required=True, metavar="A..B", help="seeds, B included; 0 is none")
    command.add_argument("--seconds", type=_positive, default=60, metavar="N", help="seconds of each run [default: 60]")
    _add_out(command)
    _add_cluster(command, has_program=False)
    command.add_argument("--json", action="store_true", help="print all runs as JSON")
    command.set_defaults(module="fuzz")


def _add_out(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="RESULTS",
        help="folder for results, on this machine; created if missing",
    )


def _add_cluster(command: argparse.ArgumentParser, has_program: bool = True, has_par: bool = True) -> None:
    command.add_argument(
        "--address",
        metavar="ADDR",
        help="cluster to use: HOST:PORT, or `auto` for the one that this machine is part of "
        "[default: this machine alone]",
    )
    if has_program:
        command.add_argument(
            "--assay",
            dest="program",
            default=os.environ.get("ASSAY", "assay"),
            metavar="PATH",
            help="the program, on every node [env: ASSAY] [default: assay, by PATH]",
        )
    if has_par:
        command.add_argument(
            "--par",
            type=_positive,
            default=1,
            metavar="T",
            help="threads of one part, as many cores as it occupies [default: 1]",
        )
    command.add_argument(
        "--processes",
        type=_positive,
        metavar="P",
        help="without --address: cores of this machine to use [default: all]",
    )
    command.add_argument(
        "--retries",
        type=_natural,
        default=3,
        metavar="N",
        help="tries after the first for what failed, elsewhere where possible [default: 3]",
    )
    command.add_argument(
        "--wait",
        type=_natural,
        default=300,
        metavar="SECONDS",
        help="how long to wait for a node that can do the work [default: 300]",
    )


def _placement(arguments: argparse.Namespace) -> Placement:
    from assay_cluster.campaign import Placement

    if arguments.address and arguments.processes:
        raise Failure("--processes is of this machine; with --address the cluster knows its cores")
    return Placement(
        address=arguments.address,
        program=_program(getattr(arguments, "program", "")),
        par=getattr(arguments, "par", 1),
        processes=arguments.processes,
        retries=arguments.retries,
        wait_s=arguments.wait,
    )


def main(arguments: list[str] | None = None) -> int:
    """The exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    # argparse would mix what is behind it with its own arguments.
    ours, more = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    parsed = parser().parse_args(ours)
    if more and parsed.command != "run":
        parser().error("arguments behind -- are for `assay run`")
    parsed.more, parsed.line = more, shlex.join(["assay-cluster", *words])
    try:
        parsed.placement = _placement(parsed)
        # Imported late, since it imports Ray.
        return int(importlib.import_module(f"assay_cluster.{parsed.module}").run(parsed))
    except Failure as failure:
        print(f"assay-cluster: {failure}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("assay-cluster: interrupted; the same command goes on", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _program(path: str) -> str:
    """A name is looked up on each node, a path is one for all."""
    return str(Path(path).absolute()) if os.sep in path else path


def _absolute(path: str) -> str | None:
    return str(Path(path).absolute()) if path else None


def _positive(text: str) -> int:
    number = _natural(text)
    if number < 1:
        raise argparse.ArgumentTypeError("give 1 or more")
    return number


def _pairs(text: str) -> int:
    number = _natural(text)
    if not 1 <= number <= 100:
        raise argparse.ArgumentTypeError("give 1 to 100")
    return number


def _natural(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


def _seeds(text: str) -> range:
    first, separator, last = text.partition("..")
    seeds = range(_natural(first), _natural(last if separator else first) + 1)
    if not seeds:
        raise argparse.ArgumentTypeError(f"{text!r} holds no seed; give A..B, or A alone")
    return seeds


def _percent(text: str) -> float:
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = -1.0
    if not 0 <= number <= 100:
        raise argparse.ArgumentTypeError(f"{text!r}: give 0 to 100")
    return number


if __name__ == "__main__":
    sys.exit(main())
