"""The arguments."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from assay_cluster import __version__
from assay_cluster.errors import Failure

EXIT = (
    "Exit status: 0 the chain is valid, 1 it is not or a file of coins is wrong (`assay validate` shows which), 2 that "
    "could not be found out, 130 interrupted."
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
    command.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="RESULTS",
        help="folder for results, on this machine; created if missing",
    )
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
    command.set_defaults(run=_validate)


def _add_cluster(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--address",
        metavar="ADDR",
        help="cluster to use: HOST:PORT, or `auto` for the one that this machine is part of "
        "[default: this machine alone]",
    )
    command.add_argument(
        "--assay",
        default=os.environ.get("ASSAY", "assay"),
        metavar="PATH",
        help="the program, on every node [env: ASSAY] [default: assay, by PATH]",
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
    command.add_argument("--json", action="store_true", help="print JSON")


def _validate(arguments: argparse.Namespace) -> int:
    from assay_cluster.validate import Options, validate

    if arguments.address and arguments.processes:
        raise Failure("--processes is of this machine; with --address the cluster knows its cores")
    return validate(
        Options(
            plan=arguments.plan,
            out=arguments.out,
            address=arguments.address,
            assay=_program(arguments.assay),
            blocks=_absolute(arguments.blocks),
            spent=_absolute(arguments.spent),
            coins=_absolute(arguments.coins),
            par=arguments.par,
            processes=arguments.processes,
            retries=arguments.retries,
            wait_s=arguments.wait,
            audit_percent=arguments.audit,
            json=arguments.json,
        )
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
