"""A forged chain, its plan, and the program, as tests need them.

unittest, since the tests then need nothing but what Ray brings: the same command runs them everywhere.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

SALT = "00112233445566778899aabbccddeeff" * 2
# The figures that one pass and all parts have in common.
FIGURES = ("tip_height", "tip_hash", "blocks", "txs", "inputs", "outputs", "block_bytes", "utxo")
TIMEOUT_S = 240


@cache
def program() -> str:
    """The path of `assay`."""
    found = shutil.which(os.environ.get("ASSAY", "assay"))
    if found is None:
        raise unittest.SkipTest("no program `assay`: set ASSAY")
    return str(Path(found).absolute())


@cache
def scratch() -> Path:
    """A folder that ends with the process."""
    folder = tempfile.TemporaryDirectory(prefix="assay-cluster-tests-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def folder_of(test: unittest.TestCase) -> Path:
    """A folder for a test, which is not there yet."""
    return scratch() / "-".join(test.id().split(".")[-2:])


def assay(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs the program."""
    return subprocess.run([program(), *map(str, arguments)], capture_output=True, text=True, timeout=TIMEOUT_S)


def good(output: subprocess.CompletedProcess[str]) -> Any:  # noqa: ANN401 (JSON)
    """The JSON of a command that succeeds."""
    assert output.returncode == 0, output.stderr
    return json.loads(output.stdout)


def cluster(*arguments: str | Path) -> list[str]:
    """The command line of `assay-cluster`."""
    return [sys.executable, "-m", "assay_cluster", *map(str, arguments)]


def run(*arguments: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs `assay-cluster`."""
    env = {**os.environ, "ASSAY": program(), **(env or {})}
    return subprocess.run(cluster(*arguments), capture_output=True, text=True, env=env, timeout=TIMEOUT_S)


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Fails if nothing happens."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"no {what} in {TIMEOUT_S} s"
        time.sleep(0.02)


class Chain:
    """A forged chain in a folder: what one pass says of it, and a plan of five parts of blocks and one of coins."""

    def __init__(self, folder: Path, recipe: str, scale: str, chain: str) -> None:
        self.folder = folder
        blocks, spent = folder / "chain", folder / "spent"
        assert assay("chain", "forge", recipe, "--scale", scale, "--out", blocks).returncode == 0
        files = ("--blocks", blocks, "--write-spent", spent, "--write-hints", folder / "hints.dat")
        self.whole = good(assay("validate", "--chain", chain, *files, "--json"))
        self.plan = self.make_plan("plan", chain)

    def make_plan(self, name: str, chain: str, *more: str, parts: int = 5) -> Path:
        """Another plan of it."""
        plan, blocks, spent = self.folder / name, self.folder / "chain", self.folder / "spent"
        fixed = ("--blocks", blocks, "--spent", spent, "--parts", str(parts), "--out", plan, "--json")
        good(assay("shard", "plan", "--chain", chain, *fixed, *more))
        return plan


class Raylets:
    """A head without cores and three nodes of one core, on the loopback interface."""

    def __init__(self) -> None:
        # Not every test needs Ray.
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        self.nodes = [self.add() for _ in range(3)]

    @property
    def address(self) -> str:
        """For `--address`."""
        return str(self.cluster.address)

    def add(self, **more: object) -> Any:  # noqa: ANN401 (no stubs)
        """Another node."""
        return self.cluster.add_node(num_cpus=1, include_dashboard=False, **more)

    def kill_node_of(self, worker: int) -> None:
        """Kills the raylet whose child a worker is."""
        raylet = parent(worker)
        for node in self.nodes:
            if node.all_processes["raylet"][0].process.pid == raylet:
                self.nodes.remove(node)
                self.cluster.remove_node(node, allow_graceful=False)
                return
        raise AssertionError(f"no node has the raylet {raylet}")


@cache
def raylets() -> Raylets:
    """One cluster for all tests: it takes most of the time that a test takes."""
    shared = Raylets()
    atexit.register(shared.cluster.shutdown)
    return shared


def shared() -> tuple[str, str]:
    """Arguments that use it; without them a command starts a cluster of its own, which one test is enough for."""
    return "--address", raylets().address


@cache
def bitcoin() -> Chain:
    """A valid chain."""
    return Chain(scratch() / "bitcoin", "bitcoin-scaling", "0.02", "regtest")


@cache
def rejected_plan() -> Path:
    """A plan that takes a Bitcoin Cash chain for one of Bitcoin, whose rules it breaks."""
    chain = Chain(scratch() / "cash", "bch-scaling", "0.0005", "bch-regtest")
    return chain.make_plan("wrong", "regtest")


class SlowProgram:
    """A program that is `assay`, only slower in parts, and that leaves a line for each part that it begins."""

    def __init__(self, folder: Path, seconds: float, word: str = "--part") -> None:
        self.word = word
        folder.mkdir()
        self.log = folder / "log"
        self.log.touch()
        self.path = folder / "assay"
        self.path.write_text(
            "#!/bin/sh\n"
            f'case "$*" in *"{word} "*)\n'
            f'  echo "$$ $PPID $*" >> {self.log}\n'
            f"  sleep {seconds};;\n"
            "esac\n"
            f'exec {program()} "$@"\n'
        )
        self.path.chmod(0o755)

    def begun(self) -> list[tuple[int, int, int]]:
        """Process, the one that started it, and part, in order."""
        lines = [line.split() for line in self.log.read_text().splitlines()]
        return [(int(words[0]), int(words[1]), int(words[words.index(self.word) + 1])) for words in lines]

    def parts(self) -> list[int]:
        """The parts that began, in order."""
        return [part for _, _, part in self.begun()]


def parts_in(results: Path) -> dict[str, bytes]:
    """The results in a folder."""
    return {path.name: path.read_bytes() for path in sorted(results.glob("part-*.txt"))}


def is_alive(process: int) -> bool:
    """Whether a process runs."""
    try:
        return _stat(process)[0] != "Z"
    except FileNotFoundError:
        return False


def parent(process: int) -> int:
    """The process that started it."""
    return int(_stat(process)[1])


def _stat(process: int) -> list[str]:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
