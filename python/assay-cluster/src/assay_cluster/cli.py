"""The arguments."""

from __future__ import annotations

import argparse
import os
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

FINDS = "Exit status: 0 nothing was found, 1 a find, 2 the campaign could not be finished, 130 interrupted."


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
    _add_compare_kernel(commands)
    _add_crash(commands)
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
    command.add_argument(
        "--blocks", metavar="DIR", help="folder of the block files on the nodes, if not where the plan says"
    )
    command.add_argument(
        "--spent", metavar="DIR", help="folder of the spent coins on the nodes, if not where the plan says"
    )
    command.add_argument(
        "--coins",
        metavar="FILE",
        help="snapshot of the coins left over on the nodes, if not where the plan says",
    )
    command.add_argument(
        "--audit",
        type=_percent,
        default=0.0,
        metavar="PERCENT",
        help="of the parts, drawn after the run, to be judged again on other nodes; the bytes must be the same",
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_validate)


def _add_compare_kernel(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "compare-kernel",
        help="Compare verdicts on generated blocks with Bitcoin Core's kernel",
        description="Runs `assay-peer-kernel compare` (peers/kernel) over ranges of its rounds; the report (--json) is "
        "the one of a single run over all of them. The first disagreement ends the campaign; the blocks are "
        "in RESULTS/found. After an interruption the same command goes on.",
        epilog=FINDS,
    )
    _add_out(command)
    _add_cluster(command, "assay-peer-kernel", "ASSAY_PEER_KERNEL")
    command.add_argument("--seed", type=_natural, default=1, metavar="S", help="where all choices begin [default: 1]")
    command.add_argument("--blocks", type=_positive, default=100_000, metavar="N", help="blocks [default: 100000]")
    command.add_argument(
        "--round-blocks", type=_positive, default=1500, metavar="N", help="blocks of a round [default: 1500]"
    )
    command.add_argument(
        "--rounds", type=_positive, default=4, metavar="N", help="rounds of a range, which is run as one [default: 4]"
    )
    command.add_argument("--first-round", type=_natural, default=0, metavar="N", help="the first [default: 0]")
    command.add_argument("--json", action="store_true", help="print the report of all ranges as JSON")
    command.set_defaults(run=_compare_kernel)


def _add_crash(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "crash",
        help="Kill nodes at random times and check that they lose nothing",
        description="Runs `assay crash` for each seed of a range. The first loss ends the campaign; what the node left "
        "is in RESULTS/found, up to 64 MiB. After an interruption the same command goes on.",
        epilog=FINDS,
    )
    _add_out(command)
    _add_cluster(command)
    command.add_argument("--seeds", type=_seeds, required=True, metavar="A..B", help="seeds, B included")
    command.add_argument("--kills", type=_positive, default=50, metavar="N", help="kills for each seed [default: 50]")
    command.add_argument("--scale", default="0.02", metavar="F", help="size of the chains [default: 0.02]")
    command.add_argument("--p2p", action="store_true", help="let the blocks come from a second node")
    command.add_argument("--index", action="store_true", help="run the node with its index too")
    command.add_argument("--json", action="store_true", help="print sums and the report of each seed as JSON")
    command.set_defaults(run=_crash)


def _add_out(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="RESULTS",
        help="folder for results, on this machine; created if missing",
    )


def _add_cluster(command: argparse.ArgumentParser, program: str = "assay", variable: str = "ASSAY") -> None:
    command.add_argument(
        "--address",
        metavar="ADDR",
        help="cluster to use: HOST:PORT, or `auto` for the one that this machine is part of "
        "[default: this machine alone]",
    )
    command.add_argument(
        "--assay" if program == "assay" else "--program",
        dest="program",
        default=os.environ.get(variable, program),
        metavar="PATH",
        help=f"the program, on every node [env: {variable}] [default: {program}, by PATH]",
    )
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
        help="tries after the first for a part that could not be judged [default: 3]",
    )
    command.add_argument(
        "--wait",
        type=_natural,
        default=300,
        metavar="SECONDS",
        help="how long to wait for a node that can run a part [default: 300]",
    )


def _validate(arguments: argparse.Namespace) -> int:
    from assay_cluster.validate import Options, validate

    return validate(
        Options(
            plan=arguments.plan,
            out=arguments.out,
            placement=_placement(arguments),
            blocks=_absolute(arguments.blocks),
            spent=_absolute(arguments.spent),
            coins=_absolute(arguments.coins),
            audit_percent=arguments.audit,
            json=arguments.json,
        )
    )


def _compare_kernel(arguments: argparse.Namespace) -> int:
    from assay_cluster import seeds

    sizes = (arguments.blocks, arguments.round_blocks, arguments.rounds, arguments.first_round)
    return seeds.run(seeds.kernel(arguments.out, _placement(arguments), arguments.seed, *sizes), arguments.json)


def _crash(arguments: argparse.Namespace) -> int:
    from assay_cluster import seeds

    more = ["--p2p"] * arguments.p2p + ["--index"] * arguments.index
    wanted = (arguments.seeds, arguments.kills, arguments.scale, more)
    return seeds.run(seeds.crash(arguments.out, _placement(arguments), *wanted), arguments.json)


def _placement(arguments: argparse.Namespace) -> Placement:
    from assay_cluster.campaign import Placement

    if arguments.address and arguments.processes:
        raise Failure("--processes is of this machine; with --address the cluster knows its cores")
    return Placement(
        address=arguments.address,
        program=_program(arguments.program),
        par=arguments.par,
        processes=arguments.processes,
        retries=arguments.retries,
        wait_s=arguments.wait,
    )


def main(arguments: list[str] | None = None) -> int:
    """The exit status."""
    parsed = parser().parse_args(arguments)
    try:
        return int(parsed.run(parsed))
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


def _absolute(path: str | None) -> str | None:
    return str(Path(path).absolute()) if path else None


def _positive(text: str) -> int:
    number = _natural(text)
    if number < 1:
        raise argparse.ArgumentTypeError("give 1 or more")
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
