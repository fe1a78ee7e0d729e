"""What runs on the nodes.

It is sent to them by value, so they need Ray and the program alone: nothing here may import the rest of the package.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any


class Secret:
    """A text that no log, traceback or dashboard shows."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return "Secret"


@dataclass(frozen=True)
class Task:
    """A run of the program."""

    number: int
    program: str
    # SHA-256 of the program; a node with another one does not run it.
    digest: str
    # "{out}" stands for a new folder, "{node}" for the beginning of Ray's id of the node.
    arguments: tuple[str, ...]
    # Written to standard input, which stays open until the program ends.
    secret: Secret | None = None
    # Patterns of files in the folder to be returned, the smallest first, up to `FILES_BYTES_MAX`.
    files: tuple[str, ...] = ()
    # Folders that are made in the folder.
    folders: tuple[str, ...] = ()
    # Folders elsewhere that the program leaves, "{pid}" being its number.
    leftovers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reply:
    """What came of it."""

    # As `subprocess` has it: below zero the number of the signal.
    code: int
    stdout: str
    # The last lines.
    stderr: str
    node: str
    host: str
    elapsed_s: float
    files: dict[str, bytes] = field(default_factory=dict)
    # Of the program: Ray's workers are nice unless it is asked not to.
    niceness: int = 0


@dataclass(frozen=True)
class Inspection:
    """What a node has."""

    node: str
    host: str
    # What keeps it from running the program.
    trouble: str | None
    version: str = ""
    digest: str = ""


def inspect(
    program: str,
    plan: tuple[str, str] | None,
    paths: tuple[str, ...],
    where: tuple[str, str] | None = None,
    probe: tuple[str, ...] = ("--version",),
) -> Inspection:
    """`plan`: file and SHA-256 of its bytes; `paths` must be there; `where` names a machine that is no node.

    With the arguments `probe` the program prints its version, or at least starts.
    """
    node, host = where or _whereabouts()

    def bad(trouble: str) -> Inspection:
        return Inspection(node, host, trouble)

    found = shutil.which(program)
    if found is None:
        return bad(f"the program {program} is not there; give its path (--assay)")
    try:
        version = subprocess.run([found, *probe], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        return bad(f"{found} does not start: {error}")
    if version.returncode != 0:
        return bad(f"{found} {' '.join(probe)} ends with status {version.returncode}")
    if plan is not None:
        try:
            digest = hashlib.sha256(Path(plan[0]).read_bytes()).hexdigest()
        except OSError as error:
            return bad(f"{plan[0]}: {error.strerror}; the plan must be at this path on every node")
        if digest != plan[1]:
            return bad(f"{plan[0]} is another plan than on the driver")
    for path in paths:
        if not os.access(path, os.R_OK):
            return bad(f"{path}: not there, or not readable; give its path on the nodes")
    return Inspection(node, host, None, version.stdout.strip() or Path(found).name, _digest(found))


def run(task: Task, board: Any) -> Reply:  # noqa: ANN401 (the handle of an actor)
    """Runs the program and returns what it left; `board` gets its progress."""
    node, host = _whereabouts()
    start = time.monotonic()

    def reply(code: int, stdout: str, stderr: str, files: dict[str, bytes] | None = None) -> Reply:
        niceness = os.getpriority(os.PRIO_PROCESS, 0)
        return Reply(code, stdout, stderr, node, host, time.monotonic() - start, files or {}, niceness)

    program = shutil.which(task.program)
    if program is None:
        return reply(2, "", f"the program {task.program} is not there")
    if _digest(program) != task.digest:
        return reply(2, "", f"{program} is another program than on the driver")
    board.note.remote(task.number, host, 0, 0, 0.0)
    with tempfile.TemporaryDirectory(prefix="assay-cluster-") as out:
        arguments = [argument.replace("{out}", out).replace("{node}", node[:8]) for argument in task.arguments]
        for folder in task.folders:
            (Path(out) / folder).mkdir()
        try:
            process = subprocess.Popen(
                [program, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=_end_with_parent,
            )
        except OSError as error:
            return reply(2, "", f"{program} does not start: {error}")
        with process:
            assert process.stdin and process.stdout and process.stderr
            tail: deque[str] = deque(maxlen=20)
            relay = threading.Thread(target=_relay, args=(process.stderr, tail, task.number, host, board), daemon=True)
            relay.start()
            if task.secret:
                # A program that has ended before it read has a status that says why.
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(task.secret.text)
                    process.stdin.flush()
            stdout = process.stdout.read()
            code = process.wait()
            relay.join()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        for pattern in task.leftovers:
            shutil.rmtree(pattern.replace("{pid}", str(process.pid)), ignore_errors=True)
        files = _collect(Path(out), task.files)
    return reply(code, stdout, "".join(tail).strip(), files)


def _end_with_parent() -> None:
    """In the child: it is terminated when the worker dies, or it would go on next to what runs here afterwards."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def _collect(folder: Path, patterns: tuple[str, ...]) -> dict[str, bytes]:
    found = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    files, left = {}, FILES_BYTES_MAX
    for path in sorted(found, key=lambda path: (path.stat().st_size, path)):
        left -= path.stat().st_size
        if left < 0:
            break
        files[str(path.relative_to(folder))] = path.read_bytes()
    return files


class Board:
    """An actor that knows how far the running parts are."""

    def __init__(self) -> None:
        self.running: dict[int, tuple[str, int, int, float]] = {}

    def note(self, number: int, host: str, done: int, total: int, rate: float) -> None:
        self.running[number] = (host, done, total, rate)

    def read(self, ended: list[int]) -> dict[int, tuple[str, int, int, float]]:
        """`ended`: numbers that need not be kept."""
        for number in ended:
            self.running.pop(number, None)
        return self.running


def _relay(lines: IO[str], tail: deque[str], number: int, host: str, board: Any) -> None:  # noqa: ANN401
    for line in lines:
        progress = _PROGRESS.search(line)
        if progress:
            done, total, rate = progress.groups()
            board.note.remote(number, host, int(done), int(total), float(rate))
        else:
            tail.append(line[:1000])


def _digest(path: str) -> str:
    """SHA-256 of a file, computed once for each process and state of the file."""
    stat = Path(path).stat()
    key = (path, stat.st_size, stat.st_mtime_ns)
    if key not in _DIGESTS:
        _DIGESTS[key] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return _DIGESTS[key]


def _whereabouts() -> tuple[str, str]:
    """Ray's number of this node, and its name and address."""
    import ray

    return (
        ray.get_runtime_context().get_node_id(),
        f"{os.uname().nodename} ({ray.util.get_node_ip_address()})",
    )


# What passes through Ray's memory.
FILES_BYTES_MAX = 64 << 20
_DIGESTS: dict[tuple[str, int, int], str] = {}
_PROGRESS = re.compile(r"(\d+) of (\d+) inputs, (\d+) inputs/s, ETA")
