"""Reads what a driver needs of a plan: parts, folders, identity. Layout: `docs/formats.md`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from assay_cluster.errors import Failure

TITLE = "assay shard plan 1"
TEXT_NAME = "plan.txt"


@dataclass(frozen=True)
class Part:
    """A range of blocks, or a piece of the UTXO set."""

    number: int
    label: str
    inputs: int
    # Expected microseconds of a core, as `assay shard plan` weighs blocks.
    weight_us: float

    @property
    def name(self) -> str:
        return f"part {self.number}: {self.label}"


@dataclass
class Plan:
    """The text of a plan; the program reads the table."""

    dir: Path
    # SHA-256 of the text.
    id: bytes = b""
    blocks: str = ""
    spent: str = ""
    # The snapshot of the coins left over; none where hints say which they are, or their MuHash is known.
    coins: str | None = None
    # The hints file in place of a snapshot.
    hints: str | None = None
    parts: list[Part] = field(default_factory=list)

    @classmethod
    def open(cls, dir: Path) -> Plan:
        path = dir / TEXT_NAME
        try:
            data = path.read_bytes()
            lines = data.decode().splitlines()
        except FileNotFoundError:
            raise Failure(f"{dir}: no plan is there; `assay shard plan --out {dir}` makes one") from None
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(f"{path}: {error}") from None
        if not lines or lines[0] != TITLE:
            raise Failure(f"{path}: not a plan of this version ({TITLE}); make the plan again")
        plan = cls(dir, hashlib.sha256(data).digest())
        for number, line in enumerate(lines[1:], start=2):
            try:
                plan._take(line)
            except ValueError:
                raise Failure(f"{path}: line {number} is not one of a plan; make the plan again") from None
        if not lines[-1].startswith("table ") or not plan.parts:
            raise Failure(f"{path}: is cut off; make the plan again")
        return plan

    def _take(self, line: str) -> None:
        key, _, value = line.partition(" ")
        if key == "blocks":
            self.blocks = value
        elif key in ("spent", "core-undo"):
            self.spent = value
        elif key == "coins":
            self.coins = value.split(" ", 1)[1] if " " in value else ""
        elif key == "hints":
            self.hints = value.split(" ", 1)[1] if " " in value else ""
        elif key == "part":
            self.parts.append(_part(len(self.parts), value))

    @property
    def needs_salt(self) -> bool:
        return self.coins is not None or self.hints is not None


def _part(number: int, text: str) -> Part:
    kind, *words = text.split(" ")
    values = [int(word) for word in words]
    if kind == "blocks":
        first, last, inputs, size = values
        return Part(number, f"blocks {first} to {last}", inputs, 10 * inputs + size / 1000)
    if kind == "coins":
        _, _, coins = values
        return Part(number, f"{coins} coins left over", 0, coins)
    raise ValueError(kind)
