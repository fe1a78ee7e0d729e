"""The folder of results, as `assay shard run` leaves it: the salt, and a file for each part.

Layout: `docs/formats.md`.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay_cluster.errors import Again, Failure
from assay_cluster.plan import Plan

TITLE = "assay shard result 2"


@dataclass(frozen=True)
class Result:
    """The head of a result; `assay shard merge` reads the rest."""

    part: int
    # Why a block does not pass, if one does not.
    rejected: str | None


class Results:
    """Results of one plan under one salt."""

    def __init__(self, dir: Path, plan: Plan) -> None:
        self.dir = dir
        self.plan = plan
        try:
            dir.mkdir(parents=True, exist_ok=True)
            # Hexadecimal digits and a line feed, as the program takes it on standard input.
            self.salt = _salt_in(dir)
        except OSError as error:
            raise Failure(f"{dir}: {error.strerror or error}") from None
        self.commitment = _commitment(plan, self.salt)

    def path(self, part: int) -> Path:
        return self.dir / f"part-{part:05}.txt"

    def read(self, part: int) -> Result | None:
        """The result of a part; `None` where there is none."""
        path = self.path(part)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from None
        try:
            return self.check(part, data)
        except Again as error:
            raise Failure(f"{path}: {error}") from None

    def check(self, part: int, data: bytes) -> Result:
        """Raises `Again` if these are not the bytes of a result of this part, plan and salt."""
        body, found, end = data.rpartition(b"end ")
        if not found:
            raise Again("the result is cut off; remove it")
        if end != _printed(hashlib.sha256(body).digest()) + b"\n":
            raise Again("the result is damaged; remove it")
        lines = body.decode(errors="replace").splitlines()
        if len(lines) < 5 or lines[0] != TITLE:
            raise Again("this is no result of a part")
        if lines[1] != "plan " + _printed(self.plan.id).decode():
            raise Again("the result is of another plan")
        if lines[2] != "salt " + _printed(self.commitment).decode():
            raise Again("the result is of a run with another salt; begin again in an empty folder")
        if lines[3] != f"part {part}":
            raise Again("the result is of another part")
        rejected = lines[4].removeprefix("rejected ") if lines[4].startswith("rejected ") else None
        return Result(part, rejected)

    def store(self, part: int, data: bytes) -> None:
        """Writes a result that was checked, whole or not at all; one that is there already must say the same."""
        path = self.path(part)
        try:
            if path.exists():
                if path.read_bytes() == data:
                    return
                raise Failure(f"{path}: another result of the same part is there: a machine is broken, or lies")
            write(path, data, 0o666)
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from None


def _salt_in(dir: Path) -> str:
    """Only its owner may read it: who makes the files of coins must not know it before the verdict stands."""
    path = dir / "salt"
    try:
        salt = path.read_text()
    except FileNotFoundError:
        salt = secrets.token_hex(32) + "\n"
        write(path, salt.encode(), 0o600)
    except UnicodeDecodeError:
        salt = ""
    digits = salt.rstrip("\r\n")
    if len(digits) != 64 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
        raise Failure(f"{path}: the salt is not a line of 64 hexadecimal digits")
    return digits + "\n"


def _commitment(plan: Plan, salt: str) -> bytes:
    if not plan.needs_salt:
        return bytes(32)
    return hashlib.sha256(b"assay shard salt" + bytes.fromhex(salt)).digest()


def _printed(digest: bytes) -> bytes:
    """Digests are printed as block hashes are, last byte first."""
    return digest[::-1].hex().encode()


def same_campaign(folder: Path, ours: dict[str, Any]) -> None:
    """Results of other work, or of another program, do not belong together."""
    path = folder / "campaign.json"
    # As it is read again: lists, no tuples.
    ours = json.loads(json.dumps(ours))
    if not path.exists():
        write(path, json.dumps(ours).encode(), 0o666)
        return
    try:
        theirs = json.loads(path.read_text())
    except ValueError:
        theirs = None
    if theirs != ours:
        raise Failure(f"{folder}: is of a campaign with other arguments, or another program; take an empty folder")


def write(path: Path, data: bytes, mode: int) -> None:
    """Whole or not at all."""
    fresh = path.with_name(f"{path.stem}.{os.getpid()}.new")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(handle)
    fresh.replace(path)
